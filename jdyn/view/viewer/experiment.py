"""A simulation that is run again with other gains."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.control import Controller, DynamicController
from jdyn.model import Model, dynamics_only
from jdyn.simulation import State, System, Trajectory, simulate

# Rows of a motion.
ROWS = 251


class Experiment:
    """A simulation under a controller whose gains change. It is compiled once.

    Attributes:
        gains: Range of each gain, by name.
    """

    def __init__(self, system: System, gains: Mapping[str, tuple[float, float]] | None = None, controller: Any = None):
        """
        Args:
            system: What is simulated.
            gains: Least and largest value of each gain; None for the system as it is.
            controller: `controller(gains)`, from values by name to the controller, where there are gains.

        Raises:
            ValueError: if a range is empty, or there are gains without a function of them, or the other way round.
        """
        self.gains = {name: _range(name, ends) for name, ends in (gains or {}).items()}
        function = callable(controller) and not isinstance(controller, Controller | DynamicController)
        make: Any = controller
        if function != bool(self.gains):
            raise ValueError(
                "controller: expected a function of the gains, such as "
                f"lambda gains: jdyn.PD(model, target, kp=gains['kp'], kd=20.0), with gains={{'kp': (10, 500)}}, got "
                f"{controller!r} with gains {gains}; one without gains is a part of the system"
            )
        self._kept = dynamics_only if system.contact is None else lambda model: model

        @jax.jit
        def program(model, q0, v0, t1, gains):
            ts = t1 * jnp.linspace(0, 1, ROWS, dtype=model.dtype)
            varied = system.but(model=model, controller=make(gains) if gains else system.controller)
            return simulate(varied, State(q0, v0), t1, saveat=ts, throw=False)

        self._program = program

    def run(
        self, model: Model, q0: Array, v0: Array, t1: float, gains: Mapping[str, float]
    ) -> tuple[Trajectory, float]:
        """A motion, and how long it took to find it [s].

        Args:
            model: The mechanism.
            q0, v0: Start.
            t1: Length [s].
            gains: Values by name.
        """
        started = time.perf_counter()
        numbers = {name: jnp.asarray(gains[name], model.dtype) for name in self.gains}
        start = (jnp.asarray(x, model.dtype) for x in (q0, v0, t1))
        trajectory = jax.block_until_ready(self._program(self._kept(model), *start, numbers))
        return trajectory, time.perf_counter() - started


def _range(name, ends):
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        low = high = np.nan
    if not low < high or not np.isfinite(high - low):
        raise ValueError(f"gains[{name!r}]: expected a range such as (10, 1000), got {ends!r}")
    return low, high
