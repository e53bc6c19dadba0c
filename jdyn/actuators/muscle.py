"""Muscles of Hill."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.activation import Activation, MuscleActivation
from jdyn.actuators.actuator import Travel
from jdyn.actuators.gained import GainedActuator
from jdyn.actuators.numbers import not_negative, number, positive
from jdyn.model import Units


class Muscle(GainedActuator):
    """A muscle: it pulls with F₀ (x FL(L) FV(V) + FP(L)), where x is its activation, L its length over the optimal one,
    and V its rate in largest rates of shortening.

    FL has its largest value, one, at L = 1 and is zero beyond `shortest` and `longest`. FV falls to zero where the
    muscle shortens at the largest rate, and grows up to `eccentric` where it lengthens. FP begins at L = 1.

    >>> muscle = jdyn.actuators.Muscle("joint1", (-1.0, 1.0), peak_force=100.0, operating_range=(0.5, 1.5))
    >>> resting = jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.0))
    >>> print(muscle.force(0.0, resting, jnp.array(0.5)))
    -50.0

    Source: the piecewise quadratic curves of MuJoCo's `mju_muscleGain` and `mju_muscleBias`, after Zajac 1989.

    Attributes:
        length_range: Lengths of the transmission that `operating_range` stands for [m].
        peak_force: F₀ [N].
        operating_range: L at both ends of `length_range`.
        shortest, longest: L beyond which an active muscle has no force.
        fastest: Largest rate of shortening, in optimal lengths [1/s].
        passive: FP halfway from 1 to `longest`, times two.
        eccentric: Largest FV.
    """

    units: ClassVar[Units] = {
        "command": "", "length_range": "x", "peak_force": "J/x", "operating_range": "", "shortest": "", "longest": "",
        "fastest": "1/s", "passive": "", "eccentric": "",
    }  # fmt: skip

    length_range: Float[Array, "2"] = eqx.field(converter=number("Muscle.length_range"))
    peak_force: Scalar = eqx.field(converter=not_negative("Muscle.peak_force"))
    operating_range: Float[Array, "2"] = eqx.field(default=(0.75, 1.05), converter=number("Muscle.operating_range"))
    shortest: Scalar = eqx.field(default=0.5, converter=number("Muscle.shortest"))
    longest: Scalar = eqx.field(default=1.6, converter=number("Muscle.longest"))
    fastest: Scalar = eqx.field(default=1.5, converter=positive("Muscle.fastest"))
    passive: Scalar = eqx.field(default=1.3, converter=not_negative("Muscle.passive"))
    eccentric: Scalar = eqx.field(default=1.2, converter=not_negative("Muscle.eccentric"))
    activation: Activation | None = eqx.field(default_factory=MuscleActivation, kw_only=True)

    def gain(self, travel: Travel) -> Scalar:
        L, V = self.normalized(travel)
        return -self.peak_force * self.force_by_length(L) * self.force_by_velocity(V)

    def bias(self, travel: Travel) -> Scalar:
        L, _ = self.normalized(travel)
        return -self.peak_force * self.passive_force(L)

    def normalized(self, travel: Travel) -> tuple[Scalar, Scalar]:
        """L and V."""
        optimal = (self.length_range[1] - self.length_range[0]) / (self.operating_range[1] - self.operating_range[0])
        L = self.operating_range[0] + (travel.length - self.length_range[0]) / optimal
        return L, travel.velocity / (optimal * self.fastest)

    def force_by_length(self, L: Scalar) -> Scalar:
        """FL, of four parabolas."""
        side = jnp.where(L < 1, self.shortest, self.longest)
        # From one, at the optimum, to zero.
        left = jnp.clip((side - L) / (side - 1), 0, 1)
        return jnp.where(left < 0.5, 2 * left**2, 1 - 2 * (1 - left) ** 2)

    def force_by_velocity(self, V: Scalar) -> Scalar:
        """FV."""
        beyond = self.eccentric - 1
        shortening = jnp.clip(V + 1, 0, 1) ** 2
        lengthening = self.eccentric - jnp.clip(beyond - V, 0, beyond) ** 2 / jnp.where(beyond > 0, beyond, 1)
        return jnp.where(V <= 0, shortening, lengthening)

    def passive_force(self, L: Scalar) -> Scalar:
        """FP: a parabola, and its tangent from halfway on."""
        x = jnp.maximum((L - 1) / (0.5 * (self.longest - 1)), 0)
        return self.passive * jnp.where(x <= 1, 0.5 * x**2, x - 0.5)
