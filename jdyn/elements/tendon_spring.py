"""Springs, dampers, friction and stops of tendons."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.dynamics.passive import friction_share
from jdyn.elements.element import ForceElement, Implicit
from jdyn.elements.stops import stop_force
from jdyn.model import Scaling, Units
from jdyn.model.build import FRICTION_SPEED
from jdyn.transmissions import Transmission


class TendonSpring(ForceElement):
    """A spring along a tendon, with a damper, friction, and stops at the ends of its range of lengths.

    The spring is slack within a range of lengths: with one from zero, it is a rope that pulls and never pushes. At the
    stretch e beyond this range it pulls with (k + k₁ e + k₂ e²) e, and the damper with (d + d₁ |l̇| + d₂ l̇²) l̇. At the
    depth δ beyond an end, a stop pushes back with k δ² / (δ + δ₀) (1 + c dδ/dt), as those of joints do.

    >>> model, path = jdyn.load("pendulum"), [("world", [0.0, 0.0, -1.5]), ("tip", [0.0, 0.0, 0.0])]
    >>> rope = jdyn.transmissions.SpatialTendon([jdyn.transmissions.PathPoint(*at) for at in path])
    >>> held = jdyn.elements.TendonSpring(rope, 1e3, 1.0, rest_range=(0.0, 0.7))
    >>> motion = jdyn.simulate(model, jnp.zeros(1), jnp.array([3.0]), 1.0, elements=[held])
    >>> print(motion.q.max() < 0.6)
    True

    Attributes:
        transmission: The tendon, such as a `jdyn.transmissions.SpatialTendon`; forces on joints that it adds up are in
            N m if its length is in rad.
        stiffness: k [N/m].
        damping: d [N s/m].
        rest_range: Lowest and highest length at which the spring is slack [m].
        friction: Largest friction [N].
        friction_speed: Speed at which smoothed friction, friction · tanh(dl/dt / friction_speed), has 76 % of that
            [m/s].
        range: Lengths at which the stops begin [m].
        stop_stiffness: k [N/m].
        stop_dissipation: c [s/m].
        stop_onset: δ₀ [m].
        stiffness_powers: k₁ and k₂ [N/m², N/m³].
        damping_powers: d₁ and d₂ [N s²/m², N s³/m³].
    """

    units: ClassVar[Units] = {
        "stiffness": "J/x^2", "damping": "J s/x^2", "rest_range": "x", "friction": "J/x", "friction_speed": "x/s",
        "range": "x", "stop_stiffness": "J/x^2", "stop_dissipation": "s/x", "stop_onset": "x",
        "stiffness_powers": ("J/x^3", "J/x^4"), "damping_powers": ("J s^2/x^3", "J s^3/x^4"),
    }  # fmt: skip

    implicit: Implicit = eqx.field(static=True, default="coupled", kw_only=True)

    transmission: Transmission
    stiffness: Scalar = eqx.field(default=0.0, converter=as_numbers)
    damping: Scalar = eqx.field(default=0.0, converter=as_numbers)
    rest_range: Float[Array, "2"] = eqx.field(default=(0.0, 0.0), converter=as_numbers)
    friction: Scalar = eqx.field(default=0.0, converter=as_numbers)
    friction_speed: Scalar = eqx.field(default=FRICTION_SPEED, converter=as_numbers)
    range: Float[Array, "2"] = eqx.field(default=(-jnp.inf, jnp.inf), converter=as_numbers)
    stop_stiffness: Scalar = eqx.field(default=0.0, converter=as_numbers)
    stop_dissipation: Scalar = eqx.field(default=0.5, converter=as_numbers)
    stop_onset: Scalar = eqx.field(default=1e-3, converter=as_numbers)
    stiffness_powers: Float[Array, "2"] = eqx.field(default=(0.0, 0.0), converter=as_numbers)
    damping_powers: Float[Array, "2"] = eqx.field(default=(0.0, 0.0), converter=as_numbers)

    def scaled(self, scaling: Scaling) -> Self:
        """The same along a scaled tendon."""
        return scaling.along(self.transmission.travel_factor(scaling)).numbers(self)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, " nv"] | Float[Array, "nb 6"]:
        length, pushed = self.transmission.length(kinematics), self.transmission.on_bodies(kinematics)
        if pushed is None:
            moments = self.transmission.moments(kinematics)
            return self._along(length, moments @ kinematics.v) * moments
        # The power of a unit force is the rate of the length.
        return self._along(length, jnp.vdot(pushed, kinematics.velocities)) * pushed

    def slopes(self, t: Scalar, kinematics: Kinematics, memory: Any) -> tuple[Array, Array]:
        if self.implicit != "coupled":
            return super().slopes(t, kinematics, memory)
        moments = self.transmission.moments(kinematics)
        by_length, by_rate = jax.grad(self._along, (0, 1))(self.transmission.length(kinematics), moments @ kinematics.v)
        both = jnp.outer(moments, moments)
        # A stop that is left pulls less, the deeper it is.
        return -jnp.minimum(by_length, 0) * both, -jnp.minimum(by_rate, 0) * both

    def energy(self, kinematics: Kinematics, memory: Any) -> Scalar:
        """Energy of the spring, ½ k e² + ⅓ k₁ e³ + ¼ k₂ e⁴, and of the stops."""
        length = self.transmission.length(kinematics)
        depth, onset = jnp.maximum(self._beyond(length), 0), self.stop_onset
        stops = self.stop_stiffness * (depth**2 / 2 - onset * depth + onset**2 * jnp.log1p(depth / onset))
        e, (first, second) = self._stretch(length), self.stiffness_powers
        return e**2 * (self.stiffness / 2 + e * (first / 3 + e * second / 4)) + jnp.sum(stops)

    def _along(self, length: Scalar, rate: Scalar) -> Scalar:
        """Force along the length."""
        friction = self.friction * friction_share(rate, self.friction_speed)
        rates = jnp.stack([-rate, rate])
        stops = self.stop_stiffness, self.stop_dissipation, self.stop_onset
        lower, upper = stop_force(self._beyond(length), rates, *stops)
        e, speed = self._stretch(length), jnp.abs(rate)
        stiffness = self.stiffness + e * (self.stiffness_powers[0] + e * self.stiffness_powers[1])
        damping = self.damping + speed * (self.damping_powers[0] + speed * self.damping_powers[1])
        return lower - upper - stiffness * e - damping * rate - friction

    def _stretch(self, length: Scalar) -> Scalar:
        lowest, highest = self.rest_range
        return length - jnp.clip(length, lowest, highest)

    def _beyond(self, length: Scalar) -> Float[Array, "2"]:
        """Distances of the length beyond the lower and the upper end of its range."""
        lower, upper = self.range
        return jnp.stack([lower - length, length - upper])
