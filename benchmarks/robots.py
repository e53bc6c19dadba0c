"""The robots of the comparison: each as one plain URDF file that every library reads."""

import dataclasses
import importlib.util
import pathlib
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET

import jdyn
from benchmarks import peer_models

# Where each lies in the wheel of example-robot-data, and whether its base floats.
SHARED = {
    "panda9": ("panda_description/urdf/panda.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
}
NAMES = ("panda", "panda9", "g1", "talos", "anymal", "double_pendulum", "chainN")


class RobotError(Exception):
    """A robot that cannot be had: why, in one line."""


@dataclasses.dataclass(frozen=True)
class Robot:
    """What the libraries are given.

    Attributes:
        name: As asked for.
        urdf: The plain file.
        floating: Whether its root link floats; libraries free it themselves.
        joints: Names of the moving joints of the file, parents first.
    """

    name: str
    urdf: pathlib.Path
    floating: bool
    joints: tuple[str, ...]

    @property
    def nv(self) -> int:
        return len(self.joints) + 6 * self.floating

    def model(self) -> jdyn.Model:
        return load(self.urdf, self.floating)

    def __str__(self):
        base = ", floating base" if self.floating else ""
        return f"{self.name} ({len(self.joints)} joints{base})"


def load(urdf, floating):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load(urdf, floating_base=True if floating else None)


def make(name: str, folder: pathlib.Path, *, g1: str | None = None, peer_python: str = sys.executable) -> Robot:
    """The robot `name`, written into `folder`.

    Raises:
        RobotError: if there is none of that name, or its file is not installed.
    """
    model, floating = _model(name, g1, peer_python)
    urdf = folder / f"{name}.urdf"
    write_plain(model, urdf)
    joints = tuple(str(joint.get("name")) for joint in peer_models.moving_joints(urdf))
    return Robot(name, urdf, floating, joints)


def write_plain(model: jdyn.Model, urdf: pathlib.Path):
    """A file of moving joints and their links only, without friction, and with limits that none reaches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        jdyn.save_urdf(model, urdf)
    _make_plain(urdf)


def _model(name, g1, peer_python):
    if chain := re.fullmatch(r"chain(\d+)", name):
        return jdyn.random_tree(0, int(chain[1]), kinds=(jdyn.Revolute,), reach=1), False
    if name in ("panda", "double_pendulum"):
        return jdyn.load(name), False
    if name == "g1":
        return load(_plain_source(_g1_file(g1, peer_python)), True), True
    if name not in SHARED:
        raise RobotError(f"no robot is called {name!r}; there are {', '.join(NAMES)}")
    path, floating = SHARED[name]
    file = shared_folder() / path
    if file.exists():
        return load(_plain_source(file), floating), floating
    raise RobotError("example-robot-data is not installed")


def shared_folder() -> pathlib.Path:
    """The robots of the wheel example-robot-data."""
    spec = importlib.util.find_spec("pinocchio")
    if spec is None or spec.origin is None:
        return pathlib.Path(sys.prefix, "share/example-robot-data/robots")
    return pathlib.Path(spec.origin).parents[4] / "share/example-robot-data/robots"


def _g1_file(g1, peer_python):
    if g1:
        return pathlib.Path(g1)
    find = "import importlib.util as u; print(u.find_spec('frax').submodule_search_locations[0])"
    # -E: PYTHONPATH belongs to this interpreter, not to another one.
    own = [] if peer_python == sys.executable else ["-E"]
    found = subprocess.run([peer_python, *own, "-c", find], capture_output=True, text=True)
    if found.returncode:
        raise RobotError("the G1's file ships with frax, which is not installed; --g1 takes its path")
    return pathlib.Path(found.stdout.strip(), "assets/unitree_g1/g1_29dof_rev_1_0.urdf")


def _plain_source(path):
    """A file's text without what libraries differ in: shapes, friction, mimic joints (all of which become free)."""
    robot = ET.parse(path).getroot()
    for element in [robot, *robot.iterfind("link"), *robot.iterfind("joint")]:
        for tag in ("visual", "collision", "dynamics", "mimic", "transmission", "gazebo", "material"):
            for child in element.findall(tag):
                element.remove(child)
    return ET.tostring(robot, encoding="unicode")


def _make_plain(urdf):
    tree = ET.parse(urdf)
    robot = tree.getroot()
    for joint in list(robot.iterfind("joint")):
        if joint.get("type") in peer_models.MOVING:
            if joint.get("type") == "continuous":
                joint.set("type", "revolute")
            for dynamics in joint.findall("dynamics"):
                joint.remove(dynamics)
            joint.find("limit").attrib.update(lower="-1000.0", upper="1000.0", effort="1000000.0", velocity="1000000.0")
            continue
        robot.remove(joint)
        gone = joint.find("child" if joint.get("type") == "fixed" else "parent").get("link")
        robot.remove(robot.find(f"link[@name='{gone}']"))
    ET.indent(tree)
    tree.write(urdf, encoding="utf-8", xml_declaration=True)
