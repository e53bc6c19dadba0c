"""Terms of the convex function: laws, and the changes of velocities at which they act by those of the model."""

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
    """A law of velocities whose changes are linear in those of the model's velocity.

    Attributes:
        law: Of these changes.
    """

    law: Law

    @abc.abstractmethod
    def changes(self, dv: Vector) -> Array:
        """Those at which the law acts."""

    def at_start(self, v: Vector) -> Array:
        """γ if nothing changes the velocities v of the model."""
        u = self.changes(jnp.zeros_like(v))
        return self.law.at(u, self.law.holds(u))[0]

    @abc.abstractmethod
    def generalized(self, gamma: Array) -> Vector:
        """Impulses on the coordinates of the model."""

    @abc.abstractmethod
    def hessian(self, G: Array) -> Matrix:
        """Jᵀ G J, where u = J dv."""


class AtPoints(Term):
    """Three velocities at each point.

    Attributes:
        J: By the velocities of the joints, in world axes.
    """

    J: Float[Array, "points 3 nv"]

    def changes(self, dv: Vector) -> Float[Array, "points 3"]:
        return self.J @ dv

    def generalized(self, gamma: Float[Array, "points 3"]) -> Vector:
        return jnp.tensordot(gamma, self.J, 2)

    def hessian(self, G: Float[Array, "points 3 3"]) -> Matrix:
        points, _, nv = self.J.shape
        none = jnp.zeros((nv, nv), G.dtype)
        return jax.lax.cond(unvmap_any(G != 0), lambda: self._sum_of_blocks(G, none, min(BLOCK, points)), lambda: none)

    def _sum_of_blocks(self, G: Float[Array, "points 3 3"], none: Matrix, size: int) -> Matrix:
        points, _, nv = self.J.shape

        def add(H, first):
            # The last block begins earlier, where points do not fill it; what others have is not counted again.
            start = jnp.minimum(first, points - size)
            new = start + jnp.arange(size) >= first
            block = jnp.where(new[:, None, None], jax.lax.dynamic_slice_in_dim(G, start, size), 0)

            def added():
                J = jax.lax.dynamic_slice_in_dim(self.J, start, size)
                return H + J.reshape(-1, nv).T @ (block @ J).reshape(-1, nv)

            return jax.lax.cond(unvmap_any(block != 0), added, lambda: H), None

        return jax.lax.scan(add, none, jnp.arange(0, points, max(size, 1)))[0]


class ByRow(Term):
    """Velocities that have an impulse each.

    Attributes:
        J: By those of the model; None where they are these.
    """

    J: Float[Array, "rows nv"] | None

    def changes(self, dv: Vector) -> Float[Array, " rows"]:
        return dv if self.J is None else self.J @ dv

    def generalized(self, gamma: Float[Array, " rows"]) -> Vector:
        return gamma if self.J is None else self.J.T @ gamma

    def hessian(self, G: Float[Array, " rows"]) -> Matrix:
        return jnp.diag(G) if self.J is None else self.J.T @ (G[:, None] * self.J)
