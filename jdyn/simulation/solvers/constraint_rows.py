"""Constraints beyond the tree of joints, as rows of the impulse problem of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.constraints import ConstraintRows
from jdyn.impulses import MatrixJacobian, Rows, Springs

Vector = Float[Array, " nv"]
Numbers = Float[Array, " rows"]


class Tied(Springs):
    """γ = −stiffness (u − asked): of what u would miss without this spring, it leaves the root of rounding.

    Attributes:
        asked: Changes of velocities within the step [rad/s or m/s].
        stiffness: [kg m² or kg].
    """

    demanded: Numbers
    stiffness: Numbers

    def impulse_and_slope(self, u: Numbers) -> tuple[Numbers, Numbers]:
        return -self.stiffness * (u - self.demanded), self.stiffness


def rows_of_constraints(
    rows: ConstraintRows | None,
    v: Float[Array, " nv"],
    h: Scalar,
    turned: Float[Array, " nv"],
    A: Float[Array, "nv nv"],
) -> list[Rows]:
    """Rows of all constraints in a step, if there are any.

    With the rows J v = b and J a = γ, velocities change by what accelerations ask for and by what is missing of b.

    Args:
        rows: Of constraints at the start, or None.
        v: Velocity at the start.
        h: Length of the step [s].
        turned: What changes of velocities have more than those of accelerations, see `turning`.
        A: Inertia.
    """
    if rows is None:
        return []
    demanded = h * (rows.gamma + rows.J @ turned) + rows.b - rows.J @ v
    yields = jnp.sum(rows.J**2 / jnp.diag(A)[None], axis=1)
    # Of the digits of A, the other half is left in the sum of both. Rows that nothing moves have no stiffness.
    stiffness = jnp.where(yields > 0, 1 / jnp.where(yields > 0, yields, 1), 0) / jnp.sqrt(jnp.finfo(A.dtype).eps)
    return [Rows(Tied(demanded, stiffness), MatrixJacobian(rows.J))]
