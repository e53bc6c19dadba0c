"""What a movie costs: 5 s of a Panda with its meshes, 150 frames of 640 by 480 pixels, on the cores that this may use.

`taskset -c 0 python -m benchmarks.movies` prints it for one core. The first movie reads meshes and compiles.
"""

import os
import pathlib
import tempfile
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.robots import SHARED, shared_folder

SECONDS = 5.0


def swing():
    """A Panda of the wheel example-robot-data, and a motion of it from limit to limit."""
    model = jdyn.load(shared_folder() / SHARED["panda9"][0])
    start, end = model.random(jax.random.key(0)), model.random(jax.random.key(3))
    reference = jdyn.control.Quintic(model, start, end, 0.0, SECONDS)
    controller = jdyn.control.Tracking(model, reference, kp=100.0, kd=20.0)
    ts = np.linspace(0, SECONDS, 101)
    return model, jdyn.simulate(model, start, jnp.zeros(model.nv), SECONDS, controller=controller, saveat=ts)


def main():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        model, motion = swing()
    print(f"{SECONDS:g} s of {model.name} on {len(os.sched_getaffinity(0))} cores")
    print(f"{'':>12}{'wall [s]':>10}{'processor [s]':>15}{'frames':>8}{'MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, name in (("gif", "first gif"), ("gif", "gif"), ("mp4", "mp4")):
            path = pathlib.Path(folder) / f"movie.{kind}"
            wall, cpu = time.perf_counter(), _processor()
            movie = jdyn.animate(motion, path)
            wall, cpu = time.perf_counter() - wall, _processor() - cpu
            print(f"{name:>12}{wall:10.2f}{cpu:15.2f}{movie.frames:8}{path.stat().st_size / 1e6:8.2f}")


def _processor() -> float:
    """Seconds of this process and of those that have ended, such as FFmpeg."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
