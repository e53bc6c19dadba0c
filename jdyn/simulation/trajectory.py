"""The result of a simulation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype
from jaxtyping import Array, ArrayLike, Float, Int, PyTree

from jdyn.contact import Contact, Contacts, PointForces, colliders, generalized_forces, named_contacts
from jdyn.control.dynamic import with_memory
from jdyn.dynamics import Method, constrained_dynamics, forward_kinematics, momentum
from jdyn.io.archive import load_archive, save_archive
from jdyn.model import Constraint, Model
from jdyn.simulation.energy_control import mechanical_energy
from jdyn.simulation.interpolation import hermite, linear
from jdyn.simulation.joint_limits import CompliantLimits, ImpactLimits
from jdyn.simulation.result import succeeded
from jdyn.simulation.saved import misfit
from jdyn.simulation.to_xarray import labelled
from jdyn.simulation.vector_field import State, VectorField
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

    Rows that were not reached are NaN in `q` and `v`. Forces, accelerations, poses and energies are computed on demand,
    for all lanes, from the model and the controller that were simulated; for a batch of models, under `jax.vmap`.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> q, v = motion.interpolate(model, 0.505)
    >>> print(q.round(3), jnp.ptp(motion.energy(model)) < 1e-3)
    [-0.249] True

    Attributes:
        ts: Times [s].
        q: Configurations [rad or m], quaternions of unit length.
        v: Velocities [rad/s or m/s].
        memory: What the controller remembered, a row a time; None for a function of the state.
        supplied: Energy that the mechanism received, at its start and by work [J]; None unless the solver is an
            `EnergyError`.
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
    """

    ts: Float[Array, "*lanes times"]
    q: Float[Array, "*lanes times nq"]
    v: Float[Array, "*lanes times nv"]
    memory: PyTree[Array]
    supplied: Float[Array, "*lanes times"] | None
    events: Events
    result: Int[Array, "*lanes"]
    stats: dict[str, Any]
    contact_forces: PointForces | None = None

    @property
    def success(self):
        """Tell whether the end was reached, or an event that ends the simulation."""
        return succeeded(self.result)

    # Every row.

    def tau(self, controller: Any) -> Float[Array, "*lanes times nv"]:
        """Generalized forces of the controller [N m or N].

        Args:
            controller: The one that was simulated.

        Raises:
            ValueError: if it has another memory.
        """
        controller = with_memory(controller)

        def force(t, q, v, *remembered):
            memory, structure = jax.tree.flatten(jax.eval_shape(controller.start, t, q, v))
            expected, found = ([jnp.shape(x) for x in tree] for tree in (memory, remembered))
            if expected != found:
                raise ValueError(
                    f"controller: expected the one that was simulated, with a memory of shapes {found}, "
                    f"got one of {expected}"
                )
            return controller.force(t, q, v, jax.tree.unflatten(structure, remembered))

        return self._rows(force, self.ts, self.q, self.v, *jax.tree.leaves(self.memory))

    def a(
        self,
        model: Model,
        controller: Any = None,
        *,
        joint_limits: CompliantLimits | ImpactLimits | None = None,
        contact: Contact | None = None,
        constraints: Sequence[Constraint] = (),
        method: Method | None = None,
    ) -> Float[Array, "*lanes times nv"]:
        """Accelerations [rad/s² or m/s²]; in the row of an event, those before it.

        Args:
            model: The mechanism.
            controller: The one that was simulated; no torque if left out.
            joint_limits: As they were simulated.
            contact: As it was simulated, for a model with its shapes.
            constraints: As they were simulated.
            method: Forward-dynamics method; `jdyn.ABA()` if left out.

        Raises:
            ValueError: if the controller has a different memory from the simulated one.
        """
        field = VectorField(model.without_shapes(), with_memory(None), method, constraints=tuple(constraints))

        def acceleration(t, q, v, tau):
            return field.accelerations(field.model, t, State(q, v), tau)[0]

        tau = self._forces(model, controller, joint_limits, contact)
        return self._rows(acceleration, self.ts, self.q, self.v, tau)

    def multipliers(
        self,
        model: Model,
        constraints: Sequence[Constraint],
        controller: Any = None,
        *,
        joint_limits: CompliantLimits | ImpactLimits | None = None,
        contact: Contact | None = None,
        method: Method | None = None,
    ) -> Float[Array, "*lanes times rows"]:
        """Forces of constraints, a column for each of their rows [N m or N].

        Arguments and errors are those of `a`.
        """

        def forces(t, q, v, tau):
            return constrained_dynamics(model, constraints, q, v, tau, t=t, method=method).multipliers

        tau = self._forces(model, controller, joint_limits, contact)
        return self._rows(forces, self.ts, self.q, self.v, tau)

    def contacts(self, model: Model, contact: Contact) -> Contacts:
        """Points where shapes may touch and the forces there, in every row: arrays have axes for lanes, times and
        points.

        Forces are those of the steps in which rows lie, where `contact_forces` has them: impulses over time of
        `jdyn.ConvexEuler`, and of `jdyn.Automatic` in single precision those that differ from forces of states by no
        more than rounding of positions, as they do at rest. All others follow from the states of rows.

        Args:
            model: The mechanism with its shapes.
            contact: The one that was simulated.

        Raises:
            ValueError: if the model has no collision shapes.
        """
        return self._at_contacts(named_contacts, model, contact)

    def _forces(self, model, controller, joint_limits, contact):
        """Generalized forces of all but constraints."""
        tau = self.tau(controller)
        if joint_limits is not None:
            stops = joint_limits.stops(model)
            tau = self._rows(lambda q, v, tau: tau + stops.force(model, q, v), self.q, self.v, tau)
        return tau if contact is None else tau + self._at_contacts(generalized_forces, model, contact)

    def _at_contacts(self, function, model, contact):
        shapes = colliders(model)
        # All pairs have rows, whatever is simulated: these have the same names at all times.
        forces = eqx.tree_at(lambda forces: forces.colliders, contact.between(shapes), shapes)
        bare, known = model.without_shapes(), self.contact_forces
        return self._rows(lambda q, v, known: function(forces, bare, q, v, known), self.q, self.v, known)

    def poses(self, model: Model) -> Transform:
        """Poses of the bodies in the world, with axes for lanes, times and bodies."""
        return self._rows(lambda q: forward_kinematics(model, q), self.q)

    def energy(self, model: Model) -> Float[Array, "*lanes times"]:
        """Kinetic and potential energy [J]."""
        return self._rows(lambda q, v: mechanical_energy(model, q, v), self.q, self.v)

    def momentum(self, model: Model) -> Float[Array, "*lanes times 6"]:
        """Momentum [angular; linear] about the centre of mass, in world axes [N m s, N s]."""
        return self._rows(lambda q, v: momentum(model, q, v), self.q, self.v)

    def _rows(self, function, *rows):
        for _ in range(self.ts.ndim):
            function = jax.vmap(function)
        return function(*rows)

    # Between rows.

    def interpolate(self, model: Model, t: ArrayLike) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """Configuration and velocity at a time between rows; NaN before the first and after the last.

        It is Hermite's cubic polynomial on the configuration manifold, and smooths a bounce between two rows. Rows that
        `saveat` asks for are exact to the solver's tolerance.

        Bodies on free and ball joints turn from row to row as the mean of both rows' angular velocities says: a
        constant spin is exact however many turns it makes. Where the spin changes between rows so much that the mean
        misses the turn by more than π, rows do not tell how it was, and it is wrong by whole turns: ask for more rows.

        Args:
            model: The mechanism.
            t: Time [s], a scalar; `jax.vmap` takes many.

        Raises:
            ValueError: for a batch, of which `jax.vmap` takes every lane, or if `t` is not a scalar.
        """
        self._check_single("interpolate")
        t = jnp.asarray(t, self.ts.dtype)
        if t.shape:
            raise ValueError(f"t: expected a scalar, got shape {t.shape}; `resample` or jax.vmap takes many")
        return hermite(model, self.ts, self.q, self.v, t)

    def resample(self, model: Model, ts: Float[Array, " times"]) -> Trajectory:
        """The trajectory with rows at other times, by `interpolate`; memory, supplied energy and contact forces
        linearly, which is meaningless for a memory that ticks.

        Args:
            model: The mechanism.
            ts: Times [s].

        Raises:
            ValueError: for a batch, of which `jax.vmap` takes every lane, or if `ts` has not one axis.
        """
        self._check_single("resample")
        ts = jnp.asarray(ts, self.ts.dtype)
        if ts.ndim != 1:
            raise ValueError(f"ts: expected shape (times,), got {ts.shape}")
        q, v = jax.vmap(lambda t: self.interpolate(model, t))(ts)
        memory, supplied, forces = jax.tree.map(
            lambda rows: jax.vmap(lambda t: linear(self.ts, rows, t))(ts),
            (self.memory, self.supplied, self.contact_forces),
        )
        stats = {name: x for name, x in self.stats.items() if not name.startswith("row_")}
        return Trajectory(ts, q, v, memory, supplied, self.events, self.result, stats, forces)

    def _check_single(self, method):
        if self.ts.ndim != 1:
            raise ValueError(
                f"{method}: expected one motion, got a batch of shape {self.ts.shape[:-1]}; use "
                f"jax.vmap(lambda trajectory: trajectory.{method}(...))(trajectories)"
            )

    # For other programs.

    def to_xarray(self, model: Model | None = None) -> xarray.Dataset:
        """A labelled dataset of rows, events, result and statistics; without the controller's memory and without
        contact forces.

        Args:
            model: Names the coordinates of `q` and `v` by joint, as `hull[0]` where it has several, with the unit of
                each in the coordinates `q_unit` and `v_unit`; they are numbered from 0, if left out.

        Returns:
            Variables along `lane` (and `lane_1`, ... under nested `jax.vmap`), `time`, `q_coordinate`, `v_coordinate`
            and, where there are some, `event`. Where lanes have times of their own, these are the variable `t`.
        """
        return labelled(self, model)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, which appears whole or not at all; the usual name is `*.npz`."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"events.{name}": x for name, x in vars(self.events).items()}
        arrays |= {f"stats.{name}": x for name, x in self.stats.items()}
        arrays |= {f"contact_forces.{name}": x for name, x in _fields(self.contact_forces).items()}
        arrays |= {f"memory.{i}": x for i, x in enumerate(jax.tree.leaves(self.memory))}
        present = {name: np.asarray(x) for name, x in arrays.items() if x is not None}
        absent = sorted(arrays.keys() - present.keys())
        save_archive(path, _KIND, _VERSION, present, {"entries": list(arrays), "absent": absent})

    @staticmethod
    def load(path: str | os.PathLike) -> Trajectory:
        """Read what `save` wrote. The memory comes back as the list of its arrays.

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
            memory = list(part("memory").values()) or None
            pushing = part("contact_forces")
            forces = PointForces(**pushing) if pushing else None
            fields = {name: read(name) for name in _ARRAYS}
            events, stats = Events(**part("events")), part("stats")
            found = Trajectory(memory=memory, events=events, stats=stats, contact_forces=forces, **fields)
            wrong = misfit(found)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: expected a jdyn {_KIND}, found one that lacks {error}") from error
        if wrong:
            raise ValueError(f"{path}: expected a jdyn {_KIND}, found a damaged or a different file: {wrong}")
        return found


def _fields(structure: Any) -> dict[str, Any]:
    return {} if structure is None else vars(structure)


_KIND, _VERSION = "trajectory", 1
_ARRAYS = ("ts", "q", "v", "supplied", "result")
