"""RobotΦ's energy-based time step beside PID control: error against evaluations of forward dynamics.

    python benchmarks/energy_control.py

Redoes figures 20 and 21 of Joukhadar's report with numbers: a ball that falls on springy ground, and two particles
joined by a spring and a damper. Both have closed forms, which errors are taken from. The report states neither masses
nor starts nor the ground; what is assumed for them is printed. Its rule for the step is tried on its own integrator and
on Tsit5, and so are PID controllers with the energy among the errors and without.

Source: Joukhadar, RobotΦ: dynamic modeling system for robotics applications, INRIA RR-2543, 1995, section 4.3:
equations 5 and 6, the algorithm below them, figures 20 and 21; equation 7 for the ground.
"""

import dataclasses
import functools
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

import jdyn
from jdyn.simulation.solvers import ManifoldSolver
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration

MASS, GRAVITY = 1.0, 9.81
# Figure 21: spring [N/m], damper [N s/m], bound on a step's energy error [J], and τ_m [s].
STIFFNESS, DAMPING, EPSILON, TAU_M = 100.0, 5.0, 0.01, 0.065
# The stiff collision of the report's section 6 has 2000 N/m; the damper lets the ball keep half of its speed.
GROUND_STIFFNESS, GROUND_DAMPING = 2000.0, 20.0
MAX_STEPS = 100_000


class LimitedDevelopment(ManifoldSolver):
    """RobotΦ's step: v₁ = v₀ + h a₀, q₁ = q₀ ⊕ (h v₀ + ½ h² a₀), of order 1.

    Work is by the trapezoidal rule, so that a force which sets in during a step is seen. What is evaluated at a step's
    end is what the next one starts with: one evaluation a step that is tried.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: jdyn.Model | None = None
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 1

    def error_order(self, terms):
        # Of the energy that a step makes.
        return 2

    def init(self, terms, t0, t1, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        start = jax.lax.cond(made_jump, lambda: terms.vf(t0, y0, args), lambda: solver_state)
        h = terms.contr(t0, t1)
        y1 = incremented(y0, without_configuration(terms.prod(start, h)))
        y1 = displaced(self.mechanism, y1, terms.prod(0.5 * (y0.v + y1.v), h))
        end = terms.vf(t1, y1, args)
        parts = jax.tree.map(lambda x, a, b: x + terms.prod(0.5 * (a + b), h), y0.parts, start.parts, end.parts)
        y1 = dataclasses.replace(y1, parts=parts)
        return y1, None, {"y0": y0, "y1": y1}, end, diffrax.RESULTS.successful


class Ground(eqx.Module):
    """The report's collision force, equation 7: a spring and a damper while the ball is below z = 0."""

    stiffness: float
    damping: float

    def __call__(self, t, q, v):
        return jnp.where(q < 0, -self.stiffness * q - self.damping * v, 0.0)


class Problem(NamedTuple):
    """A motion in the last coordinate of a model, and its closed form."""

    model: jdyn.Model
    q0: Any
    v0: Any
    time: float
    exact: Callable[[np.ndarray], np.ndarray]
    controller: Any = None


class Run(NamedTuple):
    """Ends of the steps [s], their lengths [s], position errors there [m], and how many steps were tried.

    Averages are over time.
    """

    ts: np.ndarray
    steps: np.ndarray
    errors: np.ndarray
    tried: int

    @property
    def mean(self):
        return np.average(np.abs(self.errors), weights=self.steps)

    @property
    def mean_with_sign(self):
        return np.abs(np.average(self.errors, weights=self.steps))

    @property
    def largest(self):
        return np.max(np.abs(self.errors))


def damped(t, x0, v0, frequency2, decay):
    """Position and speed of ẍ = −frequency2 x − 2 decay ẋ, weakly damped, from x0 and v0."""
    omega = np.sqrt(frequency2 - decay**2)
    c, s = np.exp(-decay * t) * np.cos(omega * t), np.exp(-decay * t) * np.sin(omega * t) / omega
    return x0 * (c + decay * s) + v0 * s, v0 * (c - decay * s) - x0 * frequency2 * s


def pair(stretch, duration=10.0):
    """Figure 21: two particles, let go when the spring between them is longer than at rest by `stretch` [m]."""
    builder = jdyn.Builder("pair", gravity=(0, 0, 0))
    builder.add_link("one", jdyn.Prismatic((1, 0, 0)), mass=MASS)
    builder.add_link(
        "other", jdyn.Prismatic((1, 0, 0)), parent="one", mass=MASS, stiffness=STIFFNESS, damping=DAMPING
    )  # fmt: skip
    reduced = MASS / 2

    def exact(t):
        return damped(t, stretch, 0.0, STIFFNESS / reduced, DAMPING / (2 * reduced))[0]

    return Problem(builder.build(), jnp.array([0.0, stretch]), jnp.zeros(2), duration, exact)


