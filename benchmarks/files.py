"""Robot files in folders of one's own: which of them jdyn reads, beside Pinocchio and MuJoCo.

`python -m benchmarks.files FOLDER ...` finds URDF and MuJoCo files by their root elements. Pinocchio is asked about
URDF files, MuJoCo about its own. Where both read a file, the joints, the mass of what moves, and mass matrix and
accelerations in a random state are compared, in float64; where nothing of a URDF file moves, of the whole of it set
free. A table says how many agree; below it is what jdyn alone refuses, and why, and what differs. Nothing is written.
Files are read in a process of their own, which may crash.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import multiprocessing
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jdyn
from jdyn.interop import MujocoMap, PinocchioMap
from jdyn.interop.mujoco_values import MujocoValues
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import State, nameless
from jdyn.terminal.tables import print_table

# Of the largest entry; for accelerations as often as the condition of the mass matrix says.
TOLERANCE = 1e-10
FORMATS = {"robot": "URDF", "mujoco": "MuJoCo"}
# What changes accelerations in MuJoCo, and is not simulated.
SMOOTH = "tendons", "gravity compensation", "nonlinear", "world axes of armature"
HEADS = (
    "folder", "format", "files", "read by both", "nothing moves", "agree", "differ as warned", "differ",
    "refused by jdyn alone", "by the other alone", "by both",
)  # fmt: skip
_ROOT = re.compile(rb"(?>\s+|\xef\xbb\xbf|<!--.*?-->|<\?.*?\?>)*+<(robot|mujoco)[\s/>]", re.DOTALL)
# A process holds the programs that it has compiled.
_FILES_OF_A_PROCESS = 50


@dataclasses.dataclass(frozen=True)
class Found:
    """One file.

    Attributes:
        ours, theirs: Why jdyn, and why the other library, refuses it; None if it does not.
        still: Whether nothing moves.
        difference: In what models differ; None if they do not.
        warned: What jdyn said about it when it read the file.
    """

    ours: str | None
    theirs: str | None
    still: bool = False
    difference: str | None = None
    warned: str | None = None

    @property
    def column(self) -> str:
        """Where the table counts it."""
        if self.ours is not None:
            return "refused by jdyn alone" if self.theirs is None else "by both"
        if self.theirs is not None:
            return "by the other alone"
        return "agree" if self.difference is None else "differ" if self.warned is None else "differ as warned"


def robot_files(folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """The robot files in a folder and below, and their root elements."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".urdf", ".xml", ".mjcf") and path.is_file():
            with path.open("rb") as file:
                start = file.read(2**16)
            if root := _ROOT.match(start):
                yield path, root[1].decode()


