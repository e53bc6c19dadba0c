"""The bases of trees of single degrees of freedom: the ground, or bodies that move freely.

The six degrees of freedom of a free base are eliminated together, and are not in the `dof_tree`. Numbers of bases are
those of the one base where nothing else carries trees, and otherwise arrays with a row each, before lanes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import world_acceleration
from jdyn.dynamics.recursion.joint_frames import less
from jdyn.execution.at_once import at_once
from jdyn.model import Free, Model, take_rows
from jdyn.model.topology import DofTree, dof_tree
from jdyn.spatial.components import Inertia, Vector, add, cross_force, lower, scale, subtract, symmetric_product

_ORDER = range(Free.nv)


class FreeBase(eqx.Module):
    """A free base and its rotors, in its frame; or several.

    Attributes:
        inertia: Of the body alone.
        R: Rotor inertias.
    """

    inertia: Inertia
    R: Float[Array, "6 *lanes"]

    def eliminated(self, articulated: Vector) -> Vector:
        """The lower triangle of (I^A + R)⁻¹, for the sum I^A of the body and of what the children pass on."""
        A = list(articulated)
        for i in _ORDER:
            A[lower(i, i)] += self.R[i]
        return inverted(tuple(A))


class Ground(eqx.Module):
    """A base that does not move.

    Attributes:
        upward: Acceleration that stands for gravity [rad/s², m/s²].
    """

    upward: Float[Array, "6 *lanes"]

    def velocity(self, tree: DofTree, still: Vector) -> Vector:
        return still

    def motion(self, tree: DofTree, still: Vector) -> tuple[Vector, Vector]:
        """Velocity and acceleration; gravity is part of the acceleration."""
        return still, add(tuple(self.upward), still)

    def accelerated(self, tree: DofTree, I: Vector, p: Vector) -> tuple[None, None, Vector]:
        """Nothing eliminated, no accelerations of joints, and that of the base."""
        return None, None, add(tuple(self.upward), (jnp.zeros_like(p[0]),) * 6)


class MovingBase(eqx.Module):
    """A free base that moves, in its own frame; or several, perhaps beside the ground.

    Attributes:
        body: What it is.
        upward: Acceleration that stands for gravity [rad/s², m/s²], of all roots.
        v: Velocity [rad/s, m/s].
        given: What a recursion is given of its six degrees of freedom: accelerations, or forces.
        f: External force [N m, N]; None if there is none.
    """

    body: FreeBase
    upward: Float[Array, "6 *lanes"]
    v: Float[Array, "6 *lanes"]
    given: Float[Array, "6 *lanes"]
    f: Float[Array, "6 *lanes"] | None

    @property
    def external(self) -> Vector | None:
        """The external force, number by number."""
        return None if self.f is None else tuple(self.f)

    def velocity(self, tree: DofTree, still: Vector) -> Vector:
        """Velocities of all roots."""
        return at_once(add(of_roots(tree, tuple(self.v)), on_roots(tree, still)))

    def motion(self, tree: DofTree, still: Vector) -> tuple[Vector, Vector]:
        """Velocities and accelerations of all roots, where those of the base are given; gravity is part of the
        accelerations."""
        still = on_roots(tree, still)
        given = of_roots(tree, self.given, axis=1) + self.upward
        return at_once((add(of_roots(tree, tuple(self.v)), still), add(tuple(given), still)))

    def force(self, v: Vector, a: Vector) -> Vector:
        """Force that the motion of the body alone takes besides the external force."""
        return less(self.body.inertia.force(v, a), self.external)

    def accelerated(self, tree: DofTree, I: Vector, p: Vector) -> tuple[Vector, Vector, Vector]:
        """The joint eliminated, its accelerations, and those of all roots, where forces are given, from what the
        children pass on."""
        v, tau, up = map(tuple, (self.v, self.given, self.upward))
        I, p, upward = of_bases(tree, (I, p, up))
        p = less(add(p, cross_force(v, self.body.inertia.momentum(v))), self.external)
        articulated = self.body.inertia.added_to(I)
        inverse = self.body.eliminated(articulated)
        a = symmetric_product(inverse, subtract(tau, add(p, symmetric_product(articulated, upward))))
        a = of_roots(tree, a)
        a, start = at_once((a, add(up, a)))
        return inverse, of_bases(tree, a), start


Base = Ground | MovingBase


def on_roots(tree: DofTree, x: Any) -> Any:
    """One thing for all roots."""
    return x if tree.roots == 1 else jax.tree.map(lambda x: jnp.broadcast_to(x, (tree.roots, *jnp.shape(x))), x)


def of_roots(tree: DofTree, x: Any, axis: int = 0) -> Any:
    """Things of all roots, from those of free bases along an axis: of the ground, zero."""
    if tree.roots == 1 or not tree.grounded:
        return x

    def beside_the_ground(x):
        return jnp.concatenate([jnp.zeros_like(jax.lax.slice_in_dim(x, 0, 1, axis=axis)), x], axis)

    return jax.tree.map(beside_the_ground, x)


def of_bases(tree: DofTree, x: Any) -> Any:
    """Things of free bases, from those of all roots."""
    return jax.tree.map(lambda x: x[1:], x) if tree.roots > 1 and tree.grounded else x


def with_bases(tree: DofTree, own: Any, others: Any) -> Any:
    """Rows of all degrees of freedom, in the order of the full velocity: (6, *bases, *lanes) and (nb, *lanes)."""
    if tree.roots == 1:
        return jax.tree.map(lambda *x: jnp.concatenate(x), own, others)
    order = np.argsort(np.concatenate([tree.of_bases.ravel(), tree.degrees]))
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), own)
    return jax.tree.map(lambda *x: take_rows(jnp.concatenate(x), order), rows, others)


def inverted(A: Vector) -> Vector:
    """A⁻¹ of a positive definite 6×6 matrix, by sweeping one pivot after another (Goodnight 1979)."""
    # As `definite_inverse`, on numbers that have lanes: with that, forward dynamics of 1024 lanes of eight free bodies
    # with a joint each takes 1.25 times as long.
    for k in _ORDER:
        A = _swept(A, k)
        # Otherwise XLA makes a program for each number that several later ones need.
        A = at_once(A) if k == Free.nv // 2 - 1 else A
    return at_once(scale(-1.0, A))


def _swept(A: Vector, k: int) -> Vector:
    """The pivot k eliminated."""
    row = [A[lower(k, j)] for j in _ORDER]
    inverse = 1 / row[k]
    scaled = [row[j] * inverse for j in _ORDER]

    def entry(i, j):
        if k in (i, j):
            return -inverse if i == j else scaled[i + j - k]
        return A[lower(i, j)] - row[i] * scaled[j]

    return tuple(entry(i, j) for i in _ORDER for j in range(i + 1))


def free_base(model: Model) -> FreeBase | None:
    """The free bases; None where all trees stand on the ground."""
    tree = dof_tree(model.topology)
    if not tree.bases:
        return None
    own = jax.tree.map(lambda x: x[_bodies(model)], model.inertias)
    inertia = Inertia(own.mass, tuple(own.first_moment.T), tuple(own.rotational.T))
    return FreeBase(inertia, take_rows(model.armature, tree.of_bases))


def moving_base(
    model: Model,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    given: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> Base:
    """The base of a model's trees under gravity; `given` are accelerations or forces."""
    body, upward = free_base(model), base_acceleration(model, q)
    if body is None:
        return Ground(upward)
    own = dof_tree(model.topology).of_bases
    f = None if f_ext is None else f_ext[_bodies(model)].T
    return MovingBase(body, upward, take_rows(v, own), take_rows(given, own), f)


