"""Starts a library's process, reads its lines, and ends it when it takes too long."""

import dataclasses
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

from benchmarks.cases import Case
from jdyn.execution.xla_flags import NAME, OURS

ROOT = pathlib.Path(__file__).parents[1]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclasses.dataclass(frozen=True)
class Job:
    """One library, one robot, one type of numbers.

    Attributes:
        method: Name of jdyn's method of forward dynamics.
        executor: What runs its recursions; what it takes by itself if None.
        python: The interpreter that has the library.
        core: The processor it is pinned to; all of them, and a GPU's whole attention, if None.
        seconds: How long it may take to load, and for each case.
    """

    library: str
    method: str
    executor: str | None
    python: str
    device: str
    core: int | None
    dtype: str
    urdf: str
    floating: bool
    states: str
    repeats: int
    seconds: float


def run(job: Job, cases: list[Case], out: pathlib.Path) -> Iterator[tuple[Case, dict]]:
    """Each case and what the library's process says of it: its times, or an `error`.

    A process that dies or takes too long is an `error` of the case it was at, and of the larger batches of that
    quantity; the other cases get a process of their own.
    """
    left = list(cases)
    if shutil.which(job.python) is None:
        yield from ((case, {"error": f"there is no interpreter {job.python}"}) for case in left)
        return
    while left:
        with _Process(job, left, out) as process:
            loaded = process.line(job.seconds)
            if "error" in loaded:
                yield from ((case, loaded) for case in left)
                return
            while left:
                case = left.pop(0)
                line = process.line(job.seconds)
                yield case, line if "error" in line else line | {"versions": loaded["versions"]}
                if "ended" in line:
                    for other in [x for x in left if x.quantity == case.quantity]:
                        left.remove(other)
                        yield other, {"error": f"not tried after batch {case.batch}: {line['error']}"}
                    break


class _Process:
    def __init__(self, job: Job, cases: list[Case], out: pathlib.Path):
        self.folder = tempfile.TemporaryDirectory()
        task = dataclasses.asdict(job) | {
            "cases": [dataclasses.asdict(case) for case in cases],
            "out": str(out),
            "budget": job.seconds / 3,
        }
        path = pathlib.Path(self.folder.name, "task.json")
        path.write_text(json.dumps(task))
        self.complaints = pathlib.Path(self.folder.name, "stderr").open("w+")
        # -E: PYTHONPATH belongs to this interpreter, not to another one.
        own = [] if job.python == sys.executable else ["-E"]
        self.process = subprocess.Popen(
            [job.python, *own, "-m", "benchmarks.child", str(path)],
            cwd=ROOT,
            env=_environment(job),
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds: float) -> dict:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return {"error": f"over the limit of {seconds:.0f} s", "ended": True}
        if line is not None:
            return json.loads(line)
        code = self.process.wait()
        self.complaints.seek(0)
        last = (self.complaints.read().strip().splitlines() or [""])[-1]
        how = f"was killed by signal {-code}, as for lack of memory" if code < 0 else f"ended with code {code}"
        return {"error": f"its process {how}. {last}"[:300], "ended": True}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.complaints.close()
        self.folder.cleanup()


def _environment(job: Job) -> dict[str, str]:
    own = {
        # A cache of programs would make compile times those of reading files.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_ENABLE_X64": "1" if job.dtype == "float64" else "0",
        "JAX_PLATFORMS": "cuda" if job.device == "gpu" else "cpu",
    }
    threads = {} if job.core is None else dict.fromkeys(ONE_THREAD, "1")
    return {**inherited(), **own, **threads}


def inherited() -> dict[str, str]:
    """The environment without what `import jdyn` has added, which is jdyn's own advantage: other libraries run as their
    users run them."""
    others = [flag for flag in os.environ.get(NAME, "").split() if flag not in OURS]
    return os.environ | {NAME: " ".join(others)}
