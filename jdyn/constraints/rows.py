"""The rows of constraints at one state: residuals, Jacobians, and the velocities and accelerations that they demand."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.constraints.groups import ConstraintGroup, by_kind
from jdyn.constraints.tree_motion import TreeMotion
from jdyn.model import Model
from jdyn.model.constraints import Constraint, Moving, Placed
from jdyn.spatial import Transform
from jdyn.spatial.rotation import skew


class ConstraintRows(NamedTuple):
    """Constraints at a time and a state: J v = b, and J a = γ.

    Attributes:
        residual: φ of the rows that constrain the configuration [m or rad].
        holonomic: Numbers of these rows in J.
        J: Jacobian of all rows.
        b: Velocities that the rows demand.
        gamma: Accelerations that the rows demand.
    """

    residual: Float[Array, " holonomic"]
    holonomic: np.ndarray
    J: Float[Array, "rows nv"]
    b: Float[Array, " rows"]
    gamma: Float[Array, " rows"]


def constraint_rows(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> ConstraintRows:
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
    tree, t = TreeMotion.at(model, q, v), jnp.asarray(t, q.dtype)
    each = by_kind(constraints, t.dtype, lambda group: _rows(group, tree, t))
    holonomic = np.concatenate([np.arange(len(b)) < len(residual) for residual, _, b, _ in each])
    residual, J, b, gamma = (jnp.concatenate(parts) for parts in zip(*each, strict=True))
    return ConstraintRows(residual, np.flatnonzero(holonomic), J, b, gamma)


def residuals(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"]
) -> Float[Array, " holonomic"]:
    """φ of the rows that constrain the configuration [m or rad]."""
    tree, t = TreeMotion.at(model, q, jnp.zeros(model.nv, q.dtype)), jnp.asarray(t, q.dtype)

    def of_kind(group):
        return (group.map(lambda constraint, placed: constraint.residual(placed), tree.placed(group, t)),)

    return jnp.concatenate([residual for (residual,) in by_kind(constraints, t.dtype, of_kind)])


def forces_on_bodies(
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    multipliers: Float[Array, " rows"],
) -> Float[Array, "nb 6"]:
    """Forces that constraints exert on the bodies of their frames, each in its frame and at its origin [N m, N], by the
    forces of all rows. Those on joints are not among them."""
    tree, t = TreeMotion.at(model, q, v), jnp.asarray(t, q.dtype)

    def of_kind(group):
        _, A, b, _ = group.map(_own_rows, tree.placed(group, t), tree.moving(group), tree.biases(group))
        return b, *A.frames

    each = by_kind(constraints, t.dtype, of_kind)
    ends = np.cumsum([len(b) for b, *_ in each])[:-1]
    # The world comes last.
    total = jnp.zeros((model.nb + 1, 6), q.dtype)
    for constraint, (_, *frames), force in zip(constraints, each, jnp.split(multipliers, ends), strict=True):
        for name, by_twist in zip(constraint.frames, frames, strict=True):
            total = total.at[tree.body(name)].add(by_twist.T @ force)
    return jax.vmap(Transform.force_to_child)(tree.poses, total)[:-1]


def closed(
    model: Model, constraints: Sequence[Constraint], t: Scalar, q: Float[Array, " nq"]
) -> tuple[Constraint, ...]:
    """Constraints whose functions have the values that they close over as leaves: loops may not close over values that
    are differentiated or batched."""
    if not constraints:
        return ()
    tree, t = TreeMotion.at(model, q, jnp.zeros(model.nv, q.dtype)), jnp.asarray(t, q.dtype)

    def one(constraint):
        return constraint.closed(
            jax.tree.map(lambda x: x[0], tree.placed(ConstraintGroup.of([constraint], t.dtype), t))
        )

    return tuple(map(one, constraints))


def largest(x: Array) -> Scalar:
    """The largest entry, whatever its sign; zero where there is none."""
    return jnp.max(jnp.abs(x), initial=0)


def _rows(group: ConstraintGroup, tree: TreeMotion, t: Scalar) -> tuple[Array, Array, Array, Array]:
    """φ, J, b and γ of constraints of one kind."""
    motion = tree.placed(group, t), tree.moving(group), tree.biases(group)
    residual, A, b, gamma = group.map(_own_rows, *motion)
    return residual, jax.vmap(jax.vmap(tree.model.reduce_force))(tree.jacobian(group, A)), b, gamma


def _own_rows(
    constraint: Constraint, placed: Placed, moving: Moving, bias: Moving
) -> tuple[Array, Moving, Array, Array]:
    """φ; the matrix of the rows by `moving`; b; and γ."""
    still = jax.tree.map(jnp.zeros_like, moving)

    def speeds(placed, moving, time_rate):
        """Rates of the residual, and slips."""
        rates = jax.jvp(constraint.residual, (placed,), (_rate(placed, moving, time_rate),))[1]
        return jnp.concatenate([rates, constraint.slip(placed, moving)])

    one, none = jnp.ones_like(placed.t), jnp.zeros_like(placed.t)
    A = jax.jacfwd(lambda moving: speeds(placed, moving, none))(still)
    b = -speeds(placed, still, one)
    motion, rates = (placed, moving), (_rate(placed, moving, one), bias)
    _, change = jax.jvp(lambda placed, moving: speeds(placed, moving, one), motion, rates)
    return constraint.residual(placed), A, b, -change


def _rate(placed: Placed, moving: Moving, time_rate: Scalar) -> Placed:
    """Rates of frames, as matrices, and of joints."""

    def rate(X, twist):
        turn = skew(twist[:3])
        return Transform(turn @ X.rotation, turn @ X.translation + twist[3:])

    frames = (rate(X, twist) for X, twist in zip(placed.frames, moving.frames, strict=True))
    return Placed(time_rate, tuple(frames), moving.joints)
