"""Time of one forward dynamics against the number of links, for every method, and the slopes of log time over log n.

    python benchmarks/method_costs.py

Chains of revolute joints in float64. Methods take turns, compiling is not counted, and medians are printed. Slopes
are fitted over the three largest sizes: small ones pay for starting a program.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

LINEAR = [
    jdyn.ABA(),
    jdyn.MatrixABA("textbook"),
    jdyn.MatrixABA("cancelling"),
    jdyn.ABA(bias="separate"),
    jdyn.ModifiedABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    jdyn.GaussDP(),
]
OTHERS = [
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    jdyn.WalkerOrin(1),
    jdyn.WalkerOrin(2),
    jdyn.ConjugateGradient(),
    jdyn.OrthogonalComplement("normal"),
    jdyn.OrthogonalComplement("factored"),
    jdyn.GibbsAppell(),
]
SIZES = (2, 4, 8, 16, 32, 64, 128)
LONG = (256, 1024, 4096)


def program(method, n):
    """A call that takes one configuration, compiled and run once."""
    model = jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1)
    keys = jax.random.split(jax.random.key(0), 3)
    q, v, tau = model.random(keys[0]), *(jax.random.normal(key, (n,)) for key in keys[1:])
    compiled = (
        jax.jit(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method)).lower(q, v, tau).compile()
    )
    jax.block_until_ready(compiled(q, v, tau))
    return lambda: jax.block_until_ready(compiled(q, v, tau))


def medians(programs, repeats):
    """Seconds a call, methods taking turns."""
    times = {method: [] for method in programs}
    for _ in range(repeats):
        for method, call in programs.items():
            started, calls = time.perf_counter(), 0
            while time.perf_counter() - started < 0.01:
                call()
                calls += 1
            times[method].append((time.perf_counter() - started) / calls)
    return {method: statistics.median(values) for method, values in times.items()}


def slope(sizes, seconds):
    upper = slice(-3, None)
    return np.polyfit(np.log(sizes[upper]), np.log(seconds[upper]), 1)[0]


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--repeats", type=int, default=7)
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, {jnp.zeros(0).dtype}, one configuration, µs a call")
    table = {method: [] for method in (*LINEAR, *OTHERS)}
    for n in (*SIZES, *LONG):
        methods = LINEAR if n in LONG else table
        for method, seconds in medians({method: program(method, n) for method in methods}, options.repeats).items():
            table[method].append(seconds)
    width = max(len(str(method)) for method in table)
    print(f"{'':{width}} {''.join(f'{n:>9}' for n in (*SIZES, *LONG))}   slope")
    for method, seconds in table.items():
        sizes = (*SIZES, *LONG)[: len(seconds)]
        row = "".join(f"{1e6 * x:9.0f}" for x in seconds) + " " * 9 * (len(SIZES + LONG) - len(seconds))
        print(f"{method!s:{width}} {row}   {slope(sizes, seconds):5.2f}")


if __name__ == "__main__":
    main()
