"""The result of a simulation."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype
from jaxtyping import Array, ArrayLike, Float, Int, PyTree

from jdyn.array import in_type
from jdyn.constraints import constrained_dynamics
from jdyn.contact import Contacts, PointForces, colliders, generalized_forces, named_contacts
from jdyn.control import Constant
from jdyn.control.controller import with_memory
from jdyn.dynamics import forward_kinematics, momentum
from jdyn.elements import Elements
from jdyn.execution.compiled import compiled_for_rows
from jdyn.io.archive import load_archive, save_archive
from jdyn.model import Model, checked
from jdyn.simulation.energy_control import mechanical_energy
from jdyn.simulation.interpolation import hermite, linear
from jdyn.simulation.parts import Known, without_commands
from jdyn.simulation.result import succeeded
from jdyn.simulation.saved import misfit
from jdyn.simulation.sensing import of_all_pairs, use_actuators, use_forces, values
from jdyn.simulation.sensor_memory import sampled, shown_in_rows
from jdyn.simulation.state import ControllerMemory, ElementStates, State
from jdyn.simulation.system import System
from jdyn.simulation.to_xarray import labelled
from jdyn.simulation.vector_field import VectorField
from jdyn.spatial import Transform

if TYPE_CHECKING:
    import xarray


class Events(eqx.Module):
    """Events that happened, in order; unused rows are NaN, and -1 in `which` and `entry`.

    Attributes:
        ts: Times [s].
        which: Number of the event in the arguments of `simulate`.
        entry: Which entry of its condition fell, 0 where the condition is a number.
        q, v: State after it.
    """

    ts: Float[Array, " events"]
    which: Int[Array, " events"]
    entry: Int[Array, " events"]
    q: Float[Array, "events nq"]
    v: Float[Array, "events nv"]


class Trajectory(eqx.Module):
    """A simulated motion. Under `jax.vmap` every array gains a leading axis of lanes.

    Rows that were not reached are NaN in `q` and `v`. Forces, accelerations, poses, energies and values of sensors are
    computed on demand, for all lanes, from the system that was simulated, which a trajectory knows.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> q, v = motion.interpolate(0.505)
    >>> print(q.round(3), jnp.ptp(motion.energy) < 1e-3)
    [-0.249] True

    Attributes:
        ts: Times [s].
        q: Configurations [rad or m], quaternions of unit length.
        v: Velocities [rad/s or m/s].
        parts: What was integrated beside the motion, by its owner, see `jdyn.State`, a row a time: `"controller"`,
            what it remembered, `"elements"`, states of theirs, `"supplied"`, energy that the mechanism received [J].
        events: Events that happened.
        result: How the simulation ended, a `jdyn.Result` as an integer.
        stats: `t_reached`, the time [s] up to which the simulation got; `accepted_steps` and `rejected_steps`;
            `dynamics_calls`, evaluations of forward dynamics by steps, accepted or rejected, and by events, without
            what moves the end of a step onto constraints; `jacobians`, Jacobians of implicit solvers, which are
            closed-form derivatives and count apart. A lane of a batch counts what it would evaluate alone. Both are
            None for solvers of diffrax that are not Runge-Kutta methods, since these do not report evaluations.
            `implicit_steps`, tried steps in which the default solver was implicit; `start_depth` and
            `greatest_depth`, with contact, by how much shapes overlapped at the start, NaN where no step was tried, and
            at most where any step began [m], and both by the least size of either shape, `start_depth_by_size` and
            `greatest_depth_by_size`. Where rows follow steps, `row_tries`,
            `row_dynamics_calls` and `row_implicit_steps` count up to each row.
        contact_forces: Those of the steps in which rows lie, in world axes, at all points where shapes may touch; NaN
            at the start, to which no step leads. With compliant contact in single precision those of the first implicit
            stage, without derivatives, and NaN in explicit steps. None for solvers that do not say, and for compliant
            contact in double precision. `contacts` has their names, and takes them where they say more than states.
        commands: Outputs of a controller that has functions, which are not kept: commands of actuators, or generalized
            forces where there are none; None for others.
        known: The system, see `system`; every lane of a batch has its own copy.
    """

    ts: Float[Array, "*lanes times"]
    q: Float[Array, "*lanes times nq"]
    v: Float[Array, "*lanes times nv"]
    parts: dict[str, PyTree[Array]]
    events: Events
    result: Int[Array, "*lanes"]
    stats: dict[str, Any]
    contact_forces: PointForces | None = None
    commands: Float[Array, "*lanes times outputs"] | None = None
    known: Known[System] | None = None

    def __repr__(self) -> str:
        """Say what it is of, not all of its numbers, and if nobody commanded the actuators."""
        name = "an unknown system" if self.known is None else repr(self.system.model.name)
        *lanes, rows, nq = jnp.shape(self.q)
        batch = f"{' x '.join(map(str, lanes))} lanes of " if lanes else ""
        silent = None if self.known is None else without_commands(self.system)
        return f"<Trajectory of {name}: {batch}{rows} rows of {nq} coordinates{f'; {silent}' if silent else ''}>"

    @property
    def system(self) -> System:
        """System that was simulated, for all lanes of a batch.

        Raises:
            ValueError: of a trajectory that was loaded.
        """
        return self._known.system

    @property
    def success(self):
        """Tell whether the end was reached, or an event that ends the simulation."""
        return succeeded(self.result)

    def with_system(self, system: System | Model) -> Self:
        """The same motion as that of a system: of a loaded one, which does not know its own, or to compute rows with
        other parts."""
        system = System(system) if isinstance(system, Model) else system
        if not isinstance(system, System):
            raise ValueError(f"system: expected a jdyn.System or a jdyn.Model, got {type(system).__name__}")
        checked(system.model)
        if self.q.shape[-1] != system.model.nq:
            raise ValueError(
                f"system: expected {self.q.shape[-1]} coordinates, those of the rows, but {system.model.name!r} has "
                f"{system.model.nq}"
            )
        return dataclasses.replace(self, commands=None, known=Known.of(system, self.ts.shape[:-1]))

    # Every row.

    @property
    def tau(self) -> Float[Array, "*lanes times nv"]:
        """Generalized forces of the controller [N m or N].

        Raises:
            ValueError: if it has another memory than the rows.
        """
        if self.commands is not None and not self.system.actuators:
            return self.commands
        memory = jax.tree.leaves(self.parts.get(ControllerMemory.part))
        return self._rows(_commanded, self.ts, self.q, self.v, memory, self.commands)

    @property
    def accelerations(self) -> Float[Array, "*lanes times nv"]:
        """Accelerations [rad/s² or m/s²]; in the row of an event, those before it."""

        def acceleration(system, t, q, v, tau):
            field = _uncontrolled(system)
            return field.accelerations(field.model, t, State(q, v), tau)[0]

        return self._rows(acceleration, self.ts, self.q, self.v, self._forces())

    @property
    def multipliers(self) -> Float[Array, "*lanes times rows"]:
        """Forces of constraints, a column for each of their rows [N m or N]."""

        def forces(system, t, q, v, tau):
            field = _uncontrolled(system)
            model, tau = field.model, tau + field.reacting_force(field.model, t, State(q, v), tau)
            return constrained_dynamics(model, system.constraints, q, v, tau, t=t, method=system.method).multipliers

        return self._rows(forces, self.ts, self.q, self.v, self._forces())

    @property
    def contacts(self) -> Contacts:
        """Points where shapes may touch and the forces there, in every row: arrays have axes for lanes, times and
        points.

        Forces are those of the steps in which rows lie, where `contact_forces` has them: impulses over time of
        `jdyn.solvers.ConvexEuler`, and of `jdyn.solvers.Automatic` in single precision those that differ from forces of
        states by no more than rounding of positions, as they do at rest. All others follow from the states of rows.

        Raises:
            ValueError: if the system has no contact.
        """
        if self.system.contact is None:
            raise ValueError("contacts: shapes of this system do not touch; simulate it with contact=...")
        known = _reactions(self, self._forces()) if self.system.contact.reacts else self.contact_forces
        return _at_contacts(self, named_contacts, known)

    @property
    def sensors(self) -> dict[str, Float[Array, "*rows"]]:
        """Values of the sensors of the system in every row, by name, with axes for lanes, times and those of a value;
        contact forces are those of `contacts`. A trajectory `with_system` of other sensors has theirs."""
        return _sensed(self) if self.system.sensors else {}

    def _forces(self):
        """Generalized forces of all but constraints and rigid contact."""
        tau, system = self.tau, self.system
        if system.elements or system.joint_limits is not None:

            def pushed(system, t, q, v, states, tau):
                stops = () if system.joint_limits is None else (system.joint_limits.stops(system.model),)
                states = _known_states(Elements(system.elements), system.model, t, q, v, states)
                return tau + Elements((*system.elements, *stops)).force(system.model, t, q, v, states)

            tau = self._rows(pushed, self.ts, self.q, self.v, self._element_states, tau)
        if system.contact is None or system.contact.reacts:
            return tau
        return tau + _at_contacts(self, generalized_forces, self.contact_forces)

    @property
    def _element_states(self) -> list[Array]:
        """Arrays of which states of force elements consist."""
        return jax.tree.leaves(self.parts.get(ElementStates.part))

    @property
    def poses(self) -> Transform:
        """Poses of the bodies in the world, with axes for lanes, times and bodies."""
        return self._rows(lambda system, q: forward_kinematics(system.model, q), self.q)

    @property
    def energy(self) -> Float[Array, "*lanes times"]:
        """Kinetic and potential energy, with that of force elements [J]."""

        def energy(system, t, q, v, states):
            model, elements = system.model, Elements(system.elements)
            mechanical = mechanical_energy(model, q, v)
            if not elements.each:
                return mechanical
            return mechanical + elements.energy(model, q, v, _known_states(elements, model, t, q, v, states))

        return self._rows(energy, self.ts, self.q, self.v, self._element_states)

    @property
    def momentum(self) -> Float[Array, "*lanes times 6"]:
        """Momentum [angular; linear] about the centre of mass, in world axes [N m s, N s]."""
        return self._rows(lambda system, q, v: momentum(system.model, q, v), self.q, self.v)

    @property
    def _known(self) -> Known[System]:
        if self.known is None:
            raise ValueError("this trajectory was loaded, and does not know its system; see Trajectory.with_system")
        return self.known

    def _rows(self, function, *rows):
        """Results of `function(system, *row)` in every row."""
        return self._lanes(lambda system, *lane: jax.vmap(lambda *row: function(system, *row))(*lane), *rows)

    def _lanes(self, function, *rows):
        """Results of `function(system, *rows)` in every lane."""
        known = self._known

        def in_lane(numbers, *rows):
            return function(known.with_numbers(numbers), *rows)

        for _ in range(self.ts.ndim - 1):
            in_lane = jax.vmap(in_lane)
        return in_lane(known.numbers, *rows)

    # Between rows.

    def interpolate(self, t: ArrayLike) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """Configuration and velocity at a time between rows; NaN before the first and after the last.

        It is Hermite's cubic polynomial on the configuration manifold, and smooths a bounce between two rows. Rows that
        `saveat` asks for are exact to the solver's tolerance.

        Bodies on free and ball joints turn from row to row as the mean of both rows' angular velocities says: a
        constant spin is exact however many turns it makes. Where the spin changes between rows so much that the mean
        misses the turn by more than π, rows do not tell how it was, and it is wrong by whole turns: ask for more rows.

        Args:
            t: Time [s], a scalar; `jax.vmap` takes many.

        Raises:
            ValueError: for a batch, of which `jax.vmap` takes every lane, or if `t` is not a scalar.
        """
        self._check_single("interpolate")
        t = jnp.asarray(t, self.ts.dtype)
        if t.shape:
            raise ValueError(f"t: expected a scalar, got shape {t.shape}; `resample` or jax.vmap takes many")
        return hermite(self.system.model, self.ts, self.q, self.v, t)

    def resample(self, ts: Float[Array, " times"]) -> Trajectory:
        """The trajectory with rows at other times, by `interpolate`; parts beside the motion, contact forces
        and commands linearly, which is meaningless for a memory that ticks.

        Args:
            ts: Times [s].

        Raises:
            ValueError: for a batch, of which `jax.vmap` takes every lane, or if `ts` has not one axis.
        """
        self._check_single("resample")
        ts = jnp.asarray(ts, self.ts.dtype)
        if ts.ndim != 1:
            raise ValueError(f"ts: expected shape (times,), got {ts.shape}")
        q, v = jax.vmap(self.interpolate)(ts)
        parts, forces, commands = jax.tree.map(
            lambda rows: jax.vmap(lambda t: linear(self.ts, rows, t))(ts),
            (self.parts, self.contact_forces, self.commands),
        )
        stats = {name: x for name, x in self.stats.items() if not name.startswith("row_")}
        return Trajectory(ts, q, v, parts, self.events, self.result, stats, forces, commands, self.known)

    def _check_single(self, method):
        if self.ts.ndim != 1:
            raise ValueError(
                f"{method}: expected one motion, got a batch of shape {self.ts.shape[:-1]}; use "
                f"jax.vmap(lambda trajectory: trajectory.{method}(...))(trajectories)"
            )

    # For other programs.

    def to_xarray(self) -> xarray.Dataset:
        """A labelled dataset of rows, events, result and statistics; without what controllers remember
        and without contact forces.

        Coordinates of `q` and `v` are named by joint, as `hull[0]` where it has several, with the unit of each in the
        coordinates `q_unit` and `v_unit`; of a loaded trajectory they are numbered from 0.

        Returns:
            Variables along `lane` (and `lane_1`, ... under nested `jax.vmap`), `time`, `q_coordinate`, `v_coordinate`
            and, where there are some, `event`. Where lanes have times of their own, these are the variable `t`.
        """
        return labelled(self, None if self.known is None else self.system.model)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, which appears whole or not at all; the usual name is `*.npz`."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"events.{name}": x for name, x in vars(self.events).items()}
        arrays |= {f"stats.{name}": x for name, x in self.stats.items()}
        arrays |= {f"contact_forces.{name}": x for name, x in _fields(self.contact_forces).items()}
        for name, part in self.parts.items():
            arrays |= {f"parts.{name}.{i}": x for i, x in enumerate(jax.tree.leaves(part))}
        present = {name: np.asarray(x) for name, x in arrays.items() if x is not None}
        absent = sorted(arrays.keys() - present.keys())
        save_archive(path, _KIND, _VERSION, present, {"entries": list(arrays), "absent": absent})

    @staticmethod
    def load(path: str | os.PathLike) -> Trajectory:
        """Read what `save` wrote. Parts beside the motion that are no single arrays come back as lists of theirs.

        Warns:
            UserWarning: if it is in float64, and JAX is set to float32.

        Raises:
            OSError: if there is no such file, or none that may be read.
            ValueError: if it is damaged, something else, of a newer version, or its arrays are none of one motion.
        """
        arrays, header = load_archive(path, _KIND, _VERSION)
        if any(x.dtype != canonicalize_dtype(x.dtype) for x in arrays.values()):
            warnings.warn(f"{path}: in float64, read as float32; set jax_enable_x64 to keep all digits", stacklevel=2)

        def part(name):
            names = [entry for entry in header["entries"] if entry.startswith(f"{name}.")]
            return {entry.removeprefix(f"{name}."): read(entry) for entry in names}

        def read(entry) -> Any:
            return None if entry in header["absent"] else jnp.asarray(arrays[entry])

        try:
            parts: dict[str, Any] = {}
            for entry, x in part("parts").items():
                parts.setdefault(entry.rpartition(".")[0], []).append(x)
            parts = {name: x[0] if len(x) == 1 else x for name, x in parts.items()}
            pushing = part("contact_forces")
            forces = PointForces(**pushing) if pushing else None
            fields = {name: read(name) for name in _ARRAYS}
            events, stats = Events(**part("events")), part("stats")
            found = Trajectory(parts=parts, events=events, stats=stats, contact_forces=forces, **fields)
            wrong = misfit(found)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: expected a jdyn {_KIND}, found one that lacks {error}") from error
        if wrong:
            raise ValueError(f"{path}: expected a jdyn {_KIND}, found a damaged or a different file: {wrong}")
        return found


def _known_states(elements, model, t, q, v, found):
    """States of force elements from their arrays, which a loaded trajectory has without a structure."""
    states, structure = jax.tree.flatten(jax.eval_shape(lambda *state: elements.start(model, *state), t, q, v))
    _check_parts("elements: expected those that were simulated, with states", states, found)
    return jax.tree.unflatten(structure, found)


def _check_parts(problem, expected, found):
    shapes, there = ([jnp.shape(x) for x in tree] for tree in (expected, found))
    if shapes != there:
        raise ValueError(f"{problem} of shapes {there}, got {shapes}")


# Programs of all rows: operation by operation, hundreds would be compiled.
_program: Any = functools.partial(compiled_for_rows, rows=lambda motion, *_: motion.ts.size)


@_program
def _at_contacts(motion, function, known):
    def at(system, q, v, known):
        forces = of_all_pairs(system.contact.between(colliders(system.model)))
        return function(forces, system.model.without_shapes(), q, v, known)

    return motion._rows(at, motion.q, motion.v, known)


@_program
def _reactions(motion, tau):
    """Forces of rigid contact at all points in every row, by the generalized forces of all others."""

    def at(system, t, q, v, tau):
        field = _uncontrolled(system)
        field = dataclasses.replace(field, contact=of_all_pairs(field.contact))
        return field.contact_reaction(field.model, t, State(q, v), tau).points

    return motion._rows(at, motion.ts, motion.q, motion.v, tau)


@_program
def _sensed(motion):
    def in_row(system, t, q, v, parts, known, commands):
        model, elements, contact, stops = system.model.without_shapes(), Elements(system.elements), system.contact, None
        if elements.each:
            states = _known_states(elements, model, t, q, v, jax.tree.leaves(parts.get(ElementStates.part)))
            parts = parts | {ElementStates.part: states}
        if contact is not None:
            contact = contact.between(colliders(system.model))
        if system.joint_limits is not None:
            stops = system.joint_limits.stops(model)
        controller = with_memory(None)
        if use_actuators(system.sensors) or use_forces(system.sensors):
            remembered = jax.tree.leaves(parts.get(ControllerMemory.part))
            controller, memory = _driver(system, t, q, v, remembered, commands)
            parts = parts | {ControllerMemory.part: memory}
        field = VectorField(
            model, controller, system.method, stops, system.constraints, contact=contact, elements=elements
        )
        return values(system.sensors, field, t, State(q, v, parts), known, system.around())

    rows = motion.ts, motion.q, motion.v, motion.parts, motion.contact_forces, motion.commands
    measured = motion._rows(in_row, *rows)

    def in_lane(system, ts, measured):
        return shown_in_rows(in_type(system.sensors, ts.dtype), ts, measured)

    return motion._lanes(in_lane, motion.ts, measured) if sampled(motion.system.sensors) else measured


def _uncontrolled(system) -> VectorField:
    """Equations of motion under given forces."""
    model, elements, contact = system.model.without_shapes(), Elements(system.elements), None
    if system.contact is not None and system.contact.reacts:
        contact = system.contact.between(colliders(system.model))
    return VectorField(
        model, with_memory(None), system.method, constraints=system.constraints, contact=contact, elements=elements
    )


def _commanded(system, t, q, v, remembered, commands):
    controller, memory = _driver(system, t, q, v, remembered, commands)
    return controller.force(t, q, v, memory)


def controller_outputs(motion: Trajectory) -> Float[Array, "*lanes times outputs"]:
    """Outputs of the controller in every row: commands of actuators, generalized forces where there are none."""
    if motion.commands is not None or not motion.system.actuators:
        return motion.tau if motion.commands is None else motion.commands

    def commanded(system, t, q, v, remembered):
        driven, memory = _driver(system, t, q, v, remembered, None)
        return driven.commands(t, q, v, memory)

    memory = jax.tree.leaves(motion.parts.get(ControllerMemory.part))
    return motion._rows(commanded, motion.ts, motion.q, motion.v, memory)


def _driver(system, t, q, v, remembered, commands):
    """The controller of a system, through its actuators, and its memory from arrays. Where it is not known, it gives
    the commands of the row, and the memory is that of the actuators, which are the last ones to remember."""
    if commands is not None:
        system = system.but(controller=Constant(commands))
    controller = system.driver()
    memory, structure = jax.tree.flatten(jax.eval_shape(lambda *state: controller.start(*state), t, q, v))
    if commands is not None:
        remembered = remembered[len(remembered) - len(memory) :]
    _check_parts("controller: expected the one that was simulated, with a memory", memory, remembered)
    return controller, jax.tree.unflatten(structure, remembered)


def _fields(structure: Any) -> dict[str, Any]:
    return {} if structure is None else vars(structure)


_KIND, _VERSION = "trajectory", 1
_ARRAYS = ("ts", "q", "v", "result")
