"""Ends of motions, and where they are at any time."""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.simulation import Trajectory
from jdyn.simulation.interpolation import hermite


@dataclasses.dataclass(frozen=True)
class Lanes:
    """Motions side by side, each up to where it got.

    They play in running time, which rises: that of a motion backward in time is its time with the other sign.

    Attributes:
        ts: Times of the rows [s].
        q: Configurations.
        v: Velocities.
        counts: Rows of each lane up to the first one that is not finite; 0 for a lane that failed at its start.
        signs: 1 for a lane whose times rise, -1 for one whose times fall.
        results: How lanes ended, codes of `jdyn.Result`.
    """

    ts: Float[np.ndarray, "lanes times"]
    q: Float[np.ndarray, "lanes times nq"]
    v: Float[np.ndarray, "lanes times nv"]
    counts: Int[np.ndarray, " lanes"]
    signs: Float[np.ndarray, " lanes"]
    results: Int[np.ndarray, " lanes"]

    @classmethod
    def of(cls, trajectory: Trajectory) -> Self:
        """One motion, or the lanes of a batch, row by row where this has several axes.

        Raises:
            ValueError: if there are no rows.
        """
        ts, q, v = (np.asarray(x) for x in (trajectory.ts, trajectory.q, trajectory.v))
        if 0 in q.shape[:-1]:
            raise ValueError(f"trajectory: expected at least one row, got q of shape {q.shape}")
        times = q.shape[-2]
        ts = ts.reshape(-1, times)
        q, v = q.reshape(*ts.shape, q.shape[-1]), v.reshape(*ts.shape, v.shape[-1])
        finite = np.isfinite(ts) & np.all(np.isfinite(q), axis=-1) & np.all(np.isfinite(v), axis=-1)
        counts = np.sum(np.cumprod(finite, axis=1), axis=1)
        signs = np.where(np.any(np.diff(ts, axis=1) < 0, axis=1), -1.0, 1.0)
        return cls(ts, q, v, counts, signs, np.ravel(np.asarray(trajectory.result)))

    @property
    def lanes(self) -> int:
        return len(self.counts)

    @property
    def starts(self) -> Float[np.ndarray, " lanes"]:
        """When lanes begin [s], in running time."""
        return self.signs * self.ts[:, 0]

    @property
    def ends(self) -> Float[np.ndarray, " lanes"]:
        """When lanes reached their last row [s], in running time."""
        return self.signs * self.ts[np.arange(self.lanes), np.maximum(self.counts - 1, 0)]

    def check(self, lane: int) -> None:
        """Refuse a lane that cannot be shown.

        Raises:
            ValueError: if there is no such lane, or it failed at its start.
        """
        if not 0 <= lane < self.lanes:
            raise ValueError(f"lane: expected 0 to {self.lanes - 1}, got {lane}")
        if not self.counts[lane]:
            raise ValueError(f"trajectory: lane {lane} has no row of finite numbers; it failed at its start")

    def configurations(
        self, model: Model, lanes: Int[np.ndarray, " chosen"], t: Float[np.ndarray, " instants"]
    ) -> Float[Array, "chosen instants nq"]:
        """Configurations of some lanes by `Trajectory.interpolate`; before the start and after the end of a lane, those
        of its start and its end.

        Args:
            model: The mechanism.
            lanes: Numbers of lanes, none of which failed at its start.
            t: Running times [s].
        """
        running = np.clip(t, self.starts[lanes, None], self.ends[lanes, None])
        times = (self.signs[lanes, None] * running).astype(self.ts.dtype)
        return _between(model, *(jnp.asarray(x) for x in (self.ts[lanes], self.q[lanes], self.v[lanes], times)))


@compiled
def _between(
    model: Model,
    ts: Float[Array, "lanes times"],
    q: Float[Array, "lanes times nq"],
    v: Float[Array, "lanes times nv"],
    t: Float[Array, "lanes instants"],
) -> Float[Array, "lanes instants nq"]:
    def lane(ts, q, v, t):
        return jax.vmap(lambda t: hermite(model, ts, q, v, t)[0])(t)

    return jax.vmap(lane)(ts, q, v, t)
