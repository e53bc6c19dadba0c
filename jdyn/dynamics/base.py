"""What a tree of aligned bodies stands on: the ground, or a body that moves freely.

A free base passes nothing on: its degrees of freedom are eliminated at once, and are none of `Topology.serial`.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import world_acceleration
from jdyn.model import Free, Model
from jdyn.spatial.components import (
    Inertia,
    Vector,
    add,
    cross_force,
    inverted,
    lower,
    subtract,
    symmetric_product,
)


class FreeBase(eqx.Module):
    """A body and its rotors, in the body's frame.

    Attributes:
        inertia: Of the body alone.
        R: Rotor inertias.
    """

    inertia: Inertia
    R: Vector

    def eliminated(self, I: Vector) -> Vector:
        """(I^A + R)⁻¹, from the sum I of what the children pass on."""
        rotors = {lower(i, i): R for i, R in enumerate(self.R)}
        return inverted(tuple(x + rotors.get(k, 0) for k, x in enumerate(self.inertia.added_to(I))), 6)


class Ground(eqx.Module):
    """Attributes:
    upward: Acceleration that stands for gravity.
    """

    upward: Vector

    def velocity(self, still: Vector) -> Vector:
        return still

    def accelerated(self, I: Vector, p: Vector) -> tuple[None, tuple, Vector]:
        """Nothing eliminated, no accelerations of joints, and that of the base."""
        return None, (), add(self.upward, (jnp.zeros_like(p[0]),) * 6)


class MovingBase(eqx.Module):
    """A free base under way, in its own frame.

    Attributes:
        base: What it is.
        upward: Acceleration that stands for gravity.
        v: Velocity.
        tau: Force that drives it.
        f: External force; None if there is none.
    """

    base: FreeBase
    upward: Vector
    v: Vector
    tau: Vector
    f: Vector | None

    def velocity(self, still: Vector) -> Vector:
        return add(self.v, still)

    def accelerated(self, I: Vector, p: Vector) -> tuple[Vector, Vector, Vector]:
        """The joint eliminated, its accelerations, and that of the base, from what the children pass on."""
        inertia, inverse = self.base.inertia, self.base.eliminated(I)
        p = add(p, cross_force(self.v, inertia.momentum(self.v)))
        p = p if self.f is None else subtract(p, self.f)
        handle = symmetric_product(inertia.added_to(I), self.upward)
        a = symmetric_product(inverse, subtract(subtract(self.tau, p), handle))
        return inverse, a, add(self.upward, a)


def free_base(model: Model) -> FreeBase | None:
    """The free base; None where the tree stands on the ground."""
    if not model.topology.free_base:
        return None
    own = model.inertias
    inertia = Inertia(own.mass[0], tuple(own.first_moment[0]), tuple(own.rotational[0]))
    return FreeBase(inertia, tuple(model.armature[: Free.nv]))


def moving_base(
    model: Model,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    tau: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> Ground | MovingBase:
    """What the tree stands on, under gravity and forces."""
    base = free_base(model)
    if base is None:
        return Ground(upward(model, q))
    f = None if f_ext is None else tuple(f_ext[0])
    return MovingBase(base, upward(model, q), tuple(v[: Free.nv]), tuple(tau[: Free.nv]), f)


def upward(model: Model, q: Float[Array, " nq_full"]) -> Vector:
    """The acceleration that stands for gravity, in the frame of the free base if there is one."""
    up = world_acceleration(model, q.dtype)
    if not model.topology.free_base:
        return tuple(up)
    rotation = model.placements.rotation[0] @ Free().transform(q[: Free.nq]).rotation
    return *up[:3], *(rotation.T @ up[3:])
