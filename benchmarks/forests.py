"""What two robots in one model cost beside one of them: `python -m benchmarks.forests`.

A quadruped on a free base and a Panda on the ground, in float32, alone and twice. Both take turns, and the ratio of the
medians of processor time is printed; 2 is the cost of one of each. Matrices of two robots have four times as many
numbers, of which half are zero. Then two PUMAs and a box in one model, beside the sum of the three alone. Run it on
one core: `taskset -c 0 python -m benchmarks.forests`.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

import jdyn

FUNCTIONS = {
    "forward dynamics": jdyn.forward_dynamics,
    "inverse dynamics": jdyn.inverse_dynamics,
    "gravity forces": lambda model, q, v, tau: jdyn.gravity_forces(model, q),
    "gradient of forward dynamics": jax.grad(lambda *state: jnp.sum(jdyn.forward_dynamics(*state)), 1),
    "mass matrix": lambda model, q, v, tau: jdyn.mass_matrix(model, q),
    "derivatives of forward dynamics": jdyn.forward_dynamics_derivatives,
}
CELL = {"left": "puma560", "right": "puma560", "part": "box"}


def program(function, model, lanes: int):
    """A batch of a function, and its operands."""
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], lanes))
    v, tau = (jax.random.normal(key, (lanes, model.nv), q.dtype) for key in keys[1:])
    run = jax.jit(jax.vmap(function, (None, 0, 0, 0)))
    return lambda: jax.block_until_ready(run(model, q, v, tau))


def spent(run) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def medians(function, models, chosen) -> list[float]:
    """Time of a function for each model, which take turns."""
    runs = [program(function, model, chosen.lanes) for model in models]
    samples = [[spent(run) for run in runs] for _ in range(chosen.rounds + 1)][1:]
    return [statistics.median(times) for times in zip(*samples, strict=True)]


def main():
    words = argparse.ArgumentParser(prog="python -m benchmarks.forests", description=__doc__.splitlines()[0])
    words.add_argument("--lanes", type=int, default=1024)
    words.add_argument("--rounds", type=int, default=15)
    chosen = words.parse_args()
    print("| function | two quadrupeds / one | two Pandas / one |\n|---|---|---|")
    for name, function in FUNCTIONS.items():
        ratios = []
        for robot in ("quadruped", "panda"):
            one = jdyn.load(robot, dtype=jnp.float32).without_shapes()
            two = jdyn.merge({"left": one, "right": one}, {"right": (2.0, 0.0, 0.0)})
            alone, both = medians(function, (one, two), chosen)
            ratios.append(f"{both / alone:.2f}")
        print(f"| {name} | {' | '.join(ratios)} |")
    parts = {part: jdyn.load(robot, dtype=jnp.float32) for part, robot in CELL.items()}
    whole = jdyn.merge(parts, {"right": (1.0, 0.0, 0.0)})
    print("\n| function | two PUMAs and a box / each alone |\n|---|---|")
    for name, function in FUNCTIONS.items():
        one, *each = medians(function, (whole, *parts.values()), chosen)
        print(f"| {name} | {one / sum(each):.2f} |")


if __name__ == "__main__":
    main()
