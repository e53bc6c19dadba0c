"""Terms of the convex function: laws, and the changes of velocities at which they act by those of the model."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.contact.convex.law import Law
from jdyn.contact.point_jacobians import PointJacobian

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
        """Velocities at which the law acts."""

    def after(self, dv: Vector) -> Array:
        """γ where the velocity of the model has changed by dv."""
        u = self.changes(dv)
        return self.law.impulse(u, self.law.holds(u))

    @abc.abstractmethod
    def generalized(self, gamma: Array) -> Vector:
        """Impulses on the coordinates of the model."""

    @abc.abstractmethod
    def hessian(self, G: Array) -> Matrix:
        """Jᵀ G J, where u = J dv."""


class AtPoints(Term):
    """Three velocities at each point.

    Attributes:
        J: Of these velocities, in world axes.
    """

    J: PointJacobian

    def changes(self, dv: Vector) -> Float[Array, "points 3"]:
        return self.J.velocities(dv)

    def generalized(self, gamma: Float[Array, "points 3"]) -> Vector:
        return self.J.generalized(gamma)

    def hessian(self, G: Float[Array, "points 3 3"]) -> Matrix:
        return self.J.weighed(G)


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
