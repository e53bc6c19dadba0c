"""One program in a process of its own, which simulates a scene with contact as often as it is asked to.

    python -m benchmarks.contact_child NAME

It reads lines of JSON. The first one is the scene, as `ContactScene.peer` has it; each other one has `setting`, `t1`
and `lanes`, and is answered by a line with the configurations at the end, the processor's seconds of the call, and the
wall's seconds of compiling where that took place. MuJoCo, MJX and Brax need no jdyn beside them.
"""

import json
import sys
import time

import numpy as np


class Mujoco:
    """MuJoCo's own steps, in C: a lane after another."""

    def __init__(self, scene, integrator):
        import mujoco

        self.mujoco, self.model = mujoco, newton_model(mujoco, scene)
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
        self.data, self.scene = mujoco.MjData(self.model), scene
        self.version = mujoco.__version__

    def prepare(self, lanes):
        return 0.0

    def run(self, timestep, t1, lanes):
        self.model.opt.timestep = timestep
        steps = round(t1 / timestep)
        return np.array([self._end(lane, steps) for lane in range(lanes)])

    def _end(self, lane, steps):
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.scene["qpos"][lane], self.scene["qvel"][lane]
        self.data.ctrl[:] = self.scene["ctrl"]
        self.mujoco.mj_step(self.model, self.data, steps)
        return self.data.qpos.copy()


class Compiled:
    """Lanes side by side in one compiled program."""

    def __init__(self, scene):
        import jax

        self.jax, self.version = jax, f"jax {jax.__version__}"
        self.programs = {}
        self.q, self.v, self.ctrl = (np.asarray(scene[key], float) for key in ("qpos", "qvel", "ctrl"))

    def prepare(self, lanes):
        """Compile for a number of lanes; the seconds that took."""
        if lanes in self.programs:
            return 0.0
        began = time.perf_counter()
        batched = self.jax.vmap(self.steps, in_axes=(0, 0, None, None))
        args = self.q[:lanes], self.v[:lanes], 1e-3, 1
        self.programs[lanes] = self.jax.jit(batched).lower(*args).compile()
        return time.perf_counter() - began

    def run(self, timestep, t1, lanes):
        args = self.q[:lanes], self.v[:lanes], timestep, round(t1 / timestep)
        return np.asarray(self.programs[lanes](*args))


class Mjx(Compiled):
    """MuJoCo's steps on JAX."""

    def __init__(self, scene):
        super().__init__(scene)
        import mujoco
        from mujoco import mjx

        host = newton_model(mujoco, scene)
        host.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.mjx, self.model = mjx, mjx.put_model(host)
        self.rest = mjx.make_data(host)

    def steps(self, q, v, timestep, steps):
        model = self.model.tree_replace({"opt.timestep": timestep})
        start = self.rest.replace(qpos=q, qvel=v, ctrl=self.ctrl)
        return self.jax.lax.fori_loop(0, steps, lambda _, data: self.mjx.step(model, data), start).qpos


class Brax(Compiled):
    """Brax's pipeline in generalized coordinates."""

    def __init__(self, scene):
        super().__init__(scene)
        import mujoco
        from brax.generalized import pipeline
        from brax.io import mjcf

        host = newton_model(mujoco, scene)
        host.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.pipeline, self.system = pipeline, mjcf.load_model(host)

    def steps(self, q, v, timestep, steps):
        system = self.system.tree_replace({"opt.timestep": timestep})
        start = self.pipeline.init(system, q, v)

        def step(_, state):
            return self.pipeline.step(system, state, self.ctrl)

        return self.jax.lax.fori_loop(0, steps, step, start).q


def newton_model(mujoco, scene):
    """The scene without limits of joints, and with the solver that all of MuJoCo's relatives have."""
    model = mujoco.MjModel.from_xml_string(scene["xml"])
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return model


def _own(curve):
    def make(scene):
        from benchmarks import contact_own

        return contact_own.Own(scene, curve)

    return make


PROGRAMS = {
    **{curve: _own(curve) for curve in ("jdyn convex", "jdyn convex steps", "jdyn compliant", "jdyn Rodas5P")},
    "MuJoCo Euler": lambda scene: Mujoco(scene, "EULER"),
    "MuJoCo implicitfast": lambda scene: Mujoco(scene, "IMPLICITFAST"),
    "MuJoCo RK4": lambda scene: Mujoco(scene, "RK4"),
    "MJX": Mjx,
    "Brax": Brax,
}


def answer(program, ask):
    compiled = program.prepare(ask["lanes"])
    began = time.process_time()
    q = program.run(ask["setting"], ask["t1"], ask["lanes"])
    return {"q": q.tolist(), "cpu_s": time.process_time() - began, "compile_s": compiled}


def main():
    out, sys.stdout = sys.stdout, sys.stderr

    def say(line):
        print(json.dumps(line), file=out, flush=True)

    try:
        program = PROGRAMS[sys.argv[1]](json.loads(sys.stdin.readline()))
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
        return
    say({"version": program.version})
    for line in sys.stdin:
        try:
            say(answer(program, json.loads(line)))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


if __name__ == "__main__":
    main()