def compared(path: pathlib.Path, root: str, folder: pathlib.Path) -> Found:
    """What both libraries make of a file, the folder of which may hold its meshes."""
    with jax.enable_x64(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, ours = _tried(lambda: jdyn.load(path, package_dirs=[folder], dtype=float))
        peer, theirs = _tried(lambda: _peer(path, root))
        if model is None or peer is None:
            return Found(ours, theirs)
        still = not model.nb and not peer.nv
        if still and root == "robot":
            # What hangs on a link called `world` cannot be set free.
            free, refused = _tried(lambda: jdyn.load(path, package_dirs=[folder], dtype=float, floating_base=True))
            if refused is None:
                model, peer = free, _peer(path, root, pin.JointModelFreeFlyer())
        difference = _difference(model, peer) if model.nb or peer.nv else None
    said = " ".join(str(warning.message) for warning in caught)
    named = [line for line in said.split("  - ") if any(word in line for word in SMOOTH)]
    return Found(None, None, still, difference, " ".join(named[0].split()) if difference and named else None)


def _tried(read: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return read(), None
    # What readers raise is what is asked for.
    except Exception as error:
        return None, " ".join(f"{type(error).__name__}: {error}".split())


def _peer(path: pathlib.Path, root: str, *base):
    if root == "mujoco":
        return mujoco.MjModel.from_xml_path(str(path))
    return pin.buildModelFromUrdf(str(path), *base)


def _difference(model: jdyn.Model, peer) -> str | None:
    urdf = isinstance(peer, pin.Model)
    ours = float(jnp.sum(model.inertias.mass))
    # Mocap bodies are on no other body, and have no joints.
    moving = [] if urdf else peer.body_dofnum[peer.body_weldid] > 0
    theirs = sum(inertia.mass for inertia in peer.inertias[1:]) if urdf else float(np.sum(peer.body_mass[moving]))
    try:
        (PinocchioMap if urdf else MujocoMap)(model, peer)
        reference = PinocchioValues(pin, model, peer) if urdf else MujocoValues(mujoco, model, peer)
    except ValueError as error:
        return f"joints: {error}"
    if not np.isclose(ours, theirs, rtol=TOLERANCE):
        return f"mass of what moves: {ours:.6g} kg, {theirs:.6g} kg by the other"
    state = _state(reference.model)
    M, a = map(np.asarray, _dynamics(nameless(reference.model), state.q, state.v, state.tau))
    try:
        values = reference(state)
    except np.linalg.LinAlgError:
        return None if not np.all(np.isfinite(a)) else "accelerations: none by the other, a singular mass matrix"
    condition = np.linalg.cond(M) if np.all(np.isfinite(M)) else np.inf
    for name, x, factor in (("mass_matrix", M, 1.0), ("forward_dynamics, ABA", a, condition)):
        (y,) = values[name]
        error = np.max(np.abs(x - y)) / (np.max(np.abs(y)) or 1.0)
        if error > TOLERANCE * factor or (np.all(np.isfinite(y)) and not np.all(np.isfinite(x))):
            return f"{name}: by {error:.1e} of the largest, condition {condition:.0e}"
    return None


def _state(model: jdyn.Model) -> State:
    rng = np.random.default_rng(0)
    q = model.normalize(jnp.asarray(rng.normal(size=model.nq)))
    v, a, tau = rng.normal(size=(3, model.nv))
    return State(np.asarray(q), v, a, tau, np.zeros((model.nb, 6)))


@jax.jit
def _dynamics(model, q, v, tau):
    return jdyn.mass_matrix(model, q), jdyn.forward_dynamics(model, q, v, tau)


def all_compared(folders: list[pathlib.Path]) -> Iterator[tuple[pathlib.Path, pathlib.Path, str, Found]]:
    """Folder, path and root element of each file, and what was found."""
    tasks = [(path, root, folder) for folder in folders for path, root in robot_files(folder)]
    for (path, root, folder), found in in_processes(compared, tasks):
        yield folder, path, root, found or Found("the process crashed", "the process crashed")


def in_processes(function: Callable[..., Any], tasks: list[tuple]) -> Iterator[tuple[tuple, Any]]:
    """Arguments and result of each call, in processes that are renewed; None where one crashed."""
    done = 0
    while done < len(tasks):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for task in tasks[done : done + _FILES_OF_A_PROCESS]:
                done += 1
                try:
                    yield task, process.submit(function, *task).result()
                except BrokenProcessPool:
                    yield task, None
                    break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="also say what is refused by the other, or by both, and why")
    options = parser.parse_args()
    counts: dict[tuple[str, str], collections.Counter] = {}
    lines = []
    for folder, path, root, found in all_compared(options.folder):
        row = counts.setdefault((folder.name, FORMATS[root]), collections.Counter())
        row.update({"files": 1, found.column: 1, "nothing moves": found.still})
        row["read by both"] += found.ours is None and found.theirs is None
        if found.column != "agree" and (options.all or found.column not in ("by both", "by the other alone")):
            reasons = (found.ours, found.theirs, found.difference, found.warned)
            reason = "; ".join(reason[:300] for reason in reasons if reason)
            lines.append(f"{found.column}: {folder.name}/{path.relative_to(folder)}: {reason}")
    rows = [(*key, *(str(row[head]) for head in HEADS[2:])) for key, row in counts.items()]
    print_table(HEADS, rows)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
