"""Which links of a robot may not touch, from SRDF files beside URDF files.

Source: MoveIt's SRDF, wiki.ros.org/srdf, with `disable_default_collisions` and `enable_collisions` of srdfdom.
"""

import itertools
import os
from collections.abc import Iterable

from jdyn.io.xml import Element, parse, read
from jdyn.model import Builder, ModelError
from jdyn.terminal.messages import enumerated, listed

# What says nothing about collisions.
_FOREIGN = (
    "group", "group_state", "end_effector", "virtual_joint", "passive_joint", "joint_property", "gripper",
    "link_sphere_approximation", "rotor_params",
)  # fmt: skip
_KNOWN = (*_FOREIGN, "disable_collisions", "enable_collisions", "disable_default_collisions")


def exclude_pairs(builder: Builder, source: str | os.PathLike, links: Iterable[str]) -> None:
    """Tell a builder which links may not touch.

    Args:
        builder: The robot.
        source: Path of an SRDF file, or its text.
        links: Names of the robot's links.

    Raises:
        ModelError: naming the file and every problem found.
    """
    root, label = document(source)
    reader = _Reader(root, label, list(links))
    pairs = reader.pairs()
    if reader.problems:
        raise ModelError(listed(label, "problem", reader.problems))
    for pair in pairs:
        builder.exclude(*pair)
    name = root.attributes.get("name", "")
    if name and name != builder.name:
        builder.warning(f"{label} is of a robot called {name!r}, not {builder.name!r}")
    for what, names in reader.notes.items():
        builder.warning(f"{label}: {what}: {enumerated([*names])}")


def document(source: str | os.PathLike) -> tuple[Element, str]:
    """The root element of an SRDF file, or of its text, and its label for messages."""
    text, label, _ = read(source, "SRDF")
    root = parse(text, label)
    if root.tag != "robot":
        raise ModelError(f"{label}: the root element is <{root.tag}>, expected <robot>; is this an SRDF file?")
    return root, label


class _Reader:
    """Reads the pairs of one document."""

    def __init__(self, root: Element, label: str, links: list[str]):
        self.problems: list[str] = []
        self.notes: dict[str, dict[str, None]] = {}
        self._root, self._label, self._links = root, label, links

    def pairs(self) -> list[tuple[str, str]]:
        """Pairs of links that may not touch."""
        alone = [
            name for element in self._root.all("disable_default_collisions") for name in self._names(element, "link")
        ]
        enabled = {frozenset(pair) for pair in self._stated("enable_collisions")}
        by_default = [pair for pair in itertools.product(alone, self._links) if frozenset(pair) not in enabled]
        for element in self._root.children:
            if element.tag not in _KNOWN:
                self._note("ignored, unknown to jdyn", f"<{element.tag}> (line {element.line})")
        return [*by_default, *self._stated("disable_collisions")]

    def _stated(self, tag: str) -> list[tuple[str, str]]:
        named = [self._names(element, "link1", "link2") for element in self._root.all(tag)]
        return [(names[0], names[1]) for names in named if len(names) == 2]

    def _names(self, element: Element, *keys: str) -> list[str]:
        """The links that an element names and the robot has."""
        found = []
        for key in keys:
            name = element.attributes.get(key, "")
            if not name:
                self.problems.append(f"<{element.tag}> (line {element.line}) has no {key}")
            elif name not in self._links:
                self._note("ignored, links that the robot lacks", name)
            else:
                found.append(name)
        return found

    def _note(self, what: str, name: str):
        self.notes.setdefault(what, {})[name] = None
