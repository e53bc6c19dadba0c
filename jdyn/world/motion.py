"""Motions of worlds, and what each object sees of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import with_fields
from jdyn.contact import Contacts
from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.simulation import Trajectory
from jdyn.simulation.trajectory import controller_outputs
from jdyn.spatial import Transform
from jdyn.terminal.messages import unknown
from jdyn.world.impacts import Impacts, impacts_of
from jdyn.world.places import Span
from jdyn.world.stored import load, save


class Window(eqx.Module):
    """Span of time in which objects moved in islands.

    Attributes:
        t0, t1: [s].
        islands: Names of the objects of each island of several; the others moved alone.
    """

    t0: float = eqx.field(static=True)
    t1: float = eqx.field(static=True)
    islands: tuple[tuple[str, ...], ...] = eqx.field(static=True)


class WorldMotion(eqx.Module):
    """Motion of a world. `motion["left"]` is what the object of that name did.

    >>> world = jdyn.World().with_object("left", jdyn.load("pendulum"), q=[1.0])
    >>> motion = world.with_object("right", jdyn.load("pendulum"), placement=(1.0, 0.0, 0.0)).simulate(1.0)
    >>> print(motion["left"].q[-1].round(3), motion["right"].q[-1], jnp.ptp(motion.energy) < 1e-3)
    [-0.902] [0.] True

    Under `jax.vmap` arrays have an axis of lanes first.

    Attributes:
        trajectory: Of the whole: for `jdyn.animate`, `jdyn.view` and plots. Where objects are coordinated it has no
            events, and `stats` are sums over objects.
        names: Of the objects.
        spans: Their places in the whole.
        collision: Number of the event that impacts are; None where there are none, and of coordinated motions.
        known_impacts: Impacts of a coordinated motion; None for others.
        windows: Windows of a coordinated motion, in order; none for others.
        steps: Accepted steps of each object of a coordinated motion; None for others, whose objects share them.
    """

    trajectory: Trajectory
    names: tuple[str, ...] = eqx.field(static=True)
    spans: tuple[Span, ...]
    collision: int | None = eqx.field(static=True, default=None)
    known_impacts: Impacts | None = None
    windows: tuple[Window, ...] = ()
    steps: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> ObjectMotion:
        if name not in self.names:
            raise KeyError(unknown("object", name, self.names))
        return ObjectMotion(self, name)

    @property
    def ts(self) -> Float[Array, "*lanes times"]:
        """Times [s]."""
        return self.trajectory.ts

    @property
    def q(self) -> Float[Array, "*lanes times nq"]:
        """Configurations of all objects, one after another."""
        return self.trajectory.q

    @property
    def v(self) -> Float[Array, "*lanes times nv"]:
        """Velocities of all objects, one after another."""
        return self.trajectory.v

    @property
    def energy(self) -> Float[Array, "*lanes times"]:
        """Kinetic and potential energy of all objects, with that of force elements [J]."""
        return self.trajectory.energy

    @property
    def momentum(self) -> Float[Array, "*lanes times 6"]:
        """Momentum [angular; linear] of all objects about their centre of mass [N m s, N s]."""
        return self.trajectory.momentum

    @property
    def result(self):
        """End of the simulation, a `jdyn.Result`."""
        return self.trajectory.result

    @property
    def impacts(self) -> Impacts:
        """Impacts of all objects.

        Raises:
            ValueError: if contact is not rigid, or nothing could touch.
        """
        if self.known_impacts is not None:
            return self.known_impacts
        if self.collision is None:
            raise ValueError(
                "impacts: there are some with rigid contact alone, jdyn.World(contact=jdyn.RigidContact()), and "
                "between shapes that may touch"
            )
        return impacts_of(self.trajectory, self.collision)

    @property
    def energy_of_impacts(self) -> Float[Array, "*lanes times"]:
        """Sum of the energy that impacts brought until each row, mostly negative [J]: what `energy` lacks, if nothing
        else does work."""
        impacts = self.impacts
        happened = impacts.ts[..., None, :] <= self.ts[..., :, None]
        each = jnp.sum(impacts.energy, axis=-1)
        return jnp.sum(jnp.where(happened, each[..., None, :], 0), axis=-1)

    def save(self, path: str | os.PathLike) -> None:
        """Write the motion and its system to one file, which appears whole or not at all; the usual name is `*.npz`."""
        save(path, "motion of a world", self)

    @staticmethod
    def load(path: str | os.PathLike, *, classes: Sequence[type] = ()) -> WorldMotion:
        """Read what `save` wrote, bit for bit.

        Args:
            path: The file.
            classes: Classes of yours that it has objects of, such as controllers.

        Raises:
            OSError: if there is no such file, or none that may be read.
            ValueError: if it is damaged, something else, or of a newer version.
        """
        return load(path, "motion of a world", WorldMotion, classes)


class ObjectMotion:
    """Motion of one object of a world, `motion["left"]`.

    >>> world = jdyn.World().with_object("left", jdyn.load("pendulum"), q=[1.0])
    >>> left = world.simulate(1.0)["left"]
    >>> print(left.q.shape, left.v[-1].round(3), left.name)
    (101, 1) [1.534] left

    Attributes:
        motion: Of the world.
        name: Name of the object.
    """

    def __init__(self, motion: WorldMotion, name: str):
        self.motion, self.name = motion, name
        self._span = motion.spans[motion.names.index(name)]

    @property
    def ts(self) -> Float[Array, "*lanes times"]:
        """Times [s]."""
        return self.motion.ts

    @property
    def q(self) -> Float[Array, "*lanes times nq"]:
        """Configurations [rad or m]."""
        return self.motion.q[..., slice(*self._span.q)]

    @property
    def v(self) -> Float[Array, "*lanes times nv"]:
        """Velocities [rad/s or m/s]."""
        return self.motion.v[..., slice(*self._span.v)]

    @property
    def poses(self) -> Transform:
        """Poses of its bodies in the world, with axes for lanes, times and bodies."""
        poses, (first, end) = self.motion.trajectory.poses, self._span.bodies
        return Transform(poses.rotation[..., first:end, :, :], poses.translation[..., first:end, :])

    @property
    def tau(self) -> Float[Array, "*lanes times nv"]:
        """Generalized forces of its controller and actuators [N m or N]."""
        return self.motion.trajectory.tau[..., slice(*self._span.v)]

    @property
    def commands(self) -> Float[Array, "*lanes times commands"]:
        """Commands of its actuators; empty if it has none."""
        motion = self.motion.trajectory
        if self._span.commands[0] == self._span.commands[1]:
            return jnp.zeros((*motion.ts.shape, 0), motion.q.dtype)
        return controller_outputs(motion)[..., slice(*self._span.commands)]

    @property
    def sensors(self) -> dict[str, Float[Array, "*rows"]]:
        """Values of its sensors, by the names that they have in its system."""
        prefix, all_values = f"{self.name}/", self.motion.trajectory.sensors
        return {name.removeprefix(prefix): x for name, x in all_values.items() if name.startswith(prefix)}

    @property
    def energy(self) -> Float[Array, "*lanes times"]:
        """Its kinetic and potential energy, without that of force elements [J]."""
        (first, end), (start, stop) = self._span.bodies, self._span.v

        def energy(system, q, v):
            model, own = system.model.without_shapes(), np.zeros(system.model.nv)
            own[start:stop] = 1
            # Objects share no inertia: each has blocks of its own in the mass matrix.
            kinetic = kinetic_energy(model, q, jnp.asarray(own, v.dtype) * v)
            bodies = np.zeros(model.nb)
            bodies[first:end] = 1
            full = model.expand_velocity(jnp.asarray(own, v.dtype))
            alone = with_fields(
                model, stiffness=jnp.where(full != 0, model.stiffness, 0), inertias=_some(model.inertias, bodies)
            )
            return kinetic + potential_energy(alone, q)

        motion = self.motion.trajectory
        return motion._rows(energy, motion.q, motion.v)

    @property
    def contacts(self) -> Contacts:
        """Points at which its shapes may touch, and the forces there, see `jdyn.Trajectory.contacts`."""
        contacts, axis = self.motion.trajectory.contacts, self.ts.ndim
        prefix = f"{self.name}/"
        places = np.array([i for i, pair in enumerate(contacts.pairs) if any(x.startswith(prefix) for x in pair)], int)
        points = type(contacts.points)(
            **{name: jnp.take(x, places, axis=axis) for name, x in vars(contacts.points).items()}
        )
        return Contacts(tuple(contacts.pairs[i] for i in places), points)

    @property
    def contact_force(self) -> Float[Array, "*lanes times 3"]:
        """Sum of the contact forces of all others on it, in axes of the world [N]."""
        contacts, prefix = self.contacts, f"{self.name}/"
        signs = [float(b.startswith(prefix)) - float(a.startswith(prefix)) for a, b in contacts.pairs]
        force = contacts.points.force
        return jnp.tensordot(force, jnp.asarray(signs, force.dtype), ((-2,), (0,)))

    @property
    def impacts(self) -> Impacts:
        """Its impacts; impulses are on it, and the other one is the first of each pair."""
        return self.motion.impacts.of(self.name)


def _some(inertias, bodies: np.ndarray):
    """Inertias of some bodies, and none of the others."""
    own = {
        name: jnp.asarray(bodies.reshape(-1, *[1] * (x.ndim - 1)), x.dtype) * x for name, x in vars(inertias).items()
    }
    return with_fields(inertias, **own)
