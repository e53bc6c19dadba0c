"""Forces where shapes touch: along the normal, by depth and the speed at which it grows, and friction beside it."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.contact.directional import Weights, weighed
from jdyn.contact.moving_points import MovingPoints
from jdyn.model import Units

Numbers = Float[Array, " points"]
# [ω; v] or v alone, and [n; f] or f alone.
Rows = Float[Array, "points k"]
Vector = Float[Array, "3"]


class ContactLaw(eqx.Module):
    """The force at a depth d > 0, by its rate ḋ, the stiffness k and the dissipation c of two materials. Never a pull.

    Attributes:
        exponent: Of the depth where it does not change.
        dissipation_unit: Unit of the dissipation of materials, for `jdyn.scale`; None if it is not known.
    """

    exponent: eqx.AbstractVar[float]

    dissipation_unit: ClassVar[str | None] = None

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

    units: ClassVar[Units] = {}
    dissipation_unit: ClassVar[str | None] = "s/m"

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

    units: ClassVar[Units] = {}
    dissipation_unit: ClassVar[str | None] = "s"

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

    units: ClassVar[Units] = {"speed": "m/s"}
    dissipation_unit: ClassVar[str | None] = ""

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


def parting(twists: Float[Array, "*points k"], normals: Float[Array, "*points 3"]) -> Float[Array, "*points"]:
    """Speed at which distances grow [m/s]."""
    return jnp.sum(twists[..., -3:] * normals, axis=-1)


class PointLaw(Structure):
    """Force at a point by its depth and its twist: a law along the normal, regularized Coulomb friction beside it.

    Attributes:
        law: Along the normal.
        slip_speed, spin_speed: Below which friction falls [m/s, rad/s].
        turning: Whether friction against turning or rolling may be other than zero. If not, twists [ω; v] and wrenches
            [n; f] are only v and f.
    """

    law: ContactLaw
    slip_speed: Scalar
    spin_speed: Scalar
    turning: bool = eqx.field(static=True)

    def twists(self, points: MovingPoints, v: Float[Array, " nv"]) -> Rows:
        """Twists of second bodies relative to first ones, as far as `turning` says."""
        twists = points.twists(v)
        return twists if self.turning else twists[:, 3:]

    def wrench(
        self,
        normal: Vector,
        depth: Scalar,
        twist: Array,
        stiffness: Scalar,
        dissipation: Scalar,
        friction: Vector,
        weights: Weights | None,
    ) -> Float[Array, " k"]:
        """Torque and force on the second shape, by its twist relative to the first one."""
        parting, slip = _parting_and_slip(normal, twist)
        pressing = self.law.force(depth, -parting, stiffness, dissipation)
        sliding, spinning, rolling = friction * pressing
        of_slip, of_roll = (None, None) if weights is None else weights
        force = pressing * normal - sliding * _bounded(slip, self.slip_speed, of_slip)
        if not self.turning:
            return force
        turning = twist[:3]
        spin = dot(turning, normal) * normal
        torque = -spinning * _bounded(spin, self.spin_speed)
        torque = torque - rolling * _bounded(turning - spin, self.spin_speed, of_roll)
        return jnp.concatenate([torque, force])

    def friction(
        self,
        normal: Vector,
        depth: Scalar,
        twist: Array,
        stiffness: Scalar,
        dissipation: Scalar,
        friction: Vector,
        weights: Weights | None,
    ) -> tuple[Vector, Scalar]:
        """Direction of friction, with the length that it has as a share of its largest one, and how it falls with slip
        across that direction at most [N s/m]."""
        parting, slip = _parting_and_slip(normal, twist)
        sliding = friction[0] * self.law.force(depth, -parting, stiffness, dissipation)
        W = None if weights is None else weights.sliding
        counted = weighed(W, slip)
        return _bounded(slip, self.slip_speed, W), sliding / jnp.sqrt(dot(counted, counted) + self.slip_speed**2)


def _parting_and_slip(normal: Vector, twist: Array) -> tuple[Scalar, Vector]:
    """Speed at which surfaces part at a point, and the velocity at which they move past each other."""
    moving = twist[-3:]
    parting = dot(moving, normal)
    return parting, moving - parting * normal


def _bounded(x: Array, speed: Scalar, W: Float[Array, "3 3"] | None = None) -> Array:
    """x / √(x² + s²): nearly a unit vector where x is large against s. With weights W, W times that of W x."""
    x = weighed(W, x)
    return weighed(W, x / jnp.sqrt(dot(x, x) + speed**2))
