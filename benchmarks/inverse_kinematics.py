"""Inverse kinematics of a Panda: `python -m benchmarks.inverse_kinematics [--peer-python PYTHON]`, float64, one core.

Random poses within reach, each from random starts: the share that is met within the joint limits, and processor time a
pose. Beside it the share that one start meets, with steps in the box that limits leave (`jdyn.inverse_kinematics`), and
by optimistix' Levenberg-Marquardt method where a sine maps all numbers into the limits; and pink, in an environment of
its own (`pip install pin-pink daqp`), from the same starts one after another until one meets the pose.
"""

import argparse
import contextlib
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
import optimistix

import jdyn
from benchmarks.processes import ONE_THREAD, ROOT

FRAME = "flange"
# What counts as met [m, rad], and what is asked for.
MET, ASKED = 1e-6, 1e-7
STEPS = 100


def poses_and_starts(model, poses, starts):
    """Poses that the arm has in random configurations, and others to start from."""
    keys = jax.random.split(jax.random.key(0), (poses, starts + 1))
    q = jax.jit(jax.vmap(jax.vmap(model.random)))(keys)
    return jax.jit(jax.vmap(lambda q: jdyn.frame_pose(model, q, FRAME)))(q[:, 0]), q[:, 1:]


def from_all(model, pose, starts):
    target = jdyn.planning.FrameTarget(FRAME, pose)
    return jdyn.best_inverse_kinematics(model, [target], starts, tolerance=ASKED, max_steps=STEPS).q


def in_the_box(model, pose, starts):
    target = jdyn.planning.FrameTarget(FRAME, pose)
    return jdyn.inverse_kinematics(model, [target], starts[0], tolerance=ASKED, max_steps=STEPS).q


def by_a_sine(model, pose, starts):
    """A joint at the end of its range has no slope by which it could leave: it stays there."""
    middle, half = (model.limits.upper + model.limits.lower) / 2, (model.limits.upper - model.limits.lower) / 2

    def error(x, _):
        return jdyn.planning.FrameTarget(FRAME, pose).checked(model).error(model, middle + half * jnp.sin(x))[0]

    solver = optimistix.LevenbergMarquardt(rtol=1e-12, atol=1e-12)
    x = jnp.arcsin((starts[0] - middle) / half)
    found = optimistix.least_squares(error, solver, x, max_steps=STEPS, throw=False)
    return middle + half * jnp.sin(found.value)


def timed(search, model, poses, starts, lanes):
    """Configurations, processor seconds a pose, and seconds to compile."""

    def all_of_them(poses, starts):
        return jax.lax.map(lambda lane: search(model, *lane), (poses, starts), batch_size=lanes)

    began = time.process_time()
    program = jax.jit(all_of_them).lower(poses, starts).compile()
    compiling = time.process_time() - began
    began = time.process_time()
    q = jax.block_until_ready(program(poses, starts))
    return np.asarray(q), (time.process_time() - began) / len(q), compiling


def share(model, poses, q):
    """Of poses that are met within the limits. Rounding at the end of a range is not beyond it."""
    found = jax.vmap(lambda q: jdyn.frame_pose(model, q, FRAME))(jnp.asarray(q))
    off = np.linalg.norm(found.translation - poses.translation, axis=1)
    turned = np.linalg.norm(found.rotation - poses.rotation, axis=(1, 2)) / np.sqrt(2)
    beyond = np.max(np.maximum(model.limits.lower - q, q - model.limits.upper), axis=1)
    return np.mean((off < MET) & (turned < MET) & (beyond < 1e-12))


def pink(python, model, poses, starts):
    """Configurations, processor seconds a pose, and what found them."""
    with tempfile.TemporaryDirectory() as folder:
        urdf, task, out = (pathlib.Path(folder, name) for name in ("panda.urdf", "task.npz", "out.npz"))
        with warnings.catch_warnings():
            # Of friction, which does not matter here.
            warnings.simplefilter("ignore", jdyn.ModelWarning)
            jdyn.save_urdf(model, urdf)
        places = {"rotation": poses.rotation, "translation": poses.translation, "starts": starts}
        np.savez(task, urdf=str(urdf), frame=FRAME, steps=STEPS, tolerance=ASKED, **places)
        environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
        command = [python, "-E", str(ROOT / "benchmarks" / "pink_peer.py"), str(task), str(out)]
        subprocess.run(command, env=environment, check=True)
        found = np.load(out)
        return found["q"], np.mean(found["seconds"]), ", ".join(found["versions"])


def row(name, count, met, seconds, remark=""):
    print(f"{name:32}{count:8}{100 * met:11.2f} %{1e6 * seconds:12.0f}   {remark}")


def main():
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("--poses", type=int, default=10_000, help="random poses")
    words.add_argument("--starts", type=int, default=16, help="from where each is searched")
    words.add_argument("--lanes", type=int, default=8, help="poses at once")
    words.add_argument("--peer-python", help="an interpreter that has pink; left out if not given")
    words.add_argument("--peer-poses", type=int, default=1000, help="the first so many poses for pink")
    words.add_argument("--core", type=int, help="the processor to run on; one of those allowed if left out")
    options = words.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    with contextlib.suppress(AttributeError):
        # Before JAX starts its threads. Not every system has it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if options.core is None else options.core})
    jax.config.update("jax_enable_x64", True)
    # Compiling is timed.
    jax.config.update("jax_enable_compilation_cache", False)
    model = jdyn.load("panda")
    poses, starts = poses_and_starts(model, options.poses, options.starts)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64, met within {MET} m and rad, processor time")
    print(f"{'':32}{'poses':>8}{'met':>13}{'µs a pose':>12}")
    searches = {
        f"jdyn, {options.starts} starts": (from_all, options.lanes),
        "jdyn, 1 start": (in_the_box, 16 * options.lanes),
        "optimistix by a sine, 1 start": (by_a_sine, 16 * options.lanes),
    }
    for name, (search, lanes) in searches.items():
        q, seconds, compiling = timed(search, model, poses, starts, lanes)
        row(name, len(q), share(model, poses, q), seconds, f"{compiling:.1f} s to compile, {lanes} poses at once")
    if options.peer_python:
        first = jax.tree.map(lambda x: x[: options.peer_poses], (poses, starts))
        q, seconds, versions = pink(options.peer_python, model, *first)
        row(f"pink, up to {options.starts} starts", len(q), share(model, first[0], q), seconds, versions)


if __name__ == "__main__":
    main()
