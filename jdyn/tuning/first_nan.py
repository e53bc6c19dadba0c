"""The time and body at which numbers stop being finite."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jdyn.dynamics import forward_dynamics
from jdyn.simulation import Result, State, System, Trajectory, simulate
from jdyn.simulation.result import MESSAGES
from jdyn.simulation.state import controller_memory
from jdyn.tuning.parameters import named_leaves

SystemOf = Callable[[PyTree], System]

# The search for a failure begins this close to the last good state, in roundings of the time; number of distances.
NEAREST, DISTANCES = 16, 40


@dataclasses.dataclass(frozen=True)
class FirstNaN:
    """The first number that is not finite.

    Attributes:
        leaves: Parameters whose derivative is not finite; all of them if the loss is not finite.
        time: Its time [s]; None if it is not known.
        bodies: Bodies whose joint coordinates it belongs to; empty if there are none or they are not known.
        reason: The quantity that is not finite.
    """

    leaves: tuple[str, ...]
    time: float | None
    bodies: tuple[str, ...]
    reason: str

    def __str__(self):
        place = "" if self.time is None else f", first at t = {self.time:.6g} s"
        bodies = f", body {', '.join(map(repr, self.bodies))}" if self.bodies else ""
        return f"not finite with respect to {', '.join(self.leaves)}{place}{bodies}: {self.reason}"


class Place(NamedTuple):
    """A `FirstNaN` without its leaves."""

    time: float | None
    bodies: tuple[str, ...]
    reason: str


def of_value(trajectory: Trajectory, system_of: SystemOf | None, params: PyTree) -> Place:
    """The first place where a loss is not finite."""
    ts, states = _rows(trajectory)
    finite, reached = _finite_rows(states), float(trajectory.stats["t_reached"])
    if trajectory.success and np.all(finite):
        return Place(None, (), "the simulation is finite, the loss makes the number from it")
    if trajectory.success:
        return Place(
            reached, (), "an event ends the simulation here; rows after it are NaN, and not for the loss to use"
        )
    code, good = Result(int(trajectory.result)), int(np.sum(np.cumprod(finite)))
    if code == Result.nonfinite and system_of is not None and good:
        return _beyond(ts[good - 1], _at(states, good - 1), reached, system_of, params)
    missing = [] if good else ["save a row before it"]
    missing += [] if system_of else ["give `system`"]
    advice = f"; {' and '.join(missing)} to have the body named" if code == Result.nonfinite else ""
    return Place(reached, (), f"the simulation ends with {code.name}, {MESSAGES[code]}{advice}")


def of_gradient(trajectory: Trajectory, system_of: SystemOf, params: PyTree) -> Place | None:
    """The first place where a derivative is not finite, by derivatives of the equations of motion in each row; None if
    these are finite."""
    ts, states = _rows(trajectory)
    good = np.flatnonzero(_finite_rows(states))
    return _scanned(_derivative_flags, ts[good], _at(states, good), system_of, params)


def _rows(trajectory):
    """Times and states of the rows that were reached."""
    if trajectory.q.ndim != 2:
        raise ValueError(
            f"loss: expected the trajectory of one simulation beside the value, got q of shape {trajectory.q.shape}; "
            "of a batch return the lane that is in question"
        )
    rows = np.flatnonzero(np.isfinite(trajectory.ts))
    states = State(trajectory.q, trajectory.v, trajectory.parts)
    return np.asarray(trajectory.ts)[rows], _at(states, rows)


def _at(states, rows):
    return jax.tree.map(lambda x: x[rows], states)


def _finite_rows(states):
    return np.all(np.isfinite(np.hstack([states.q, states.v])), axis=1)


def _beyond(t, state, reached, system_of, params) -> Place:
    """The failure that ends a simulation after a good state. It is simulated again up to the failure, with the default
    solver and a new memory of the controller, and examined from there at growing distances."""
    system = system_of(params)
    model, controller = system.model, system.driver()
    # Twice as far as the failure, or by a millisecond if the row is close to it.
    ahead = abs(reached - float(t)) + 1e-3
    end = reached + (ahead if reached >= float(t) else -ahead)
    steps = diffrax.SaveAt(t0=True, steps=True)
    again = simulate(system, State(state.q, state.v), end, t0=t, saveat=steps, throw=False)
    if again.success:
        why = "a simulation with the default solver from the row before gets past it; are steps too long?"
        return Place(reached, (), why)
    ts, states = _rows(again)
    last = _at(states, len(ts) - 1)
    left = end - float(ts[-1])
    nearest = NEAREST * float(jnp.finfo(ts.dtype).eps) * max(abs(reached), abs(end))
    distances = np.sign(left) * np.geomspace(nearest, abs(left), DISTANCES).astype(ts.dtype)
    tau = controller.force(jnp.asarray(ts[-1]), last.q, last.v, controller_memory(last))
    a = jnp.nan_to_num(forward_dynamics(model, last.q, last.v, tau), posinf=0.0, neginf=0.0)

    def later(d):
        return State(model.integrate(last.q, d * last.v), last.v + d * a, last.parts)

    found = _scanned(_value_flags, ts[-1] + distances, jax.vmap(later)(jnp.asarray(distances)), system_of, params)
    return found or Place(reached, (), "the state grows without bound, by forces that are finite")


class _Flags(NamedTuple):
    """Numbers that are not finite at an instant: entries of two vectors, or of two derivatives with respect to each
    leaf of the parameters and of the state."""

    force: Any
    acceleration: Any


_NAMES = _Flags("the controller's force", "the acceleration")


def _scanned(flags_of, ts, states, system_of, params) -> Place | None:
    """The first row where something is not finite; None if there is none."""
    tuned, fixed = eqx.partition(params, eqx.is_inexact_array)

    @eqx.filter_jit
    def scan(ts, states):
        def motion(tuned):
            system = system_of(eqx.combine(tuned, fixed))
            return system.model, system.driver()

        # One after another: under `vmap`, `lax.cond` would evaluate both branches.
        return jax.lax.map(lambda row: flags_of(motion, tuned, *row), (ts, states))

    flags = jax.tree.map(np.asarray, scan(jnp.asarray(ts), states))
    rows = [np.flatnonzero(_any_by_row(flag)) for flag in flags]
    if not any(map(len, rows)):
        return None
    row, which = min((bad[0], number) for number, bad in enumerate(rows) if len(bad))
    bodies, what = _explained(system_of(params).model.topology, _NAMES[which], _at(flags[which], row))
    return Place(float(ts[row]), bodies, what)


def _value_flags(motion, tuned, t, y) -> _Flags:
    model, controller = motion(tuned)
    tau = controller.force(t, y.q, y.v, controller_memory(y))
    return _Flags(~jnp.isfinite(tau), ~jnp.isfinite(forward_dynamics(model, y.q, y.v, tau)))


def _derivative_flags(motion, tuned, t, y) -> _Flags:
    def force(tuned, y):
        return motion(tuned)[1].force(t, y.q, y.v, controller_memory(y))

    tau, pull_force = jax.vjp(force, tuned, y)
    a, pull_acceleration = jax.vjp(lambda tuned, y: forward_dynamics(motion(tuned)[0], y.q, y.v, tau), tuned, y)
    # Any cotangents will do, since zero times an infinite derivative is not finite either.
    derivatives = pull_force(jnp.ones_like(tau)), pull_acceleration(jnp.ones_like(a))
    return _Flags(*jax.tree.map(lambda x: ~jnp.isfinite(x), derivatives))


def _explained(topology, name, bad):
    """Bodies and reason."""
    if isinstance(bad, np.ndarray):
        return _bodies(topology, "v", bad), f"{name} is not finite"
    by_leaf, state = bad
    by = [f"{which}{_numbers(flags)}" for which, flags in (("q", state.q), ("v", state.v)) if np.any(flags)]
    by += ["the controller's memory"] * any(np.any(flags) for flags in jax.tree.leaves(controller_memory(state)))
    by += [leaf for leaf, flags in named_leaves(by_leaf) if np.any(flags)]
    bodies = _bodies(topology, "q", state.q) + _bodies(topology, "v", state.v)
    return tuple(dict.fromkeys(bodies)), f"the derivative of {name} by {', '.join(by)} is not finite"


def _any_by_row(flag):
    return np.any([x.reshape(len(x), -1).any(axis=1) for x in jax.tree.leaves(flag)], axis=0)


def _numbers(flags):
    return f"[{', '.join(map(str, np.flatnonzero(flags)))}]"


def _bodies(topology, which: str, bad) -> tuple[str, ...]:
    """Names of the bodies that coordinates belong to."""
    coordinates = np.array(getattr(topology, f"independent_{which}"))[bad]
    offsets = np.array(getattr(topology, f"{which}_offsets"))
    bodies = np.searchsorted(offsets, coordinates, side="right") - 1
    return tuple(topology.body_names[body] for body in dict.fromkeys(bodies))
