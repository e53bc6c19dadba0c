"""Objects that are integrated together, under names that programs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.contact import Contact, colliders
from jdyn.control.controller import DynamicSum
from jdyn.control.part_controller import OnCoordinates
from jdyn.dynamics import body_velocities, forward_kinematics
from jdyn.model import WORLD
from jdyn.simulation import State, System, Trajectory, simulate
from jdyn.world.boxes import boxes_of
from jdyn.world.impacts import state_before
from jdyn.world.object import WorldObject
from jdyn.world.parts import WorldParts
from jdyn.world.places import named_in, spans


class Moving(NamedTuple):
    """Motion of an object at an instant.

    Attributes:
        q, v: State.
        memory: What its controller and its actuators remember.
        elements: States of its force elements, in their order; None for those without.
    """

    q: Any
    v: Any
    memory: Any
    elements: tuple


class Unit(NamedTuple):
    """Objects that are integrated together.

    Attributes:
        numbers: Places of the objects in the world.
        objects: The objects.
        system: Of all of them, known as `1`, `2`, ..., so that units of one structure share a program.
        between: Numbers of the world's force elements that are between them.
    """

    numbers: tuple[int, ...]
    objects: tuple[WorldObject, ...]
    system: System
    between: tuple[int, ...]

    @classmethod
    def of(cls, world: WorldParts, numbers: Sequence[int], contact: Contact | None) -> Unit:
        """Unit of some objects.

        Args:
            world: The world.
            numbers: Places of the objects in it.
            contact: With what follows from tolerances.
        """
        objects, called = tuple(world.objects[i] for i in numbers), [str(i + 1) for i in range(len(numbers))]
        names = [each.name for each in objects]
        between = [i for i, each in enumerate(world.elements) if set(named_in(each, world.names)) <= set(names)]
        system = world.together(names, called)
        nv, places = system.model.nv, spans(objects)
        # Each drives its own actuators, so that memories stay apart.
        drivers = tuple(
            OnCoordinates(each.system.driver(), tuple(range(*span.q)), tuple(v := range(*span.v)), tuple(v), nv)
            for each, span in zip(objects, places, strict=True)
            if _is_driven(each)
        )
        system = system.but(
            controller=DynamicSum(drivers) if drivers else None,
            actuators=(),
            sensors=(),
            configurations={},
            contact=None if system.contact is None else contact,
        )
        return cls(tuple(numbers), objects, jax.tree.map(_as_array, system), tuple(between))

    @property
    def driven(self) -> list[int]:
        """Places of the objects that have a controller or actuators."""
        return [place for place, each in enumerate(self.objects) if _is_driven(each)]

    def first(self, t: float) -> Moving:
        """Motion of its only object at the start."""
        (thing,) = self.objects
        if not (self.driven or thing.system.elements):
            return Moving(np.asarray(thing.q), np.asarray(thing.v), None, ())
        return self.split(jax.device_get(self.system.state(thing.q, thing.v, t=t)))[0][0]

    def start(self, moving: Sequence[Moving], between: Sequence[Any] = ()) -> State:
        """State of the unit by those of its objects, and of force elements between them."""
        parts: dict[str, Any] = {}
        if self.driven:
            parts["controller"] = tuple(moving[place].memory for place in self.driven)
        elements = (*(state for each in moving for state in each.elements), *between)
        if jax.tree.leaves(elements):
            parts["elements"] = elements
        q: Any = np.concatenate([each.q for each in moving])
        v: Any = np.concatenate([each.v for each in moving])
        return State(q, v, parts)

    def split(self, y: State) -> tuple[list[Moving], tuple]:
        """States of its objects, and of force elements between them; arrays may have an axis of rows first."""
        memories = dict(zip(self.driven, y.parts.get("controller", ()), strict=True))
        states, first, found = y.parts.get("elements"), 0, []
        for place, (each, span) in enumerate(zip(self.objects, spans(self.objects), strict=True)):
            count = len(each.system.elements)
            own = (None,) * count if states is None else states[first : first + count]
            first += count
            q, v = y.q[..., slice(*span.q)], y.v[..., slice(*span.v)]
            found.append(Moving(q, v, memories.get(place), own))
        return found, (None,) * len(self.between) if states is None else states[first:]


def _is_driven(thing: WorldObject) -> bool:
    return thing.system.controller is not None or bool(thing.system.actuators)


def _as_array(x: Any) -> Any:
    return jnp.asarray(x) if isinstance(x, float) else x


class Swept(NamedTuple):
    """Boxes that shapes do not leave in a time, along the axes of the world.

    Attributes:
        lower, upper: Their ends [m].
    """

    lower: Float[Array, "shapes 3"]
    upper: Float[Array, "shapes 3"]


class Advanced(NamedTuple):
    """Motion of a unit in a window of time.

    Attributes:
        rows: States at the times that were asked for.
        swept: Boxes of its collision shapes.
        events: What happened, see `jdyn.Trajectory`.
        result: `jdyn.Result`.
        steps, tries: Accepted steps, and all.
    """

    rows: State
    swept: Swept
    events: Any
    result: Int[Array, ""]
    steps: Int[Array, ""]
    tries: Int[Array, ""]


@eqx.filter_jit
def advanced(
    system: System, y: State, window: Array, times: Float[Array, " rows"], dt0: Scalar, options: Any
) -> Advanced:
    """Motion of a unit in a window.

    Args:
        system: Of the unit.
        y: State at the start.
        window: Start and end [s].
        times: Of rows [s], in order, the start and the end among them.
        dt0: Length of the first step [s].
        options: Solver, step controller and the like, as `jdyn.simulate` takes them, and `looks`, into how many parts
            `times` cut the window at least.
    """
    return _advanced(system, y, window, times, dt0, options)


@eqx.filter_jit
def advanced_alike(
    systems: System, ys: State, window: Array, times: Float[Array, " rows"], dt0: Scalar, options: Any
) -> Advanced:
    """Motions of units of one structure, along a first axis."""

    def one(system, y, dt0):
        return _advanced(system, y, window, times, dt0, options)

    return eqx.filter_vmap(one)(systems, ys, dt0)


def _advanced(system, y, window, times, dt0, options) -> Advanced:
    options = dict(options)
    looks, (t0, t1) = options.pop("looks"), window
    rigid = system.contact is not None and system.contact.reacts
    events = (state_before(system),) if rigid else ()
    motion = simulate(system, y, t1, t0=t0, saveat=times, dt0=dt0, events=events, throw=False, **options)
    accepted, rejected = motion.stats["accepted_steps"], motion.stats["rejected_steps"]
    rows = State(motion.q, motion.v, motion.parts)
    swept = _swept(system, motion, (t1 - t0) / looks)
    return Advanced(rows, swept, motion.events, motion.result, accepted, accepted + rejected)


def _swept(system: System, motion: Trajectory, spacing: Scalar) -> Swept:
    """Boxes about the shapes in all rows, and about where their speeds may carry them in between."""
    model = system.model
    if model.shapes is None or not model.shapes.rows("collision"):
        none = jnp.zeros((0, 3), model.dtype)
        return Swept(none, none)
    shapes = colliders(model)
    bodies = np.array([entry.body for entry in shapes.entries])
    moves = bodies != WORLD

    def at(q, v):
        poses, velocities = forward_kinematics(model, q), body_velocities(model, q, v)
        box = boxes_of(shapes, poses)
        if not len(velocities):
            return box.lower, box.upper, jnp.zeros(len(bodies), model.dtype)
        origins, twists = poses.translation[bodies], velocities[bodies]
        reach = _length((box.lower + box.upper) / 2 - origins) + _length(box.upper - box.lower) / 2
        speeds = _length(twists[:, 3:]) + _length(twists[:, :3]) * reach
        return box.lower, box.upper, jnp.where(moves & jnp.isfinite(reach), speeds, 0)

    lower, upper, speeds = jax.vmap(at)(motion.q, motion.v)
    # Twice the way to the nearer row, since speeds change in between.
    margin = jnp.max(speeds, axis=0)[:, None] * spacing
    return Swept(jnp.min(lower, axis=0) - margin, jnp.max(upper, axis=0) + margin)


def _length(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x**2, axis=-1))
