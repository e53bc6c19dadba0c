"""Memory of sensors that show the past."""

from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import where
from jdyn.sensors import Sampled, Sensor
from jdyn.simulation.state import State

# The part of a state that this is; nothing integrates it, and simulations have none.
SENSOR_MEMORY = "sensors"

Values = dict[str, Float[Array, "..."]]


# Age of what was measured before the start: more than any delay [s].
_LONG_AGO = 1e30


class Measurements(eqx.Module):
    """Last measurements of a sensor, the oldest first. Before the start it measured what it did there.

    Attributes:
        ages: How long ago [s].
        values: What was measured.
        waited: Time since it was last to measure [s].
    """

    ages: Float[Array, " samples"]
    values: Float[Array, "samples ..."]
    waited: Scalar

    @classmethod
    def first(cls, sensor: Sampled, value: Float[Array, "..."]) -> Self:
        """Measurements at a start."""
        ages = jnp.full(sensor.samples, _LONG_AGO, value.dtype).at[-1].set(0)
        return cls(ages, jnp.broadcast_to(value, (sensor.samples, *value.shape)), jnp.zeros((), value.dtype))

    def followed_by(self, sensor: Sampled, duration: Scalar, value: Float[Array, "..."]) -> "Measurements":
        """Measurements at the end of a step of some duration [s]."""
        waited, due = sensor.waits(self.waited, duration)
        ages = self.ages + duration
        following = jnp.concatenate([self.values[1:], value[None]])
        ages, values = where(due, (jnp.append(ages[1:], 0), following), (ages, self.values))
        return Measurements(ages, values, waited)


Memory = dict[str, Measurements]


def sampled(sensors: Sequence[Sensor]) -> list[Sampled]:
    """Sensors that show the past."""
    return [sensor for sensor in sensors if isinstance(sensor, Sampled)]


def first_memory(sensors: Sequence[Sensor], measured: Values) -> Memory:
    """Memory at a start."""
    return {sensor.name: Measurements.first(sensor, measured[sensor.name]) for sensor in sampled(sensors)}


def next_memory(sensors: Sequence[Sensor], memory: Memory, duration: Scalar, measured: Values) -> Memory:
    """Memory after a step of some duration [s]."""
    return {
        sensor.name: memory[sensor.name].followed_by(sensor, duration, measured[sensor.name])
        for sensor in sampled(sensors)
    }


def shown(sensors: Sequence[Sensor], memory: Memory, measured: Values) -> Values:
    """Values that sensors show, by what they measure now, and by the memory up to now."""
    remembered = {sensor.name: (sensor, memory[sensor.name]) for sensor in sampled(sensors)}
    return measured | {name: sensor.shown(past.ages, past.values) for name, (sensor, past) in remembered.items()}


def shown_in_rows(sensors: Sequence[Sensor], ts: Float[Array, " rows"], measured: Values) -> Values:
    """Values that sensors show in the rows of a trajectory, by what they measure there."""
    return measured | {sensor.name: _in_rows(sensor, ts, measured[sensor.name]) for sensor in sampled(sensors)}


def without_memory(state: State) -> State:
    """The same state without what sensors remember."""
    return State(state.q, state.v, {part: x for part, x in state.parts.items() if part != SENSOR_MEMORY})


def _in_rows(sensor: Sampled, ts: Float[Array, " rows"], values: Float[Array, "rows ..."]) -> Float[Array, "rows ..."]:
    spans = jnp.abs(jnp.diff(ts))
    _, due = jax.lax.scan(lambda waited, span: sensor.waits(waited, span), jnp.zeros_like(ts[0]), spans)
    # In a row where it does not measure stands the last measurement.
    last = jax.lax.cummax(jnp.where(jnp.append(True, due), jnp.arange(len(ts)), 0))
    times, measured = jnp.abs(ts - ts[0]), jnp.concatenate([values[:1], values[last]])

    def in_row(now):
        return sensor.shown(jnp.append(_LONG_AGO, now - times[last]), measured)

    return jax.vmap(in_row)(times)
