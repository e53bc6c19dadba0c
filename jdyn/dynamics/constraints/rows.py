"""The rows of constraints at one state: how far they are from being met, and what they demand."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics.kinematics import (
    accumulate_motion,
    carrier,
    dof_motions,
    joint_bias,
    joint_kinematics,
    moved_by,
    poses,
    velocities,
)
from jdyn.model import Model
from jdyn.model.constraints import Constraint, Moving, Placed
from jdyn.model.messages import known
from jdyn.spatial import Transform
from jdyn.spatial.rotation import skew


class Rows(NamedTuple):
    """Constraints at a time and a state: J v = b, and J a = γ.

    Attributes:
        residual: φ of the rows that constrain the configuration [m or rad].
        holonomic: Which rows of J those are.
        J: Jacobian of all rows.
        b: Velocities that they demand.
        gamma: Accelerations that they demand.
    """

    residual: Float[Array, " holonomic"]
    holonomic: np.ndarray
    J: Float[Array, "rows nv"]
    b: Float[Array, " rows"]
    gamma: Float[Array, " rows"]


def constraint_rows(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Rows:
    """The rows of several constraints, one after another: of each first those that constrain the configuration.

    Args:
        model: The mechanism.
        constraints: Whose frames and joints are among those of `model`.
        t: Time [s].
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Raises:
        ValueError: at trace time, if there is no such frame or joint, or a joint has more than one coordinate.
    """
    tree, t = _Tree.at(model, q, v), jnp.asarray(t, q.dtype)
    each = _each(constraints, t.dtype, lambda alike: _rows(alike, tree, t))
    holonomic = np.concatenate([np.arange(len(b)) < len(residual) for residual, _, b, _ in each])
    residual, J, b, gamma = (jnp.concatenate(parts) for parts in zip(*each, strict=True))
    return Rows(residual, np.flatnonzero(holonomic), J, b, gamma)


def residuals(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"]
) -> Float[Array, " holonomic"]:
    """φ of the rows that constrain the configuration [m or rad]."""
    tree, t = _Tree.at(model, q, jnp.zeros(model.nv, q.dtype)), jnp.asarray(t, q.dtype)

    def of_kind(alike):
        return (alike.of_each(lambda constraint, placed: constraint.residual(placed), tree.placed(alike, t)),)

    return jnp.concatenate([residual for (residual,) in _each(constraints, t.dtype, of_kind)])


def closed(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"]
) -> tuple[Constraint, ...]:
    """Constraints whose functions have the values that they close over as leaves: loops may not close over values that
    are differentiated or batched."""
    if not constraints:
        return ()
    tree, t = _Tree.at(model, q, jnp.zeros(model.nv, q.dtype)), jnp.asarray(t, q.dtype)

    def one(constraint):
        return constraint.closed(jax.tree.map(lambda x: x[0], tree.placed(_Alike.of([constraint], t.dtype), t)))

    return tuple(map(one, constraints))


class _Alike(NamedTuple):
    """Constraints that differ in numbers and names alone, and are traced once.

    Attributes:
        first: One of them.
        arrays: The numbers of all, along one more axis in front.
        frames, joints: Names, a row a constraint.
    """

    first: Constraint
    arrays: Any
    frames: list[tuple[str, ...]]
    joints: list[tuple[str, ...]]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], dtype: Any) -> "_Alike":
        numbers = [eqx.filter(constraint, eqx.is_array) for constraint in constraints]
        leaves = zip(*map(jax.tree.leaves, numbers), strict=True)
        stacked = [jnp.stack([x.astype(dtype) if eqx.is_inexact_array(x) else x for x in each]) for each in leaves]
        arrays = jax.tree.unflatten(jax.tree.structure(numbers[0]), stacked)
        return cls(constraints[0], arrays, [c.frames for c in constraints], [c.joints for c in constraints])

    def of_each(self, function: Callable, *rows: Any) -> Any:
        """`function` of every constraint and its rows, stacked."""

        def one(arrays, *row):
            return function(eqx.combine(arrays, self.first), *row)

        return jax.vmap(one)(self.arrays, *rows)


def _each(
    constraints: Sequence[Constraint], dtype: Any, function: Callable[[_Alike], tuple[Array, ...]]
) -> list[list[Array]]:
    """What `function` finds for those of a kind, one constraint after another."""
    kinds: dict[Any, list[int]] = {}
    for place, constraint in enumerate(constraints):
        kinds.setdefault(_kind(constraint), []).append(place)
    found: list[list[Array]] = [[] for _ in constraints]
    for places in kinds.values():
        parts = function(_Alike.of([constraints[place] for place in places], dtype))
        for row, place in enumerate(places):
            found[place] = [part[row] for part in parts]
    return found


def _kind(constraint: Constraint) -> Any:
    """What constraints that are traced together share: all but names and numbers."""
    names = (*constraint.frames, *constraint.joints, constraint.frames, constraint.joints)
    fields = {field: getattr(constraint, field.name) for field in dataclasses.fields(constraint)}
    static = tuple(x for field, x in fields.items() if field.metadata.get("static") and x not in names)
    parts = [x for field, x in fields.items() if not field.metadata.get("static")]
    arrays, rest = eqx.partition(parts, eqx.is_array)
    shapes = tuple(x.shape for x in jax.tree.leaves(arrays))
    functions = tuple(map(id, jax.tree.leaves(rest)))
    sizes = len(constraint.frames), len(constraint.joints)
    return type(constraint), sizes, static, jax.tree.structure(parts), shapes, functions


class _Tree(NamedTuple):
    """The mechanism's motion, in the world's axes and at the world's origin. The world comes last.

    Attributes:
        poses: Of bodies.
        columns: Motion of each coordinate of all joints.
        bias: Accelerations of bodies where those of all coordinates are zero.
    """

    model: Model
    q: Float[Array, " nq_full"]
    v: Float[Array, " nv_full"]
    poses: Transform
    columns: Float[Array, "nv_full 6"]
    bias: Float[Array, "bodies 6"]

    @classmethod
    def at(cls, model: Model, q: Array, v: Array) -> "_Tree":
        q, v = model.expand(q), model.expand_velocity(v)
        joints = joint_kinematics(model, q)
        X, zero = poses(model, joints.X), jnp.zeros(6, q.dtype)
        c = joint_bias(model, q, v, velocities(model, joints, v))
        bias = jax.vmap(Transform.motion_to_parent)(X, accumulate_motion(model, joints.X, c, zero))
        columns = dof_motions(model, joints, X)
        world = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]]), X, Transform.identity(q.dtype))
        return cls(model, q, v, world, columns, jnp.concatenate([bias, zero[None]]))

    def placed(self, alike: _Alike, t: Scalar) -> Placed:
        count = len(alike.frames)
        frames = tuple(map(self._poses, zip(*alike.frames, strict=True)))
        joints = tuple(self.q[self._joints(names, "q")] for names in zip(*alike.joints, strict=True))
        return Placed(jnp.broadcast_to(t, (count,)), frames, joints)

    def paths(self, alike: _Alike) -> Moving:
        """How each coordinate moves frames and joints."""
        moved = np.pad(moved_by(self.model), [(0, 1), (0, 0)])
        bodies = [self._carriers(names)[0] for names in zip(*alike.frames, strict=True)]
        frames = tuple(jnp.where(moved[body][..., None], self.columns, 0) for body in bodies)
        places = [self._joints(names, "v") for names in zip(*alike.joints, strict=True)]
        joints = tuple(jnp.asarray(np.eye(len(self.v))[place], self.v.dtype) for place in places)
        return Moving(frames, joints)

    def biases(self, alike: _Alike) -> Moving:
        """Accelerations of frames and joints where those of all coordinates are zero."""
        frames = tuple(self.bias[self._carriers(names)[0]] for names in zip(*alike.frames, strict=True))
        none = jnp.zeros(len(alike.frames), self.v.dtype)
        return Moving(frames, tuple(none for _ in alike.first.joints))

    def _poses(self, names: Sequence[str]) -> Transform:
        bodies, frames = self._carriers(names)
        X = jax.tree.map(lambda x: x[bodies], self.poses)
        if np.all(frames < 0):
            return X
        one = Transform.identity(self.q.dtype)
        Y = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]])[frames], self.model.frames, one)
        return jax.vmap(Transform.__matmul__)(X, Y)

    def _carriers(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Bodies and frames by number; -1 for the world and for a body's own frame."""
        places = [(-1, -1) if name == "world" else carrier(self.model, name) for name in names]
        bodies, frames = np.array(places).T
        return bodies, frames

    def _joints(self, names: Sequence[str], which: str) -> np.ndarray:
        topology = self.model.topology
        for name in names:
            if name not in topology.joint_names:
                raise ValueError(f"no joint is called {name!r}; {known(name, topology.joint_names)}")
            kind = topology.kinds[topology.joint(name)]
            if (kind.nq, kind.nv) != (1, 1):
                raise ValueError(
                    f"joint {name!r}: a constraint needs a joint with one coordinate, got a {kind.__name__}"
                )
        offsets = topology.q_offsets if which == "q" else topology.v_offsets
        return np.array([offsets[topology.joint(name)] for name in names])


