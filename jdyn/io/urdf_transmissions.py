"""Transmissions of URDF files: how far actuators move by the coordinates of joints.

Where q are coordinates of joints and n reductions of actuators and joints, positions of actuators are

- n q of a simple transmission;
- n_a1 (n_j1 q1 + n_j2 q2) and n_a2 (n_j1 q1 - n_j2 q2) of a differential;
- n_a1 n_j1 q1 and n_a2 (q1 + n_j2 q2) of a four-bar linkage.

Forces follow from the work that they do: that on a joint is n times that of its actuator. For four-bar linkages ROS had
other forces until 2025 (issue 1746 of ros2_control). Offsets shift readings of positions alone.

Source: wiki.ros.org/urdf/XML/Transmission; transmission_interface in the documentation of ROS 2, control.ros.org.
"""

import dataclasses
import math

from jdyn.io.urdf_findings import Findings, name_of, number, text
from jdyn.io.xml import Element
from jdyn.terminal.messages import short

_SIMPLE, _DIFFERENTIAL, _FOUR_BAR = "SimpleTransmission", "DifferentialTransmission", "FourBarLinkageTransmission"
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
# Children that are read, or say nothing about motion.
_KNOWN = {
    "transmission": ("type", "plugin", "actuator", "joint", *_REDUCTIONS),
    "actuator": ("role", "hardwareInterface", "offset", *_REDUCTIONS),
    "joint": ("role", "hardwareInterface", "offset", "ignoreTransmissionAbsoluteEncoder", *_REDUCTIONS),
}


@dataclasses.dataclass(frozen=True)
class Drive:
    """An actuator behind a transmission.

    Attributes:
        name: Name of the actuator.
        arms: How far it moves by the coordinate of each joint.
    """

    name: str
    arms: dict[str, float]


def read_transmission(element: Element, findings: Findings, *, inside: bool) -> list[Drive]:
    """The actuators of a transmission; none, if it is of another type or has problems.

    Args:
        element: The `<transmission>`.
        findings: Receives what is wrong or not read.
        inside: Whether it is in a `<ros2_control>`, where ROS looks at the reduction of the joint of a simple
            transmission, not at that of the actuator, and an actuator may be left out.
    """
    kind = element.attributes.get("type") or text(element, "type", "plugin")
    if not kind:
        findings.problem(element, f"has no type, expected one such as transmission_interface/{_SIMPLE}")
        return []
    kind = kind.replace("::", "/").rpartition("/")[2]
    if kind not in (_SIMPLE, _DIFFERENTIAL, _FOUR_BAR):
        findings.note(f"transmissions of type {short(kind)}", name_of(element))
        return []
    findings.note_unknown(element, _KNOWN["transmission"])
    count = 1 if kind == _SIMPLE else 2
    joints = _ends(element, "joint", count, findings)
    if inside and count == 1 and not element.all("actuator"):
        actuators = [Element("actuator", "", {"name": each.attributes["name"]}, each.line) for each in joints]
    else:
        actuators = _ends(element, "actuator", count, findings)
    if not (joints and actuators):
        return []
    names = [joint.attributes["name"] for joint in joints]
    if kind == _SIMPLE:
        rows = [[_gear(element, joints[0], actuators[0], findings, inside=inside)]]
    else:
        (j1, j2), (a1, a2) = ([_reduction(each, findings) for each in ends] for ends in (joints, actuators))
        rows = [[a1 * j1, a1 * j2], [a2 * j1, -a2 * j2]] if kind == _DIFFERENTIAL else [[a1 * j1], [a2, a2 * j2]]
    if any(arm == 0 or not math.isfinite(arm) for row in rows for arm in row):
        findings.problem(element, "products of its reductions are zero or infinite")
        return []
    return [
        Drive(actuator.attributes["name"], dict(zip(names, row, strict=False)))
        for actuator, row in zip(actuators, rows, strict=True)
    ]


def _ends(element: Element, tag: str, count: int, findings: Findings) -> list[Element]:
    """The joints or actuators of a transmission, in the order of their roles; none if there is a problem."""
    found = element.all(tag)
    for each in found:
        findings.note_unknown(each, _KNOWN[tag])
    if len(found) != count:
        findings.problem(element, f"has {len(found)} <{tag}>, expected {count}")
        return []
    if unnamed := [each.line for each in found if not each.attributes.get("name", "").strip()]:
        findings.problem(element, f"its <{tag}> on line {unnamed[0]} has no name")
        return []
    if len({each.attributes["name"] for each in found}) < count and tag == "joint":
        findings.problem(element, f"has the joint {name_of(found[0])} twice")
        return []
    by_role = {each.attributes.get("role") or text(each, "role"): each for each in found}
    expected = [f"{tag}{i + 1}" for i in range(count)]
    if count > 1 and sorted(by_role) != expected:
        got = " and ".join(short(role) for role in by_role)
        findings.problem(element, f"<{tag}> in the roles {got}, expected {' and '.join(expected)}")
        return []
    return found if count == 1 else [by_role[role] for role in expected]


def _gear(element: Element, joint: Element, actuator: Element, findings: Findings, *, inside: bool) -> float:
    """The reduction of a simple transmission: the one that ROS looks at, if there are several."""
    places = [element, joint, actuator] if inside else [element, actuator, joint]
    chosen, *others = [each for each in places if text(each, *_REDUCTIONS)] or [element]
    for each in others:
        if _reduction(each, findings) != 1:
            findings.note("further reductions of simple transmissions", f"of <{each.tag}> in {name_of(element)}")
    return _reduction(chosen, findings)


def _reduction(element: Element, findings: Findings) -> float:
    given = text(element, *_REDUCTIONS)
    value = number(given) if given else 1.0
    if not value:
        findings.problem(element, f"the mechanical reduction is {short(given)}, expected a number other than zero")
    return value or 1.0
