"""Comparison of all of jdyn's functions with another program, on a user's own robot."""

import dataclasses
import importlib
import os
import pathlib
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.interop.mujoco_values import MujocoValues
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import DERIVATIVES, FUNCTIONS, PER_BODY, derivatives, random_states, values
from jdyn.io import mjcf_source, save_urdf, xml
from jdyn.io.mjcf import compile_document
from jdyn.model import Model, ModelWarning
from jdyn.robots.load import ROBOTS, load

TOLERANCE = 1e-10
# Pinocchio's derivatives accumulate many rounding errors themselves.
DERIVATIVE_TOLERANCE = 1e-8


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Comparison of one function with the peer's.

    Attributes:
        function: Name of the function.
        error: Largest absolute error divided by the peer's largest value; `None` if the peer has no counterpart.
        tolerance: The largest error that counts as agreement.
    """

    function: str
    error: float | None
    tolerance: float

    @property
    def passed(self) -> bool:
        return self.error is None or self.error <= self.tolerance


@dataclasses.dataclass(frozen=True)
class Verification:
    """Agreement of a robot's functions with a peer's; prints as a table.

    Attributes:
        robot: Name of the robot.
        peer: The other program and its version.
        samples: Number of random states.
        comparisons: One per function.
    """

    robot: str
    peer: str
    samples: int
    comparisons: tuple[Comparison, ...]

    @property
    def passed(self) -> bool:
        """Tell whether all compared functions agree."""
        return all(comparison.passed for comparison in self.comparisons)

    @property
    def errors(self) -> dict[str, float]:
        """Relative errors of the compared functions, by name."""
        return {x.function: x.error for x in self.comparisons if x.error is not None}

    def __repr__(self) -> str:
        width = max(len(x.function) for x in self.comparisons)
        lines = [
            f"{self.robot} against {self.peer}: {self.samples} random states, float64",
            f"{'function':{width}}  relative error  tolerance",
        ]
        for x in self.comparisons:
            if x.error is None:
                lines.append(f"{x.function:{width}}  {'-':>14}  {'-':>9}  not compared")
            else:
                verdict = "ok" if x.passed else "DIFFERS"
                lines.append(f"{x.function:{width}}  {x.error:14.1e}  {x.tolerance:9.0e}  {verdict}")
        return "\n".join(lines)


def verify(
    source: str | os.PathLike | Model,
    against: Literal["pinocchio", "mujoco"] = "pinocchio",
    *,
    samples: int = 8,
    seed: int = 0,
    floating_base: bool | None = None,
    package_dirs: Sequence[str | os.PathLike] = (),
) -> Verification:
    """Compare every function with Pinocchio or MuJoCo, on random states of any robot.

    The answer prints as a table: `print(jdyn.verify("my_robot.urdf"))`.

    Both programs read the same description, each with its own reader, and the peer's results are converted to jdyn's
    conventions. Everything runs in float64. The comparison leaves out what the peer cannot do:

    - Pinocchio has no joint damping, friction and springs, so these are switched off in jdyn.
    - In MuJoCo, friction is a constraint; it is switched off in both programs, as are MuJoCo's contacts, limits,
      actuators and fluid. MuJoCo still simulates other features that `jdyn.load` warns it ignores: expect differences.

    >>> found = jdyn.verify("double_pendulum", against="pinocchio", samples=2)
    >>> found.passed
    True

    Args:
        source: As for `jdyn.load`, or a model; the peer gets bundled robots, models and SDF files as URDF text.
        against: The peer to compare with.
        samples: Number of random states.
        seed: Equal seeds give equal states.
        floating_base: As for `jdyn.load`.
        package_dirs: As for `jdyn.load`.

    Returns:
        Errors by function; `passed` says whether all agree.

    Raises:
        ImportError: if the peer is not installed.
        ValueError: if the peer cannot read the description, the two programs find different robots in it, or nothing
            of it moves.
    """
    if against not in _PEERS:
        raise ValueError(f"against: expected {' or '.join(map(repr, _PEERS))}, got {against!r}")
    if samples < 1:
        raise ValueError(f"samples: expected at least 1, got {samples}")
    name, package, reference_of = _PEERS[against]
    peer = _imported(against, name, package)
    with jax.enable_x64(True):
        model, description = _described(source, floating_base, package_dirs)
        if not model.nb:
            raise ValueError(f"nothing of {model.name!r} moves: it has no functions to compare with {name}'s")
        try:
            reference = reference_of(peer, model, description)
        except ValueError as error:
            raise ValueError(f"cannot compare {model.name!r} with {name}: {error}") from error
        return compare(reference, f"{name} {peer.__version__}", samples=samples, seed=seed)


def compare(reference: PinocchioValues | MujocoValues, peer: str, *, samples: int = 8, seed: int = 0) -> Verification:
    """Compare `reference.model` with a peer's results, in the precision of the model.

    Args:
        reference: The peer's results in jdyn's conventions.
        peer: Name of the peer.
        samples: Number of random states.
        seed: Equal seeds give equal states.
    """
    model, bodies = reference.model, np.flatnonzero(reference.bodies)
    states = random_states(model, samples, seed)
    states = dataclasses.replace(states, f_ext=states.f_ext * jnp.asarray(reference.bodies, model.dtype)[None, :, None])
    ours = values(model, states)
    ours.update({key: tuple(x[:, bodies] for x in ours[key]) for key in PER_BODY})
    one_by_one = [states[i] for i in range(samples)]
    theirs = [{**reference(s), **reference.derivatives(s)} for s in one_by_one]
    if DERIVATIVES[0] in theirs[0]:
        ours.update(derivatives(model, states))
    tolerances = dict.fromkeys(FUNCTIONS, TOLERANCE) | dict.fromkeys(DERIVATIVES, DERIVATIVE_TOLERANCE)
    comparisons = [_comparison(function, ours, theirs, tolerance) for function, tolerance in tolerances.items()]
    return Verification(model.name, peer, samples, tuple(comparisons))


def _comparison(function, ours, theirs, tolerance):
    if any(function not in at_state for at_state in theirs):
        return Comparison(function, None, tolerance)
    parts = [np.stack(part) for part in zip(*(at_state[function] for at_state in theirs), strict=True)]
    error = max(_relative_error(np.asarray(x), y) for x, y in zip(ours[function], parts, strict=True))
    return Comparison(function, error, tolerance)


def _relative_error(x: np.ndarray, reference: np.ndarray) -> float:
    """Error relative to the largest value of all states, so that values near zero do not count; absolute if it is 0."""
    if x.shape != reference.shape or not (np.all(np.isfinite(x)) and np.all(np.isfinite(reference))):
        return np.inf
    scale = np.max(np.abs(reference), initial=0.0)
    return float(np.max(np.abs(x - reference), initial=0.0) / (scale or 1.0))


def _imported(module: str, name: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(f"{name} is not installed: pip install {package}") from None


# The description that both programs read.


@dataclasses.dataclass(frozen=True)
class _Urdf:
    """URDF text without shapes.

    Attributes:
        text: The text.
        complete: Whether it describes the whole robot; URDF cannot represent a model's gravity and rotor inertias.
    """

    text: str
    complete: bool


def _described(source, floating_base, package_dirs) -> tuple[Model, _Urdf | mjcf_source.Document]:
    """A robot, and its description for the peer."""
    if isinstance(source, Model):
        model = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), source)
        return model, _Urdf(_as_urdf(model), complete=False)
    model = load(source, floating_base=floating_base, package_dirs=package_dirs, dtype=float)
    if isinstance(source, str) and source in ROBOTS:
        return model, _Urdf(_as_urdf(model), complete=False)
    text, label, _ = xml.read(source, "URDF, SDF or MuJoCo")
    root = xml.parse(text, label)
    if root.tag == "mujoco":
        return model, mjcf_source.read(source, package_dirs)
    if root.tag == "sdf":
        return model, _Urdf(_as_urdf(model), complete=False)
    named = {joint.attributes.get("name") for joint in root.all("joint")}
    added = [name for name in model.joint_names if name not in named]
    return model, _Urdf(_without_shapes(root, *added), complete=True)


def _without_shapes(robot: xml.Element, base: str | None = None) -> str:
    """URDF text without shapes, whose files a peer might open; `base` names a free joint to add at the root."""
    copy = ET.Element("robot", name=robot.attributes.get("name", ""))
    copy.extend(_element(child) for child in robot.children if child.tag in ("link", "joint"))
    if base is not None:
        _free_root(copy, base)
    return ET.tostring(copy, encoding="unicode")


def _free_root(robot: ET.Element, base: str):
    (root,) = {link.get("name") for link in robot.iter("link") if link.get("name")} - {
        child.get("link") for child in robot.iter("child")
    }
    if root == "world":
        (joint,) = (joint for joint in robot.iter("joint") if joint.find("parent[@link='world']") is not None)
        joint.attrib.update(name=base, type="floating")
        return
    robot.append(ET.Element("link", name="world"))
    joint = ET.SubElement(robot, "joint", name=base, type="floating")
    ET.SubElement(joint, "parent", link="world")
    ET.SubElement(joint, "child", link=str(root))


def _element(element: xml.Element) -> ET.Element:
    copy = ET.Element(element.tag, element.attributes)
    copy.extend(_element(child) for child in element.children if child.tag not in ("visual", "collision"))
    return copy


def _as_urdf(model: Model) -> str:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Whatever URDF cannot represent is passed to the peer in another way, or has no counterpart there.
        warnings.simplefilter("ignore", ModelWarning)
        path = pathlib.Path(folder) / "robot.urdf"
        save_urdf(model, path)
        return _without_shapes(xml.parse(path.read_text(encoding="utf-8"), str(path)))


def _by_pinocchio(pinocchio: Any, model: Model, description: _Urdf | mjcf_source.Document) -> PinocchioValues:
    if not isinstance(description, _Urdf):
        raise ValueError("this comparison needs URDF; for a MuJoCo file use against='mujoco'")
    pin_model = pinocchio.buildModelFromXML(description.text)
    reference = PinocchioValues(pinocchio, model, pin_model)
    if not description.complete:
        pin_model.gravity.linear = np.asarray(model.gravity, float)
        pin_model.armature = reference.map.per_velocity(model.armature)
    return reference


def _by_mujoco(mujoco: Any, model: Model, description: _Urdf | mjcf_source.Document) -> MujocoValues:
    if not isinstance(description, _Urdf):
        return MujocoValues(mujoco, model, compile_document(mujoco, description)[0])
    mj_model = mujoco.MjModel.from_xml_string(description.text)
    reference = MujocoValues(mujoco, model, mj_model)
    if not description.complete:
        mj_model.opt.gravity[:] = np.asarray(model.gravity, float)
        mj_model.dof_armature[:] = reference.map.per_velocity(model.armature)
    return reference


_PEERS = {"pinocchio": ("Pinocchio", "pin", _by_pinocchio), "mujoco": ("MuJoCo", "mujoco", _by_mujoco)}
