"""A motion that can be looked at at any time."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.simulation import Result
from jdyn.view.frames import spread
from jdyn.view.lanes import Lanes
from jdyn.view.plots.energy import energies


@dataclasses.dataclass(frozen=True)
class Motion(Lanes):
    """Lanes of a batch of motions, as a page asks for them: one at a time. Times are running times."""

    def start(self, lane: int) -> float:
        """When a lane begins [s]."""
        return float(self.starts[lane])

    def end(self, lane: int) -> float:
        """When a lane ends [s]: its last row that was reached."""
        return float(self.ends[lane])

    def others(self, lane: int) -> np.ndarray:
        """The other lanes, but for those that failed at their start."""
        return np.setdiff1d(np.flatnonzero(self.counts), [lane])

    def at(self, model: Model, lane: int, t: float) -> Float[Array, " nq"]:
        """Configuration of a lane at a time [s]; before its start and after its end, that of these."""
        return self.lanes_at(model, np.array([lane]), t)[0]

    def lanes_at(self, model: Model, lanes: np.ndarray, t: float) -> Float[Array, "lanes nq"]:
        """Configurations of several lanes at a time [s]."""
        return self.configurations(model, lanes, np.array([t]))[:, 0]

    def outcome(self, lane: int) -> str:
        """End of a lane, in a word."""
        return Result(int(self.results[lane])).name

    def rows(self, model: Model, lane: int, most: int) -> dict[str, np.ndarray]:
        """Time [s], q, v and energies [J] of a lane, thinned out to at most so many rows: `t`, `q`, `v`, `kinetic`,
        `potential`."""
        chosen = spread(self.counts[lane], most)
        t, q, v = (x[lane, chosen] for x in (self.ts, self.q, self.v))
        kinetic, potential = (np.asarray(x) for x in energies(model, jnp.asarray(q), jnp.asarray(v)))
        return {"t": self.signs[lane] * t, "q": q, "v": v, "kinetic": kinetic, "potential": potential}
