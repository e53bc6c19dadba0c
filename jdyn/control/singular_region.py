"""Inverse of a task's mobility that stays finite where the task loses directions."""

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.model import Model

# E = (1 + (y + y²) / POWER)^-POWER, with y = AT_BORDER at the border, where E is 2e-12. POWER is 2 to the DOUBLINGS.
DOUBLINGS = 5
POWER = 2**DOUBLINGS
AT_BORDER = 6.0
# Largest (1 − E) √b / √s.
PEAK = 2.1


class SingularRegion(eqx.Module):
    """Neighbourhood of singular configurations, in which a task gives up the directions that it is about to lose.

    Of a direction in which the mobility J M⁻¹ Jᵀ, scaled as `OperationalSpace` says, has the eigenvalue s, the share
    E = (1 + (y + y²) / 32)⁻³² of what is asked for is given up, y = 6 s / b, and left to the posture. E is one at a
    singularity, 0.14 at a sixth of b, and 2e-12 at b: outside of the region Λ is exact. Within, Λ = (1 − E) / s is
    6 / b where s = 0 and never more than 6.5 / b. It is a smooth function of the mobility, without eigenvectors and
    without cases, so that torques are bounded and have no jumps on the way in and out. In a direction that is lost the
    task pulls as a transposed Jacobian does, and leaves the singularity as soon as anything bends the arm: the posture
    decides to which side. Directions that contacts take from the task are given up likewise.

    The region is as wide as the demand makes necessary: b = `border` + (2.1 x / `limit`)², x the length of the demand,
    scaled like the mobility. The accelerations a that the task causes then never have √(aᵀ M a) above the limit, and
    none of its torques is above √Mⱼⱼ times the limit. Paths that an arm can follow are followed exactly, even into
    singularities and out of them, as far as `border` lets them; what is out of reach is pulled at by bounded torques.
    Least squares with the same bound are damped everywhere by what the largest demand needs.

    >>> region = jdyn.control.SingularRegion(0.02)
    >>> mobility = jnp.diag(jnp.array([0.0, 1e-3, 0.02, 1.0]))
    >>> print(region.force(mobility, jnp.ones(4)).round(1))
    [300.  321.3  50.    1. ]

    Attributes:
        border: Scaled eigenvalue, without unit, at which the region begins where nothing is asked for; greater than
            zero. Torques change by their demand over it.
        limit: Largest √(aᵀ M a) [√kg m/s²]; greater than zero, infinite if left out.

    Source: Chang, Khatib, Manipulator control at kinematic singularities: a dynamically consistent strategy, IROS 1995,
    for what the task gives up and the posture takes; Han, Park, Robot control near singularity and joint limit using a
    continuous task transition algorithm, International Journal of Advanced Robotic Systems 2013, for giving it up
    gradually. The function and the limit are our own.
    """

    border: Float[ArrayLike, ""] = 1e-3
    limit: Float[ArrayLike, ""] = jnp.inf

    def of(self, model: Model) -> "SingularRegion":
        """The same in arrays of the model's type.

        Raises:
            ValueError: if one of both is no number greater than zero.
        """
        return SingularRegion(_positive(model, "border", self.border), _positive(model, "limit", self.limit))

    def force(self, S: Float[Array, "n n"], demand: Float[Array, " n"]) -> Float[Array, " n"]:
        """(1 − E(S)) S⁻¹ times a demand: both are scaled."""
        return _inverse(S, self.border + jnp.sum((PEAK / self.limit * demand) ** 2)) @ demand


def _positive(model, name, value):
    value = shaped(f"damping.{name}", value, model.dtype, ())
    if not isinstance(value, Tracer) and not value > 0:
        raise ValueError(f"damping.{name}: expected a number greater than zero, got {value}")
    return value


def _inverse(S: Float[Array, "n n"], border: ArrayLike) -> Float[Array, "n n"]:
    """(1 − E(S)) S⁻¹."""
    # 1 + (y + y²) / m = ((y + 1/2)² + ω²) / m, whose inverse T needs no square of S. The sum of the powers of T
    # below the m-th one is a product.
    eye, scale = jnp.eye(len(S), dtype=S.dtype), AT_BORDER / border
    shifted, turn = scale * S + eye / 2, (POWER - 0.25) ** 0.5
    rows = jnp.block([[shifted, turn * eye], [-turn * eye, shifted]])
    real, imaginary = jnp.split(jnp.linalg.solve(rows, jnp.concatenate([eye, 0 * eye])), 2)
    power, total = POWER / turn * imaginary, real + imaginary / (2 * turn)
    for _ in range(DOUBLINGS):
        total, power = total + total @ power, power @ power
    return scale * total