def ball(height, duration=1.5):
    """Figure 20: a ball that is let go at a height [m]."""
    builder = jdyn.Builder("ball", gravity=(0, 0, -GRAVITY))
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=MASS)
    phases = bounces(height, duration)
    starts = np.array([phase.start for phase in phases])

    def exact(ts):
        which = np.searchsorted(starts, ts, side="right") - 1
        return np.array([phases[i].motion(t - starts[i])[0] for i, t in zip(which, ts, strict=True)])

    controller = Ground(GROUND_STIFFNESS, GROUND_DAMPING)
    return Problem(builder.build(), jnp.array([height]), jnp.zeros(1), duration, exact, controller)


class Phase(NamedTuple):
    """Where the ball is in the air, or on the ground: from when [s], with what speed [m/s], and how it moves."""

    start: float
    speed: float
    grounded: bool
    motion: Callable


def bounces(height, duration):
    phases = [Phase(0.0, 0.0, False, functools.partial(flight, height, 0.0))]
    while (length := end_of(phases[-1])) is not None and phases[-1].start + length < duration:
        last = phases[-1]
        speed = last.motion(length)[1]
        motion = functools.partial(flight, 0.0, speed) if last.grounded else functools.partial(contact, speed)
        phases.append(Phase(last.start + length, speed, not last.grounded, motion))
    return phases


def flight(z0, v0, t):
    return z0 + v0 * t - GRAVITY * t**2 / 2, v0 - GRAVITY * t


def contact(v0, t):
    sunk = MASS * GRAVITY / GROUND_STIFFNESS
    x, v = damped(t, sunk, v0, GROUND_STIFFNESS / MASS, GROUND_DAMPING / (2 * MASS))
    return x - sunk, v


def end_of(phase):
    """How long a phase lasts [s]; None for a ball that stays on the ground."""
    if not phase.grounded:
        z0, v0 = phase.motion(0.0)
        return (v0 + np.sqrt(v0**2 + 2 * GRAVITY * z0)) / GRAVITY
    # In the first period, or never.
    period = 2 * np.pi / np.sqrt(GROUND_STIFFNESS / MASS - (GROUND_DAMPING / (2 * MASS)) ** 2)
    times = np.linspace(0, period, 1000)[1:]
    above = np.flatnonzero(phase.motion(times)[0] > 0)
    if not len(above):
        return None
    return brentq(lambda t: phase.motion(t)[0], times[above[0] - 1], times[above[0]], xtol=1e-15)


def simulated(problem, solver, control, dt0, **options):
    return jdyn.simulate(
        problem.model, problem.q0, problem.v0, problem.time, controller=problem.controller, solver=solver,
        stepsize_controller=control, dt0=jnp.asarray(dt0), **options,
    )  # fmt: skip


def run(problem, solver, control, dt0=0.01):
    saveat = diffrax.SaveAt(steps=True)
    trajectory = simulated(problem, solver, control, dt0, saveat=saveat, max_steps=MAX_STEPS)
    taken, rejected = (int(trajectory.stats[name]) for name in ("accepted_steps", "rejected_steps"))
    ts, positions = np.asarray(trajectory.ts[:taken]), np.asarray(trajectory.q[:taken, -1])
    return Run(ts, np.diff(ts, prepend=0.0), positions - problem.exact(ts), taken + rejected)


def robot_phi(longest=np.inf):
    return lambda tolerance: jdyn.solvers.HalveOrGrow(jnp.asarray(tolerance), longest=jnp.asarray(longest))


def pid(tolerance):
    return diffrax.PIDController(rtol=jnp.asarray(tolerance), atol=jnp.asarray(tolerance))


def figure_21(stretch, longest):
    """RobotΦ's rule, and as many steps of constant length."""
    problem = pair(stretch)
    adaptive = run(problem, jdyn.solvers.EnergyError(LimitedDevelopment()), robot_phi(longest)(EPSILON))
    constant = run(problem, LimitedDevelopment(), diffrax.ConstantStepSize(), problem.time / len(adaptive.ts))
    return adaptive, constant


class Scheme(NamedTuple):
    """A solver, its evaluations of forward dynamics a step that is tried, a step controller, and its tolerances."""

    name: str
    solver: diffrax.AbstractSolver
    evaluations: int
    control: Callable
    tolerances: Any


ENERGIES = 10.0 ** np.arange(-1, -7, -1)
SCHEMES = [
    Scheme("RobotΦ's step, its rule", jdyn.solvers.EnergyError(LimitedDevelopment()), 1, robot_phi(), ENERGIES),
    Scheme(
        "RobotΦ's step, its rule to τ_m", jdyn.solvers.EnergyError(LimitedDevelopment()), 1, robot_phi(TAU_M), ENERGIES
    ),
    Scheme("RobotΦ's step, PID by energy", jdyn.solvers.EnergyError(LimitedDevelopment()), 1, pid, ENERGIES),
    Scheme("Tsit5, RobotΦ's rule", jdyn.solvers.EnergyError(diffrax.Tsit5()), 6, robot_phi(), 1e-2 * ENERGIES),
    Scheme("Tsit5, PID", diffrax.Tsit5(), 6, pid, 1e-2 * ENERGIES),
    Scheme("Tsit5, PID with energy", jdyn.solvers.EnergyError(diffrax.Tsit5()), 6, pid, 1e-2 * ENERGIES),
]


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


