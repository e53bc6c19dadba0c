"""Balls and boxes that fall into a heap: what a step of convex contact takes by their number, beside MuJoCo.

    python -m benchmarks.heaps [--bodies 5,10,20,40] [--kind sphere] [--lanes 32]

Steps of 2 ms for 0.4 s on the processors that the command has, in float64. Prints coordinates, pairs, microseconds of
the clock for a step alone and for that of a lane in a batch, Newton steps, and seconds of compiling.
"""

import argparse
import time
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn
from benchmarks.mujoco_twin import mjcf
from jdyn.contact.colliders import colliders

STEP, END, ROUNDS = 2e-3, 0.4, 3
SIZES = {"sphere": 0.1, "box": (0.2, 0.2, 0.2)}


class Timed(NamedTuple):
    """Seconds of compiling, microseconds of a step, and what the program found."""

    compiling: float
    step: float
    found: dict


def heap(kind: str, count: int) -> tuple[jdyn.Model, np.ndarray]:
    """Bodies above the ground, in three layers of a square that is a little wider than they are, each a little off."""
    builder = jdyn.Builder("heap")
    for i in range(count):
        builder.add_link(f"body{i}", jdyn.Free(), mass=1.0, inertia=(4e-3, 4e-3, 4e-3))
        builder.add_shape(f"body{i}", kind, SIZES[kind], role="collision")
    model = jdyn.with_ground(builder.build())
    side, rows = int(np.ceil(np.sqrt(count / 3))), np.arange(count)
    places = np.stack([0.23 * (rows % side), 0.23 * (rows // side % side), 0.15 + 0.25 * (rows // side**2)], axis=1)
    q = np.array(model.neutral())
    q.reshape(count, 7)[:, :3] = places + np.random.default_rng(0).uniform(-0.01, 0.01, (count, 3))
    return model, q


def ends(model: jdyn.Model, starts: np.ndarray) -> dict:
    """Where one start or a batch of them ends, and how many Newton steps that took."""

    def end(motion):
        return {"q": motion.q[-1], "newton": motion.stats["jacobians"]}

    options = {
        "contact": jdyn.ConvexContact(), "solver": jdyn.solvers.ConvexEuler(rows=1), "dt0": STEP, "max_steps": 1000,
        "stepsize_controller": diffrax.ConstantStepSize(), "saveat": diffrax.SaveAt(t1=True),
    }  # fmt: skip
    still = jnp.zeros((*starts.shape[:-1], model.nv))
    if starts.ndim == 1:
        return end(jdyn.simulate(model, starts, still, END, **options))
    return jdyn.simulate_batch(model, starts, still, END, reduce=end, **options)


def timed(model: jdyn.Model, starts: np.ndarray) -> Timed:
    began = time.perf_counter()
    program = jax.jit(lambda starts: ends(model, starts)).lower(starts).compile()
    compiling, times = time.perf_counter() - began, []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        found = jax.block_until_ready(program(starts))
        times.append(time.perf_counter() - began)
    assert np.all(np.isfinite(found["q"]))
    steps = END / STEP * len(np.atleast_2d(starts))
    return Timed(compiling, 1e6 * float(np.median(times)) / steps, found)


def in_mujoco(model: jdyn.Model, q: np.ndarray) -> float:
    """Microseconds of a step of MuJoCo."""
    m = mujoco.MjModel.from_xml_string(mjcf(model))
    m.opt.timestep = STEP
    data, times = mujoco.MjData(m), []
    for _ in range(ROUNDS):
        mujoco.mj_resetData(m, data)
        # Both write position, then quaternion.
        data.qpos[:] = q
        began = time.perf_counter()
        for _ in range(round(END / STEP)):
            mujoco.mj_step(m, data)
        times.append(time.perf_counter() - began)
    return 1e6 * float(np.median(times)) / (END / STEP)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", default="5,10,20,40")
    parser.add_argument("--kind", default="sphere", choices=SIZES)
    parser.add_argument("--lanes", type=int, default=32)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("bodies   nv  pairs   alone [us]  a lane's [us]  Newton  compiled [s]  MuJoCo [us]")
    for count in map(int, arguments.bodies.split(",")):
        model, q = heap(arguments.kind, count)
        rise = 0.01 * np.random.default_rng(1).uniform(size=(arguments.lanes, count))
        starts = np.tile(q, (arguments.lanes, 1))
        starts.reshape(arguments.lanes, count, 7)[:, :, 2] += rise
        alone, batch = timed(model, q), timed(model, starts)
        newton = int(alone.found["newton"]) / (END / STEP)
        print(
            f"{count:6d} {model.nv:4d} {len(colliders(model).pairs):6d} {alone.step:12.0f} {batch.step:14.0f} "
            f"{newton:7.1f} {alone.compiling:13.1f} {in_mujoco(model, q):12.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
