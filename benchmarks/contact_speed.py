"""Error against processor time of scenes with contact, beside MuJoCo, MJX and Brax, on one core, in float64.

    python -m benchmarks.contact_speed [--scenes quadruped,gripper] [--curves jdyn,MuJoCo] [--peer-python PATH]

MJX and Brax are what --peer-python has (benchmarks/peers.txt). Models of contact differ: jdyn's surfaces are springs,
MuJoCo's are constraints with time constants of 20 ms. So each program's error is that against its own solution with
tiny steps: jdyn's against a tolerance of 1e-9, that of constant steps against a tenth of the smallest one. It is the
largest of all coordinates at the end of the first lane's motion [rad or m]. Programs take turns, so that all have the
same share of a busy machine, and the median counts.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import jax
import numpy as np

from benchmarks.contact_child import PROGRAMS
from benchmarks.contact_scenes import LANES, SCENES, ContactScene
from benchmarks.processes import ONE_THREAD, inherited

ROOT = pathlib.Path(__file__).parents[1]
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
REFERENCE_TOLERANCE, REFERENCE_SHARE = 1e-9, 0.1
# What control loops and learning take, and what jdyn is asked for beside it.
STEP, TOLERANCE = 2e-3, 1e-3
# What is simulated of all lanes [s], and what one sample of that may take for there to be more than one.
LANES_END, PATIENCE = 0.06, 30.0


class Program:
    """One program's process, and what it has said of a scene."""

    def __init__(self, name: str, scene: ContactScene, python: str, core: int):
        own = sys.executable if name.startswith(("jdyn", "MuJoCo")) else python
        # -E: PYTHONPATH belongs to this interpreter, not to another one.
        flags = [] if own == sys.executable else ["-E"]
        self.name, self.adaptive = name, name.startswith("jdyn") and not name.endswith("steps")
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), own, *flags, "-m", "benchmarks.contact_child", name],
            cwd=ROOT, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.loaded = self._say(scene.peer())
        self.compile_s = 0.0

    @property
    def settings(self) -> tuple[float, ...]:
        return TOLERANCES if self.adaptive else STEPS

    @property
    def usual(self) -> float:
        return TOLERANCE if self.adaptive else STEP

    @property
    def finest(self) -> float:
        return REFERENCE_TOLERANCE if self.adaptive else REFERENCE_SHARE * STEPS[-1]

    def reference(self, t1: float) -> np.ndarray:
        return self.ask(self.finest, t1, 1)[0]

    def ask(self, setting: float, t1: float, lanes: int) -> tuple[np.ndarray, float]:
        """Configurations at the end, and the processor's seconds."""
        found = self._say({"setting": setting, "t1": t1, "lanes": lanes})
        if "error" in found:
            raise RuntimeError(found["error"])
        self.compile_s = max(self.compile_s, found["compile_s"])
        return np.array(found["q"]), found["cpu_s"]

    def _say(self, line: dict) -> dict:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None or self.process.poll() is not None:
            return {"error": "its process has ended"}
        stdin.write(json.dumps(line) + "\n")
        stdin.flush()
        return json.loads(stdout.readline() or '{"error": "its process has ended"}')

    def close(self):
        self.process.kill()
        self.process.wait()


def _environment() -> dict[str, str]:
    own = {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return {**inherited(), **own, **dict.fromkeys(ONE_THREAD, "1")}


def loaded(names, scene: ContactScene, python: str, core: int) -> list[Program]:
    """The programs that are installed; a line about each other one."""
    programs = []
    for name in names:
        program = Program(name, scene, python, core)
        if "error" in program.loaded:
            print(f"  {name} is left out: {program.loaded['error']}")
            program.close()
        else:
            print(f"  {name}: {program.loaded['version']}")
            programs.append(program)
    return programs


def precision(programs: list[Program], scene: ContactScene, rounds: int):
    """Prints error and time of all settings; the ones of a round take turns."""
    exact = {}
    for program in list(programs):
        try:
            exact[program.name] = program.reference(scene.t1)
        except RuntimeError as error:
            print(f"  {program.name} is left out: {error}")
            programs.remove(program)
    times: dict[tuple[str, float], list[float]] = {}
    errors: dict[tuple[str, float], float] = {}
    for _ in range(rounds):
        for k in range(len(TOLERANCES)):
            for program in programs:
                key = program.name, program.settings[k]
                q, seconds = program.ask(program.settings[k], scene.t1, 1)
                times.setdefault(key, []).append(seconds / scene.t1)
                errors[key] = float(np.max(np.abs(q[0] - exact[program.name])))
    print(f"\n{'program':20} {'setting':>9} {'error':>9} {'ms a simulated s':>17}")
    for (name, setting), seconds in sorted(times.items(), key=lambda item: item[0][0]):
        print(f"{name:20} {setting:9.3g} {errors[name, setting]:9.1e} {1e3 * np.median(seconds):17.4g}")


def throughput(programs: list[Program], rounds: int):
    """Prints what all lanes take at the usual settings."""
    times: dict[str, list[float]] = {program.name: [] for program in programs}
    for _ in range(1 + rounds):
        for program in programs:
            if min(times[program.name], default=0) < PATIENCE:
                times[program.name].append(program.ask(program.usual, LANES_END, LANES)[1])
    print(f"\n{LANES} lanes: {'program':20} {'setting':>9} {'ms a lane and simulated s':>27} {'compiled in [s]':>16}")
    for program in programs:
        each = 1e3 * float(np.median(times[program.name])) / LANES / LANES_END
        print(f"            {program.name:20} {program.usual:9.3g} {each:27.4g} {program.compile_s:16.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--curves", default=",".join(PROGRAMS), help="beginnings of names, separated by commas")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has MJX and Brax")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0, help="the processor that all programs run on")
    parser.add_argument("--no-lanes", action="store_true", help=f"without {LANES} lanes")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    curves = [name for name in PROGRAMS if name.startswith(tuple(options.curves.split(",")))]
    print(f"One core, float64, {time.strftime('%Y-%m-%d')}")
    for name in options.scenes.split(","):
        scene = SCENES[name]()
        print(f"\n## {name}: {scene.about}\n")
        programs = loaded(curves, scene, options.peer_python, options.core)
        try:
            precision(programs, scene, options.rounds)
            if not options.no_lanes:
                throughput(programs, options.rounds)
        finally:
            for program in programs:
                program.close()


if __name__ == "__main__":
    main()
