"""Rows: velocities at which impulses act, and the law of these impulses."""

from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.dynamics.row_jacobians import RowJacobian
from jdyn.impulses.law import Law


class Rows(Structure):
    """Impulses Jᵀ γ on a model, where the law relates γ to the changes u = J dv of the rows' velocities.

    Contact, joint friction, ends of ranges and constraints are rows of one `ImpulseProblem`.

    Attributes:
        law: γ by u.
        J: Jacobian of the rows' velocities.
    """

    law: Law
    J: RowJacobian

    def changes(self, dv: Float[Array, " nv"]) -> Array:
        """u = J dv."""
        return self.J.velocities(dv)

    def generalized(self, gamma: Array) -> Float[Array, " nv"]:
        """Jᵀ γ."""
        return self.J.generalized(gamma)
