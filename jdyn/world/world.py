"""Worlds: objects that move by themselves until they touch."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Self

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Scalar
from numpy.typing import ArrayLike

from jdyn.array import with_fields
from jdyn.contact import pairs_if_any
from jdyn.model import Model
from jdyn.model.model import as_pose
from jdyn.simulation import (
    Event,
    SimulationError,
    State,
    System,
    simulate,
)
from jdyn.spatial import Transform
from jdyn.terminal.messages import short
from jdyn.world.coordinator import Coordinator
from jdyn.world.impacts import collision_number, state_before
from jdyn.world.islands import connected
from jdyn.world.motion import WorldMotion
from jdyn.world.object import WorldObject
from jdyn.world.parts import WorldParts
from jdyn.world.places import owner, spans
from jdyn.world.start import overlapping, within
from jdyn.world.stored import load, save

# Parts of systems that a world has once.
SHARED = ("joint_limits", "method")


class World(WorldParts):
    """Objects, each a system with its own controller, actuators and sensors, in one world, where they touch.

    >>> world = jdyn.World(contact=jdyn.RigidContact(restitution=0.5), gravity=(0.0, 0.0, 0.0))
    >>> ball = jdyn.load("ball")
    >>> world = world.with_object("left", ball, v=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    >>> world = world.with_object("right", ball, placement=(1.0, 0.0, 0.0))
    >>> motion = world.simulate(1.0)
    >>> (hit,) = motion["right"].impacts.records
    >>> print(round(hit.t, 3), hit.pair, hit.impulse.round(3) + 0.0, motion["left"].v[-1, 3:].round(3) + 0.0)
    0.8 ('left/ball', 'right/ball') [0.75 0.   0.  ] [0.25 0.   0.  ]

    A world is a PyTree, whose numbers may be swept, batched and differentiated; `with_object`, `without` and
    `with_start` give changed copies. Names within objects become `object/name`.

    Attributes:
        contact: How shapes of all objects touch each other; they pass through each other if None.
        gravity: Acceleration of free fall [m/s²]; that of the first object if left out.
        constraints: Between objects, with names such as `"left/hand"`.
        elements: Force elements between objects, likewise.
        joint_limits: As for `jdyn.System`; those of the objects, which have to be alike, if left out.
        method: Likewise.
        names: Names of the objects.
        objects: The objects, in the order of their names.

    Raises:
        ValueError: if contact is none.
    """

    def but(self, **changes: Any) -> Self:
        """The same with other fields, such as `contact=...`; they are not checked again.

        >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"))
        >>> print(world.but(contact=None).contact)
        None
        """
        return with_fields(self, **changes)

    def with_object(
        self,
        name: str,
        system: System | Model,
        *,
        placement: Transform | ArrayLike = (0, 0, 0),
        q: ArrayLike | str | None = None,
        v: ArrayLike | None = None,
        solver: diffrax.AbstractSolver | None = None,
    ) -> Self:
        """A world with one more object.

        Args:
            name: Its name: letters, digits, `_`, `-` and `.`.
            system: A system without contact, which is the world's, or a model.
            placement: Pose of its world in the world, a `Transform` or a translation [m]. Coordinates of a free body
                count from there.
            q: Configuration at the start [rad or m], or the name of one; as `System.state` has it if left out.
            v: Velocity at the start [rad/s or m/s]; at rest if left out.
            solver: For its motion while nothing touches it, where objects are coordinated; the default if left out.

        Raises:
            ValueError: if the name is taken or has other characters, the system is none or has a contact of its own, a
                size disagrees, or it differs from others in what the world has once: gravity, limits of joints, method.
        """
        if not (isinstance(name, str) and re.fullmatch(r"[\w.-]+", name)):
            raise ValueError(f"name: expected letters, digits, '_', '-' and '.', got {short(name)}")
        if name in self.names:
            raise ValueError(f"name: the world has an object {short(name)} already; take another name")
        system = System(system) if isinstance(system, Model) else system
        if not isinstance(system, System):
            raise ValueError(f"system: expected a jdyn.System or a jdyn.Model, got a {type(system).__name__}")
        if system.contact is not None:
            raise ValueError(
                f"system: {short(name)} has a contact of its own; a world has one for all, jdyn.World(contact=...): "
                "give system.but(contact=None)"
            )
        shared = {part: _shared(part, name, getattr(self, part), getattr(system, part)) for part in SHARED}
        dtype = system.model.dtype
        fall = system.model.gravity if self.fall is None else jnp.asarray(self.fall, dtype)
        if self.gravity is None and _differ(fall, system.model.gravity):
            raise ValueError(
                f"gravity: {self.names[0]!r} falls by {fall}, {short(name)} by {system.model.gravity}; give that of "
                "the world, jdyn.World(gravity=...)"
            )
        pose = as_pose(f"placement of {short(name)}", placement, dtype)
        own = system.but(model=with_fields(system.model, gravity=fall), joint_limits=None, method=None)
        made = WorldObject(name, own, pose, *_start(own, q, v), solver)
        return with_fields(self, names=(*self.names, name), objects=(*self.objects, made), **shared)

    def without(self, name: str) -> Self:
        """A world without an object.

        >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"))
        >>> print(world.without("arm").names)
        ()

        Raises:
            ValueError: if there is none of this name.
        """
        place = self._place(name)
        names, objects = (x[:place] + x[place + 1 :] for x in (self.names, self.objects))
        return with_fields(self, names=names, objects=objects)

    def with_start(self, name: str, q: ArrayLike | str | None = None, v: ArrayLike | None = None) -> Self:
        """A world in which an object starts elsewhere.

        >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"))
        >>> print(world.with_start("arm", q=[0.5])["arm"].q)
        [0.5]

        Args:
            name: Of the object.
            q, v: As for `with_object`.

        Raises:
            ValueError: if there is none of this name, or a size disagrees.
        """
        place = self._place(name)
        old = self.objects[place]
        q0, v0 = _start(old.system, q, v)
        new = with_fields(old, q=q0, v=v0)
        return with_fields(self, objects=(*self.objects[:place], new, *self.objects[place + 1 :]))

    def merged(self) -> System:
        """One system of all objects, as `jdyn.merge` makes it, with what is between them.

        >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"))
        >>> world = world.with_object("ball", jdyn.load("ball"))
        >>> print(world.merged().model.joint_names, world.merged().contact)
        ('arm/joint1', 'ball/ball') None

        Contact is None where no two shapes may touch.

        Raises:
            ValueError: if there are no objects, or as for `jdyn.merge`.
        """
        return self.together(self.names)

    def islands(self) -> tuple[tuple[str, ...], ...]:
        """Islands of objects that may ever touch or are coupled; what cannot move joins none.

        >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"))
        >>> world = world.with_object("one", jdyn.load("ball"), placement=(1.0, 0.0, 0.0))
        >>> print(world.with_object("two", jdyn.load("ball"), placement=(2.0, 0.0, 0.0)).islands())
        (('arm',), ('one', 'two'))
        """
        touching = pairs_if_any(self.merged().model) if self.contact is not None else ()
        links = [[owner(shape) for shape in pair] for pair in touching]
        moving = {name for name, each in zip(self.names, self.objects, strict=True) if each.system.model.nv}
        return connected(self.names, [[name for name in link if name in moving] for link in (*links, *self.coupled())])

    def start(self, t: Scalar | float = 0.0) -> State:
        """State of `merged` at the start."""
        return self.start_of(self.merged(), t)

    def simulate(
        self,
        t1: Scalar | float,
        *,
        t0: Scalar | float = 0.0,
        events: Sequence[Event] = (),
        solver: diffrax.AbstractSolver | None = None,
        saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
        adjoint: diffrax.ForwardMode | None = None,
        throw: bool = True,
        coordinator: Coordinator | None = None,
        **steps: Any,
    ) -> WorldMotion:
        """Simulate all objects from `t0` to `t1`, as one system or under a coordinator.

        Works under `jit`, `vmap` and `grad` as `jdyn.simulate` does. With rigid contact, shapes that meet collide at
        the instant.

        Args:
            t1: End [s].
            t0: Start [s].
            events, solver, saveat, adjoint, throw: As for `jdyn.simulate`. Events see the state of `merged`.
            coordinator: `jdyn.world.Coordinator()`, under which objects take steps of their own while nothing touches
                them; one system takes the same steps for all if left out.
            steps: As for `jdyn.simulate`: `stepsize_controller`, `dt0`, `max_steps`, `max_events` and `jump_times`. An
                instant of impacts counts as two events.

        Raises:
            ValueError: as for `merged` and `jdyn.simulate`.
            SimulationError: if `throw` and the end is not reached; it names shapes that overlap at the start.
        """
        if coordinator is not None:
            others = {"events": events, "adjoint": adjoint, "solver": solver}
            return coordinator.motion(self, (t0, t1), saveat, throw, steps, others)
        system = self.merged()
        collision = collision_number(system, len(events))
        if collision is not None:
            system = system.but(contact=within(system, solver, steps.get("stepsize_controller")))
            events = (*events, state_before(system))
        start = self.start_of(system, jnp.asarray(t0, system.model.dtype))
        options = {"t0": t0, "events": events, "solver": solver, "saveat": saveat, "adjoint": adjoint}
        try:
            trajectory = simulate(system, start, t1, throw=throw, **options, **steps)
        except SimulationError as error:
            if overlaps := "" if collision is None else overlapping(system, start.q):
                raise SimulationError(f"world: {overlaps}") from error
            raise
        return WorldMotion(trajectory, self.names, spans(self.objects), collision)

    def save(self, path: str | os.PathLike) -> None:
        """Write the world to one file, which appears whole or not at all; the usual name is `*.npz`.

        Raises:
            ValueError: if a part of it is a function, which no file can hold.
        """
        save(path, "world", self)

    @staticmethod
    def load(path: str | os.PathLike, *, classes: Sequence[type] = ()) -> World:
        """Read what `save` wrote, bit for bit.

        >>> jdyn.World().with_object("arm", jdyn.load("pendulum"), q=[0.5]).save("world.npz")
        >>> print(jdyn.World.load("world.npz")["arm"].q)
        [0.5]

        Args:
            path: The file.
            classes: Classes of yours that it has objects of, such as controllers.

        Raises:
            OSError: if there is no such file, or none that may be read.
            ValueError: if it is damaged, something else, or of a newer version.
        """
        return load(path, "world", World, classes)


def _start(system: System, q: Any, v: Any) -> tuple[Array, Array]:
    q, v = (x if x is None or isinstance(x, str) else jnp.asarray(x, float) for x in (q, v))
    state = system.state(q, v)
    return state.q, state.v


def _differ(x: Any, y: Any) -> bool:
    """Tell whether two things are known to be different."""
    equal = eqx.tree_equal(x, y)
    return not isinstance(equal, Tracer) and not equal


def _shared(part: str, name: str, of_world: Any, of_object: Any) -> Any:
    """A part that a world has once."""
    if of_object is None or of_world is None:
        return of_world if of_object is None else of_object
    if _differ(of_world, of_object):
        raise ValueError(
            f"{part}: the world has {short(of_world)}, {short(name)} has {short(of_object)}; give both the same"
        )
    return of_world
