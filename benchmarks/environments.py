"""Steps a second of environments: a quadruped with servos and sensors on the ground, in jdyn and in MuJoCo.

    python -m benchmarks.environments [--counts 1 64 1024 4096] [--steps 50] [--peer-python peers/bin/python]

A step lasts 2 ms and takes targets of twelve servos; it returns sensors. All use all processors, MuJoCo by
`mujoco.rollout`; MJX takes part if a Python has it. Times are medians, results are waited for, and compiling is apart.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout

import jdyn
from benchmarks.mujoco_twin import mjcf

jax.config.update("jax_enable_x64", True)

STEP = 0.002
# A peer that takes longer is given up [s].
LONGEST = 180
STANDING = [0, 0, 0.2925, 1, 0, 0, 0, *4 * [0, -0.8, 1.6]]
SENSORS = """<sensor>
  <framequat objtype="xbody" objname="{base}"/><framelinvel objtype="xbody" objname="{base}"/>
  <frameangvel objtype="xbody" objname="{base}"/>{joints}
</sensor></mujoco>"""


def scene() -> tuple[str, np.ndarray]:
    """The text of the scene, and the targets with which it stands."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    standing = np.tile([0, -0.8, 1.6], 4)
    gains = (np.full(model.nv, gain) for gain in (100.0, 8.0))
    kp, kd = (np.where(np.arange(model.nv) < 6, 0, gain) for gain in gains)
    joints = "".join(f'<jointpos joint="{name}"/><jointvel joint="{name}"/>' for name in model.joint_names[1:])
    sensors = SENSORS.format(base=model.body_names[0], joints=joints)
    return mjcf(model, kp, kd).replace("</mujoco>", sensors), standing


def of_jdyn(text: str, contact):
    """A function that steps environments, and the state in which one starts."""
    system = jdyn.load_system(text, contact=contact)
    model = system.model
    stand = model.neutral().at[2].set(0.2925).at[7:].set(jnp.tile(jnp.array([0.0, -0.8, 1.6]), 4))

    @jax.jit
    def run(states, targets):
        def step(states, targets):
            states, info = jax.vmap(lambda state, u: system.step(state, u, STEP))(states, targets)
            return states, info.sensors

        return jax.lax.scan(step, states, targets)

    return run, system.state(stand)


def timed(call, rounds: int) -> float:
    """Median time of a call [s]."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 64, 1024, 4096])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", help="Python of an environment with mujoco-mjx, see peers.txt")
    options = parser.parse_args()
    text, standing = scene()
    compiled = mujoco.MjModel.from_xml_string(text)
    # By Euler's method the dampers of its servos are unstable.
    compiled.opt.timestep, compiled.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    laws = {"compliant": jdyn.CompliantContact(), "convex": jdyn.ConvexContact()}
    print(f"jax {jax.__version__}, MuJoCo {mujoco.__version__}, {os.cpu_count()} processors; steps a second")
    names = [f"jdyn, {name}" for name in laws] + ["MJX"] * bool(options.peer_python)
    print(f"{'environments':>12} {'MuJoCo':>12}" + "".join(f" {name:>16} {'compile [s]':>12}" for name in names))
    for count in options.counts:
        rng = np.random.default_rng(0)
        targets = standing + 0.1 * rng.normal(size=(options.steps, count, len(standing)))
        row = [f"{count:12d}", f"{count * options.steps / mujoco_time(compiled, targets, options.rounds):12.0f}"]
        for law in laws.values():
            run, start = of_jdyn(text, law)
            states = jax.tree.map(lambda x, n=count: jnp.broadcast_to(x, (n, *x.shape)), start)
            commands = jnp.asarray(targets)
            began = time.perf_counter()
            program = run.lower(states, commands).compile()
            compiling = time.perf_counter() - began
            taken = timed(lambda p=program, s=states, c=commands: jax.block_until_ready(p(s, c)), options.rounds)
            ended, _ = program(states, commands)
            assert np.isfinite(ended.q).all() and np.all(ended.q[:, 2] > 0.2), "a quadruped has fallen"
            row.append(f"{count * options.steps / taken:16.0f} {compiling:12.1f}")
        if options.peer_python:
            found = of_mjx(options, text, standing, count)
            row.append(f"{'no end':>16} {'-':>12}" if found is None else
                       f"{count * options.steps / found['run']:16.0f} {found['compile']:12.1f}")  # fmt: skip
        print(" ".join(row), flush=True)


def of_mjx(options, text: str, standing: np.ndarray, count: int) -> dict | None:
    """Seconds of MJX, in a process of its own; None if it comes to no end within `LONGEST`."""
    asked = {"text": text, "step": STEP, "qpos": STANDING, "standing": list(map(float, standing)), "count": count}
    asked |= {"steps": options.steps, "rounds": options.rounds}
    here = pathlib.Path(__file__).parent
    try:
        done = subprocess.run(
            [options.peer_python, str(here / "mjx_environments.py")], input=json.dumps(asked) + "\n", text=True,
            capture_output=True, check=False, env=os.environ | {"PYTHONPATH": ""}, timeout=LONGEST,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"MJX failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["stands"], "a quadruped of MJX has fallen"
    return found


def mujoco_time(compiled, targets, rounds: int) -> float:
    """Median time of a rollout [s]."""
    count = targets.shape[1]
    data = mujoco.MjData(compiled)
    data.qpos[:] = STANDING
    size = mujoco.mj_stateSize(compiled, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.zeros(size)
    mujoco.mj_getState(compiled, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    threads = [mujoco.MjData(compiled) for _ in range(os.cpu_count() or 1)]
    commands = np.ascontiguousarray(np.swapaxes(targets, 0, 1))
    with rollout.Rollout(nthread=len(threads)) as roll:
        starts = np.tile(start, (count, 1))
        states, _ = roll.rollout(compiled, threads, starts, commands)
        assert np.isfinite(states).all() and np.all(states[:, -1, 3] > 0.2), "a quadruped has fallen"
        return timed(lambda: roll.rollout(compiled, threads, starts, commands), rounds)


if __name__ == "__main__":
    main()
