"""Batches of scenes with contact in float32, on a GPU beside mujoco_warp.

    python -m benchmarks.contact_lanes [--scenes humanoid] [--lanes 8192] [--programs "jdyn steps,mujoco_warp"]

Errors are medians over the first lanes of the largest coordinate's at the end [rad or m], against solutions that a
processor finds in float64 with tiny steps: jdyn's own, and MuJoCo's for mujoco_warp. Times are medians of calls, each
waited for. mujoco_warp (benchmarks/gpu.txt) takes MuJoCo's Newton solver, a step captured as one graph. `--references`
names a folder that keeps the fine solutions.
"""

import argparse
import pathlib
import statistics
import sys
import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.contact_own import CURVES
from benchmarks.contact_scenes import SCENES, ContactScene
from benchmarks.contact_speed import Program

OWN = {"jdyn steps": "jdyn convex steps", "jdyn": "jdyn convex"}
# What finds the fine solution of each program.
FINE = {"jdyn steps": "jdyn convex", "jdyn": "jdyn convex", "mujoco_warp": "MuJoCo Euler"}
STEPS, TOLERANCES = (4e-3, 2e-3, 1e-3), (1e-1, 1e-2, 1e-3)
# So many lanes have fine solutions, jdyn's at this tolerance.
COMPARED, FINEST = 16, 1e-7
# Contacts and rows of constraints that mujoco_warp has room for in a world.
CONTACTS, ROWS = 48, 200


class Own:
    """One of jdyn's curves."""

    def __init__(self, scene: ContactScene, name: str):
        curve, model = CURVES[OWN[name]], _single(scene.model)
        self.settings = STEPS if name.endswith("steps") else TOLERANCES
        options = {
            "controller": _single(scene.controller), "contact": curve.contact(scene.nearest), "solver": curve.solver,
            "saveat": diffrax.SaveAt(t1=True), "max_steps": 10**6, "reduce": _end,
        }  # fmt: skip
        q0, v0 = jnp.asarray(scene.q0, jnp.float32), jnp.asarray(scene.v0, jnp.float32)

        def ends(setting):
            return jdyn.simulate_batch(model, q0, v0, scene.t1, **options, **curve.steps(setting))

        began = time.perf_counter()
        self.program = jax.jit(ends).lower(jnp.float32(1.0)).compile()
        self.compile_s = time.perf_counter() - began

    def run(self, setting: float):
        """Configurations at the end, tries a lane, and failed lanes."""
        q, tries, failed = jax.block_until_ready(self.program(jnp.float32(setting)))
        return q, float(jnp.mean(tries)), int(jnp.sum(failed))


def _end(trajectory):
    stats = trajectory.stats
    tries = stats["accepted_steps"] + stats["rejected_steps"]
    return trajectory.q[-1], tries, trajectory.result != jdyn.Result.success


def _single(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32) if eqx.is_inexact_array(x) else x, tree)


class Warp:
    """mujoco_warp's steps."""

    settings = STEPS

    def __init__(self, scene: ContactScene, name: str):
        import mujoco
        import mujoco_warp
        import warp

        began = time.perf_counter()
        peer, self.warp, self.library, self.t1 = scene.peer(), warp, mujoco_warp, scene.t1
        host = mujoco.MjModel.from_xml_string(peer["xml"])
        host.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        host.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        self.model = mujoco_warp.put_model(host)
        lanes = len(peer["qpos"])
        self.data = mujoco_warp.make_data(host, nworld=lanes, nconmax=CONTACTS, njmax=ROWS)
        self.start = warp.array(np.float32(peer["qpos"])), warp.array(np.float32(peer["qvel"]))
        self.data.ctrl.assign(np.tile(np.float32(peer["ctrl"]), (lanes, 1)))
        # The first call compiles its kernels.
        self._begin()
        mujoco_warp.step(self.model, self.data)
        self.graph = None
        if warp.get_device().is_cuda:
            with warp.ScopedCapture() as captured:
                mujoco_warp.step(self.model, self.data)
            self.graph = captured.graph
        warp.synchronize()
        self.compile_s = time.perf_counter() - began

    def _begin(self):
        self.warp.copy(self.data.qpos, self.start[0])
        self.warp.copy(self.data.qvel, self.start[1])
        self.data.qacc_warmstart.zero_()

    def run(self, setting: float):
        self.model.opt.timestep.fill_(setting)
        self._begin()
        steps = round(self.t1 / setting)
        for _ in range(steps):
            if self.graph is None:
                self.library.step(self.model, self.data)
            else:
                self.warp.capture_launch(self.graph)
        self.warp.synchronize()
        q = self.data.qpos.numpy()
        return q, float(steps), int(np.sum(~np.isfinite(q).all(axis=1)))


def reference(name: str, scene: ContactScene, folder: pathlib.Path | None) -> np.ndarray:
    """Configurations at the end of the first lanes."""
    path = folder / f"{scene.name}-{FINE[name]}.npy" if folder else None
    if path is not None and path.exists():
        return np.load(path)
    count = min(COMPARED, len(scene.q0))
    program = Program(FINE[name], SCENES[scene.name](count), sys.executable, 0)
    try:
        found, _ = program.ask(FINEST if program.adaptive else program.finest, scene.t1, count)
    finally:
        program.close()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, found)
    return found


def measured(program, exact: np.ndarray, rounds: int):
    """Error and time of all settings."""
    for setting in program.settings:
        q, tries, failed = program.run(setting)
        seconds = []
        for _ in range(rounds):
            began = time.perf_counter()
            program.run(setting)
            seconds.append(time.perf_counter() - began)
        error = float(np.median(np.abs(np.asarray(q)[: len(exact)] - exact).max(axis=1)))
        yield setting, error, tries, failed, statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--programs", default=",".join([*OWN, "mujoco_warp"]))
    parser.add_argument("--lanes", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--references", type=pathlib.Path, help="folder that keeps fine solutions")
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, float32, {time.strftime('%Y-%m-%d')}")
    for name in options.scenes.split(","):
        scene = SCENES[name](options.lanes)
        print(f"\n## {name}: {scene.about}, {options.lanes} lanes\n")
        print(
            f"{'program':12} {'setting':>8} {'error':>9} {'tries':>7} {'failed':>6} {'ms':>9} {'us a lane and s':>15}"
        )
        for curve in options.programs.split(","):
            exact = reference(curve, scene, options.references)
            program = (Own if curve in OWN else Warp)(scene, curve)
            print(f"{curve} was compiled in {program.compile_s:.1f} s", flush=True)
            for setting, error, tries, failed, seconds in measured(program, exact, options.rounds):
                each = 1e6 * seconds / options.lanes / scene.t1
                row = f"{setting:8.3g} {error:9.1e} {tries:7.1f} {failed:6} {1e3 * seconds:9.4g} {each:15.4g}"
                print(f"{curve:12} {row}", flush=True)


if __name__ == "__main__":
    main()