def _rows(alike: _Alike, tree: _Tree, t: Scalar) -> tuple[Array, Array, Array, Array]:
    """φ, J, b and γ of constraints of one kind."""
    paths = tree.paths(alike)
    moving = jax.tree.map(lambda path: jnp.einsum("v,cv...->c...", tree.v, path), paths)
    residual, A, b, gamma = alike.of_each(_own_rows, tree.placed(alike, t), moving, tree.biases(alike))
    J = jnp.zeros((*b.shape, len(tree.v)), t.dtype)
    for a, path in zip(jax.tree.leaves(A), jax.tree.leaves(paths), strict=True):
        J = J + (jnp.einsum("crx,cvx->crv", a, path) if path.ndim == 3 else a[..., None] * path[:, None])
    return residual, jax.vmap(jax.vmap(tree.model.reduce_force))(J), b, gamma


def _own_rows(
    constraint: Constraint, placed: Placed, moving: Moving, bias: Moving
) -> tuple[Array, Moving, Array, Array]:
    """φ; how the rows depend on `moving`; b; and γ."""
    still = jax.tree.map(jnp.zeros_like, moving)

    def speeds(placed, moving, passing):
        """Rates of the residual, and slips; `passing` is the rate of time."""
        rates = jax.jvp(constraint.residual, (placed,), (_rate(placed, moving, passing),))[1]
        return jnp.concatenate([rates, constraint.slip(placed, moving)])

    one, none = jnp.ones_like(placed.t), jnp.zeros_like(placed.t)
    A = jax.jacfwd(lambda moving: speeds(placed, moving, none))(still)
    b = -speeds(placed, still, one)
    there = placed, moving
    _, bent = jax.jvp(lambda placed, moving: speeds(placed, moving, one), there, (_rate(placed, moving, one), bias))
    return constraint.residual(placed), A, b, -bent


def _rate(placed: Placed, moving: Moving, passing: Scalar) -> Placed:
    """How frames, as matrices, and joints change."""

    def rate(X, twist):
        turn = skew(twist[:3])
        return Transform(turn @ X.rotation, turn @ X.translation + twist[3:])

    frames = (rate(X, twist) for X, twist in zip(placed.frames, moving.frames, strict=True))
    return Placed(passing, tuple(frames), moving.joints)
