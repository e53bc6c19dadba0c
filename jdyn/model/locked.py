"""Parts of a system whose model loses joints."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from jdyn.array import with_fields
from jdyn.model.edit import carriers_of, locked_at, locked_values
from jdyn.model.model import Model
from jdyn.model.names import ActuatorName, JointName, fields_of, names_in
from jdyn.model.topology import WORLD
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated

E = TypeVar("E", bound=Any)


class Locked(NamedTuple):
    """Joints that are fixed, and what goes with them.

    Attributes:
        before: The model with these joints.
        after: The model without them.
        joints: Coordinates at which they are fixed, by name of the joint [rad or m].
        carriers: For each body the one that it moves with now, and its pose there; None for itself.
        actuators: Names of actuators that acted on them alone.
    """

    before: Model
    after: Model
    joints: Mapping[str, Array]
    carriers: list[tuple[int, Transform | None]]
    actuators: frozenset[str] = frozenset()

    @classmethod
    def at(cls, model: Model, joints: Mapping[str, ArrayLike]) -> Self:
        """Joints at values.

        Raises:
            ValueError: as `jdyn.lock`.
        """
        values = locked_values(model, joints)
        named = {model.joint_names[body]: value for body, value in values.items()}
        return cls(model, locked_at(model, values), named, carriers_of(model, values))

    def in_motion(self, bodies: Sequence[str]) -> tuple[list[int], tuple[str, ...], list[Transform]]:
        """Which of these bodies still move, names of the bodies that they are part of now, and their poses there."""
        carriers = [self.carriers[self.before.topology.body(name)] for name in bodies]
        rows = [row for row, (carrier, _) in enumerate(carriers) if carrier != WORLD]
        names = tuple(self.before.body_names[carriers[row][0]] for row in rows)
        return rows, names, [self.pose(carriers[row][1]) for row in rows]

    def on_bodies_in_motion(self, element: E, *by_body: str) -> E | None:
        """A force element that has `bodies`, `poses` in them and other fields by body, on those that still move; None
        if none does."""
        rows, names, carriers = self.in_motion(element.bodies)
        if not rows:
            return None
        own, taken = vars(element), np.array(rows)
        # A number may be one for all.
        numbers = {key: own[key][taken] for key in by_body if np.ndim(own[key])}
        poses = jax.tree.map(lambda x: x[taken], element.poses)
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *carriers)
        return with_fields(element, bodies=names, poses=jax.vmap(Transform.__matmul__)(stacked, poses), **numbers)

    def pose(self, X: Transform | None) -> Transform:
        """A pose of `carriers`."""
        return Transform.identity(self.before.dtype) if X is None else X


def without_locked(part: Any, locked: Locked) -> Any:
    """A part of a system for the model without the joints; None if it acts on these joints alone, or looks at these
    joints or their actuators alone.

    A part that has to do with several joints says itself what is left of it, by a method `without_locked(locked)`.

    Raises:
        ValueError: if it does not.
    """
    if hasattr(part, "without_locked"):
        return part.without_locked(locked)
    if not isinstance(part, eqx.Module):
        return part
    changed = {}
    for field, value in vars(part).items():
        changed[field] = without_locked(value, locked)
        if changed[field] is None and value is not None:
            return None
    joints = _names(part, JointName)
    held = [joint for joint in joints if joint in locked.joints]
    # Frames of constraints count as what may still move.
    others = [*(joint for joint in joints if joint not in held), *getattr(part, "frames", ())]
    if held and others:
        raise ValueError(
            f"lock: {type(part).__name__} connects joint {held[0]!r}, which is locked, with {enumerated(others)}; "
            "leave it out, or lock all of its joints"
        )
    return None if held or locked.actuators & {*_names(part, ActuatorName)} else with_fields(part, **changed)


def _names(part: eqx.Module, kind: Any) -> list[str]:
    return [name for field in fields_of(type(part), kind) for name in names_in(getattr(part, field))]