def _bodies(model: Model) -> Any:
    """The number of the base, or those of all bases."""
    bases = model.topology.bases
    return bases[0] if dof_tree(model.topology).roots == 1 else np.array(bases)


def base_acceleration(model: Model, q: Float[Array, " nq_full"]) -> Float[Array, "6 *roots"]:
    """The acceleration that stands for gravity, in the frame of what carries trees: of a free base, or of the world."""
    tree, topology = dof_tree(model.topology), model.topology
    up = world_acceleration(model, q.dtype)
    if not tree.bases:
        return up

    def turned(rotation, q):
        rotation = rotation @ Free().transform(q).rotation
        return jnp.concatenate([up[:3], rotation.T @ up[3:]])

    placed = model.placements.rotation[_bodies(model)]
    if tree.roots == 1:
        return turned(placed, q[: Free.nq])
    places = np.array([topology.q_offsets[body] for body in topology.bases])[:, None] + np.arange(Free.nq)
    rows = jax.vmap(turned)(placed, q[places])
    return jnp.concatenate([up[None], rows]).T if tree.grounded else rows.T


def unit_motions(like: Float[Array, "6 *lanes"]) -> Vector:
    """Unit motions of a free base, a row each, in arrays like the one given."""
    return tuple(jnp.zeros_like(like).at[row].set(1) for row in _ORDER)
