"""The process of one library: `python -m benchmarks.child TASK`.

TASK is a JSON file; see `processes.py`, which writes it. Each case becomes one line of JSON on standard output, in the
order of the task; the first line says that the library is loaded.
"""

import functools
import json
import os
import pathlib
import sys
import traceback


def main(path: str):
    task = json.loads(pathlib.Path(path).read_text())
    if task["core"] is not None:
        # Before anything counts the processors.
        os.sched_setaffinity(0, {task["core"]})
    # What libraries print is not ours.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**line):
        print(json.dumps(line), file=lines)

    try:
        run, versions = loaded(task)
    except Exception as error:
        traceback.print_exc()
        return say(error=in_one_line(error))
    say(versions=versions)
    for case in task["cases"]:
        try:
            say(**run(case))
        except Exception as error:
            traceback.print_exc()
            say(error=in_one_line(error))


def in_one_line(error):
    from benchmarks.cases import Unavailable

    text = " ".join(str(error).split())
    return (text if isinstance(error, Unavailable) else f"{type(error).__name__}: {text}")[:300]


def loaded(task):
    """What runs a case, given as its dictionary, and the versions of what it runs on."""
    import numpy as np

    from benchmarks.cases import Case

    library, dtype = task["library"], np.dtype(task["dtype"])
    if library == "peaks":
        from benchmarks import work

        sizes = (8192, 2**28) if task["device"] == "gpu" else (1024, 2**24)
        return lambda case: work.peaks(dtype, *sizes), versions("jax", "jaxlib")
    given = dict(np.load(task["states"]))
    rest = (dtype, task["repeats"], task["budget"])

    def saved(case, times, found):
        np.save(pathlib.Path(task["out"], f"{case.quantity}-{case.batch}.npy"), found)
        return times

    if library in ("pinocchio", "mujoco", "mujoco_warp"):
        from benchmarks import compiled_peers, warp_peer

        run = {**compiled_peers.LIBRARIES, "mujoco_warp": warp_peer.run}[library]
        run_of = {"pinocchio": "pin", "mujoco": "mujoco", "mujoco_warp": "mujoco-warp"}[library]
        __import__(library)
        place = (task["urdf"], task["floating"])
        return lambda case: saved(Case(**case), *run(*place, Case(**case), given, *rest)), versions(run_of)
    from benchmarks import jax_programs

    if library == "jdyn":
        import jdyn
        from benchmarks import own

        make = functools.partial(own.functions, method=task["method"], executor=task["executor"])
    else:
        from benchmarks.jax_peers import LIBRARIES

        make = LIBRARIES[library]
    functions = make(task["urdf"], task["floating"], dtype)
    names = {"jdyn": "jdyn", "mjx": "mujoco-mjx", "adam": "adam-robotics"}
    found = versions(names.get(library, library), "jax", "jaxlib", "diffrax")
    if library == "jdyn":
        # It may run from its folder, without being installed.
        found |= {"jdyn": jdyn.__version__, "method": functions.method}
    return lambda case: saved(Case(**case), *jax_programs.run(functions, Case(**case), given, *rest)), found


def versions(*names):
    import importlib.metadata

    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    main(sys.argv[1])
