"""The two jobs that jdyn exists for, on one device: `python -m benchmarks.main_job`.

The sweep of `jdyn sweep` (a PUMA 560 under PD control, payload against gain), and the gradients of as many adaptive
simulations of it, by gain and payload. Prints lanes a second, memory, and what the device spent its time on.
"""

import argparse
import json
import pathlib
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.sweep import ControlledMove

KD = 4.0
# Of what the device did, the most expensive are printed.
SHOWN = 12


def motion(seconds, reach, p):
    """One lane: how far the arm is from its target at the end [rad]."""
    last = reach.model.body_names[-1]
    mass = reach.model.inertias.mass[reach.model.topology.body(last)]
    trajectory = reach.run(jdyn.System(reach.model.with_body(last, mass=mass + p["payload"])), p["kp"], KD, seconds)
    return {"residual": reach.distances(trajectory)[-1], "steps": trajectory.stats["accepted_steps"]}


def lanes_of(count):
    side = max(round(count**0.5), 1)
    kp, payload = jnp.meshgrid(jnp.geomspace(5, 500, side), jnp.linspace(0, 5, side))
    return {"kp": kp.ravel(), "payload": payload.ravel()}


def measured(function, lanes) -> dict:
    """Seconds to compile and to run, lanes a second, bytes at the peak, and the mean of what all lanes found, which
    devices agree on."""
    began = time.perf_counter()
    program = jax.jit(function).lower(lanes).compile()
    compiling = time.perf_counter() - began
    found = jax.block_until_ready(program(lanes))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        jax.block_until_ready(program(lanes))
        seconds.append(time.perf_counter() - began)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(found)):
        raise FloatingPointError("a lane is not finite")
    memory = jax.devices()[0].memory_stats() or {}
    count = len(lanes["kp"])
    return {
        "lanes": count,
        "compile_s": compiling,
        "run_s": seconds,
        "lanes_per_s": count / min(seconds),
        "means": {name: float(np.asarray(x, float).mean()) for name, x in found.items()},
        "temporaries": program.memory_analysis().temp_size_in_bytes,
        "peak_bytes": memory.get("peak_bytes_in_use"),
        "profile": profiled(lambda: jax.block_until_ready(program(lanes))),
    }


def profiled(call) -> list[tuple[str, float, int]]:
    """What a device did during a call: name, seconds and times, the most expensive first."""
    # What the processor does is not read, and its events are many.
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            call()
        total: dict[str, list[float]] = {}
        for path in pathlib.Path(folder).rglob("*.xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
                if not plane.name.startswith("/device:"):
                    continue
                for line in plane.lines:
                    if line.name.startswith("Stream"):
                        for event in line.events:
                            total.setdefault(event.name, []).append(event.duration_ns / 1e9)
    rows = [(name, sum(each), len(each)) for name, each in total.items()]
    return sorted(rows, key=lambda row: -row[1])[:SHOWN]


def show(name, found):
    peak = f", {found['peak_bytes'] / 1e9:.2f} GB at the peak" if found["peak_bytes"] else ""
    print(
        f"{name}: {found['lanes']} lanes compiled in {found['compile_s']:.1f} s, ran in "
        f"{', '.join(f'{x:.2f}' for x in found['run_s'])} s: {found['lanes_per_s']:.0f} lanes a second, "
        f"{found['temporaries'] / 1e9:.2f} GB of temporaries{peak}"
    )
    print("  mean " + ", ".join(f"{name} {mean:.6g}" for name, mean in found["means"].items()))
    for program, seconds, times in found["profile"]:
        print(f"  {1e3 * seconds:10.2f} ms {times:8} times  {program}")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--lanes", type=int, default=65_536, help="of the sweep")
    words.add_argument("--gradients", type=int, default=4096, help="simulations that are differentiated")
    words.add_argument("--seconds", type=float, default=2.0, help="of motion")
    words.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    words.add_argument("--json", type=pathlib.Path, help="file for the results")
    options = words.parse_args()
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    reach = ControlledMove(jdyn.load("puma560"), 0)

    def lane(p):
        return motion(options.seconds, reach, p)

    def gradient(p):
        return jax.grad(lambda p: lane(p)["residual"])(p)

    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, {options.dtype}")
    found = {}
    for name, function, count in (("sweep", lane, options.lanes), ("gradients", gradient, options.gradients)):
        found[name] = measured(jax.vmap(function), lanes_of(count))
        show(name, found[name])
        if options.json:
            options.json.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
