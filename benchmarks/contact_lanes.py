"""Batches of scenes with contact in float32, on a GPU beside mujoco_warp.

    python -m benchmarks.contact_lanes [--scenes humanoid] [--lanes 8192] [--programs "jdyn steps,mujoco_warp"]

Errors are medians over the first lanes of the largest coordinate's at the end [rad or m]. They are against solutions in
float64 that a processor finds with tiny steps: jdyn's own, and MuJoCo's for mujoco_warp. Times are medians of calls,
each waited for, of the whole motion; compiling is apart. mujoco_warp (benchmarks/gpu.txt) takes the Newton solver, a
step captured as one graph.
"""

import argparse
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.contact_child import newton_model
from benchmarks.contact_own import CURVES, end
from benchmarks.contact_scenes import SCENES, ContactScene
from benchmarks.contact_speed import Program

OWN = {"jdyn steps": "jdyn convex steps", "jdyn": "jdyn convex"}
# What finds the fine solution of each program.
FINE = {"jdyn steps": "jdyn convex", "jdyn": "jdyn convex", "mujoco_warp": "MuJoCo Euler"}
STEPS, TOLERANCES = (4e-3, 2e-3, 1e-3), (1e-1, 1e-2, 1e-3)
# So many lanes have fine solutions, jdyn's at this tolerance: that of `contact_speed` takes minutes for as many.
COMPARED, FINEST = 16, 1e-7
# What mujoco_warp has room for in a world. In MuJoCo the scenes have up to 12 contacts and 48 rows of constraints.
CONTACTS, ROWS = 48, 200


class Own:
    """One of jdyn's curves."""

    def __init__(self, scene: ContactScene, name: str):
        curve, scene = CURVES[OWN[name]], scene.astype(np.float32)
        self.settings = STEPS if name.endswith("steps") else TOLERANCES
        self.start = jnp.asarray(scene.q0), jnp.asarray(scene.v0)
        options = curve.options(scene)

        def ends(q0, v0, setting):
            return jdyn.simulate_batch(
                scene.model, q0, v0, scene.t1, reduce=_end_and_tries, **options, **curve.steps(setting)
            )

        began = time.perf_counter()
        self.program = jax.jit(ends).lower(*self.start, jnp.float32(1.0)).compile()
        self.compile_s = time.perf_counter() - began

    def run(self, setting: float):
        self.found = jax.block_until_ready(self.program(*self.start, jnp.float32(setting)))

    def read(self) -> tuple[np.ndarray, float]:
        """Configurations at the end, not finite in lanes that failed, and the mean of tries a lane."""
        q, tries = self.found
        return np.asarray(q), float(jnp.mean(tries))


def _end_and_tries(trajectory):
    return end(trajectory), trajectory.stats["accepted_steps"] + trajectory.stats["rejected_steps"]


class Warp:
    """mujoco_warp's steps."""

    settings = STEPS

    def __init__(self, scene: ContactScene):
        import mujoco_warp
        import warp

        began = time.perf_counter()
        self.warp, self.library, self.t1 = warp, mujoco_warp, scene.t1
        self._load(scene.peer())
        # The first step compiles its kernels.
        self._begin()
        self._step()
        self.graph = self._captured() if warp.get_device().is_cuda else None
        warp.synchronize()
        self.compile_s = time.perf_counter() - began

    def _load(self, peer):
        import mujoco

        host = newton_model(mujoco, peer)
        lanes = len(peer["qpos"])
        self.model = self.library.put_model(host)
        self.data = self.library.make_data(host, nworld=lanes, nconmax=CONTACTS, njmax=ROWS)
        self.data.ctrl.assign(np.tile(np.float32(peer["ctrl"]), (lanes, 1)))
        self.start = [self.warp.array(np.float32(peer[key])) for key in ("qpos", "qvel")]

    def _begin(self):
        for now, start in zip((self.data.qpos, self.data.qvel), self.start, strict=True):
            self.warp.copy(now, start)
        self.data.qacc_warmstart.zero_()

    def _step(self):
        self.library.step(self.model, self.data)

    def _captured(self):
        with self.warp.ScopedCapture() as captured:
            self._step()
        return captured.graph

    def run(self, setting: float):
        self.model.opt.timestep.fill_(setting)
        self._begin()
        self.steps = round(self.t1 / setting)
        for _ in range(self.steps):
            self._step() if self.graph is None else self.warp.capture_launch(self.graph)
        self.warp.synchronize()

    def read(self) -> tuple[np.ndarray, float]:
        """As `Own.read`."""
        return self.data.qpos.numpy(), float(self.steps)


def reference(name: str, count: int, curve: str) -> np.ndarray:
    """Configurations at the end of the first lanes of a scene."""
    scene = SCENES[name](count)
    program = Program(FINE[curve], scene, sys.executable, 0)
    try:
        return program.ask(FINEST if program.adaptive else program.finest, scene.t1, count)[0]
    finally:
        program.close()


def measured(program: Own | Warp, exact: np.ndarray, rounds: int):
    """Error, tries, failed lanes and seconds of all settings."""
    for setting in program.settings:
        seconds = []
        for _ in range(1 + rounds):
            began = time.perf_counter()
            program.run(setting)
            seconds.append(time.perf_counter() - began)
        q, tries = program.read()
        error = float(np.median(np.abs(q[: len(exact)] - exact).max(axis=1)))
        failed = int(np.sum(~np.isfinite(q).all(axis=1)))
        yield setting, error, tries, failed, statistics.median(seconds[1:])


def show(name: str, options):
    scene = SCENES[name](options.lanes)
    print(f"\n## {name}: {scene.about}, {options.lanes} lanes\n")
    print(f"{'program':12} {'setting':>8} {'error':>9} {'tries':>7} {'failed':>6} {'ms':>9} {'ns a lane and try':>17}")
    for curve in options.programs:
        try:
            program = Own(scene, curve) if curve in OWN else Warp(scene)
        except ImportError as error:
            print(f"{curve} is left out: {error}")
            continue
        print(f"{curve} was compiled in {program.compile_s:.1f} s", flush=True)
        exact = reference(name, min(COMPARED, options.lanes), curve)
        for setting, error, tries, failed, seconds in measured(program, exact, options.rounds):
            each = 1e9 * seconds / options.lanes / tries
            row = f"{setting:8.3g} {error:9.1e} {tries:7.1f} {failed:6} {1e3 * seconds:9.4g} {each:17.4g}"
            print(f"{curve:12} {row}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default="humanoid,quadruped")
    parser.add_argument("--programs", default=",".join(FINE))
    parser.add_argument("--lanes", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.programs = options.programs.split(",")
    if unknown := {*options.programs} - {*FINE}:
        parser.error(f"--programs: expected some of {[*FINE]}, got {sorted(unknown)}")
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, float32, {time.strftime('%Y-%m-%d')}")
    for name in options.scenes.split(","):
        show(name, options)


if __name__ == "__main__":
    main()
