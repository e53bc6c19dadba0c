"""Names in parts of a system, which change where the system becomes part of another one."""

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import equinox as eqx

from jdyn.array import with_fields

Name: TypeAlias = Annotated[str, "name in a system"]
"""Type of a name in a system: of a link, a joint, a frame, a collision shape, an actuator, a sensor.

`jdyn.merge` renames what has this type in fields of contact, force elements, sensors, actuators, transmissions and
constraints: `Name`, `Name | None`, `tuple[Name, ...]`, keys of a `Mapping[Name, float]`.

>>> import equinox as eqx
>>> class Lift(jdyn.ForceElement):
...     link: jdyn.Name = eqx.field(static=True)
...
...     def force(self, t, kinematics, memory):
...         return kinematics.push(self.link, force=[0.0, 0.0, 5.0])
>>> lifted = jdyn.System(jdyn.load("pendulum"), elements=[Lift("tip")])
>>> print(jdyn.merge({"left": lifted, "right": lifted}).elements[1].link)
right/tip
"""


JointName: TypeAlias = Annotated[str, "name of a joint in a system"]
"""Type of a name of a joint: `jdyn.lock` drops what acts on locked joints alone."""

ActuatorName: TypeAlias = Annotated[str, "name of an actuator in a system"]
"""Type of a name of an actuator."""

_KINDS = {"Name": Name, "JointName": JointName, "ActuatorName": ActuatorName}


def renamed(part: Any, rename: Callable[[str], str]) -> Any:
    """A part of a system, or several, with other names, also in the parts that it is made of."""
    if type(part) in (tuple, list):
        return type(part)(renamed(each, rename) for each in part)
    if not isinstance(part, eqx.Module):
        return part
    of_names = {field for kind in _KINDS.values() for field in fields_of(type(part), kind)}
    changed = {
        field: (_with_names if field in of_names else renamed)(value, rename) for field, value in vars(part).items()
    }
    return with_fields(part, **changed)


@functools.cache
def fields_of(part: type, kind: Any) -> frozenset[str]:
    """Fields of a class that hold names of a kind: `Name`, `JointName` or `ActuatorName`."""
    return frozenset(field.name for field in dataclasses.fields(part) if _has_names(field.type, kind))


def names_in(names: Any) -> tuple[str, ...]:
    """The names in a field: one, several, or keys of a mapping."""
    if isinstance(names, str):
        return (names,)
    return tuple(names) if isinstance(names, tuple | list | Mapping) else ()


def _with_names(names: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(names, str):
        # An empty one is that of nothing, such as of an actuator that has the name of its joint.
        return rename(names) if names else names
    if isinstance(names, Mapping):
        return {rename(name): value for name, value in names.items()}
    return tuple(_with_names(each, rename) for each in names) if isinstance(names, tuple | list) else names


def _has_names(annotation: Any, kind: Any) -> bool:
    if isinstance(annotation, str):
        # Annotations are texts under `from __future__ import annotations`.
        return any(_KINDS.get(word) == kind for word in re.findall(r"\w+", annotation))
    return annotation == kind or any(_has_names(each, kind) for each in typing.get_args(annotation))
