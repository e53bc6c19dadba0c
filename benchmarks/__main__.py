"""jdyn beside other libraries, in one run: `python -m benchmarks --peers all --robots panda,g1 --device cpu`.

See the README of this folder.
"""

import argparse
import datetime
import io
import itertools
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from typing import get_args

import jax
import numpy as np

from benchmarks import cases, processes, robots, states, table
from jdyn.model import Executor

# In an environment of their own: peers.txt, and gpu.txt for the last.
APART = ("frax", "jaxsim", "adam", "mjx", "brax", "mujoco_warp")
# Pinocchio comes first: the others are compared with what it finds.
PEERS = ("pinocchio", "mujoco", *APART)


def listed(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def numbers(text: str) -> list[int]:
    return [int(word) for word in listed(text)]


def options():
    words = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    words.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(PEERS)}")
    words.add_argument("--peer-python", default=sys.executable, help="interpreter that has the peers of peers.txt")
    words.add_argument("--robots", type=listed, default=["panda", "g1"], help=", ".join(robots.NAMES))
    words.add_argument("--method", default="auto", help="jdyn's method of forward dynamics, such as ABA")
    words.add_argument("--executor", choices=get_args(Executor), help="take ABA, and let this run its recursions")
    words.add_argument("--g1", help="the G1's URDF; that of frax's wheel if left out")
    words.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    words.add_argument("--core", type=int, help="processor to pin to; the last one if left out")
    words.add_argument("--quantities", type=listed, default=list(cases.QUANTITIES), help=",".join(cases.QUANTITIES))
    words.add_argument("--batches", type=numbers, default=[1, 256, 1024, 8192])
    words.add_argument("--lanes", type=int, default=4096, help="lanes of the sweep, on a processor")
    words.add_argument("--dtypes", type=listed, default=["float64", "float32"])
    words.add_argument("--repeats", type=int, default=7)
    words.add_argument("--seconds", type=float, default=300.0, help="limit to load a library, and for each case")
    words.add_argument("--json", type=pathlib.Path, help="file for all results")
    chosen = words.parse_args()
    chosen.peers = {"all": list(PEERS), "none": []}.get(chosen.peers, listed(chosen.peers))
    for name, known in (("peers", PEERS), ("quantities", cases.QUANTITIES), ("dtypes", tuple(cases.TOLERANCES))):
        if unknown := [x for x in getattr(chosen, name) if x not in known]:
            words.error(f"--{name}: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    if min(chosen.batches, default=0) < 1 or chosen.lanes < 1 or chosen.repeats < 1:
        words.error("--batches, --lanes and --repeats: expected whole numbers from 1")
    if chosen.executor and chosen.method not in ("auto", "ABA"):
        words.error(f"--executor: it times ABA, not {chosen.method}; leave out --method")
    return chosen


def require_gpu():
    # In a process of its own: this one must leave the card's memory to those that are measured.
    seen = subprocess.run(
        [sys.executable, "-c", "import jax; jax.devices('cuda')"],
        env={**os.environ, "JAX_PLATFORMS": "cuda"},
        capture_output=True,
        text=True,
    )
    if seen.returncode:
        sys.exit("--device gpu: JAX finds no CUDA device here; it takes one, and jax[cuda12] or jax[cuda13] installed")


class Bench:
    """All that is run with one set of options."""

    def __init__(self, chosen, folder: pathlib.Path):
        self.chosen, self.folder = chosen, folder
        self.core = None
        if chosen.device == "cpu" and hasattr(os, "sched_getaffinity"):
            self.core = max(os.sched_getaffinity(0)) if chosen.core is None else chosen.core
        self.cases = cases.of(chosen.quantities, chosen.batches, chosen.lanes, chosen.device)

    def job(self, library: str, dtype: str, robot: robots.Robot | None, held: object = "") -> processes.Job:
        return processes.Job(
            library=library,
            method=self.chosen.method,
            executor=self.chosen.executor,
            python=self.chosen.peer_python if library in APART else sys.executable,
            device=self.chosen.device,
            core=self.core,
            dtype=dtype,
            urdf=str(robot.urdf) if robot else "",
            floating=bool(robot and robot.floating),
            states=str(held),
            repeats=self.chosen.repeats,
            seconds=self.chosen.seconds,
        )

    def peaks(self, dtype: str) -> dict | None:
        ((_, found),) = processes.run(self.job("peaks", dtype, None), [cases.Case("peaks", 1)], self.folder)
        if "error" in found:
            print(f"peaks in {dtype}: {found['error']}")
            return None
        product, copy = found["flops_per_s"] / 1e9, found["bytes_per_s"] / 1e9
        print(f"peaks in {dtype}: {product:.4g} Gflop/s in a matrix product, {copy:.4g} GB/s in a copy")
        return found

    def robot(self, name: str, peaks: dict) -> list[dict]:
        try:
            robot = robots.make(name, self.folder, g1=self.chosen.g1, peer_python=self.chosen.peer_python)
        except (robots.RobotError, OSError, ValueError) as error:
            print(f"\n{name}: not measured: {error}")
            return [{"robot": name, "error": str(error)}]
        self.given = states.make(robot, max(max(case.batch for case in self.cases), states.LEAST))
        held = self.folder / f"{name}.npz"
        states.save(robot, self.given, held)
        rows, exact = [], {}
        for dtype, library in self.runs():
            out = self.folder / f"{name}-{library}-{dtype}"
            out.mkdir()
            print(f"{robot}: {library} in {dtype}", file=sys.stderr, flush=True)
            for case, found in processes.run(self.job(library, dtype, robot, held), self.cases, out):
                own = {"robot": name, "joints": len(robot.joints), "floating": robot.floating, "library": library}
                own |= {"dtype": dtype, "quantity": case.quantity, "batch": case.batch}
                own |= {"device": self.chosen.device, "repeats": self.chosen.repeats}
                rows.append(own | found)
                if "error" not in found:
                    rows[-1]["relative_error"] = self.error(robot, library, case, out, exact)
        self.show(robot, rows, peaks)
        return rows

    def runs(self):
        """Pinocchio in float64 is the first, wherever it is asked for."""
        libraries = [name for name in PEERS if name in self.chosen.peers]
        libraries.insert(len([x for x in libraries if x in table.COMPILED]), "jdyn")
        dtypes = sorted(self.chosen.dtypes, reverse=True)
        first = [("float64", "pinocchio")] if "pinocchio" in libraries else []
        rest = [x for x in itertools.product(dtypes, libraries) if x not in first]
        return first + rest

    def error(self, robot, library, case, out, exact):
        """Against Pinocchio's result for the same quantity, which it leaves in `exact` when it is its turn."""
        native = np.load(out / f"{case.quantity}-{case.batch}.npy")
        base = states.BASES[_BASE_OF[library]] if robot.floating else None
        found = states.from_peer(base, case.quantity, native, self.given)
        if found is None:
            return None
        if library == "pinocchio":
            exact.setdefault(case.quantity, found)
            return 0.0
        if case.quantity not in exact:
            return None
        count = min(len(found), len(exact[case.quantity]))
        return states.error(found[:count], exact[case.quantity][:count])

    def show(self, robot, rows, peaks):
        for (_, dtype, quantity, batch), group in table.cases_of(rows).items():
            print(f"\n{robot}, {quantity}, batch {batch}, {dtype}")
            print(table.HEADER)
            own = next((time for row in group if row["library"] == "jdyn" and (time := table.seconds(row))), None)
            for row in group:
                print(table.line(row, own, peaks.get(dtype)))


_BASE_OF = {
    "jdyn": "angular first",
    "pinocchio": "body xyzw",
    "mujoco": "world",
    "frax": "world",
    "mjx": "world",
    "brax": "world",
    "mujoco_warp": "world",
    "jaxsim": "body",
    "adam": "body",
}


def machine() -> dict[str, str | int | None]:
    model = platform.processor()
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "system": platform.platform(),
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def main():
    chosen = options()
    if chosen.device == "gpu":
        require_gpu()
    # What is known so far can be read while the rest runs.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    # What is measured runs elsewhere; this process makes states and compares.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    about = {
        "date": date,
        "machine": machine(),
        "device": chosen.device,
        "peers": chosen.peers,
        "method": chosen.method,
        "executor": chosen.executor,
    }
    print(f"{date}, {about['machine']['processor']}, {about['machine']['system']}, {chosen.device}")
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(chosen, pathlib.Path(name))
        print("one core, processor seconds" if bench.core is not None else "wall seconds")
        peaks = {dtype: found for dtype in chosen.dtypes if (found := bench.peaks(dtype))}
        rows = []
        for robot in chosen.robots:
            rows += bench.robot(robot, peaks)
            if chosen.json:
                # After every robot: a long run that is cut short leaves what it has.
                chosen.json.write_text(json.dumps(about | {"peaks": peaks, "rows": rows}, indent=1) + "\n")
    measured = [row for row in rows if "library" in row]
    print("\nHow many times faster jdyn is", *table.summary(measured), sep="\n")
    for library in dict.fromkeys(row["library"] for row in measured):
        found = [row["versions"] for row in measured if row["library"] == library and "versions" in row]
        # A method may be another for each robot.
        each = [f"{key} {' or '.join(dict.fromkeys(x[key] for x in found))}" for key in (found[0] if found else ())]
        print(f"{library}: {', '.join(each) or 'did not run'}")


if __name__ == "__main__":
    main()
