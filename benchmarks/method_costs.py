"""Time of one forward dynamics against the number of links, for every method, and the slopes of log time over log n.

    python -m benchmarks.method_costs [--methods ABA,ParallelABA] [--sizes 1024,4096] [--batches 1,64]

Chains of revolute joints. Methods take turns, compiling is not counted, and medians are printed. Slopes are fitted
over the three largest sizes: small ones pay for starting a program.
"""

import argparse
import json
import pathlib
import statistics
import time

import jax
import numpy as np

import jdyn

LINEAR = [
    jdyn.ABA(),
    jdyn.studies.MatrixABA("textbook"),
    jdyn.studies.MatrixABA("cancelling"),
    jdyn.ABA(bias="separate"),
    jdyn.studies.ModifiedABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    jdyn.studies.GaussDP(),
]
OTHERS = [
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    jdyn.studies.WalkerOrin(1),
    jdyn.studies.WalkerOrin(2),
    jdyn.studies.ConjugateGradient(),
    jdyn.studies.OrthogonalComplement("normal"),
    jdyn.studies.OrthogonalComplement("factored"),
    jdyn.studies.GibbsAppell(),
]
SIZES = (2, 4, 8, 16, 32, 64, 128)
LONG = (256, 1024, 4096)


def program(method, n, batch):
    """A call that takes `batch` configurations, compiled and run once."""
    model = jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1)
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], batch))
    v, tau = (jax.random.normal(key, (batch, n), model.dtype) for key in keys[1:])

    def accelerations(q, v, tau):
        return jdyn.forward_dynamics(model, q, v, tau, method=method)

    arguments = [x[0] for x in (q, v, tau)] if batch == 1 else [q, v, tau]
    whole = accelerations if batch == 1 else jax.vmap(accelerations)
    compiled = jax.jit(whole).lower(*arguments).compile()
    jax.block_until_ready(compiled(*arguments))
    return lambda: jax.block_until_ready(compiled(*arguments))


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


def measured(methods, sizes, batch, repeats) -> dict[str, list[float]]:
    """Seconds a call by method, for as many of the sizes as it is measured at: cubic ones leave out the long chains."""
    seconds = {str(method): [] for method in methods}
    for n in sizes:
        taking = [method for method in methods if n <= max(SIZES) or method in LINEAR]
        for method, found in medians({method: program(method, n, batch) for method in taking}, repeats).items():
            seconds[str(method)].append(found)
    return seconds


def listed(text):
    return tuple(int(word) for word in text.split(","))


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--repeats", type=int, default=7)
    words.add_argument("--methods", help="names such as ABA,ParallelABA; all if left out")
    words.add_argument("--sizes", type=listed, default=(*SIZES, *LONG), help="links")
    words.add_argument("--batches", type=listed, default=(1,), help="configurations a call")
    words.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    words.add_argument("--json", type=pathlib.Path, help="file for the results")
    options = words.parse_args()
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    named = options.methods and options.methods.split(",")
    methods = [getattr(jdyn, name)() for name in named] if named else [*LINEAR, *OTHERS]
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, {options.dtype}, µs a call")
    width, found = max(len(str(method)) for method in methods), {}
    for batch in options.batches:
        found[batch] = measured(methods, options.sizes, batch, options.repeats)
        print(f"\n{f'batch {batch}':{width}} {''.join(f'{n:>9}' for n in options.sizes)}   slope")
        for method, seconds in found[batch].items():
            row = "".join(f"{1e6 * x:9.0f}" for x in seconds) + " " * 9 * (len(options.sizes) - len(seconds))
            steep = f"{slope(options.sizes[: len(seconds)], seconds):5.2f}" if len(seconds) > 1 else ""
            print(f"{method:{width}} {row}   {steep}")
        if options.json:
            options.json.write_text(json.dumps({"sizes": options.sizes, "seconds": found}) + "\n")


if __name__ == "__main__":
    main()
