"""All that is to be measured on a GPU, in parts of less than nine minutes: `python -m benchmarks.gpu RESULTS`.

The most important parts come first. RESULTS/results.json keeps every part as it ends, RESULTS/table.md shows them, and
the same command given again goes on with those that are left. A part that fails or runs out of time is kept with the
end of what it printed; `--again` tries it once more. See the README of this folder.
"""

import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from benchmarks import table

ROOT = pathlib.Path(__file__).parents[1]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROBOTS = ("panda", "g1", "talos", "chain32")
EXECUTORS = ("auto", "lanes", "levels")
PEERS = ("frax", "mjx", "brax", "jaxsim", "mujoco_warp")
LIMIT = 530.0
# Of what a part printed, as many characters are kept.
KEPT = 20_000


@dataclasses.dataclass(frozen=True)
class Part:
    """One command. `{json}` among its words is the file that it writes its results to, if any."""

    name: str
    words: tuple[str, ...]

    def command(self, report: pathlib.Path) -> list[str]:
        return [sys.executable, *(word.format(json=report) for word in self.words)]


def parts(chosen) -> list[Part]:
    """In order of importance: float32 and the Panda first, and what others are compared by before the rest."""
    smallest = chosen.tried
    sizes = (4,) if smallest else SIZES
    robots = ("double_pendulum",) if smallest else ROBOTS
    found = [Part("main job", _main_job("float32", smallest))]
    found += [_compared("float32", robot, "forward dynamics", sizes, chosen) for robot in robots]
    found += [_alone("float32", robots[0], "forward dynamics", sizes, executor, chosen) for executor in EXECUTORS]
    found += _tests(smallest)
    quantities = ("derivatives", "rollout", "rollout gradient", "sweep")
    found += [_compared("float32", robots[0], quantity, sizes, chosen) for quantity in quantities]
    found.append(Part("long chains", _long_chains("float32", smallest)))
    found.append(Part("contact", _contact(smallest)))
    found += [
        _alone("float32", robot, "forward dynamics", sizes, executor, chosen)
        for robot in robots[1:]
        for executor in EXECUTORS
    ]
    found += [_compared("float32", robot, quantity, sizes, chosen) for robot in robots[1:] for quantity in quantities]
    found.append(Part("main job, float64", _main_job("float64", smallest)))
    found += [
        _compared("float64", robot, quantity, sizes, chosen)
        for robot in robots
        for quantity in ("forward dynamics", *quantities)
    ]
    found += [
        _alone("float64", robot, "forward dynamics", sizes, executor, chosen)
        for robot in robots
        for executor in EXECUTORS
    ]
    found.append(Part("long chains, float64", _long_chains("float64", smallest)))
    return found


def _main_job(dtype, smallest):
    sizes = ("--lanes", "16", "--gradients", "4", "--seconds", "0.1") if smallest else ()
    return ("-m", "benchmarks.main_job", "--dtype", dtype, "--json", "{json}", *sizes)


def _contact(smallest):
    sizes = ("--scenes", "quadruped", "--lanes", "4", "--programs", "jdyn steps", "--rounds", "1") if smallest else ()
    return ("-m", "benchmarks.contact_lanes", *sizes)


def _long_chains(dtype, smallest):
    links, batches = ("8", "2") if smallest else ("1024,4096", "1,4,16,64")
    words = ("--methods", "ABA,ParallelABA", "--sizes", links, "--batches", batches, "--dtype", dtype)
    return ("-m", "benchmarks.method_costs", *words, "--json", "{json}")


def _alone(dtype, robot, quantity, sizes, executor, chosen):
    return _bench(f"{quantity}, {robot}, {dtype}, {executor}", dtype, robot, quantity, sizes, chosen, executor=executor)


def _compared(dtype, robot, quantity, sizes, chosen):
    peers = "none" if chosen.tried else ",".join(("pinocchio", *PEERS))
    return _bench(f"{quantity}, {robot}, {dtype}, beside peers", dtype, robot, quantity, sizes, chosen, peers=peers)


def _bench(name, dtype, robot, quantity, sizes, chosen, *, peers="none", executor=None):
    device = ["cpu", "--lanes", str(sizes[0]), "--repeats", "1"] if chosen.tried else ["gpu"]
    words = ["-m", "benchmarks", "--device", *device, "--robots", robot, "--dtypes", dtype, "--quantities", quantity]
    words += ["--batches", ",".join(map(str, sizes)), "--peers", peers, "--seconds", "90", "--json", "{json}"]
    words += ["--executor", executor] if executor else []
    words += ["--peer-python", chosen.peer_python]
    words += ["--g1", chosen.g1] if chosen.g1 else []
    return Part(name, tuple(words))


def _tests(smallest):
    """The default tests: those of dynamics and simulation file by file, which take longest, and the rest by folder."""
    tests = ROOT / "tests"
    if smallest:
        chunks = [tests / "spatial"]
    else:
        by_file = [x for folder in ("dynamics", "simulation") for x in sorted((tests / folder).glob("test_*.py"))]
        folders = [x for x in sorted(tests.iterdir()) if x.is_dir() and list(x.glob("test_*.py"))]
        chunks = by_file + [x for x in folders if x.name not in ("dynamics", "simulation")] + [tests / "test_cuda.py"]
    names = [str(x.relative_to(ROOT)) for x in chunks]
    return [Part(f"tests, {name}", ("-m", "pytest", "-q", "-n", "8", "--maxfail=100", name)) for name in names]


