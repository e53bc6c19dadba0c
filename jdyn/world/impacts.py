"""Impacts of a motion with rigid contact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.contact import RigidContact, RigidForces, colliders
from jdyn.control.controller import with_memory
from jdyn.elements import Elements
from jdyn.simulation import Event, State, System, Trajectory
from jdyn.simulation.parts import Known
from jdyn.simulation.rigid_events import Changing, hits
from jdyn.simulation.vector_field import VectorField


class Impact(NamedTuple):
    """One impact of two shapes.

    >>> hit = jdyn.world.Impact(0.8, ("left/ball", "right/ball"), np.array([1.5, 0.0, 0.0]), -0.375)
    >>> print(hit.pair, hit.energy)
    ('left/ball', 'right/ball') -0.375

    Attributes:
        t: When [s].
        pair: Names of the shapes, each `object/shape`.
        impulse: On the second shape, in axes of the world [N s].
        energy: Change of the kinetic energy [J].
    """

    t: float
    pair: tuple[str, str]
    impulse: np.ndarray
    energy: float


class Impacts(eqx.Module):
    """Impacts of a motion: a row an instant, a column for each pair of shapes that may touch.

    Under `jax.vmap` arrays have an axis of lanes first. `records` lists what happened, for reading.

    >>> ball, pairs = jnp.array([[[0.0, 0.0, 2.0]]]), (("table/top", "ball/ball"),)
    >>> impacts = jdyn.world.Impacts(jnp.array([0.3]), pairs, ball, jnp.array([[-0.5]]))
    >>> print(impacts.of("table").impulse[0] + 0.0, impacts.records[0].pair)
    [[ 0.  0. -2.]] ('table/top', 'ball/ball')

    Attributes:
        ts: When [s]; NaN in rows that were not used.
        pairs: Names of the two shapes of each pair, each `object/shape`.
        impulse: On the second shape, in axes of the world [N s].
        energy: Change of the kinetic energy by each pair [J].
    """

    ts: Float[Array, "*lanes rows"]
    pairs: tuple[tuple[str, str], ...] = eqx.field(static=True)
    impulse: Float[Array, "*lanes rows pairs 3"]
    energy: Float[Array, "*lanes rows pairs"]

    def of(self, name: str) -> Impacts:
        """Impacts of one object, which is always the second one, so that impulses are on it."""
        prefix = f"{name}/"
        second = [i for i, (_, b) in enumerate(self.pairs) if b.startswith(prefix)]
        first = [i for i, (a, b) in enumerate(self.pairs) if a.startswith(prefix) and not b.startswith(prefix)]
        places, turns = (np.array(each, int) for each in (second, first))
        turned = [(b, a) for a, b in (self.pairs[i] for i in first)]
        pairs = (*(self.pairs[i] for i in second), *turned)
        impulse = jnp.concatenate([self.impulse[..., places, :], -self.impulse[..., turns, :]], axis=-2)
        return Impacts(self.ts, pairs, impulse, self.energy[..., np.append(places, turns)])

    @property
    def records(self) -> list[Impact]:
        """All impacts of one motion, in order.

        Raises:
            ValueError: for a batch, of which `jax.tree.map(lambda x: x[lane], impacts)` takes a lane.
        """
        if self.ts.ndim != 1:
            raise ValueError(
                f"records: expected the impacts of one motion, got a batch of shape {self.ts.shape[:-1]}; take a lane "
                "with jax.tree.map(lambda x: x[lane], impacts)"
            )
        ts, impulse, energy = map(np.asarray, (self.ts, self.impulse, self.energy))
        return [
            Impact(float(ts[row]), self.pairs[pair], impulse[row, pair], float(energy[row, pair]))
            for row, pair in zip(*np.nonzero(np.any(impulse != 0, axis=-1)), strict=True)
        ]


def same(t: Any, y: State, entry: Any) -> State:
    """Reset of the event that takes down states before impacts."""
    return y


def state_before(system: System) -> Event:
    """An event at the instants of impacts, and where points stop to slide, before these in the log: it leaves the state
    as it is."""
    return Event(Changing(system.model.without_shapes(), _forces(system)), same)


def collision_number(system: System, before: int) -> int | None:
    """Number of the event that impacts are, in a simulation with `state_before` after so many other events; None
    without rigid contact."""
    if system.contact is None or not system.contact.reacts:
        return None
    field = VectorField(system.model, with_memory(None), system.method)
    limits = () if system.joint_limits is None else system.joint_limits.events(field)
    return before + 1 + len(limits)


def gathered(hits: Sequence[Impact]) -> Impacts:
    """Impacts by their records, a row each, in order of time."""
    pairs = tuple(dict.fromkeys(hit.pair for hit in hits))
    impulse, energy = np.zeros((len(hits), len(pairs), 3)), np.zeros((len(hits), len(pairs)))
    hits = sorted(hits, key=lambda hit: hit.t)
    for row, hit in enumerate(hits):
        impulse[row, pairs.index(hit.pair)], energy[row, pairs.index(hit.pair)] = hit.impulse, hit.energy
    return Impacts(jnp.array([hit.t for hit in hits]), pairs, jnp.asarray(impulse), jnp.asarray(energy))


@eqx.filter_jit
def impacts_of(motion: Trajectory, number: int) -> Impacts:
    """Impacts of a trajectory with rigid contact, at the instants of which `state_before` was an event, too.

    Args:
        motion: The trajectory.
        number: Of the event that impacts are.
    """
    known, events = Known.of(motion.system), motion.events
    pairs = _forces(motion.system).colliders.names

    def in_lane(numbers, ts, which, q, v):
        system = known.with_numbers(numbers)
        # The event before it, at the same instant, left the velocity before. Where points stop to slide, it stays.
        earlier, before = (jnp.concatenate([x[:1], x[:-1]]) for x in (ts, v))
        here = (which == number) & (ts == earlier) & jnp.any(v != before, axis=1)
        impulse, energy = jax.vmap(lambda *row: _impact(system, *row))(ts, q, before)
        impulse, energy = jnp.where(here[:, None, None], impulse, 0), jnp.where(here[:, None], energy, 0)
        return jnp.where(here, ts, jnp.nan), impulse, energy

    for _ in range(motion.ts.ndim - 1):
        in_lane = jax.vmap(in_lane)
    ts, impulse, energy = in_lane(known.numbers, events.ts, events.which, events.q, events.v)
    return Impacts(ts, pairs, impulse, energy)


def _impact(system: System, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """Impulses on the second shapes of all pairs, and changes of the kinetic energy, of an impact in a state."""
    contact, model, y = _forces(system), system.model.without_shapes(), State(q, v)
    field = VectorField(
        model, with_memory(None), system.method, constraints=system.constraints, elements=Elements(system.elements)
    )
    here = contact.at(model, q, v)
    e, friction, _ = here.numbers
    speeds, hit, _ = hits(field, t, y, here.J, here.touch, contact.law, e, friction)
    work = jnp.sum(hit.impulse * (speeds + hit.velocity), axis=1) / 2
    impulse = jnp.einsum("pij,pi->pj", here.axes, hit.impulse)
    places, count = here.points.pairs.of_points, len(contact.colliders.pairs)

    def of_pairs(x: Array) -> Array:
        return jnp.zeros((count, *x.shape[1:]), x.dtype).at[places].add(x)

    return of_pairs(impulse), of_pairs(work)


def _forces(system: System) -> RigidForces:
    contact = cast(RigidContact, system.contact)
    return contact.between(colliders(system.model))
