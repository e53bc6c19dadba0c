"""Sensors that show the past: dead time, and a rate of their own."""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import as_numbers
from jdyn.model import Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.wrapper import Wrapper


class Sampled(Wrapper):
    """A sensor with dead time, which may measure at a rate of its own and hold its value in between.

    At the time t it shows what the sensor within measured at t − delay. With a period it measures at the start, and
    then at the first instant that is looked at from each of start + period, start + 2 period, ... on. Until the first
    measurement arrives, it shows that of the start.

    Instants that are looked at are the ends of steps of `System.step`, or the rows of a trajectory: let these be no
    farther apart than matters. Between two measurements the first one holds, or the line from one to the other. A
    trajectory with a row for each step, all of one length, shows what the steps show.

    `System.state` and `System.step` keep the last measurements in `State.parts["sensors"]`, and how old they are;
    `simulate` begins anew. Noise and steps of values belong within: `Sampled(Imperfect(...))` measures with them.

    >>> encoder = jdyn.sensors.Sampled(jdyn.sensors.JointPosition("angle", "joint1"), delay=0.02, period=0.01)
    >>> system = jdyn.System(jdyn.load("pendulum"), sensors=[encoder, jdyn.sensors.JointPosition("now", "joint1")])
    >>> motion = jdyn.simulate(system, system.state(jnp.ones(1)), 1.0, saveat=jnp.linspace(0, 1, 201))
    >>> print(bool(jnp.all(motion.sensors["angle"][24:26] == motion.sensors["now"][20])))
    True

    Attributes:
        sensor: The sensor within, whose name it has.
        delay: [s].
        period: Time from one measurement to the next [s]; None for a sensor that never pauses.
        interpolation: `"hold"`, or `"linear"` for the line; derivatives by `delay` are zero with the first.
        samples: How many measurements a state remembers. Steps show NaN where those are all younger than the delay.

    Raises:
        ValueError: if a delay is negative, a period is not positive, or the sensor within is a sampled one.
    """

    units: ClassVar[Units] = {"delay": "s", "period": "s"}

    delay: Scalar = eqx.field(default=0.0, converter=as_numbers)
    period: Scalar | None = eqx.field(default=None, converter=lambda x: None if x is None else as_numbers(x))
    interpolation: Literal["hold", "linear"] = eqx.field(static=True, default="hold")
    samples: int = eqx.field(static=True, default=64)

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.sensor, Sampled):
            raise ValueError("Sampled.sensor: it is sampled already; one has both, a delay and a period")
        if not (isinstance(self.delay, Tracer) or np.all(np.asarray(self.delay) >= 0)):
            raise ValueError(f"Sampled.delay: expected a number that is not negative, got {self.delay}")
        if not (isinstance(self.period, Tracer | None) or np.all(np.asarray(self.period) > 0)):
            raise ValueError(f"Sampled.period: expected a positive number, got {self.period}")
        if self.interpolation not in ("hold", "linear"):
            raise ValueError(f'Sampled.interpolation: expected "hold" or "linear", got {self.interpolation!r}')
        if self.samples < 2:
            raise ValueError(f"Sampled.samples: expected at least 2, got {self.samples}")

    def value(self, reading: Reading) -> Float[Array, "..."]:
        """Measurement at this instant; `shown` is what the sensor shows."""
        return self.sensor.value(reading)

    def shown(self, ages: Float[Array, " n"], values: Float[Array, "n ..."]) -> Float[Array, "..."]:
        """Value shown, of values that were measured some time ago [s], the oldest first; NaN if all are younger than
        the delay. Negative ages are of values that nobody knows yet."""
        # Ages are sums of steps, which are as long as the delay up to rounding.
        last = jnp.maximum(jnp.sum(ages >= self.delay * (1 - slack(ages.dtype))) - 1, 0)
        shown, arrived = values[last], ages[last] >= self.delay * (1 - slack(ages.dtype))
        if self.interpolation == "linear":
            following = jnp.minimum(last + 1, len(ages) - 1)
            span, known = ages[last] - ages[following], ages[following] >= 0
            between = known & (span > 0)
            share = jnp.where(between, (ages[last] - self.delay) / jnp.where(between, span, 1), 0)
            shown = shown + jnp.clip(share, 0, 1) * (values[following] - shown)
        return jnp.where(arrived, shown, jnp.nan)

    def waits(self, waited: Scalar, duration: Scalar) -> tuple[Scalar, Bool[Array, ""]]:
        """Time since it was last to measure, after some more of it [s], and whether it is to measure."""
        waited = waited + duration
        if self.period is None:
            return jnp.zeros_like(waited), jnp.array(True)
        periods = jnp.floor(waited / self.period + slack(waited.dtype))
        return jnp.where(periods > 0, waited - periods * self.period, waited), periods > 0


def slack(dtype) -> float:
    """Rounding of sums of steps, relative to these."""
    return float(jnp.finfo(dtype).eps) ** 0.5
