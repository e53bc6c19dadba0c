"""A motion that can be looked at at any time."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.model import Model
from jdyn.model.compiled import compiled
from jdyn.simulation import Result, Trajectory
from jdyn.simulation.interpolation import hermite


class Motion(NamedTuple):
    """Lanes of a batch of motions, up to where each of them got.

    Attributes:
        ts: Times of the rows [s], shape (lanes, times).
        q: Configurations, shape (lanes, times, nq).
        v: Velocities, shape (lanes, times, nv).
        results: How lanes ended, codes of `jdyn.Result`.
        ends: When each lane ends [s]: its last row that was reached.
    """

    ts: np.ndarray
    q: np.ndarray
    v: np.ndarray
    results: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, model: Model, trajectory: Trajectory) -> Motion:
        """One motion, or the lanes of a batch.

        Raises:
            ValueError: if rows are not those of `model`, there is no lane, or no row of a lane was reached.
        """
        ts, q, v = (np.asarray(x) for x in (trajectory.ts, trajectory.q, trajectory.v))
        if q.shape[-1] != model.nq or not q.size:
            raise ValueError(
                f"trajectory: expected rows of {model.nq} coordinates, as {model.name!r} has, got q of shape {q.shape}"
            )
        times = q.shape[-2]
        ts, q, v = ts.reshape(-1, times), q.reshape(-1, times, model.nq), v.reshape(-1, times, model.nv)
        reached = np.all(np.isfinite(q), axis=-1).reshape(-1, times)
        empty = np.flatnonzero(np.sum(reached, axis=1) == 0)
        if len(empty):
            lanes = ", ".join(map(str, empty[:5]))
            raise ValueError(f"trajectory: there is nothing to show of lane {lanes}: all of its rows are NaN")
        last = reached.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        ends = np.take_along_axis(ts, last[:, None], axis=1)[:, 0]
        return cls(ts, q, v, np.ravel(np.asarray(trajectory.result)), ends)

    @property
    def lanes(self) -> int:
        return len(self.ends)

    def start(self, lane: int) -> float:
        """When a lane begins [s]."""
        return float(self.ts[lane, 0])

    def end(self, lane: int) -> float:
        """When a lane ends [s]."""
        return float(self.ends[lane])

    def at(self, model: Model, lane: int, t: float) -> Float[Array, " nq"]:
        """Configuration of a lane at a time [s]; before its start and after its end, that of these."""
        return self.lanes_at(model, np.array([lane]), t)[0]

    def lanes_at(self, model: Model, lanes: np.ndarray, t: float) -> Float[Array, "lanes nq"]:
        """Configurations of several lanes at a time [s]."""
        times = np.clip(t, self.ts[lanes, 0], self.ends[lanes]).astype(self.ts.dtype)
        rows = (jnp.asarray(x) for x in (self.ts[lanes], self.q[lanes], self.v[lanes], times))
        return _between(model, *rows)

    def outcome(self, lane: int) -> str:
        """How a lane ended, in a word."""
        return Result(int(self.results[lane])).name

    def rows(self, model: Model, lane: int, most: int) -> dict[str, np.ndarray]:
        """Time [s], q, v and energies [J] of a lane, thinned out to at most so many rows: `t`, `q`, `v`, `kinetic`,
        `potential`."""
        count = int(np.isfinite(self.q[lane]).all(axis=-1).sum())
        chosen = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
        t, q, v = (x[lane, chosen] for x in (self.ts, self.q, self.v))
        kinetic, potential = (np.asarray(x) for x in _energies(model, jnp.asarray(q), jnp.asarray(v)))
        return {"t": t, "q": q, "v": v, "kinetic": kinetic, "potential": potential}


@compiled
def _between(
    model: Model,
    ts: Float[Array, "lanes times"],
    q: Float[Array, "lanes times nq"],
    v: Float[Array, "lanes times nv"],
    t: Float[Array, " lanes"],
) -> Float[Array, "lanes nq"]:
    return jax.vmap(lambda ts, q, v, t: hermite(model, ts, q, v, t)[0])(ts, q, v, t)


@compiled
def _energies(model: Model, q: Float[Array, "times nq"], v: Float[Array, "times nv"]) -> tuple[Array, Array]:
    return jax.vmap(lambda q, v: (kinetic_energy(model, q, v), potential_energy(model, q)))(q, v)
