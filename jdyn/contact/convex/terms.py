"""Terms of the convex function: laws, and the velocities at which they act by those of the model."""

import abc

import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.contact.convex.law import Law

# Points whose part of the Hessian is left out together where all of them are apart. With 16 a humanoid's step, with two
# hundred points, took two thirds of the time; with four a quadruped's landing takes an eighth less.
BLOCK = 4

Vector = Float[Array, " nv"]
Matrix = Float[Array, "nv nv"]


class Term(Structure):
    """A law of velocities that are linear in those of the model.

    Attributes:
        law: Of these velocities.
    """

    law: Law

    @abc.abstractmethod
    def velocities(self, v: Vector) -> Array:
        """Those at which the law acts."""

    def at(self, v: Vector) -> Array:
        """γ at the velocities of the model."""
        u = self.velocities(v)
        return self.law.at(u, self.law.holds(u))[0]

    @abc.abstractmethod
    def generalized(self, gamma: Array) -> Vector:
        """Impulses on the coordinates of the model."""

    @abc.abstractmethod
    def hessian(self, G: Array) -> Matrix:
        """Jᵀ G J, where u = J v."""


class AtPoints(Term):
    """Three velocities at each point.

    Attributes:
        J: By the velocities of the joints, in world axes.
    """

    J: Float[Array, "points 3 nv"]

    def velocities(self, v: Vector) -> Float[Array, "points 3"]:
        return self.J @ v

    def generalized(self, gamma: Float[Array, "points 3"]) -> Vector:
        return jnp.tensordot(gamma, self.J, 2)

    def hessian(self, G: Float[Array, "points 3 3"]) -> Matrix:
        missing = -len(G) % BLOCK
        blocks = (jnp.pad(x, [(0, missing), (0, 0), (0, 0)]).reshape(-1, BLOCK, *x.shape[1:]) for x in (G, self.J))

        def add(H, block):
            G, J = block
            rows = J.reshape(-1, len(H))
            return jax.lax.cond(
                unvmap_any(G != 0), lambda H: H + rows.T @ (G @ J).reshape(rows.shape), lambda H: H, H
            ), None

        nv = self.J.shape[2]
        return jax.lax.scan(add, jnp.zeros((nv, nv), G.dtype), tuple(blocks))[0]


class InJoints(Term):
    """The velocities of all coordinates of joints, each of which has an impulse of its own.

    Attributes:
        followed: How all coordinates follow those of the model; None where none is mimicked.
    """

    followed: Float[Array, "nv_full nv"] | None

    def velocities(self, v: Vector) -> Float[Array, " nv_full"]:
        return v if self.followed is None else self.followed @ v

    def generalized(self, gamma: Float[Array, " nv_full"]) -> Vector:
        return gamma if self.followed is None else self.followed.T @ gamma

    def hessian(self, G: Float[Array, " nv_full"]) -> Matrix:
        return jnp.diag(G) if self.followed is None else self.followed.T @ (G[:, None] * self.followed)
