"""Compile time of batched forward dynamics against the number of bodies, and what a second load of a robot costs.

    python benchmarks/compile_time.py

Compilations of the two sizes alternate, nothing is cached between them, and medians are printed.
"""

import argparse
import statistics
import time

import jax

import jdyn

SIZES = (8, 128)


def forward(model, q, v, tau):
    return jax.vmap(jdyn.forward_dynamics, in_axes=(None, 0, 0, 0))(model, q, v, tau)


def inputs(model, batch):
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], batch))
    v, tau = (jax.random.normal(key, (batch, model.nv), model.dtype) for key in keys[1:])
    return jax.block_until_ready((model, q, v, tau))


def compile_once(arguments):
    """Seconds to trace and compile, and the compiled program."""
    jax.clear_caches()
    started = time.perf_counter()
    compiled = jax.jit(forward).lower(*arguments).compile()
    return time.perf_counter() - started, compiled


def run_once(compiled, arguments):
    started = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    return time.perf_counter() - started


def traces_of_two_loads(name):
    """How many programs two loads of one robot need."""
    traces = []

    @jax.jit
    def once(model, *state):
        traces.append(1)
        return forward(model, *state)

    for _ in range(2):
        once(*inputs(jdyn.load(name), 2))
    return len(traces)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--batch", type=int, default=256)
    words.add_argument("--repeats", type=int, default=5)
    words.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    options = words.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, {options.dtype}, batch {options.batch}")
    arguments = {n: inputs(jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1), options.batch) for n in SIZES}
    compiles, runs = {n: [] for n in SIZES}, {n: [] for n in SIZES}
    for repeat in range(options.repeats + 1):
        for n in SIZES:
            seconds, compiled = compile_once(arguments[n])
            run_once(compiled, arguments[n])
            # The first round warms the process up: imports, and JAX's own first uses.
            if repeat:
                compiles[n].append(seconds)
                runs[n].append(run_once(compiled, arguments[n]))
    print(f"{'links':>5}  {'compile [s]':>11}  {'run [ms]':>9}  {'µs a link and lane':>18}")
    for n in SIZES:
        compiled, run = statistics.median(compiles[n]), statistics.median(runs[n])
        print(f"{n:5}  {compiled:11.2f}  {1e3 * run:9.2f}  {1e6 * run / n / options.batch:18.2f}")
    ratio = statistics.median(compiles[SIZES[1]]) / statistics.median(compiles[SIZES[0]])
    print(f"compile time of {SIZES[1]} links over that of {SIZES[0]}: {ratio:.2f} (goal: below 2)")
    print(f"programs compiled for two loads of one robot: {traces_of_two_loads('panda')} (goal: 1)")


if __name__ == "__main__":
    main()
