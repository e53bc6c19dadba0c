"""Actuators of URDF files, and what `<ros2_control>` says of joints.

Source: hardware_interface, ros2_control and gazebo_ros2_control in the documentation of ROS 2, control.ros.org;
wiki.ros.org/ros_control for the interfaces of `<transmission>`.
"""

import collections
import dataclasses
from collections.abc import Iterator

import numpy as np

from jdyn.actuators import Actuator, Motor, PIDServo, PositionServo, VelocityServo
from jdyn.io.urdf import UNLIMITED
from jdyn.io.urdf_findings import Findings, name_of, number, texts
from jdyn.io.urdf_transmissions import Drive, read_transmission
from jdyn.io.xml import Element
from jdyn.model import Builder, Model
from jdyn.model.constraints import Gear
from jdyn.terminal.messages import short
from jdyn.transmissions import FixedTendon, GearedJoint

_MOVING = ("revolute", "continuous", "prismatic")
_OF_BLOCK = ("hardware", "joint", "transmission", "sensor", "gpio")
_OF_JOINT = ("command_interface", "state_interface", "param", "limits")
# Command interfaces of ROS 1, those of ROS 2 that are forces, and those of ROS 1 that only read.
_COMMANDS = {
    "EffortJointInterface": "effort",
    "PositionJointInterface": "position",
    "VelocityJointInterface": "velocity",
}
_EFFORTS = ("effort", "torque", "force")
_STATES = ("JointStateInterface", "ActuatorStateInterface")
# Parameters with gains, as Gazebo and MuJoCo's interface to ROS 2 read them: of a joint, or of an interface.
_PREFIXES = {"position": ("pos_", "position_"), "velocity": ("vel_", "velocity_")}
_GAINS = {"kp": ("kp", "p"), "ki": ("ki", "i"), "kd": ("kd", "d"), "limit": ("max_integral_error", "i_max")}


@dataclasses.dataclass(frozen=True)
class _Command:
    """Meaning of the commands of an actuator that moves one joint.

    Attributes:
        interface: Name of the interface; empty for forces without one.
        gains: By which positions or velocities become forces, in coordinates of the joint; None for forces.
        range: Limits of the commands, in coordinates of the joint.
    """

    interface: str = ""
    gains: dict[str, float] | None = None
    range: tuple[float, float] | None = None


