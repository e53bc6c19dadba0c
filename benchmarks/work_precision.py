"""Error against processor time a lane, of jdyn's solvers, MuJoCo and SciPy around Pinocchio, on one core, in float64.

    python -m benchmarks.work_precision [--scenes panda_pd,quadruped] [--picture FILE] [--quick] [--peer-python PATH]

Whether jdyn's default solver is the best, scene by scene; with --peer-python beside diffrax around frax, too. The error
is that of a lane's configuration at the end, the largest of all joints [rad or m], as the root-mean-square of lanes.
"""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import scipy

import jdyn
from benchmarks import clock, frax_rollouts, rollouts
from benchmarks.frax_rollouts import FRAX
from benchmarks.scenes import SCENES, Scene
from benchmarks.verdict import LEVELS, Point, table, verdict
from jdyn.simulation.solvers.automatic import FINE_RTOL, LOOSE_RTOL

DEFAULT = "default"
ADAPTIVE: dict[str, diffrax.AbstractSolver] = {
    DEFAULT: jdyn.solvers.Automatic(),
    "Tsit5": diffrax.Tsit5(),
    "Dopri8": diffrax.Dopri8(),
    "ROSJ43": jdyn.solvers.ROSJ43(),
    "Rodas5P": jdyn.solvers.Rodas5P(),
    "BulirschStoer": jdyn.solvers.BulirschStoer(),
    "BaderDeuflhard": jdyn.solvers.BaderDeuflhard(),
}
FIXED: dict[str, diffrax.AbstractSolver] = {"LinearlyImplicitEuler": jdyn.solvers.LinearlyImplicitEuler()}
EXTRAPOLATED = ("BulirschStoer", "BaderDeuflhard")
OWN = (*ADAPTIVE, *FIXED)
CURVES = (*OWN, *rollouts.MUJOCO, *rollouts.SCIPY, *FRAX)
TOLERANCES = tuple(10.0**-k for k in range(12))
STEPS = (2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
# Absolute tolerances are this share of the relative ones, as in jdyn's own default.
ABSOLUTE = 1e-2
REFERENCE = 1e-13
# SciPy's are loops in Python, and take as long for each lane; what only checks has as few.
SCIPY_LANES = 2
# An envelope says nothing below the reference's own error; this is how far above it has to be.
ABOVE_REFERENCE = 10
# MuJoCo's RK4 differs by less with such a step if it moves the same mechanism.
AGREES, AGREEMENT_STEP = 1e-6, 1e-4
# frax' accelerations differ by less, relatively, if it moves the same mechanism.
SAME_ACCELERATIONS = 1e-8
# That of jdyn's own curves [s], which do not look for one either.
FIRST_STEP = 1e-2


class Run(NamedTuple):
    """What one setting of a curve found.

    Attributes:
        q: Configurations at the end, of the first lanes.
        times: As `clock.measure` has them.
        more: Counts of the point.
    """

    q: np.ndarray
    times: dict
    more: dict[str, float | None]


class Bench:
    """One scene's programs, reference and points."""

    def __init__(self, scene: Scene, repeats: int, seconds: float, peer_python: str | None = None):
        self.scene, self.repeats, self.seconds, self.peer_python = scene, repeats, seconds, peer_python
        self.programs: dict[tuple, Any] = {}
        self.points: list[Point] = []
        self._mujoco: rollouts.Mujoco | None = None
        self._frax: frax_rollouts.Frax | None = None
        self._pinocchio = rollouts.Pinocchio(scene, SCIPY_LANES)

    def reference(self) -> float:
        """Finds the reference, and returns by how much the other one differs on its lanes."""
        started = time.process_time()
        found = self._program("Dopri8", REFERENCE)(jnp.asarray(REFERENCE))
        self.exact = np.asarray(found["q"])
        if not np.isfinite(self.exact).all():
            raise FloatingPointError(f"{self.scene.name}: the reference does not reach the end")
        print(f"reference: Dopri8 at {REFERENCE:g}, {time.process_time() - started:.1f} s with compiling")
        other = self._pinocchio.end("DOP853", REFERENCE, REFERENCE * ABSOLUTE).q
        apart = self.error(other)
        for lane, (ours, theirs) in enumerate(zip(self.exact, other, strict=False)):
            shown = min(3, len(ours))
            print(f"  lane {lane}: jdyn     {' '.join(f'{x: .13f}' for x in ours[-shown:])}")
            print(f"          Pinocchio {' '.join(f'{x: .13f}' for x in theirs[-shown:])}   (last coordinates)")
        print(f"  SciPy's DOP853 around Pinocchio at {REFERENCE:g} differs by {apart:.1e} on {len(other)} lanes")
        return apart

    def error(self, q) -> float:
        """Of configurations of the first lanes; infinite if one of them is not finite."""
        exact, q = jnp.asarray(self.exact[: len(q)]), jnp.asarray(q)
        apart = jnp.max(jnp.abs(jax.vmap(self.scene.model.difference)(exact, q)), axis=1)
        error = float(jnp.sqrt(jnp.mean(apart**2)))
        return error if np.isfinite(error) else np.inf

    def curve(self, name: str, settings) -> Iterator[Point]:
        """Points from the coarsest setting on, until one that succeeds takes longer than allowed, or is better than
        is asked for."""
        for setting in settings:
            try:
                run = self._run(name, setting)
            except FloatingPointError as error:
                print(f"  {name}: at {setting:g}: {error}")
                continue
            seconds = float(np.median(run.times["cpu_s"])) / len(run.q)
            point = Point(self.scene.name, name, setting, self.error(run.q), seconds, len(run.q), **run.more)
            yield point
            if point.error < LEVELS[-1]:
                return
            # One that failed may have been too coarse.
            if np.isfinite(point.error) and seconds * len(run.q) > self.seconds:
                print(f"  {name}: smaller settings than {setting:g} would take more than {self.seconds:g} s")
                return

    def check_mujoco(self):
        """Says whether MuJoCo moves the same mechanism, if it has a curve."""
        if self._mujoco is None:
            return
        steps = round(self.scene.t1 / AGREEMENT_STEP)
        found = self._mujoco.end(rollouts.MUJOCO["MuJoCo RK4"], steps, SCIPY_LANES)
        apart = self.error(self._mujoco.configurations(found))
        agreement = "agrees to" if apart < AGREES else "DOES NOT AGREE, it differs by"
        print(f"MuJoCo's RK4 with a step of {AGREEMENT_STEP:g} s: {agreement} {apart:.1e} on {len(found)} lanes")

    def close(self):
        if self._frax is not None:
            self._frax.close()
            self._frax = None

    def _run(self, name, setting) -> Run:
        if name in OWN:
            program, argument = self._program(name, setting), jnp.asarray(setting)
            found, times = _measured(lambda: jax.block_until_ready(program(argument)), self.repeats, self.seconds)
            found = {key: np.asarray(x) for key, x in found.items()}
            counts: dict[str, float | None] = {
                key: float(np.mean(found[key])) for key in ("evaluations", "jacobians", "steps")
            }
            counts["implicit"] = float(np.mean(found["implicit"] / np.maximum(found["steps"], 1)))
            return Run(found["q"], times, counts)
        if name in rollouts.MUJOCO:
            self._mujoco = self._mujoco or rollouts.Mujoco(self.scene)
            simulator, steps, integrator = self._mujoco, round(self.scene.t1 / setting), rollouts.MUJOCO[name]
            found, times = _measured(lambda: simulator.end(integrator, steps), self.repeats, self.seconds)
            calls = steps * (4 if name.endswith("RK4") else 1)
            return Run(simulator.configurations(found), times, {"evaluations": calls, "steps": steps})
        if name in FRAX:
            self._frax = self._frax or self._checked_frax()
            found = self._frax.end(FRAX[name], setting, setting * ABSOLUTE, self.repeats, self.seconds)
            if found["compile_s"]:
                print(f"  {name}: compiled in {found['compile_s']:.1f} s")
            return Run(found["q"], found["times"], {"steps": found["steps"]})
        method, absolute = rollouts.SCIPY[name], setting * ABSOLUTE
        found, times = _measured(lambda: self._pinocchio.end(method, setting, absolute), self.repeats, self.seconds)
        return Run(found.q, times, {"evaluations": found.evaluations})

    def _checked_frax(self) -> frax_rollouts.Frax:
        """Its process, if it moves the same mechanism."""
        frax = frax_rollouts.Frax(self.scene, str(self.peer_python), FIRST_STEP)
        try:
            apart = frax.accelerations_apart(*self._accelerations())
            if not apart < SAME_ACCELERATIONS:
                raise rollouts.Unavailable(f"its accelerations differ from Pinocchio's by {apart:.1e}")
        except rollouts.Unavailable:
            frax.close()
            raise
        print(f"  frax: accelerations agree with Pinocchio's to {apart:.1e}")
        return frax

    def _accelerations(self):
        """States q and v and Pinocchio's accelerations there, a row each, and their lanes: a start and an end of each
        of the first lanes, at other velocities."""
        lanes = [lane for lane in self._pinocchio.lanes for _ in range(2)]
        q = np.stack([x[lane] for lane in self._pinocchio.lanes for x in (self.scene.q0, self.exact)])
        v = np.random.default_rng(0).normal(size=(len(lanes), self.scene.model.nv))
        a = [self._pinocchio.acceleration(*state) for state in zip(lanes, q, v, strict=True)]
        return q, v, np.stack(a), lanes

    def _program(self, name, setting):
        """Of a tolerance or a step, compiled once; of the default one for each range of tolerances that it has methods
        for, as in scripts, where tolerances are known when programs are compiled."""
        known = (setting <= FINE_RTOL, setting >= LOOSE_RTOL) if name == DEFAULT else ()
        if (name, known) in self.programs:
            return self.programs[name, known]

        def reduce(trajectory):
            stats, reached = trajectory.stats, trajectory.result == jdyn.Result.success
            return {
                "q": jnp.where(reached, trajectory.q[-1], jnp.nan),
                "evaluations": stats["dynamics_calls"],
                "jacobians": stats["jacobians"],
                "implicit": stats["implicit_steps"],
                "steps": stats["accepted_steps"] + stats["rejected_steps"],
            }

        def end(size):
            if name in FIXED:
                steps = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": size, "solver": FIXED[name]}
            else:
                control = diffrax.PIDController(rtol=size, atol=size * ABSOLUTE)
                solver = jdyn.solvers.Automatic(rtol=setting) if name == DEFAULT else ADAPTIVE[name]
                steps = {"stepsize_controller": control, "solver": solver}
            return self.scene.simulate(reduce, saveat=diffrax.SaveAt(t1=True), max_steps=10**7, **steps)

        started = time.perf_counter()
        program = self.programs[name, known] = jax.jit(end).lower(jnp.zeros(())).compile()
        print(f"  {name}: compiled in {time.perf_counter() - started:.1f} s")
        return program


def _measured(call: Callable, repeats, seconds):
    """What the last call found, and its times."""
    kept = []

    def keep():
        kept[:] = [call()]

    times = clock.measure(keep, repeats, seconds)
    return kept[0], times


def measured(scene: Scene, options) -> tuple[list[Point], list[float]]:
    """Points of a scene, and the errors that can be told from the reference's own."""
    print(f"\n## {scene.name}: {scene.about}; {scene.lanes} lanes\n")
    with contextlib.closing(Bench(scene, options.repeats, options.seconds, options.peer_python)) as bench:
        return _measured_by(bench, options)


def _measured_by(bench: Bench, options) -> tuple[list[Point], list[float]]:
    scene, apart = bench.scene, bench.reference()
    points: list[Point] = []
    print(f"\n{'curve':22} {'setting':>7} {'error':>9} {'µs a lane':>10} {'evaluations':>12} {'steps':>9} implicit")
    for name in options.curves:
        if name in EXTRAPOLATED and not scene.extrapolated:
            print(f"  {name}: not for this motion")
            continue
        try:
            for point in bench.curve(name, options.steps if name in (*FIXED, *rollouts.MUJOCO) else options.tolerances):
                print(_line(point))
                points.append(point)
        except (rollouts.Unavailable, ArithmeticError, ValueError, RuntimeError, mujoco.FatalError) as error:
            print(f"  {name}: {error}")
    bench.check_mujoco()
    return points, [level for level in LEVELS if level > ABOVE_REFERENCE * apart]


def _line(point: Point) -> str:
    counts = [point.evaluations, point.steps]
    shown = " ".join(f"{'-' if x is None else format(x, '.0f'):>{n}}" for x, n in zip(counts, (12, 9), strict=True))
    implicit = f"{point.implicit:8.0%}" if point.implicit else ""
    return (
        f"{point.curve:22} {point.setting:7.0e} {point.error:9.1e} {1e6 * point.seconds:10.4g} {shown} {implicit}"
    ).rstrip()


def picture(points: list[Point], path: pathlib.Path):
    """A panel for each scene, and one legend for all."""
    scenes = list(dict.fromkeys(point.scene for point in points))
    columns = min(3, len(scenes))
    rows = -(-len(scenes) // columns)
    figure = jdyn.plots.Picture(figsize=(6 * columns, 4.5 * rows + 1), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    named = {}
    for panel, scene in zip(panels, scenes, strict=False):
        # All of them in every panel, so that a curve looks the same in each.
        found = {name: [x for x in points if x.scene == scene and x.curve == name and x.error < 10] for name in CURVES}
        curves = {name: ([x.error for x in run], [1e6 * x.seconds for x in run]) for name, run in found.items()}
        jdyn.plots.work_precision(curves, bold=[DEFAULT], work="processor time a lane [µs]", axes=panel)
        panel.set_title(scene)
        panel.get_legend().remove()
        named |= {label: line for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    for panel in panels[len(scenes) :]:
        panel.set_axis_off()
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2 * columns)
    figure.savefig(path, dpi=120)


def _options():
    def listed(names):
        def of(text):
            if unknown := [x for x in text.split(",") if x not in names]:
                raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(names)}")
            return tuple(text.split(","))

        return of

    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("--scenes", type=listed(SCENES), default=tuple(SCENES), help=", ".join(SCENES))
    words.add_argument("--curves", type=listed(CURVES), help=", ".join(CURVES))
    words.add_argument("--peer-python", metavar="PATH", help="interpreter that has frax and diffrax, for their curves")
    words.add_argument("--lanes", type=int, default=256)
    words.add_argument("--repeats", type=int, default=5, help="samples of each point")
    words.add_argument("--seconds", type=float, default=4.0, help="a curve ends where a run takes longer")
    words.add_argument("--core", type=int, help="the processor to run on; one of those allowed if left out")
    words.add_argument("--json", type=pathlib.Path, help="file for the results")
    words.add_argument("--picture", type=pathlib.Path, help="file for the picture")
    words.add_argument("--quick", action="store_true", help="one scene, few curves, two settings and few lanes")
    options = words.parse_args()
    options.tolerances, options.steps = TOLERANCES, STEPS
    peers = tuple(FRAX) if options.peer_python else ()
    if named := [name for name in options.curves or () if name in FRAX and name not in peers]:
        words.error(f"{named[0]}: expected with --peer-python")
    options.curves = options.curves or tuple(name for name in CURVES if name not in FRAX or name in peers)
    if options.quick:
        options.scenes, options.lanes, options.repeats = ("double_pendulum",), 4, 1
        options.curves = (DEFAULT, "Tsit5", "Dopri8", "MuJoCo implicitfast", "MuJoCo RK4", "SciPy DOP853", *peers)
        options.tolerances, options.steps = (1e-4, 1e-8), (1e-2, 1e-3)
    return options


def main():
    options = _options()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    with contextlib.suppress(AttributeError):
        # Before JAX starts its threads. Not every system has it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if options.core is None else options.core})
    jax.config.update("jax_enable_x64", True)
    # Numbers that are not finite are told by the point that has them.
    warnings: list[str] = []
    mujoco.set_mju_user_warning(warnings.append)
    versions = {
        "device": jax.devices()[0].device_kind, "dtype": "float64", "lanes": options.lanes, "jax": jax.__version__,
        "diffrax": diffrax.__version__, "mujoco": mujoco.__version__, "pinocchio": pin.__version__,
        "scipy": scipy.__version__,
    }  # fmt: skip
    if options.peer_python:
        found = frax_rollouts.versions(options.peer_python)
        versions |= {name if name == "frax" else f"{name} beside frax": version for name, version in found.items()}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(
        f"absolute tolerances {ABSOLUTE:g} of the relative ones; errors are root-mean-squares of lanes; processor "
        f"time, median of {options.repeats} runs, compiling apart; SciPy: a loop in Python, {SCIPY_LANES} lanes"
    )
    points, tables = [], {}
    for name in options.scenes:
        found, levels = measured(SCENES[name](options.lanes), options)
        points += found
        tables[name] = verdict(found, DEFAULT, OWN, levels)
        print(f"\nµs a lane for an error, {name}:")
        print("\n".join(table(tables[name])))
        if options.json:
            rows = {scene: [row._asdict() for row in rows] for scene, rows in tables.items()}
            kept = {"versions": versions, "points": [point._asdict() for point in points], "verdict": rows}
            options.json.write_text(json.dumps(kept) + "\n")
        if options.picture:
            picture(points, options.picture)
    if warnings:
        print(f"\nMuJoCo warned {len(warnings)} times; first: {warnings[0]}")


if __name__ == "__main__":
    main()
