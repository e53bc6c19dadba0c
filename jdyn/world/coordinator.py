"""Coordinator of objects that integrate by themselves until they may touch.

Source: Ruspini, Lee and Khatib, sections 3 and 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from jdyn.simulation import MESSAGES, Result, SimulationError, Trajectory
from jdyn.simulation.parts import Known
from jdyn.simulation.simulate import rows_to_save
from jdyn.terminal.messages import enumerated
from jdyn.world.impacts import Impact, collision_number, gathered, impacts_of
from jdyn.world.islands import connected
from jdyn.world.joined import joined
from jdyn.world.motion import Window, WorldMotion
from jdyn.world.pairs import ShapePairs
from jdyn.world.parts import WorldParts
from jdyn.world.places import spans
from jdyn.world.start import overlapping, within
from jdyn.world.unit import Advanced, Moving, Unit, advanced, advanced_alike

# Windows if their length is not stated.
WINDOWS = 50
# Share of a window by which ends of windows differ from even ones.
OFF_ROUND = np.sqrt(2) / 100
# First step of an object [s].
FIRST_STEP = 0.01


class Coordinator(eqx.Module):
    """Coordinator of a world, under which each object takes steps of its own while nothing touches it.

    Time goes in windows. In each one every object first moves alone, with its own solver and steps; objects of one
    structure share a program. Boxes about their motions say which of them may meet. Those are islands, and take the
    window again as one system each, until no island meets another one. So costs are those of islands: a stiff object
    does not shorten the steps of others, and pairs that are far apart cost nothing.

    >>> world = jdyn.World(gravity=(0.0, 0.0, 0.0))
    >>> for i, place in enumerate([0.0, 1.0, 2.0]):
    ...     world = world.with_object(f"arm{i}", jdyn.load("pendulum"), placement=(place, 0.0, 0.0), v=[1.0])
    >>> motion = world.simulate(1.0, coordinator=jdyn.world.Coordinator(window=0.25))
    >>> print(motion["arm2"].q[-1].round(3), len(motion.windows))
    [1.] 4

    An island of a structure that has not been seen takes a while to compile. Of objects of one structure it therefore
    has 2, 4, 8, ...: others that are free fill it up.

    It runs on the host: not under `jit` and `vmap`, and without derivatives, for which `jdyn.World.simulate` without it
    is there.

    Attributes:
        window: Length of windows [s]; a fiftieth of the motion if left out. Longer ones take less time, unless more
            objects may meet in them than do.
        looks: Into how many parts rows cut a window at least, in each of which boxes are about all motion.
        fill: Whether others fill up islands.

    Raises:
        ValueError: if a number is not positive.
    """

    window: float | None = eqx.field(static=True, default=None)
    looks: int = eqx.field(static=True, default=8)
    fill: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        for name, value in (("window", self.window), ("looks", self.looks)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}: expected a positive number, got {value}")

    def motion(
        self, world: WorldParts, span: tuple[Any, Any], saveat: Any, throw: bool, steps: dict[str, Any], others: Any
    ) -> WorldMotion:
        """Motion of a world, as `jdyn.World.simulate` has it.

        Args:
            world: The world.
            span: Start and end [s].
            saveat: Times of rows.
            throw: Whether failure raises.
            steps: Options of steps.
            others: Further options, none of which may be given.

        Raises:
            ValueError: if numbers are traced, time runs backwards, or an option is for one system of all objects.
            SimulationError: as for `jdyn.World.simulate`.
        """
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((world, span, saveat, steps))):
            raise ValueError(
                "coordinator: it runs on the host, not under jit, vmap or grad; leave it out there, and one system of "
                "all objects is simulated"
            )
        if given := [name for name, value in others.items() if value is not None and value != ()]:
            raise ValueError(f"{given[0]}: it is for one system of all objects, without a coordinator")
        t0, t1 = map(float, span)
        if not t1 > t0:
            raise ValueError(f"t1: expected a time after t0 = {t0}, got {t1}")
        plan = rows_to_save(saveat, *jnp.asarray([t0, t1]))
        if plan.steps_per_row:
            raise ValueError("saveat: steps are those of one system of all objects; give times, or no coordinator")
        return _Run(world, self, (t0, t1), np.asarray(plan.times), steps).motion(throw)


class _Run:
    """Coordinated simulation under way.

    Attributes:
        now: States of all objects at the time that is reached.
        between: States of the force elements between objects.
        dt0: Lengths of the first steps of all objects in the next window [s].
    """

    def __init__(self, world: WorldParts, coordinator: Coordinator, span: tuple[float, float], times, steps):
        self.world, self.coordinator, self.span, self.times = world, coordinator, span, times
        whole = world.together(world.names)
        self.contact = within(whole, None, steps.get("stepsize_controller"))
        self.whole = whole.but(contact=self.contact)
        self.pairs = ShapePairs.of(self.whole, world.names)
        self.options = {"looks": coordinator.looks, **steps}
        count = len(world.names)
        self.moving = [i for i, each in enumerate(world.objects) if each.system.model.nv]
        self.coupled = [[world.names.index(name) for name in each] for each in world.coupled()]
        self.alone = {i: Unit.of(world, [i], self.contact) for i in self.moving}
        self.groups = _alike({i: (unit.system, world.objects[i].solver) for i, unit in self.alone.items()})
        self.kinds = {i: number for number, group in enumerate(self.groups) for i in group}
        self.stacks = [_stacked([self.alone[i].system for i in group]) for group in self.groups]
        self.units: dict[tuple[int, ...], Unit] = {}
        none = np.zeros(0)
        self.now = [Moving(none, none, None, ())] * count
        for i, unit in self.alone.items():
            self.now[i] = unit.first(span[0])
        states = world.start_of(self.whole, span[0]).parts.get("elements")
        own = len(self.whole.elements) - len(world.elements)
        self.between = [None] * len(world.elements) if states is None else list(jax.device_get(states[own:]))
        self.dt0 = np.full(count, float(self.options.pop("dt0", None) or FIRST_STEP))
        self.steps, self.tries = np.zeros(count, int), 0
        self.rows: list[list[Moving]] = [[] for _ in range(count)]
        self.rows_between: list[list[Any]] = [[] for _ in world.elements]
        self.hits: list[Impact] = []
        self.windows: list[Window] = []
        self.result, self.reached, self.stopped = Result.success, span[0], ()

    def motion(self, throw: bool) -> WorldMotion:
        """Take all windows."""
        (t0, t1), length = self.span, self.coordinator.window
        count = WINDOWS if length is None else max(1, int(np.ceil((t1 - t0) / length - 1e-9)))
        ends = np.linspace(t0, t1, count + 1)
        # Impacts at round times would be right at their ends.
        ends[1:-1] += OFF_ROUND * (t1 - t0) / count
        last = np.searchsorted(self.times, ends[1:], side="right")
        due = np.split(self.times, last[:-1])
        most = max(map(len, due))
        for start, end, rows in zip(ends[:-1], ends[1:], due, strict=True):
            if not self._window(float(start), float(end), rows, most):
                break
        if throw and self.result != Result.success:
            raise SimulationError(f"world: {self._failure()}")
        return self._whole()

    def _window(self, t0: float, t1: float, rows: np.ndarray, most: int) -> bool:
        """Take a window; tell whether all objects came to its end."""
        looks = np.linspace(t0, t1, self.coordinator.looks + 1)
        times = np.concatenate([looks, rows, np.full(most - len(rows), t1)])
        order = np.argsort(times, kind="stable")
        places = np.argsort(order, kind="stable")[len(looks) : len(looks) + len(rows)]
        call = jnp.asarray([t0, t1]), jnp.asarray(times[order])
        alone = self._each_alone(call)
        islands, together = self._islands(()), {}
        while True:
            filled = self._filled(islands)
            together = {island: together.get(island) or self._together(island, call) for island in filled}
            more = self._islands((*islands, *self.pairs.meeting(*self._boxes(alone, together))))
            if more == islands:
                break
            islands = more
        joined = {i for island in together for i in island}
        done = {(i,): motion for i, motion in alone.items() if i not in joined} | together
        for island, motion in done.items():
            if motion.result != Result.success:
                self.result, self.stopped = Result(int(motion.result)), island
                return False
        for island, motion in done.items():
            self._commit(island, motion, times[order], places)
        names = tuple(tuple(self.world.names[i] for i in island) for island in islands)
        self.windows.append(Window(t0, t1, names))
        self.reached = t1
        return True

    def _each_alone(self, call: tuple[Array, Array]) -> dict[int, Advanced]:
        """Motions of all objects by themselves."""
        found = {}
        for group, stack in zip(self.groups, self.stacks, strict=True):
            options = self.options | {"solver": self.world.objects[group[0]].solver}
            starts = [self.alone[i].start([self.now[i]]) for i in group]
            if len(group) == 1:
                found[group[0]] = self._advanced(self.alone[group[0]].system, starts[0], call, group, options)
                continue
            dt0 = jnp.asarray(self.dt0[np.array(group)])
            lanes = jax.device_get(advanced_alike(stack, _stacked(starts), call[0], call[1], dt0, options))
            found |= {i: jax.tree.map(lambda x, lane=lane: x[lane], lanes) for lane, i in enumerate(group)}
        return found

    def _together(self, island: tuple[int, ...], call: tuple[Array, Array]) -> Advanced:
        """Motion of an island."""
        if island not in self.units:
            self.units[island] = Unit.of(self.world, island, self.contact)
        unit = self.units[island]
        start = unit.start([self.now[i] for i in island], [self.between[i] for i in unit.between])
        return self._advanced(unit.system, start, call, island, self.options)

    def _advanced(self, system, start, call, island, options) -> Advanced:
        y, dt0 = jax.tree.map(jnp.asarray, start), jnp.asarray(min(self.dt0[i] for i in island))
        return jax.device_get(advanced(system, y, call[0], call[1], dt0, options))

    def _islands(self, links: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Islands of several objects. What cannot move joins none together, and is part of each that it meets."""
        links = [*links, *self.coupled]
        moving = [[i for i in link if i in self.kinds] for link in links]
        members = [set(island) for island in connected(self.moving, moving)]
        for link, moved in zip(links, moving, strict=True):
            for island in members:
                if island & set(moved):
                    island.update(link)
        return tuple(self._in_order(island) for island in members if len(island) > 1)

    def _in_order(self, island: Iterable[int]) -> tuple[int, ...]:
        """Objects of an island, those of one structure together."""
        return tuple(sorted(island, key=lambda i: (self.kinds.get(i, -1), i)))

    def _filled(self, islands: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Islands with others that are free, so that there are 2, 4, 8, ... of each structure if there are several."""
        busy = {i for island in islands for i in island}
        free = [[i for i in group if i not in busy] for group in self.groups]
        filled = []
        for island in islands:
            added: list[int] = []
            for kind, count in Counter(self.kinds[i] for i in island if i in self.kinds).items():
                lacking = 2 ** (count - 1).bit_length() - count
                if self.coordinator.fill and count > 1 and lacking <= len(free[kind]):
                    added += free[kind][:lacking]
                    free[kind] = free[kind][lacking:]
            filled.append(self._in_order((*island, *added)))
        return filled

    def _boxes(self, alone: dict[int, Advanced], together: dict[tuple[int, ...], Advanced]) -> tuple[Any, Any]:
        """Boxes about the motions of all shapes."""
        owners, lower, upper = self.pairs.owners, self.pairs.lower.copy(), self.pairs.upper.copy()
        if not len(owners):
            return lower, upper
        for island, motion in ({(i,): motion for i, motion in alone.items()} | together).items():
            rows = np.concatenate([np.flatnonzero(owners == i) for i in island])
            # Where a motion fails, everything may meet it.
            lower[rows] = np.where(np.isnan(motion.swept.lower), -np.inf, motion.swept.lower)
            upper[rows] = np.where(np.isnan(motion.swept.upper), np.inf, motion.swept.upper)
        return lower, upper

    def _commit(self, island: tuple[int, ...], motion: Advanced, times: np.ndarray, places: np.ndarray) -> None:
        """Take over the motion of an island."""
        unit, length = self.alone[island[0]] if len(island) == 1 else self.units[island], times[-1] - times[0]
        objects, between = unit.split(motion.rows)
        for i, own in zip(island, objects, strict=True):
            # What cannot move may be part of several islands.
            if i not in self.kinds:
                continue
            self.now[i] = jax.tree.map(lambda x: x[-1], own)
            self.rows[i].append(jax.tree.map(lambda x: x[places], own))
            self.steps[i] += motion.steps
            self.dt0[i] = length / max(int(motion.steps), 1)
        for i, own in zip(unit.between, between, strict=True):
            self.between[i] = jax.tree.map(lambda x: x[-1], own)
            self.rows_between[i].append(jax.tree.map(lambda x: x[places], own))
        self.tries += int(motion.tries)
        if (number := collision_number(unit.system, 0)) is not None and np.any(motion.events.which == number):
            q, v, events = jax.tree.map(jnp.asarray, (motion.rows.q, motion.rows.v, motion.events))
            seen = Trajectory(jnp.asarray(times), q, v, {}, events, motion.result, {}, known=Known.of(unit.system))
            self.hits += [hit._replace(pair=self._names(island, hit.pair)) for hit in impacts_of(seen, number).records]

    def _names(self, island: tuple[int, ...], pair: tuple[str, str]) -> tuple[str, str]:
        """Names of two shapes of a unit in the world."""
        split = [name.split("/", 1) for name in pair]
        first, second = (f"{self.world.names[island[int(number) - 1]]}/{shape}" for number, shape in split)
        return first, second

    def _failure(self) -> str:
        """Say what happened."""
        if self.result == Result.overlap and (overlaps := overlapping(self.whole, self.world.start_of(self.whole).q)):
            return overlaps
        names = enumerated([self.world.names[i] for i in self.stopped])
        return f"{names} stopped after t = {self.reached:.6g} s of {self.span[1]:.6g} s: {MESSAGES[self.result]}"

    def _whole(self) -> WorldMotion:
        """Motion of all objects."""
        accepted, names = int(np.sum(self.steps)), self.world.names
        stats = {"t_reached": self.reached, "accepted_steps": accepted, "rejected_steps": self.tries - accepted}
        trajectory = joined(
            self.whole, self.world.objects, self.times, self.rows, self.rows_between, self.result, stats
        )
        impacts = gathered(self.hits) if self.contact is not None and self.contact.reacts else None
        steps = {name: jnp.asarray(count) for name, count in zip(names, self.steps, strict=True)}
        return WorldMotion(trajectory, names, spans(self.world.objects), None, impacts, tuple(self.windows), steps)


def _alike(things: dict[int, Any]) -> list[list[int]]:
    """Groups of numbers of things that differ in arrays alone."""
    groups: dict[Any, list[int]] = {}
    for number, thing in things.items():
        arrays, rest = eqx.partition(thing, eqx.is_array)
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(arrays))
        leaves, structure = jax.tree.flatten(rest)
        groups.setdefault((shapes, structure, tuple(leaves)), []).append(number)
    return list(groups.values())


def _stacked(things: Sequence[Any]) -> Any:
    """Things that differ in arrays alone, with an axis for them."""
    return jax.tree.map(lambda *x: jnp.stack(x) if isinstance(x[0], jax.Array | np.ndarray) else x[0], *things)
