"""Noise, bias, saturation and quantisation of sensors."""

import binascii
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from jdyn.array import as_numbers, with_fields
from jdyn.model import Scaling, scaled, times
from jdyn.sensors.reading import Reading
from jdyn.sensors.sampled import Sampled
from jdyn.sensors.wrapper import Wrapper

# A walk of biases goes on for 36 hours; its steps are of a millisecond.
_WALK, _HALVINGS = 2.0**17, 27


def _numbers(x: Any) -> Any:
    return None if x is None else as_numbers(x)


class Imperfect(Wrapper):
    """A sensor with bias, drift and noise, which are added to its value, a range, to which the sum is clipped, and
    steps, to which that is rounded.

    Noise is Gaussian, independent in every instant, and a function of the key, the time and the name of the sensor:
    two evaluations of one instant agree. Drift is a random walk of the bias, Brownian motion from zero at the time
    zero, and likewise a function of key, time and name. Lanes of a batch share both unless each has its own key.
    Derivatives do not see quantisation, so that losses on its values can be minimised; beyond the range they are zero.
    A delay, and a rate of measurements, are those of a `jdyn.sensors.Sampled` around it.

    >>> tip = jdyn.sensors.FramePosition("tip", "tip")
    >>> coarse = jdyn.sensors.Imperfect(tip, noise=0.01, bias=0.1, quantum=0.25, key=jax.random.key(0))
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1))
    >>> print(coarse.value(reading) + 0.0)
    [ 1.   0.  -0.5]

    Attributes:
        sensor: The perfect sensor, whose name it has.
        noise: Standard deviation, a number or one for each entry of the value, in its unit.
        bias: Likewise.
        drift: Standard deviation of the walk after a second, which grows with the root of the time [unit/√s].
        cutoff: Values are within ± this number; None for no limit.
        quantum: Step of the values; None for none.
        key: Key of noise and drift as numbers; needed if there is one of them.
        generator: Random number generator of the key; that of JAX where it is left out.

    Raises:
        ValueError: if there is noise or drift without a key, or the sensor within is a sampled one.
    """

    noise: Float[Array, "..."] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    bias: Float[Array, "..."] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    drift: Float[Array, "..."] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    cutoff: Float[Array, ""] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    quantum: Float[Array, ""] | None = eqx.field(default=None, converter=_numbers, kw_only=True)
    key: PRNGKeyArray | UInt32[Array, " words"] | None = eqx.field(default=None, kw_only=True)
    generator: str | None = eqx.field(static=True, default=None, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.sensor, Sampled):
            raise ValueError("Imperfect.sensor: what is imperfect is what is sampled, Sampled(Imperfect(...))")
        for what, x in (("noise", self.noise), ("drift", self.drift)):
            if x is not None and self.key is None:
                raise ValueError(f"Imperfect.key: {what} needs a key, such as jax.random.key(0)")
        if self.key is not None and self.generator is None:
            # Callbacks of JAX, which tell failures of simulations, take no arrays of keys.
            self.key, self.generator = jax.random.key_data(self.key), str(jax.random.key_impl(self.key))

    def scaled(self, scaling: Scaling) -> Self:
        """The same imperfections of the scaled sensor, in its new unit.

        Raises:
            ValueError: if that is not known.
        """
        unit = self.value_factor(scaling)
        numbers = {what: getattr(self, what) for what in ("noise", "bias", "cutoff", "quantum")}
        changed = {what: None if x is None else times(x, unit) for what, x in numbers.items()}
        drift = self.drift
        if drift is not None:
            drift = times(times(drift, unit), scaling.factor("1/s^0.5"))
        return with_fields(self, sensor=scaled(self.sensor, scaling), drift=drift, **changed)

    def value(self, reading: Reading) -> Float[Array, "..."]:
        x = self.sensor.value(reading)
        if self.bias is not None:
            x = x + jnp.broadcast_to(self.bias, x.shape)
        if self.key is not None:
            key = jax.random.wrap_key_data(self.key, impl=self.generator)
            key = jax.random.fold_in(key, binascii.crc32(self.name.encode()))
            if self.noise is not None:
                drawn = jax.random.normal(_at(key, reading.t), x.shape, x.dtype)
                x = x + jnp.broadcast_to(self.noise, x.shape) * drawn
            if self.drift is not None:
                x = x + jnp.broadcast_to(self.drift, x.shape) * _walked(key, reading.t, x)
        if self.cutoff is not None:
            x = jnp.clip(x, -self.cutoff, self.cutoff)
        if self.quantum is not None:
            # The value of a step, the derivative of what is rounded.
            x = jax.lax.stop_gradient(self.quantum * jnp.round(x / self.quantum)) + (x - jax.lax.stop_gradient(x))
        return x


def _at(key: PRNGKeyArray, t: Array) -> PRNGKeyArray:
    """Key at an instant."""
    for word in jnp.ravel(jax.lax.bitcast_convert_type(t, jnp.uint32)):
        key = jax.random.fold_in(key, word)
    return key


def _walked(key: PRNGKeyArray, t: Array, like: Array) -> Array:
    """Standard Brownian motion at a time, in the shape of another array.

    Source: Lévy's construction: the line to the end of the walk, and for each half, quarter, ... of the time in which t
    lies the deviation of its middle from a line.
    """
    share = jnp.clip(jnp.abs(t) / _WALK, 0, 1)
    halves = 2.0 ** jnp.arange(_HALVINGS, dtype=like.dtype)
    interval = jnp.floor(share * halves)
    along = share * halves - interval
    weights = jnp.concatenate([share[None], (0.5 - jnp.abs(along - 0.5)) / jnp.sqrt(halves)])

    def drawn(level, number):
        own = jax.random.fold_in(jax.random.fold_in(key, level), number)
        return jax.random.normal(own, like.shape, like.dtype)

    levels = jnp.arange(_HALVINGS + 1, dtype=jnp.uint32)
    numbers = jnp.concatenate([jnp.zeros(1), interval]).astype(jnp.uint32)
    return jnp.sqrt(_WALK) * jnp.tensordot(weights.astype(like.dtype), jax.vmap(drawn)(levels, numbers), 1)
