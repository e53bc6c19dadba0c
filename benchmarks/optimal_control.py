"""Optimal control of a Panda: `python -m benchmarks.optimal_control [--peer-python PYTHON]`, float64, one core.

The arm reaches for random places with its flange and comes to rest there, with forces within its limits: the same
problem, steps, bounds and first guess for `jdyn.ilqr` and for Crocoddyl's box-constrained differential dynamic
programming, in an environment of its own. Processor time of an iteration and of a whole problem, one problem after
another, and of batches of them.

    python -m venv peer && peer/bin/pip install crocoddyl==3.2.0 cmeel-urdfdom==4.0.1 "cmeel-tinyxml2<11"

Costs of frames crash in 3.2.1 beside the Pinocchio that it comes with, 4.1.0; 3.2.0 needs the older libraries.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.processes import ONE_THREAD, ROOT

FRAME = "flange"
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
# Of the forces, the state, the place and the velocity at the end.
WEIGHTS = np.array([1e-3, 1e-1, 1e4, 1e1])
MOST_STEPS = 100


def arm():
    """Without friction, which Pinocchio's forward dynamics leaves out."""
    model = jdyn.load("panda")
    return dataclasses.replace(model, friction=jnp.zeros(model.nv))


def places(model, count):
    """Of the flange in random configurations near the start."""
    away = jax.random.uniform(jax.random.key(0), (count, model.nv), minval=-0.6, maxval=0.6)
    return jax.jit(jax.vmap(lambda e: jdyn.frame_pose(model, START + e, FRAME).translation))(away)


def plan(model, target, guess, dt):
    by_force, by_state, by_place, by_speed = np.sqrt(WEIGHTS)

    def running(t, q, v, u):
        return jnp.concatenate([by_force * u, by_state * (q - START), by_state * v])

    def end(q, v):
        return jnp.concatenate([by_place * (jdyn.frame_pose(model, q, FRAME).translation - target), by_speed * v])

    return jdyn.ilqr(
        model,
        jdyn.planning.SquaredResiduals(running),
        jdyn.planning.SquaredResiduals(end),
        START,
        jnp.zeros(model.nv),
        guess,
        dt,
        bounds=(-model.limits.effort, model.limits.effort),
        max_steps=MOST_STEPS,
    )


def compiled(function, *arguments):
    """The program, and processor seconds to compile it."""
    began = time.process_time()
    program = jax.jit(function).lower(*arguments).compile()
    return program, time.process_time() - began


def timed(program, *arguments):
    """What it returns the second time, and processor seconds."""
    jax.block_until_ready(program(*arguments))
    began = time.process_time()
    out = jax.block_until_ready(program(*arguments))
    return out, time.process_time() - began


def crocoddyl(python, model, targets, guess, dt):
    """Costs, iterations and processor seconds of each problem, and what found them."""
    with tempfile.TemporaryDirectory() as folder:
        urdf, task, out = (pathlib.Path(folder, name) for name in ("panda.urdf", "task.npz", "out.npz"))
        with warnings.catch_warnings():
            # Of the speed that smooths friction, of which there is none.
            warnings.simplefilter("ignore", jdyn.ModelWarning)
            jdyn.save_urdf(model, urdf)
        options = {"effort": model.limits.effort, "dt": dt, "weights": WEIGHTS, "iterations": MOST_STEPS}
        places = {"targets": targets, "q0": START, "u": guess}
        np.savez(task, urdf=str(urdf), frame=FRAME, tolerance=1e-6, **options, **places)
        environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
        command = [python, "-E", str(ROOT / "benchmarks" / "crocoddyl_peer.py"), str(task), str(out)]
        subprocess.run(command, env=environment, check=True)
        found = np.load(out)
        return found["costs"], found["iterations"], found["seconds"], str(found["version"])


def row(name, costs, iterations, seconds, remark=""):
    """`seconds` of all problems."""
    each = seconds / len(costs)
    per_iteration = seconds / np.sum(iterations)
    print(
        f"{name:28}{len(costs):9}{np.median(iterations):12.0f}{1e3 * per_iteration:14.2f}{1e3 * each:14.1f}"
        f"{1 / each:11.1f}{np.mean(costs):13.6f}   {remark}"
    )


def main():
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("--problems", type=int, default=64, help="random places")
    words.add_argument("--steps", type=int, default=100, help="of each motion")
    words.add_argument("--dt", type=float, default=0.01, help="length of a step [s]")
    words.add_argument("--batches", default="16,64", help="problems at once")
    words.add_argument("--peer-python", help="an interpreter that has crocoddyl; left out if not given")
    words.add_argument("--core", type=int, help="the processor to run on; one of those allowed if left out")
    options = words.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    with contextlib.suppress(AttributeError):
        # Before JAX starts its threads. Not every system has it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if options.core is None else options.core})
    jax.config.update("jax_enable_x64", True)
    # Compiling is timed.
    jax.config.update("jax_enable_compilation_cache", False)
    model, dt = arm(), options.dt
    targets = places(model, options.problems)
    guess = jnp.tile(jdyn.gravity_forces(model, START), (options.steps, 1))
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64, {options.steps} steps of {dt} s")
    print(
        f"{'':28}{'problems':>9}{'iterations':>12}{'ms/iteration':>14}{'ms/problem':>14}{'a second':>11}"
        f"{'mean cost':>13}   processor time"
    )

    def one(target):
        return plan(model, target, guess, dt)

    program, compiling = compiled(one, targets[0])
    plans, seconds = zip(*(timed(program, target) for target in targets), strict=True)
    # Besides its steps, each has one look at its end.
    counts = np.array([int(plan.steps) + 1 for plan in plans])
    costs = np.array([float(plan.cost) for plan in plans])
    ended = sum(int(plan.result) == jdyn.planning.Optimized.converged for plan in plans)
    row("jdyn", costs, counts, sum(seconds), f"{compiling:.1f} s to compile, {ended} converged")
    for size in map(int, options.batches.split(",")):
        program, compiling = compiled(lambda targets, size=size: jax.lax.map(one, targets, batch_size=size), targets)
        found, spent = timed(program, targets)
        row(f"jdyn, {size} at once", np.asarray(found.cost), counts, spent, f"{compiling:.1f} s to compile")
    if options.peer_python:
        costs, counts, seconds, version = crocoddyl(options.peer_python, model, targets, guess, dt)
        row("crocoddyl, SolverBoxDDP", costs, counts, np.sum(seconds), version)


if __name__ == "__main__":
    main()