def print_figure_21():
    heading("Figure 21: the pair of particles for 10 s, ε = 0.01 J; errors in m")
    print("The report: 6e-05 with RobotΦ's rule, 3e-03 with as many steps of one length, a ratio of 50. It does not")
    print("say how the particles start, what they weigh, how long they move, what it calls the error, and whether τ_m")
    print(f"is the largest step or the mean. Here: masses of {MASS:g} kg, let go at rest with the spring stretched;")
    print("errors averaged by size, averaged with their sign, and the largest.")
    errors = "   mean  signed  largest"
    print(f"{'':42} RobotΦ's rule           constant step")
    print(f"stretch m   longest step s   mean step s {errors} {errors}   ratio of means")
    for longest in (TAU_M, np.inf):
        for stretch in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
            both = figure_21(stretch, longest)
            adaptive, constant = both
            columns = "".join(f" {x.mean:7.0e} {x.mean_with_sign:7.0e} {x.largest:8.0e}" for x in both)
            ratio = constant.mean / adaptive.mean
            print(f"{stretch:9.2f} {longest:16.3f} {np.mean(adaptive.steps):13.4f} {columns} {ratio:16.1f}")


def print_figure_20():
    heading(f"Figure 20: the ball on ground of {GROUND_STIFFNESS:g} N/m and {GROUND_DAMPING:g} N s/m, ε = 0.01 J")
    print("The report gives no numbers. Lengths of steps before, in and after each contact, in ms:")
    print("height m   impact s   speed m/s   longest before   smallest in it   longest after")
    for height in (1.0, 4.0):
        problem = ball(height, 3.0)
        found = run(problem, jdyn.solvers.EnergyError(LimitedDevelopment()), robot_phi()(EPSILON))
        phases = bounces(height, problem.time)
        starts = [phase.start for phase in phases] + [problem.time, np.inf]
        lengths = [
            1e3 * found.steps[(found.ts > start) & (found.ts - found.steps < end)]
            for start, end in itertools.pairwise(starts)
        ]
        for i, phase in enumerate(phases):
            if phase.grounded:
                after = f"{max(lengths[i + 1]):15.1f}" if len(lengths[i + 1]) else "     stays down"
                print(
                    f"{height:8.1f} {phase.start:10.3f} {-phase.speed:11.2f} {max(lengths[i - 1]):16.1f}"
                    f" {min(lengths[i]):16.4f} {after}"
                )
        print(f"{'':8} the mean step is {np.mean(found.steps) / np.min(found.steps):.0f} times the smallest")


def print_errors(problem, text, schemes):
    heading(f"{text}: evaluations and error averaged over time [m], by tolerance")
    for scheme in schemes:
        print(f"{scheme.name:31}{scheme.tolerances[0]:.0e} to {scheme.tolerances[-1]:.0e} ", end="")
        for tolerance in scheme.tolerances:
            found = run(problem, scheme.solver, scheme.control(tolerance))
            print(f"{scheme.evaluations * found.tried + 1:8} {found.mean:.0e}", end="", flush=True)
        print()


def print_times():
    heading("Time of a step that is tried, in the same number of steps; the report: 1.5 times the constant one's")
    problem, solver, tolerance = pair(0.1), LimitedDevelopment(), 1e-6
    control = robot_phi(TAU_M)(tolerance)
    tried = run(problem, jdyn.solvers.EnergyError(solver), control).tried
    options = dict(saveat=diffrax.SaveAt(t1=True), max_steps=2 * tried)
    programs = {
        "RobotΦ's rule": lambda: simulated(problem, jdyn.solvers.EnergyError(solver), control, 0.01, **options),
        "constant": lambda: simulated(problem, solver, diffrax.ConstantStepSize(), problem.time / tried, **options),
    }
    times = {name: [] for name in programs}
    for _ in range(10):
        for name, program in programs.items():
            started = time.perf_counter()
            jax.block_until_ready(program().q)
            times[name].append(time.perf_counter() - started)
    for name, (first, *later) in times.items():
        print(f"{name:16} first call {first:5.1f} s, then {1e6 * statistics.median(later) / tried:6.2f} µs a step")


def main():
    jax.config.update("jax_enable_x64", True)
    device = jax.devices()[0].device_kind
    print(f"jax {jax.__version__}, diffrax {diffrax.__version__}, {device}, {jnp.zeros(0).dtype}")
    print_times()
    print_figure_21()
    print_figure_20()
    print_errors(pair(0.1), "The pair, 0.1 m, 10 s", SCHEMES)
    print_errors(ball(1.0), "The ball, 1 m, 1.5 s", [scheme for scheme in SCHEMES if "τ_m" not in scheme.name])


if __name__ == "__main__":
    main()
