"""The cost of each step of an integrator."""

import dataclasses
from typing import Any

import diffrax
import jax
import numpy as np
from jaxtyping import ArrayLike

from jdyn.simulation import CashKarp, Result, State, System, simulate
from jdyn.studies.cloutier1995.numerical_recipes import QualityControl, WithRate


@dataclasses.dataclass(frozen=True)
class Steps:
    """A motion: one row before the first step, and one after each accepted step.

    Counts of steps need a whole motion, not a `thinned` one.

    Attributes:
        system: What was simulated.
        ts: Times [s], shape (rows,).
        q, v: States, shapes (rows, nq) and (rows, nv).
        parts: Parts of the state beside the motion, see `jdyn.State`.
        tries: Number of steps tried so far, shape (rows,).
        evaluations: Number of evaluations of forward dynamics so far, shape (rows,), as in
            `Trajectory.stats["dynamics_calls"]`; None for solvers that do not count.
        result: How the motion ended.
    """

    system: System
    ts: np.ndarray
    q: np.ndarray
    v: np.ndarray
    parts: Any
    tries: np.ndarray
    evaluations: np.ndarray | None
    result: Result

    @property
    def bad_steps(self) -> int:
        """Number of steps that were accepted after they had been shortened."""
        return int(np.sum(np.diff(self.tries) > 1))

    @property
    def good_steps(self) -> int:
        """Number of steps that were accepted at the first try."""
        return len(self.ts) - 1 - self.bad_steps

    @property
    def recipe_evaluations(self) -> int:
        """Evaluations that Numerical Recipes' Runge-Kutta program needs for these steps: one at the start of a step and
        five for each try.

        jdyn evaluates the end of a step within the try, for its dense output, and starts the next step with that.
        """
        return len(self.ts) - 1 + 5 * int(self.tries[-1])

    def at(self, rows) -> "Steps":
        """Some of the rows; their counts do not change."""
        taken = {name: jax.tree.map(lambda x: x[rows], getattr(self, name)) for name in _ROWS}
        return dataclasses.replace(self, **taken)

    def thinned(self, interval: float, most: int) -> "Steps":
        """The first row, each row more than `interval` [s] after the one kept before, and the last row. If they are
        more than `most`, rows before the last one are left out."""
        rows = [0]
        for row, t in enumerate(self.ts[:-1]):
            if t - self.ts[rows[-1]] > interval and len(rows) < most - 1:
                rows.append(row)
        return self.at(np.unique([*rows, len(self.ts) - 1]))


_ROWS = ("ts", "q", "v", "parts", "tries", "evaluations")


def take_steps(
    system: System,
    state: State,
    t1: ArrayLike,
    *,
    solver: diffrax.AbstractSolver | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    t0: ArrayLike = 0.0,
    dt0: ArrayLike = 0.01,
    max_steps: int = 16384,
) -> Steps:
    """Simulate with `jdyn.simulate`, and keep every step and its cost.

    Args:
        system: What is simulated.
        state: State at `t0`.
        t1: End [s], after `t0`.
        solver: As `jdyn.simulate` takes it; that of the thesis, `WithRate(CashKarp())`, if left out.
        stepsize_controller: A diffrax step controller; that of the thesis with an accuracy of 1e-4,
            `QualityControl`, if left out.
        t0: Start [s].
        dt0: First step [s].
        max_steps: Most steps to try.

    Returns:
        The steps as far as they got; a failure is a code in `result`.

    Raises:
        ValueError: if a size disagrees with the system.

    Source: Cloutier 1995, section 5.1.3.
    """
    motion = simulate(
        system,
        state,
        t1,
        solver=WithRate(CashKarp()) if solver is None else solver,
        stepsize_controller=QualityControl(accuracy=1e-4) if stepsize_controller is None else stepsize_controller,
        saveat=diffrax.SaveAt(t0=True, steps=True),
        throw=False,
        t0=t0,
        dt0=dt0,
        max_steps=max_steps,
    )
    calls = motion.stats["row_dynamics_calls"]
    steps = Steps(
        system=system,
        ts=np.asarray(motion.ts, float),
        q=np.asarray(motion.q),
        v=np.asarray(motion.v),
        parts=jax.tree.map(np.asarray, motion.parts),
        tries=np.asarray(motion.stats["row_tries"]),
        evaluations=None if calls is None else np.asarray(calls),
        result=Result(int(motion.result)),
    )
    return steps.at(slice(0, 1 + int(motion.stats["accepted_steps"])))
