"""What sweeps of any size take: memory against lanes, and lanes a second against devices and workers.

    python -m benchmarks.sweeps [--quick]

Each figure comes from a process of its own, on processors of its own. Memory is that of a sweep into a store, two
numbers a lane, up to a million lanes. Rates are those of the sweep of the PUMA 560 that `jdyn sweep` runs, whose lanes
take between 100 and 450 steps: one and two devices, into which the host is divided, and one and two Dask workers with
one thread and one processor each, whose results are written to a store by the process that asked for them. Compiling is
left out.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MEMORY = """
import resource, sys
import jax.numpy as jnp
import jdyn

over = jdyn.designs.LatinHypercube(int(sys.argv[2]), a=(0.0, 1.0), b=(0.0, 1.0))
jdyn.sweep(lambda p: {"sum": p["a"] + p["b"], "product": p["a"] * p["b"]}, over, store=sys.argv[1], progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

RATE = """
import os, sys, tempfile
import jdyn
from jdyn.cli.parser import parser
from jdyn.cli.sweeps import payload_against_gain

options = parser().parse_args(["sweep", "--lanes", sys.argv[2]])
spec = jdyn.Spec.of(payload_against_gain(options), "jdyn sweep")

def main():
    chunk = max(spec.design.size // 64, 1)
    # The first part has some chunks for each worker, which then compile.
    for part in ((1, 16), (1, 1)):
        with tempfile.TemporaryDirectory() as folder:
            dataset = spec.sweep(store=f"{folder}/store", chunk=chunk, shard=part, progress=False, engine=client)
            rate = dataset.attrs["lanes_per_second"]
    print(rate)

def keep_to(processor):
    # XLA's threads, which are yet to come, inherit it. Without, a worker with one thread computes on 1.4 processors.
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {processor})

if __name__ == "__main__":
    if sys.argv[1] == "devices":
        client = None
        main()
    else:
        import distributed

        workers = dict(n_workers=int(sys.argv[3]), threads_per_worker=1, dashboard_address=None)
        with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as client:
            for worker, processor in zip(client.scheduler_info()["workers"], sorted(os.sched_getaffinity(0))):
                client.run(keep_to, processor, workers=[worker])
            main()
"""


def printed(code, *words, processors, **environment) -> float:
    """The number that a process prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program.py"
        program.write_text(code)
        words = [str(word).replace("FOLDER", folder) for word in words]
        run = subprocess.run(
            [sys.executable, program, *words], check=True, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1]), **environment},
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )  # fmt: skip
    return float(run.stdout.split()[-1])


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--quick", action="store_true", help="few lanes, to try it")
    quick = words.parse_args().quick
    cores = sorted(os.sched_getaffinity(0))
    print("peak memory of a sweep into a store:")
    for lanes in (1000, 4000) if quick else (10_000, 100_000, 1_000_000):
        mebibytes = printed(MEMORY, "FOLDER/store", lanes, processors=set(cores))
        print(f"  {lanes:9} lanes {mebibytes:7.0f} MiB", flush=True)
    lanes = 64 if quick else 9216
    for what in ("devices", "workers"):
        rates = []
        for count in (1, 2):
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
            environment = {"XLA_FLAGS": flags} if what == "devices" else {}
            # The process that writes what workers send needs some time on a processor, too.
            used = set(cores[:count]) if what == "devices" else set(cores)
            rates.append(printed(RATE, what, lanes, count, processors=used, **environment))
            print(f"{count} {what}: {rates[-1]:.0f} lanes/s", flush=True)
        print(f"  {rates[1] / rates[0]:.2f} times with two")


if __name__ == "__main__":
    main()
