"""What a tree of aligned bodies stands on: the ground, or a body that moves freely.

A free base passes nothing on: its degrees of freedom are eliminated at once, and are none of `Topology.serial`. What
happens once a robot is done on whole vectors and matrices, which take a tenth of the time to compile; their own axes
come first, before those of lanes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.at_once import at_once
from jdyn.dynamics.kinematics import world_acceleration
from jdyn.model import Free, Model
from jdyn.spatial.components import Inertia, Vector, add, cross_force, lower

_ORDER = range(Free.nv)
_FULL = np.array([[lower(i, j) for j in _ORDER] for i in _ORDER])


class FreeBase(eqx.Module):
    """A body and its rotors, in the body's frame.

    Attributes:
        inertia: Of the body alone.
        R: Rotor inertias.
    """

    inertia: Float[Array, "6 6 *lanes"]
    R: Float[Array, "6 *lanes"]

    def articulated(self, I: Vector) -> Float[Array, "6 6 *lanes"]:
        """I^A, from the sum I of what the children pass on."""
        return self.inertia + jnp.stack(I)[_FULL]

    def eliminated(self, articulated: Float[Array, "6 6 *lanes"]) -> Float[Array, "6 6 *lanes"]:
        """(I^A + R)⁻¹."""
        diagonal = np.eye(Free.nv, dtype=bool).reshape(Free.nv, Free.nv, *(1,) * (articulated.ndim - 2))
        return inverted(articulated + jnp.where(diagonal, self.R[None], 0))


class Ground(eqx.Module):
    """Attributes:
    upward: Acceleration that stands for gravity.
    """

    upward: Float[Array, "6 *lanes"]

    def velocity(self, still: Vector) -> Vector:
        return still

    def accelerated(self, I: Vector, p: Vector) -> tuple[None, None, Vector]:
        """Nothing eliminated, no accelerations of joints, and that of the base."""
        return None, None, add(tuple(self.upward), (jnp.zeros_like(p[0]),) * 6)


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
    upward: Float[Array, "6 *lanes"]
    v: Float[Array, "6 *lanes"]
    tau: Float[Array, "6 *lanes"]
    f: Float[Array, "6 *lanes"] | None

    def velocity(self, still: Vector) -> Vector:
        return at_once(add(tuple(self.v), still))

    def accelerated(self, I: Vector, p: Vector) -> tuple[Float[Array, "6 6 *lanes"], Float[Array, "6 *lanes"], Vector]:
        """The joint eliminated, its accelerations, and that of the base, from what the children pass on."""
        momentum = applied(self.base.inertia, self.v)
        force = self.tau - jnp.stack(p) - jnp.stack(cross_force(tuple(self.v), tuple(momentum)))
        force = force if self.f is None else force + self.f
        articulated = self.base.articulated(I)
        inverse = self.base.eliminated(articulated)
        a = applied(inverse, force - applied(articulated, self.upward))
        return inverse, a, at_once(tuple(self.upward + a))


def applied(A: Float[Array, "n n *lanes"], x: Float[Array, "n *lanes"]) -> Float[Array, "n *lanes"]:
    """A x."""
    return jnp.sum(A * x[None], axis=1)


def inverted(A: Float[Array, "n n *lanes"]) -> Float[Array, "n n *lanes"]:
    """A⁻¹ of a positive definite A, by sweeping one pivot after another (Goodnight 1979)."""
    order = np.arange(len(A)).reshape(-1, *(1,) * (A.ndim - 2))

    def sweep(k, A):
        here, pivot, row = order == k, A[k, k][None], A[k]
        scaled = jnp.where(here, -1, row) / pivot
        swept = jnp.where(here[:, None], scaled[None], scaled[:, None])
        return jnp.where(here[:, None] | here[None], swept, A - row[:, None] * scaled[None])

    return -jax.lax.fori_loop(0, len(A), sweep, A)


def free_base(model: Model) -> FreeBase | None:
    """The free base; None where the tree stands on the ground."""
    if not model.topology.free_base:
        return None
    inertia = jax.tree.map(lambda x: x[0], model.inertias)
    return FreeBase(inertia.matrix(), model.armature[: Free.nv])


def base_inertia(model: Model) -> Inertia:
    """Of the free base alone, number by number."""
    own = model.inertias
    return Inertia(own.mass[0], tuple(own.first_moment[0]), tuple(own.rotational[0]))


def unit_motions(like: Float[Array, "6 *lanes"]) -> Vector:
    """Unit motions of a free base, a row each, in arrays like the one given."""
    return tuple(jnp.zeros_like(like).at[row].set(1) for row in _ORDER)


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
    f = None if f_ext is None else f_ext[0]
    return MovingBase(base, upward(model, q), v[: Free.nv], tau[: Free.nv], f)


def upward(model: Model, q: Float[Array, " nq_full"]) -> Float[Array, "6"]:
    """The acceleration that stands for gravity, in the frame of the free base if there is one."""
    up = world_acceleration(model, q.dtype)
    if not model.topology.free_base:
        return up
    rotation = model.placements.rotation[0] @ Free().transform(q[: Free.nq]).rotation
    return jnp.concatenate([up[:3], rotation.T @ up[3:]])
