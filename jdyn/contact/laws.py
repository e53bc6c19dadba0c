"""Forces along the normal, by depth and the speed at which it grows."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

Numbers = Float[Array, " points"]


class ContactLaw(eqx.Module):
    """The force at a depth d > 0, by its rate ḋ, the stiffness k and the dissipation c of two materials. Never a pull.

    Attributes:
        exponent: Of the depth where it does not change.
    """

    exponent: eqx.AbstractVar[float]

    @property
    def jumps(self) -> bool:
        """Tell whether the force begins with a jump."""
        return False

    @property
    def dissipation(self) -> float:
        """Dissipation of surfaces whose material states none."""
        return 0.0

    @property
    def most_dissipation(self) -> float:
        """The largest that a material may state."""
        return jnp.inf

    @abc.abstractmethod
    def force(self, depth: Numbers, rate: Numbers, stiffness: Numbers, dissipation: Numbers) -> Numbers:
        """f [N] by depths [m] and their rates [m/s]: zero at a depth of exactly zero.

        With `located`, steps end a little past the contact. Depths are slightly negative there, and f goes on instead
        of ending.
        """


class HuntCrossley(ContactLaw):
    """f = k dᵉ (1 + c ḋ), or zero where that is negative.

    The force begins without a jump, since damping grows with depth. What arrives with a speed u, c u ≪ 1, leaves with
    about (1 − ⅔ c u) u, whatever k and e.

    >>> law = jdyn.contact.HuntCrossley()
    >>> print(law.force(jnp.array([0.5]), jnp.array([-0.25]), jnp.array([8.0]), jnp.array([2.0])))
    [2.]

    Attributes:
        exponent: e: 1 for a pad of even thickness, 1.5 for round elastic bodies, by Hertz. The stiffness is in N/mᵉ,
            the dissipation in s/m.

    Raises:
        ValueError: if the exponent is neither.

    Source: Hunt, Crossley, Coefficient of restitution interpreted as damping in vibroimpact, Journal of Applied
    Mechanics 1975.
    """

    exponent: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if self.exponent not in (1, 1.5):
            raise ValueError(f"exponent: expected 1 or 1.5, got {self.exponent!r}")

    @property
    def dissipation(self) -> float:
        """5 s/m."""
        return 5.0

    def force(self, depth, rate, stiffness, dissipation):
        return stiffness * _power(depth, self.exponent) * jnp.maximum(1 + dissipation * rate, 0)


class SpringDamper(ContactLaw):
    """f = k (d + c ḋ), or zero where that is negative: a linear spring beside a linear damper.

    The force jumps when bodies meet, by k c times their speed. What is left of a speed does not depend on it.

    >>> law = jdyn.contact.SpringDamper()
    >>> print(law.force(jnp.array([0.5]), jnp.array([0.25]), jnp.array([8.0]), jnp.array([0.5])))
    [5.]
    """

    @property
    def exponent(self) -> float:
        """1. The stiffness is in N/m, the dissipation in s."""
        return 1.0

    @property
    def jumps(self) -> bool:
        """Yes."""
        return True

    @property
    def dissipation(self) -> float:
        """1 ms."""
        return 1e-3

    def force(self, depth, rate, stiffness, dissipation):
        return jnp.where(depth == 0, 0, jnp.maximum(stiffness * (depth + dissipation * rate), 0))


class TwoStiffnesses(ContactLaw):
    """f = k d while depth grows, (1 − c) k d while it falls, and in between smoothly by its rate.

    An impact far above the `speed` keeps the share 1 − c of its energy.

    >>> law = jdyn.contact.TwoStiffnesses(speed=1e-3)
    >>> print(law.force(jnp.array([0.5]), jnp.array([-1.0]), jnp.array([8.0]), jnp.array([0.5])))
    [2.]

    Attributes:
        speed: Rates around zero between which the stiffness changes [m/s].

    Source: Moore, Wilhelms, Collision detection and response for computer animation, SIGGRAPH 1988; Cloutier 1995,
    section 6.4.1.
    """

    speed: Scalar | float = 1e-2

    @property
    def exponent(self) -> float:
        """1. The stiffness is in N/m, the dissipation a share."""
        return 1.0

    @property
    def dissipation(self) -> float:
        """One half."""
        return 0.5

    @property
    def most_dissipation(self) -> float:
        """1: springs that lost more than all energy would pull."""
        return 1.0

    def __check_init__(self):
        if not eqx.is_array(self.speed) and not self.speed > 0:
            raise ValueError(f"speed: expected a positive number, got {self.speed}")

    def force(self, depth, rate, stiffness, dissipation):
        kept = 1 - dissipation * (1 - jnp.tanh(rate / self.speed)) / 2
        return stiffness * depth * kept


def _power(depth: Numbers, exponent: float) -> Numbers:
    """With the derivative zero at the depth zero."""
    if exponent == 1:
        return depth
    none = depth <= 0
    return jnp.where(none, 0, depth * jnp.sqrt(jnp.where(none, 1, depth)))
