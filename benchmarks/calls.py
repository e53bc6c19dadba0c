"""What one call of a function costs besides its work: `python -m benchmarks.calls`.

Forward dynamics of the Panda, a single configuration in float64: called as it is, compiled with the model as an
argument, and compiled with the model closed over. Then Jacobians, whose first body compiles for all others. They take
turns, some calls each as in a loop, and medians are printed.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

import jdyn

# Of a function, before the next one has its turn.
CALLS = 10


def microseconds(function) -> float:
    started = time.perf_counter()
    jax.block_until_ready(function())
    return 1e6 * (time.perf_counter() - started)


def in_turn(functions: dict, rounds: int) -> dict[str, float]:
    """The median of each, without the first round and the first call of each turn."""
    samples = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            spent = [microseconds(function) for _ in range(CALLS)]
            if turn:
                samples[name] += spent[1:]
    return {name: statistics.median(each) for name, each in samples.items()}


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--rounds", type=int, default=200)
    rounds = words.parse_args().rounds
    jax.config.update("jax_enable_x64", True)
    model = jdyn.load("panda")
    q, v = model.neutral(), jnp.ones(model.nv)
    given = jax.jit(jdyn.forward_dynamics)
    closed_over = jax.jit(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau))
    calls = {
        "as it is": lambda: jdyn.forward_dynamics(model, q, v, v),
        "compiled, the model an argument": lambda: given(model, q, v, v),
        "compiled, the model closed over": lambda: closed_over(q, v, v),
        "mass_matrix as it is": lambda: jdyn.mass_matrix(model, q),
    }
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64")
    found = in_turn(calls, rounds)
    for name, spent in found.items():
        print(f"{name:34} {spent:7.1f} µs")
    more = found["compiled, the model an argument"] - found["compiled, the model closed over"]
    print(f"the model as an argument costs {more:.1f} µs more (goal: below 20)")
    first, *others = (microseconds(lambda body=body: jdyn.jacobian(model, q, body)) for body in model.body_names)
    other = statistics.median(others)
    print(f"Jacobian of the first body {first / 1e6:.2f} s with compiling, of another {other:.0f} µs")


if __name__ == "__main__":
    main()
