"""The base of a tree of single degrees of freedom: the ground, or a body that moves freely.

The six degrees of freedom of a free base are eliminated together, and are not in the `dof_tree`.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.at_once import at_once
from jdyn.dynamics.kinematics import world_acceleration
from jdyn.dynamics.recursion.joint_frames import less
from jdyn.model import Free, Model
from jdyn.spatial.components import Inertia, Vector, add, cross_force, lower, scale, subtract, symmetric_product

_ORDER = range(Free.nv)


class FreeBase(eqx.Module):
    """A body and its rotors, in the body's frame.

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

    def velocity(self, still: Vector) -> Vector:
        return still

    def motion(self, still: Vector) -> tuple[Vector, Vector]:
        """Velocity and acceleration; gravity is part of the acceleration."""
        return still, add(tuple(self.upward), still)

    def accelerated(self, I: Vector, p: Vector) -> tuple[None, None, Vector]:
        """Nothing eliminated, no accelerations of joints, and that of the base."""
        return None, None, add(tuple(self.upward), (jnp.zeros_like(p[0]),) * 6)


class MovingBase(eqx.Module):
    """A free base that moves, in its own frame.

    Attributes:
        body: What it is.
        upward: Acceleration that stands for gravity [rad/s², m/s²].
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

    def velocity(self, still: Vector) -> Vector:
        return at_once(add(tuple(self.v), still))

    def motion(self, still: Vector) -> tuple[Vector, Vector]:
        """Velocity and acceleration, where its accelerations are given; gravity is part of the acceleration."""
        return at_once((add(tuple(self.v), still), add(tuple(self.given + self.upward), still)))

    def force(self, v: Vector, a: Vector) -> Vector:
        """Force that the motion of the body alone takes besides the external force."""
        return less(self.body.inertia.force(v, a), self.external)

    def accelerated(self, I: Vector, p: Vector) -> tuple[Vector, Vector, Vector]:
        """The joint eliminated, its accelerations, and that of the base, where forces are given, from what the children
        pass on."""
        v, tau, upward = map(tuple, (self.v, self.given, self.upward))
        p = less(add(p, cross_force(v, self.body.inertia.momentum(v))), self.external)
        articulated = self.body.inertia.added_to(I)
        inverse = self.body.eliminated(articulated)
        a = symmetric_product(inverse, subtract(tau, add(p, symmetric_product(articulated, upward))))
        return inverse, *at_once((a, add(upward, a)))


Base = Ground | MovingBase


def inverted(A: Vector) -> Vector:
    """A⁻¹ of a positive definite 6×6 matrix, by sweeping one pivot after another (Goodnight 1979)."""
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
    """The free base; None where the tree stands on the ground."""
    if not model.topology.free_base:
        return None
    own = model.inertias
    inertia = Inertia(own.mass[0], tuple(own.first_moment[0]), tuple(own.rotational[0]))
    return FreeBase(inertia, model.armature[: Free.nv])


def moving_base(
    model: Model,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    given: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> Base:
    """The base of a model's tree under gravity; `given` are accelerations or forces."""
    body, upward = free_base(model), base_acceleration(model, q)
    if body is None:
        return Ground(upward)
    return MovingBase(body, upward, v[: Free.nv], given[: Free.nv], None if f_ext is None else f_ext[0])


def base_acceleration(model: Model, q: Float[Array, " nq_full"]) -> Float[Array, "6"]:
    """The acceleration that stands for gravity, in the frame of the free base if there is one."""
    up = world_acceleration(model, q.dtype)
    if not model.topology.free_base:
        return up
    rotation = model.placements.rotation[0] @ Free().transform(q[: Free.nq]).rotation
    return jnp.concatenate([up[:3], rotation.T @ up[3:]])


def unit_motions(like: Float[Array, "6 *lanes"]) -> Vector:
    """Unit motions of a free base, a row each, in arrays like the one given."""
    return tuple(jnp.zeros_like(like).at[row].set(1) for row in _ORDER)
