"""One trajectory of the motions of objects."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.control.driven import Commanded
from jdyn.simulation import Result, System, Trajectory
from jdyn.simulation.parts import Known
from jdyn.simulation.trajectory import Events
from jdyn.world.object import WorldObject
from jdyn.world.unit import Moving


def joined(
    system: System,
    objects: Sequence[WorldObject],
    times: np.ndarray,
    rows: Sequence[Sequence[Moving]],
    between: Sequence[Sequence[Any]],
    result: Result,
    stats: dict[str, Any],
) -> Trajectory:
    """Trajectory of the merged system.

    Args:
        system: The system.
        objects: Its objects.
        times: Of all rows [s].
        rows: Of each object, pieces with the rows that were reached; none of what cannot move.
        between: Likewise, states of the force elements between objects.
        result: How the simulation ended.
        stats: As `jdyn.Trajectory` has them.
    """
    count = len(times)

    def whole(*pieces: np.ndarray) -> np.ndarray:
        """All rows; NaN where none were reached."""
        x = np.concatenate(pieces)
        return np.concatenate([x, np.full((count - len(x), *x.shape[1:]), np.nan, x.dtype)])

    each = [jax.tree.map(whole, *(pieces or [_nothing(one)])) for pieces, one in zip(rows, objects, strict=True)]
    states = [jax.tree.map(whole, *pieces) if pieces else None for pieces in between]
    q, v = (jnp.asarray(np.concatenate([getattr(one, name) for one in each], axis=1)) for name in ("q", "v"))
    parts = {
        "controller": _memory(objects, [one.memory for one in each]),
        "elements": (*(state for one in each for state in one.elements), *states),
    }
    parts = {name: jax.tree.map(jnp.asarray, part) for name, part in parts.items() if jax.tree.leaves(part)}
    nothing, number = jnp.zeros(0), jnp.zeros(0, jnp.int32)
    events, end = Events(nothing, number, number, q[:0], v[:0]), jnp.asarray(int(result), jnp.int32)
    known, stats = Known.of(system), jax.tree.map(jnp.asarray, stats)
    return Trajectory(jnp.asarray(times), q, v, parts, events, end, stats, known=known)


def _nothing(thing: WorldObject) -> Moving:
    """No rows."""
    model = thing.system.model
    return Moving(np.zeros((0, model.nq)), np.zeros((0, model.nv)), None, (None,) * len(thing.system.elements))


def _memory(objects: Sequence[WorldObject], memories: Sequence[Any]) -> Any:
    """Memory of the controller of the merged system by those of the objects."""
    if not any(each.system.actuators for each in objects):
        return tuple(memories)
    driven = [(each.name, memory) for each, memory in zip(objects, memories, strict=True) if memory is not None]
    states = {f"{name}/{own}": x for name, memory in driven for own, x in memory.actuators.items()}
    return Commanded(tuple(memory.controller for _, memory in driven), states)
