"""What a step of convex contact costs beside MuJoCo's: `taskset -c 0 python -m benchmarks.convex_contact`.

The Mini Cheetah of `contact_scenes` lands and stands under PD control, in float64, on one core: at constant steps of
2 ms, where MuJoCo takes its implicit integrator and Newton's method, and with error control. Medians of processor time.
"""

import argparse
import statistics
import time

import diffrax
import jax
import jax.numpy as jnp
import mujoco

import jdyn
from benchmarks.contact_scenes import quadruped

STEP, LANES, END = 2e-3, 256, 0.5
CONTACT = jdyn.ConvexContact()


def of_jdyn(scene, lanes: int, repeats: int, **options) -> tuple[float, float, dict]:
    """Seconds to compile, seconds of a run, and its counts, of all lanes together."""
    model, rows = scene.model, diffrax.SaveAt(t1=True)

    @jax.jit
    def run(q0, v0):
        def lane(q0, v0):
            return jdyn.simulate(
                model, q0, v0, END, controller=scene.controller, contact=CONTACT, saveat=rows, **options
            ).stats

        return lane(q0[0], v0[0]) if lanes == 1 else jax.vmap(lane)(q0, v0)

    starts = jnp.asarray(scene.q0[:lanes]), jnp.asarray(scene.v0[:lanes])
    began = time.process_time()
    program = run.lower(*starts).compile()
    compiled = time.process_time() - began
    stats = jax.block_until_ready(program(*starts))
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        jax.block_until_ready(program(*starts))
        seconds.append(time.process_time() - began)
    return compiled, statistics.median(seconds), {name: int(jnp.sum(x)) for name, x in stats.items() if x is not None}


def of_mujoco(scene, repeats: int) -> float:
    """Seconds of a step."""
    peer = scene.peer()
    model = mujoco.MjModel.from_xml_string(peer["xml"])
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    count, seconds = round(END / STEP), []
    for _ in range(repeats):
        data = mujoco.MjData(model)
        data.qpos, data.qvel, data.ctrl = peer["qpos"][0], peer["qvel"][0], peer["ctrl"]
        began = time.process_time()
        mujoco.mj_step(model, data, count)
        seconds.append((time.process_time() - began) / count)
    return statistics.median(seconds)


def main():
    words = argparse.ArgumentParser(prog="python -m benchmarks.convex_contact", description=__doc__.splitlines()[0])
    words.add_argument("--repeats", type=int, default=5)
    repeats = words.parse_args().repeats
    scene = quadruped()
    print(f"MuJoCo {mujoco.__version__}: {1e6 * of_mujoco(scene, repeats):.0f} µs a step of {1e3 * STEP:.0f} ms")
    constant = {
        "stepsize_controller": diffrax.ConstantStepSize(),
        "dt0": STEP,
        "solver": jdyn.solvers.ConvexEuler(rows=1),
    }
    adaptive = {"stepsize_controller": diffrax.PIDController(rtol=1e-3, atol=1e-3)}
    for lanes in (1, LANES):
        for name, options in ((f"{1e3 * STEP:.0f} ms", constant), ("1e-3", adaptive)):
            compiled, seconds, stats = of_jdyn(scene, lanes, repeats, **options)
            steps, solves = stats["accepted_steps"] + stats["rejected_steps"], stats["dynamics_calls"]
            print(
                f"jdyn, {lanes:3} lanes, {name:5}: {1e6 * seconds / steps:6.0f} µs a step, "
                f"{1e6 * seconds / solves:5.0f} µs a substep, {steps / lanes:5.0f} steps a lane, "
                f"{stats['jacobians'] / solves:.1f} Newton steps each, compiled in {compiled:.0f} s"
            )


if __name__ == "__main__":
    main()