def run(part: Part, chosen) -> dict:
    """What a part printed and wrote."""
    with tempfile.TemporaryDirectory() as folder:
        report, printed = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "printed")
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if chosen.tried:
            environment["JAX_PLATFORMS"] = "cpu"
        began, code = time.perf_counter(), None
        with printed.open("w") as file:
            process = subprocess.Popen(
                part.command(report),
                cwd=ROOT,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=chosen.limit)
            except subprocess.TimeoutExpired:
                # The processes that it started hold the card, too.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        found = {"seconds": time.perf_counter() - began, "code": code, "printed": printed.read_text()[-KEPT:]}
        if report.exists():
            found["report"] = json.loads(report.read_text())
        return found


def card() -> str:
    """The card and its driver, as its maker's command names them."""
    try:
        words = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no NVIDIA card"


class Results:
    """The folder's two files. Each is replaced whole, so that an end at any moment leaves one that can be read."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.json"
        self.parts: dict[str, dict] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self, name: str, found: dict):
        self.parts[name] = found
        self._replace(self.path, json.dumps(self.parts, indent=1))
        self._replace(self.folder / "table.md", as_table(self.parts))

    def _replace(self, path, text):
        new = path.with_name(f"{path.name}.new")
        new.write_text(text + "\n")
        new.replace(path)


def as_table(found: dict[str, dict]) -> str:
    """A line a part; below, the times of all that were compared, and what the other parts printed last."""
    lines = ["| part | how it ended | s | card |", "|---|---|---:|---|"]
    lines += [
        f"| {name} | {how_it_ended(part)} | {part['seconds']:.0f} | {part['card']} |" for name, part in found.items()
    ]
    rows = [row for part in found.values() for row in part.get("report", {}).get("rows", ()) if "library" in row]
    lines += ["", "```", f"{'robot':16} {'dtype':8} {'quantity':17} {'batch':>8}  {table.HEADER}"]
    for (robot, dtype, quantity, batch), group in table.cases_of(rows).items():
        own = min((x for row in group if row["library"] == "jdyn" and (x := table.seconds(row))), default=None)
        for row in group:
            name = f"{robot:16} {dtype:8} {quantity:17} {batch:8}  {table.line(row, own, row.get('peaks'))}"
            lines.append(f"{name} {row['executor'] or ''}".rstrip())
    lines.append("```")
    for name, part in found.items():
        if "rows" not in part.get("report", {}):
            last = part["printed"].strip().splitlines()[-25:]
            lines += ["", f"**{name}**", "", "```", *last, "```"]
    return "\n".join(lines)


def how_it_ended(part: dict) -> str:
    if part["code"] is None:
        return "out of time"
    return "done" if part["code"] == 0 else f"failed with {part['code']}"


def options():
    words = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    words.add_argument("results", type=pathlib.Path, help="folder of the results, which a later run goes on with")
    words.add_argument("--minutes", type=float, default=float("inf"), help="begin no part after as many")
    words.add_argument("--limit", type=float, default=LIMIT, help="seconds a part may take")
    words.add_argument("--only", default="*", help="pattern of the names of parts, such as 'tests*'")
    words.add_argument("--again", action="store_true", help="those that failed or ran out of time, too")
    words.add_argument("--list", action="store_true", help="name the parts that are left, and run none")
    words.add_argument("--peer-python", default=sys.executable, help="interpreter that has the peers of gpu.txt")
    words.add_argument("--g1", help="the G1's URDF; that of frax's wheel if left out")
    words.add_argument("--try", dest="tried", action="store_true", help="try it on the processor, as small as can be")
    return words.parse_args()


def main():
    chosen = options()
    results, began, name_of_card = Results(chosen.results), time.perf_counter(), card()
    done = [name for name, part in results.parts.items() if part["code"] == 0 or not chosen.again]
    left = [x for x in parts(chosen) if x.name not in done and fnmatch.fnmatch(x.name, chosen.only)]
    if chosen.list:
        print(*(part.name for part in left), sep="\n")
        return
    for number, part in enumerate(left):
        if time.perf_counter() - began > 60 * chosen.minutes:
            print(f"{len(left) - number} parts are left; the same command goes on")
            return
        print(f"{part.name} ...", end=" ", flush=True)
        found = run(part, chosen) | {"card": name_of_card, "tried": chosen.tried}
        report = found.get("report", {})
        for row in report.get("rows", ()):
            row |= {"executor": report["executor"], "peaks": report["peaks"].get(row.get("dtype"))}
        results.keep(part.name, found)
        print(f"{how_it_ended(found)}, {found['seconds']:.0f} s", flush=True)
    print(f"all parts have been run: {chosen.results / 'table.md'}")


if __name__ == "__main__":
    main()