class UrdfActuators:
    """Actuators that a URDF file describes, and joints that follow others by its `<ros2_control>` alone.

    An actuator is a `Motor` behind the gear of its transmission. Its command is its force; limits of effort of its
    joint, and of an interface for efforts, hold in its own units. Interfaces for positions and velocities come without
    gains in most files. Where `<ros2_control>` has some, the actuator is a servo in coordinates of its joint.

    Args:
        root: The document.
        builder: Receives problems and warnings.

    Attributes:
        constraints: Those of joints that follow others.
    """

    def __init__(self, root: Element, builder: Builder):
        self.constraints: list[Gear] = []
        self._findings = Findings(builder)
        self._joints = {joint.attributes.get("name", ""): joint for joint in root.all("joint")}
        self._controlled: dict[str, Element] = {}
        # Command interfaces by joint, with their elements in <ros2_control>. Joints without an entry name none at all.
        self._interfaces: dict[str, dict[str, Element | None]] = {}
        self._find_interfaces(root)
        self._drives = [drive for drive in self._all_drives(root) if self._is_driven(drive)]
        self._commands = [self._command(drive) for drive in self._drives]
        self._names = self._names_apart()
        self._shared = self._find_shared()
        self._findings.report()

    def actuators(self, model: Model) -> tuple[Actuator, ...]:
        """The actuators, in the order of the file.

        Args:
            model: The robot, with its limits of effort.
        """
        each = zip(self._names, self._drives, self._commands, strict=True)
        return tuple(self._actuator(model, name, drive, command) for name, drive, command in each)

    # Joints of <ros2_control>, and interfaces.

    def _find_interfaces(self, root: Element):
        for block in root.all("ros2_control"):
            self._findings.note_unknown(block, _OF_BLOCK)
            for tag in ("sensor", "gpio"):
                for each in block.all(tag):
                    self._findings.note("in <ros2_control>", f"<{tag}> {name_of(each)}")
            for joint in block.all("joint"):
                name = joint.attributes.get("name", "")
                if not name.strip():
                    self._findings.problem(joint, "has no name")
                elif name in self._controlled:
                    self._findings.note("joints that are in <ros2_control> again", repr(name))
                else:
                    self._controlled[name] = joint
                    named = joint.all("command_interface")
                    self._interfaces[name] = {each.attributes.get("name", ""): each for each in named}
        for transmission in root.all("transmission"):
            ends = transmission.all("joint")
            kinds = [text for end in (*ends, *transmission.all("actuator")) for text in texts(end, "hardwareInterface")]
            kinds = [kind.strip().rpartition("/")[2] for kind in kinds]
            commands = {_COMMANDS.get(kind, kind): None for kind in kinds if kind not in _STATES}
            for name in (end.attributes.get("name", "") for end in ends if kinds):
                if name not in self._controlled:
                    self._interfaces.setdefault(name, {}).update(commands)

    def _all_drives(self, root: Element) -> Iterator[Drive]:
        """Everything that moves joints, in the order of the file."""
        inside = [each for block in root.all("ros2_control") for each in block.all("transmission")]
        taken = {joint.attributes.get("name", "") for each in inside for joint in each.all("joint")}
        outside = {joint.attributes.get("name", "") for each in root.all("transmission") for joint in each.all("joint")}
        geared = taken | outside
        for element in root.children:
            if element.namespace != root.namespace:
                continue
            if element.tag == "transmission":
                if taken.isdisjoint(joint.attributes.get("name", "") for joint in element.all("joint")):
                    yield from read_transmission(element, self._findings, inside=False)
                else:
                    self._findings.note("transmissions of joints that have one in <ros2_control>", name_of(element))
            elif element.tag == "ros2_control":
                own = {id(joint) for joint in element.all("joint")}
                for child in element.children:
                    name = child.attributes.get("name", "")
                    if child.tag == "transmission":
                        if all(self._is_described(joint, own) for joint in child.all("joint")):
                            yield from read_transmission(child, self._findings, inside=True)
                    elif child.tag == "joint" and self._controlled.get(name) is child:
                        follows = self._follows(child, name)
                        if self._interfaces[name] and name not in geared:
                            if not follows:
                                yield Drive(name, {name: 1.0})
                            elif "mimic" not in _parameters(child):
                                self._findings.note("commands of joints that follow others", repr(name))

    def _is_described(self, joint: Element, own: set[int]) -> bool:
        """Tell whether the joint of a transmission is not described by another block than its own, by the identities of
        joints there."""
        described = self._controlled.get(joint.attributes.get("name", ""))
        return described is None or id(described) in own

    def _follows(self, element: Element, name: str) -> bool:
        """Tell whether a joint of `<ros2_control>` follows another one, and read how."""
        self._findings.note_unknown(element, _OF_JOINT)
        if any("initial_value" in _parameters(state) for state in element.all("state_interface")):
            self._findings.note("initial values of state interfaces", repr(name))
        if name not in self._joints:
            return False
        mimic, parameters = self._joints[name].first("mimic"), _parameters(element)
        flag, leader = element.attributes.get("mimic", "").lower(), parameters.get("mimic")
        if flag == "true" and mimic is None:
            self._findings.problem(element, 'has mimic="true", but the joint itself has no <mimic>')
        if flag == "false" and mimic is not None:
            self._findings.note('mimic="false" of joints that have <mimic>', repr(name))
        if leader is None:
            return mimic is not None
        ratio, offset = (
            self._findings.number(element, f"parameter {key}", parameters.get(key, default))
            for key, default in (("multiplier", "1"), ("offset", "0"))
        )
        if mimic is None:
            if leader == name or not self._can_move(leader):
                self._findings.problem(element, f"mimics {short(leader)}, which is no other joint with one coordinate")
            elif self._can_move(name):
                self.constraints.append(Gear(name, leader, (offset, ratio)))
        elif (leader, ratio, offset) != _followed(mimic):
            self._findings.note("mimic in <ros2_control> of joints that have another <mimic>", repr(name))
        return True

    def _can_move(self, name: str) -> bool:
        return name in self._joints and self._joints[name].attributes.get("type") in _MOVING

    # Actuators.

    def _is_driven(self, drive: Drive) -> bool:
        """Tell whether an actuator has commands and joints that move, and note it, if it has not."""
        for name in drive.arms:
            if not self._can_move(name):
                kind = f"on {self._joints[name].attributes.get('type')} joints" if name in self._joints else None
                self._findings.note(f"actuators {kind or 'on joints that the robot lacks'}", repr(name))
                return False
        if all(self._interfaces.get(name, {"effort": None}) == {} for name in drive.arms):
            self._findings.note("actuators without a command interface", repr(drive.name))
            return False
        return True

    def _command(self, drive: Drive) -> _Command:
        interfaces = {joint: self._interfaces.get(joint, {}) for joint in drive.arms}
        command = _Command()
        if len(interfaces) == 1:
            ((joint, named),) = interfaces.items()
            command = self._command_of(joint, named)
        as_said = command.interface or any(name in _EFFORTS for named in interfaces.values() for name in named)
        what = "beside those of actuators" if as_said else "without gains, in whose place actuators take forces"
        for joint, named in interfaces.items():
            for name in named:
                if name not in (*_EFFORTS, command.interface):
                    self._findings.note(f"command interfaces {what}", f"{name} of {joint!r}")
        return command

    def _command_of(self, joint: str, interfaces: dict[str, Element | None]) -> _Command:
        """Forces, if there is an interface for them; else what there are gains for."""
        for effort in _EFFORTS:
            if effort in interfaces:
                return _Command(effort, None, self._range(joint, interfaces[effort]))
        for kind in _PREFIXES:
            for name in (f"{kind}_pid", kind):
                element = interfaces.get(name)
                if element is not None and (gains := self._gains(joint, element, kind)) is not None:
                    return _Command(name, gains, self._range(joint, element))
        return _Command()

    def _range(self, joint: str, element: Element | None) -> tuple[float, float] | None:
        """Limits of commands of an interface."""
        if element is None or any(_is_off(each) for each in (element, self._controlled[joint])):
            return None
        given = _parameters(element)
        if "min" not in given and "max" not in given:
            return None
        lower, upper = (
            self._findings.number(element, f"parameter {key} of joint {joint!r}", given[key]) if key in given else end
            for key, end in (("min", -np.inf), ("max", np.inf))
        )
        if lower > upper:
            self._findings.problem(element, f"parameters of joint {joint!r}: min, {lower:g}, is above max, {upper:g}")
            return None
        return lower, upper

    def _gains(self, joint: str, element: Element, kind: str) -> dict[str, float] | None:
        """Gains of an interface that make a servo; None if there are none, or jdyn has no such servo."""
        of_joint, own = _parameters(self._controlled[joint]), _parameters(element)
        prefixed = {f"{prefix}{key}": key for prefix in _PREFIXES[kind] for names in _GAINS.values() for key in names}
        given = {prefixed[name]: value for name, value in of_joint.items() if name in prefixed} | own
        found = {gain: given[name] for gain, names in _GAINS.items() for name in names if name in given}
        if "kp" not in found:
            return None
        gains = dict.fromkeys(("kp", "ki", "kd"), 0.0)
        gains |= {gain: self._findings.number(element, f"{gain} of joint {joint!r}", found[gain]) for gain in found}
        if negative := [gain for gain, value in gains.items() if value < 0]:
            self._findings.problem(element, f"{negative[0]} of joint {joint!r} is negative")
            return None
        if kind == "velocity" and (gains["ki"] or gains["kd"]):
            self._findings.note("integral and derivative gains of velocities", repr(joint))
            return None
        return gains

    def _names_apart(self) -> list[str]:
        """Names of the actuators; those that several share get names of their joints, with numbers if need be."""
        count = collections.Counter(drive.name for drive in self._drives)
        taken = {name for name, times in count.items() if times == 1}
        tries: collections.Counter[str] = collections.Counter()
        names = []
        for drive in self._drives:
            name = drive.name
            if count[name] > 1:
                self._findings.note("that transmissions share actuators", repr(name))
                name = label = "+".join(drive.arms)
                while name in taken:
                    tries[label] += 1
                    name = f"{label}{tries[label]}"
                taken.add(name)
            names.append(name)
        return names

    def _find_shared(self) -> set[str]:
        """Joints whose forces are not those of one actuator alone, so that limits of them are noted and left out."""
        count = collections.Counter(joint for drive in self._drives for joint in drive.arms)
        coupled = {joint for drive in self._drives if len(drive.arms) > 1 for joint in drive.arms}
        shared = coupled | {joint for joint, times in count.items() if times > 1}
        for joint in sorted(shared):
            limit = self._joints[joint].first("limit")
            effort = None if limit is None else number(limit.attributes.get("effort", ""))
            if effort is not None and effort < UNLIMITED:
                self._findings.note("limits of effort of joints that several actuators move", repr(joint))
        return shared

    def _force_range(self, model: Model, joint: str, gear: float) -> tuple[float, float] | None:
        """Limits of an actuator's force by those of its joint."""
        topology = model.topology
        effort = float(np.asarray(model.limits.effort)[topology.v_slice(topology.joint(joint))][0])
        return None if joint in self._shared or np.isinf(effort) else (-effort / abs(gear), effort / abs(gear))

    def _actuator(self, model: Model, name: str, drive: Drive, command: _Command) -> Actuator:
        if len(drive.arms) > 1:
            return Motor(FixedTendon(list(drive.arms), np.array([*drive.arms.values()])), name=name)
        ((joint, gear),), gains = drive.arms.items(), command.gains
        gear = 1.0 if gains is not None else gear
        options = {
            "name": name,
            "command_range": None if command.range is None else sorted(limit / gear for limit in command.range),
            "force_range": self._force_range(model, joint, gear),
        }
        transmission = GearedJoint(joint, gear)
        if gains is None:
            return Motor(transmission, **options)
        if command.interface.startswith("velocity"):
            return VelocityServo(transmission, gains["kp"], **options)
        if not gains["ki"]:
            return PositionServo(transmission, gains["kp"], gains["kd"], **options)
        span = None if "limit" not in gains else (-gains["limit"], gains["limit"])
        return PIDServo(transmission, gains["kp"], gains["ki"], gains["kd"], integral_range=span, **options)


def _followed(mimic: Element) -> tuple[str | None, float | None, float | None]:
    """Leader, ratio and offset of a `<mimic>`."""
    given = mimic.attributes
    return given.get("joint"), number(given.get("multiplier", "1")), number(given.get("offset", "0"))


def _parameters(element: Element) -> dict[str, str]:
    return {each.attributes.get("name", ""): each.text for each in element.all("param")}


def _is_off(element: Element) -> bool:
    """Tell whether limits are switched off."""
    limits = element.first("limits")
    return limits is not None and limits.attributes.get("enable", "").lower() == "false"
