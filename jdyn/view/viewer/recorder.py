"""Configurations that someone moves through, as a trajectory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.simulation import Result, Trajectory
from jdyn.simulation.trajectory import Events


class Recorder:
    """Notes configurations with the time at which they were shown.

    Attributes:
        recording: Whether it does.
    """

    def __init__(self):
        self.recording = False
        self._times: list[float] = []
        self._rows: list[np.ndarray] = []

    def start(self) -> None:
        """Begin anew."""
        self.recording = True
        self._times, self._rows = [], []

    def note(self, time: float, q: Float[Array, " nq"]) -> None:
        """A configuration at a time [s]; none that is not later than the last one."""
        if self.recording and (not self._times or time > self._times[-1]):
            self._times.append(time)
            self._rows.append(np.array(q))

    def stop(self, model: Model) -> Trajectory:
        """End the recording; return it from the time 0, with velocities that are those of central differences.

        Raises:
            ValueError: if there are fewer than two configurations.
        """
        self.recording = False
        if len(self._times) < 2:
            raise ValueError("nothing was recorded: move the robot between start and stop")
        ts = jnp.asarray(np.array(self._times) - self._times[0], model.dtype)
        q = jnp.asarray(np.array(self._rows), model.dtype)
        return _trajectory(ts, q, _velocities(model, ts, q)).with_system(model)


@compiled
def _velocities(model: Model, ts: Float[Array, " times"], q: Float[Array, "times nq"]) -> Float[Array, "times nv"]:
    """Slopes of the parabolas through neighbouring rows; one-sided at the ends."""
    duration = jnp.diff(ts)
    slopes = jax.vmap(model.difference)(q[:-1], q[1:]) / duration[:, None]
    before, after = duration[:-1, None], duration[1:, None]
    inner = (after * slopes[:-1] + before * slopes[1:]) / (before + after)
    return jnp.concatenate([slopes[:1], inner, slopes[-1:]])


def _trajectory(ts, q, v):
    none = Events(
        jnp.zeros(0, ts.dtype), jnp.zeros(0, jnp.int32), jnp.zeros(0, jnp.int32),
        jnp.zeros((0, q.shape[1]), q.dtype), jnp.zeros((0, v.shape[1]), v.dtype),
    )  # fmt: skip
    return Trajectory(ts, q, v, {}, none, jnp.asarray(Result.success, jnp.int32), {"t_reached": ts[-1]})
