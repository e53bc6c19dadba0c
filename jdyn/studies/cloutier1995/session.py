"""The off-line simulator of the thesis: its input and its results."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence

import diffrax
import jax.numpy as jnp
import numpy as np

from jdyn.control import Constant
from jdyn.dynamics import CRBA, Method
from jdyn.model import Model
from jdyn.robots import prrr
from jdyn.simulation import AdamsBashforthMoulton, BaderDeuflhard, CashKarp, Rodas5P, System, largest
from jdyn.studies.cloutier1995.link_table import Link
from jdyn.studies.cloutier1995.numerical_recipes import QualityControl, WithRate
from jdyn.studies.cloutier1995.operations import Operations, UncountableError, forward_dynamics_operations
from jdyn.studies.cloutier1995.statistics import Statistics, statistics
from jdyn.studies.cloutier1995.steps import Steps, take_steps


def _adaptive(session: "Session"):
    return WithRate(CashKarp()), QualityControl(accuracy=session.accuracy, smallest=session.smallest_step)


def _controlled(session: "Session"):
    accuracy = session.accuracy
    return diffrax.PIDController(rtol=accuracy, atol=accuracy, norm=largest, dtmin=session.smallest_step)


def _stiff(session: "Session"):
    return Rodas5P(), _controlled(session)


def _extrapolated(session: "Session"):
    return BaderDeuflhard(rtol=session.accuracy, atol=session.accuracy, norm=largest), _controlled(session)


def _fixed(session: "Session"):
    return CashKarp(), diffrax.ConstantStepSize()


def _predicted(session: "Session"):
    return AdamsBashforthMoulton(), _controlled(session)


# Solver and step control of each integration method. The first three have the thesis' numbers.
INTEGRATIONS: dict[str, Callable] = {
    "rka": _adaptive, "stiff": _stiff, "stifbs": _extrapolated, "rk": _fixed, "adams": _predicted,
}  # fmt: skip

LU = CRBA("lu")


@dataclasses.dataclass(frozen=True)
class Session:
    """A simulation of a planar robot of rectangular links. The defaults are those of figure 5.2.

    The thesis does not print the robot file of that figure; its numbers imply the links here.

    Attributes:
        links: Base to tip.
        method: Forward-dynamics method.
        integration: `"rka"`, Cash and Karp's Runge-Kutta method with the step control of Numerical Recipes; `"stiff"`,
            a Rosenbrock method; `"stifbs"`, Bader's and Deuflhard's extrapolation method; `"rk"`, the
            Runge-Kutta method with steps of one length; `"adams"`, Adams-Bashforth-Moulton with adaptive steps.
        t0, t1: Start and stop [s].
        first_step, smallest_step: Lengths of steps [s].
        accuracy: Accuracy of a step.
        interval: Time after which the next row is saved [s].
        rows: Most rows to save.
        q0, v0: State at the start [rad, rad/s], one entry for each link.
        gravity: Downwards [m/s²].
        friction: Viscous friction of every joint [N m s/rad].
        torques: Torques of the motors [N m], one for each link.
        max_steps: Most steps to try.
    """

    links: tuple[Link, ...] = (Link(10.0, 1.0, 1.0),) * 3
    method: Method = LU
    integration: str = "rka"
    t0: float = 0.0
    t1: float = 10.0
    first_step: float = 0.01
    smallest_step: float = 0.0
    accuracy: float = 1e-4
    interval: float = 0.01
    rows: int = 1000
    q0: tuple[float, ...] = (1.5, 0.0, 0.0)
    v0: tuple[float, ...] = (0.0, 0.0, 0.0)
    gravity: float = 9.8
    friction: float = 0.0
    torques: tuple[float, ...] = (1.0, 1.0, 1.0)
    max_steps: int = 10_000

    def __post_init__(self):
        n = len(self.links)
        for name in ("q0", "v0", "torques"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{name}: expected {n} numbers, one a link, got {len(getattr(self, name))}")
        if not self.t1 > self.t0:
            raise ValueError(f"expected a stop after the start, got {self.t0:g} s and {self.t1:g} s")
        if self.integration not in INTEGRATIONS:
            raise ValueError(f"integration: expected one of {', '.join(INTEGRATIONS)}, got {self.integration!r}")

    def model(self) -> Model:
        """The robot."""
        lengths, masses, widths = zip(*self.links, strict=True)
        model = prrr(len(self.links), lengths, masses, widths).with_gravity((0.0, 0.0, -self.gravity))
        return dataclasses.replace(model, damping=jnp.full_like(model.damping, self.friction))

    @property
    def depth(self) -> float:
        """Potential energy [J] of all masses at the height of the first joint, above the lowest point that the tip can
        reach."""
        return self.gravity * sum(link.mass for link in self.links) * sum(link.length for link in self.links)


# What figure 5.2 prints.
FIGURE_5_2 = {
    "average energy [J]": 1313.936411,
    "successful steps": 58,
    "bad steps": 38,
    "function evaluations": 801,
    "steps saved": 87,
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The results of a session.

    Attributes:
        session: The session.
        steps: All steps.
        statistics: Statistics of the saved steps.
        seconds: Time of the simulation, compiling included [s].
    """

    session: Session
    steps: Steps
    statistics: Statistics
    seconds: float

    @property
    def potential(self) -> np.ndarray:
        """Potential energy [J], zero for all masses at the lowest point that the tip can reach, as in the thesis."""
        return self.statistics.potential + self.session.depth

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy [J]."""
        return self.statistics.kinetic + self.potential

    @property
    def average_energy(self) -> float:
        """Mean energy over all rows but the last [J], which the thesis prints."""
        return mean_but_last(self.energy)

    @property
    def drift(self) -> float:
        """Energy at the end minus energy at the start and work of the motors [J]; NaN with friction, whose work is not
        counted."""
        found = self.statistics
        work = np.array(self.session.torques) @ (found.q[-1] - found.q[0])
        return math.nan if self.session.friction else float(found.energy[-1] - found.energy[0] - work)

    @property
    def thesis_evaluations(self) -> int | None:
        """Evaluations that the thesis' program needs for these steps."""
        return self.steps.recipe_evaluations if self.session.integration == "rka" else None

    @functools.cached_property
    def operations(self) -> Operations | None:
        """Operations of one evaluation of forward dynamics; None for methods whose count depends on data."""
        try:
            return forward_dynamics_operations(self.session.model(), self.session.method)
        except UncountableError:
            return None

    @property
    def total_operations(self) -> int | None:
        """n_total of the thesis' section 5.2.2: multiplications and additions of one evaluation times the number of
        evaluations, as the thesis' program counts them; None where either is unknown."""
        evaluations = self.thesis_evaluations
        if evaluations is None and self.steps.evaluations is not None:
            evaluations = int(self.steps.evaluations[-1])
        return None if self.operations is None or evaluations is None else self.operations.total * evaluations


def mean_but_last(energy: np.ndarray) -> float:
    """Mean over all rows but the last."""
    return float(np.mean(energy[: max(len(energy) - 1, 1)]))


def simulated(session: Session) -> Outcome:
    """Run a session; a start from rest with angles of zero needs float64, see `QualityControl`.

    Source: Cloutier 1995, sections 5.1.3 and 5.1.5.
    """
    model = session.model()
    started = time.perf_counter()
    steps = steps_of(session, model, session.q0)
    seconds = time.perf_counter() - started
    saved = steps.thinned(session.interval, session.rows)
    found = statistics(saved)
    return Outcome(session, steps, found, seconds)


def steps_of(session: Session, model: Model, q0: Sequence[float]) -> Steps:
    """All steps of a session of this robot, from angles that may differ from the session's."""
    solver, stepsize_controller = INTEGRATIONS[session.integration](session)
    system = System(model, controller=Constant(np.array(session.torques)), method=session.method)
    state = system.state(*(jnp.asarray(x, model.dtype) for x in (q0, session.v0)))
    return take_steps(
        system,
        state,
        session.t1,
        solver=solver,
        stepsize_controller=stepsize_controller,
        t0=session.t0,
        dt0=session.first_step,
        max_steps=session.max_steps,
    )
