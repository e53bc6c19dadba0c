"""Noise, bias, saturation and quantisation of sensors."""

import binascii
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from jdyn.array import as_numbers
from jdyn.model import Name
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor
from jdyn.terminal.messages import short


def _numbers(x: Any) -> Any:
    return None if x is None else as_numbers(x)


class Imperfect(Sensor):
    """A sensor with bias and noise, which are added to its value, a range, to which the sum is clipped, and steps, to
    which that is rounded.

    Noise is Gaussian, independent in every instant, and a function of the key, the time and the name of the sensor:
    two evaluations of one instant agree. Lanes of a batch share it unless each has its own key. Derivatives do not see
    quantisation, so that losses on its values can be minimised; beyond the range they are zero.

    >>> tip = jdyn.sensors.FramePosition("tip", "tip")
    >>> coarse = jdyn.sensors.Imperfect(tip, noise=0.01, bias=0.1, quantum=0.25, key=jax.random.key(0))
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1))
    >>> print(coarse.value(reading) + 0.0)
    [ 1.   0.  -0.5]

    Attributes:
        sensor: The perfect sensor, whose name it has.
        noise: Standard deviation, a number or one for each entry of the value, in its unit.
        bias: Likewise.
        cutoff: Values are within ± this number; None for no limit.
        quantum: Step of the values; None for none.
        key: Key of the noise as numbers; needed if there is noise.
        generator: Random number generator of the key; that of JAX where it is left out.

    Raises:
        ValueError: if there is noise without a key.
    """

    name: Name = eqx.field(static=True, init=False)
    sensor: Sensor
    noise: Float[Array, "..."] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    bias: Float[Array, "..."] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    cutoff: Float[Array, ""] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    quantum: Float[Array, ""] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    key: PRNGKeyArray | UInt32[Array, " words"] | None = eqx.field(default=None, kw_only=True)
    generator: str | None = eqx.field(static=True, default=None, kw_only=True)

    def __post_init__(self):
        if not isinstance(self.sensor, Sensor):
            raise ValueError(
                f"Imperfect.sensor: expected a sensor, such as jdyn.sensors.Gyro(...), got {short(self.sensor)}"
            )
        if self.noise is not None and self.key is None:
            raise ValueError("Imperfect.key: noise needs a key, such as jax.random.key(0)")
        self.name = self.sensor.name
        if self.key is not None and self.generator is None:
            # Callbacks of JAX, which tell failures of simulations, take no arrays of keys.
            self.key, self.generator = jax.random.key_data(self.key), str(jax.random.key_impl(self.key))

    @property
    def uses_forces(self) -> bool:
        return self.sensor.uses_forces

    @property
    def uses_actuators(self) -> bool:
        return self.sensor.uses_actuators

    @property
    def uses_shapes(self) -> bool:
        return self.sensor.uses_shapes

    def value(self, reading: Reading) -> Float[Array, "..."]:
        x = self.sensor.value(reading)
        if self.bias is not None:
            x = x + jnp.broadcast_to(self.bias, x.shape)
        if self.noise is not None and self.key is not None:
            key = jax.random.wrap_key_data(self.key, impl=self.generator)
            drawn = jax.random.normal(self._at(key, reading.t), x.shape, x.dtype)
            x = x + jnp.broadcast_to(self.noise, x.shape) * drawn
        if self.cutoff is not None:
            x = jnp.clip(x, -self.cutoff, self.cutoff)
        if self.quantum is not None:
            # The value of a step, the derivative of what is rounded.
            x = jax.lax.stop_gradient(self.quantum * jnp.round(x / self.quantum)) + (x - jax.lax.stop_gradient(x))
        return x

    def _at(self, key, t):
        """Key of the sensor at an instant."""
        bits = jnp.ravel(jax.lax.bitcast_convert_type(t, jnp.uint32))
        key = jax.random.fold_in(key, binascii.crc32(self.name.encode()))
        for word in bits:
            key = jax.random.fold_in(key, word)
        return key
