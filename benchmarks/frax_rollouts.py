"""Scenes in the hands of diffrax around frax, in a process of its own, since it may want another JAX."""

import json
import pathlib
import subprocess
import tempfile

import numpy as np

import jdyn
from benchmarks import processes, robots, states
from benchmarks.rollouts import Unavailable
from benchmarks.scenes import Scene

FRAX = {"frax Tsit5": "Tsit5", "frax Dopri8": "Dopri8"}
PACKAGES = ("frax", "diffrax", "jax")
# Written into its functions [m/s²].
GRAVITY = (0.0, 0.0, -9.81)


class Frax:
    """A scene's lanes in a process of `python`, which has frax and diffrax.

    Joint forces, those of the controller included, are written by hand around frax' forward dynamics, see
    `frax_peer.py`. The first step of every lane is `first_step` [s].

    Raises:
        Unavailable: if frax cannot be had, or cannot move the scene.
    """

    def __init__(self, scene: Scene, python: str, first_step: float):
        if not np.array_equal(np.asarray(scene.model.gravity), GRAVITY):
            raise Unavailable(f"gravity is fixed at {-GRAVITY[2]} m/s² in frax")
        self.scene = scene
        self.convention = states.BASES["world"] if scene.floating else None
        self._folder = tempfile.TemporaryDirectory()
        self._complaints = pathlib.Path(self._folder.name, "stderr").open("w+")
        try:
            self._process = _started(python, self._complaints)
        except OSError as error:
            self._leave()
            raise Unavailable(f"there is no interpreter {python}") from error
        try:
            self._ask(self._description() | {"first_step": first_step})
        except Unavailable:
            self.close()
            raise

    def accelerations_apart(self, q, v, a, lanes) -> float:
        """The largest relative error of frax' accelerations in states (q, v), a row each, of the lanes of these
        numbers; `a` is exact."""
        peer = self._to_peer(q, v, a)
        found = self._ask({"q": peer["q"].tolist(), "v": peer["v"].tolist(), "lanes": list(lanes)})["a"]
        return states.error(np.asarray(found), peer["a"])

    def end(self, solver: str, rtol: float, atol: float, repeats: int, seconds: float) -> dict:
        """Configurations `q` at the end, mean number of `steps`, `times` as `clock.measure` has them, and seconds of
        compiling, zero if that has been done before."""
        question = {"solver": solver, "rtol": rtol, "atol": atol, "repeats": repeats, "seconds": seconds}
        found = self._ask(question)
        q = np.asarray(found["q"])
        if self.scene.floating:
            # Components of a quaternion are integrated like any others.
            q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        return found | {"q": q}

    def close(self):
        self._process.kill()
        self._process.communicate()
        self._leave()

    def _leave(self):
        self._complaints.close()
        self._folder.cleanup()

    def _to_peer(self, q, v, a):
        return states.to_peer(self.convention, {"q": q, "v": v, "a": a, "tau": np.zeros_like(v)})

    def _description(self) -> dict:
        scene, model = self.scene, self.scene.model
        urdf = pathlib.Path(self._folder.name, "robot.urdf")
        robots.write_plain(model, urdf)
        start = self._to_peer(scene.q0, scene.v0, np.zeros_like(scene.v0))
        joints = zip(model.joint_names, model.topology.kinds, strict=True)
        properties = ("damping", "friction", "friction_speed", "armature")
        return {
            "urdf": str(urdf),
            "floating": scene.floating,
            "joints": [name for name, kind in joints if kind is not jdyn.Free],
            "q0": start["q"].tolist(),
            "v0": start["v"].tolist(),
            "t1": scene.t1,
            "payload": None if scene.payload is None else scene.payload.tolist(),
            "drive": scene.drive and _drive(scene.drive),
            **{name: np.asarray(getattr(model, name)).tolist() for name in properties},
        }

    def _ask(self, question: dict) -> dict:
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._complaints.seek(0)
        last = (self._complaints.read().strip().splitlines() or [""])[-1]
        return f"its process ended with code {code}. {last}"[:300]


def versions(python: str) -> dict[str, str]:
    """Of what the interpreter has; none if there is no such interpreter."""
    say = f"import json; from benchmarks import child; print(json.dumps(child.versions{PACKAGES}))"
    try:
        done = subprocess.run([python, "-E", "-c", say], cwd=processes.ROOT, capture_output=True, text=True)
    except OSError:
        return {}
    return json.loads(done.stdout) if done.returncode == 0 else {}


def _drive(drive) -> dict:
    return {
        "target": drive.target.tolist(),
        "kp": drive.kp.tolist(),
        "kd": drive.kd.tolist(),
        "compensated": drive.compensated,
    }


def _started(python, complaints):
    own = {"JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        # -E: PYTHONPATH belongs to this interpreter, not to another one.
        [python, "-E", "-m", "benchmarks.frax_peer"],
        cwd=processes.ROOT,
        env={**processes.inherited(), **own, **dict.fromkeys(processes.ONE_THREAD, "1")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
    )
