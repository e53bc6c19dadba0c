"""Places of objects in the whole, and names there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from jdyn.actuators import Actuators
from jdyn.model import renamed
from jdyn.world.object import WorldObject


class Span(eqx.Module):
    """Places of an object in coordinates, velocities, commands and bodies of the whole: the first, and the end."""

    q: tuple[int, int] = eqx.field(static=True)
    v: tuple[int, int] = eqx.field(static=True)
    commands: tuple[int, int] = eqx.field(static=True)
    bodies: tuple[int, int] = eqx.field(static=True)


def spans(objects: Sequence[WorldObject]) -> tuple[Span, ...]:
    """Places of objects that follow one another."""
    sizes = [
        (model.nq, model.nv, len(Actuators(each.system.actuators).command_names), model.nb)
        for each in objects
        for model in (each.system.model,)
    ]
    none = (0, 0, 0, 0)
    firsts = itertools.accumulate(sizes, lambda a, b: tuple(map(sum, zip(a, b, strict=True))), initial=none)
    return tuple(Span(*zip(a, b, strict=True)) for a, b in itertools.pairwise(firsts))


def owner(name: str) -> str:
    """Object that something of a world belongs to, by its name there."""
    return name.split("/", 1)[0]


def named_in(part: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Objects that a constraint or a force element names."""
    found: list[str] = []

    def seen(name: str) -> str:
        if owner(name) in names and owner(name) not in found:
            found.append(owner(name))
        return name

    renamed(part, seen)
    return tuple(found)
