"""The process of MJX in `python -m benchmarks.environments`, which needs no jdyn.

A question is a line of JSON on standard input, with the scene and the commands' shape; the answer is one on standard
output: seconds to compile, and of a run.
"""

import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

jax.config.update("jax_enable_x64", True)


def commands(standing: np.ndarray, steps: int, count: int) -> np.ndarray:
    """Targets of servos of all environments."""
    return standing + 0.1 * np.random.default_rng(0).normal(size=(steps, count, len(standing)))


def main():
    asked = json.loads(sys.stdin.readline())
    compiled = mujoco.MjModel.from_xml_string(asked["text"])
    compiled.opt.timestep, compiled.opt.integrator = asked["step"], mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model, data = mjx.put_model(compiled), mujoco.MjData(compiled)
    data.qpos[:] = asked["qpos"]
    start = mjx.put_data(compiled, data)
    targets = jnp.asarray(commands(np.array(asked["standing"]), asked["steps"], asked["count"]))
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (asked["count"], *x.shape)), start)

    def run(states, targets):
        def step(states, targets):
            after = jax.vmap(lambda state, u: mjx.step(model, state.replace(ctrl=u)))(states, targets)
            # With 64 bits some of its numbers change their type.
            return jax.tree.map(lambda x, like: x.astype(like.dtype), after, states), after.sensordata

        return jax.lax.scan(step, states, targets)

    began = time.perf_counter()
    program = jax.jit(run).lower(states, targets).compile()
    compiling, found = time.perf_counter() - began, []
    for _ in range(asked["rounds"]):
        began = time.perf_counter()
        ended, _ = jax.block_until_ready(program(states, targets))
        found.append(time.perf_counter() - began)
    stands = bool(np.isfinite(ended.qpos).all() and np.all(np.asarray(ended.qpos)[:, 2] > 0.2))
    print(json.dumps({"compile": compiling, "run": statistics.median(found), "stands": stands}))


if __name__ == "__main__":
    main()
