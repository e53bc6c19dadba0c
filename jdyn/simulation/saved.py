"""Checks of a saved trajectory, which may come from anyone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def misfit(trajectory: Any) -> str | None:
    """Why arrays cannot be those of one trajectory, in words; None if they can."""
    ts, events = trajectory.ts, trajectory.events
    if ts.ndim < 1:
        return "expected times along an axis"
    lanes = ts.shape[:-1]
    pushing = {} if trajectory.contact_forces is None else vars(trajectory.contact_forces)
    shapes = {"q": (*ts.shape, -1), "v": (*ts.shape, -1), "result": lanes}
    happened = {"ts": (*lanes, -1), "which": (*lanes, -1), "entry": (*lanes, -1), "q": (*lanes, -1, -1)}
    expected = [
        *((name, getattr(trajectory, name), shape) for name, shape in shapes.items()),
        *((f"events.{name}", getattr(events, name), shape) for name, shape in happened.items()),
        ("events.v", events.v, (*lanes, -1, -1)),
        *((name, x, ts.shape if name.startswith("row_") else lanes) for name, x in trajectory.stats.items()),
        *(("parts", x, ts.shape) for x in jax.tree.leaves(trajectory.parts)),
        *((f"contact_forces.{name}", x, (*ts.shape, -1, 3)) for name, x in pushing.items()),
    ]
    for name, x, shape in expected:
        if x is not None and not _has(x.shape, shape, open_end=name == "parts"):
            return f"{name} has shape {x.shape} beside times of shape {ts.shape}"
    counts = {name: getattr(events, name).shape[len(lanes)] for name in (*happened, "v")}
    sizes = {"q": trajectory.q.shape[-1] - events.q.shape[-1], "v": trajectory.v.shape[-1] - events.v.shape[-1]}
    if len(set(counts.values())) > 1 or any(sizes.values()):
        return "events of other shapes than those of the motion"
    floats, integers = (ts, trajectory.q, trajectory.v), (trajectory.result, events.which, events.entry)
    if not (_all(floats, np.floating) and _all(integers, np.integer)):
        return "expected floating-point numbers of motion, and whole ones of events and results"
    return None if _in_order(np.asarray(ts)) else "expected times that rise or fall, NaN only after the last one"


def _has(shape, expected, open_end):
    """Tell whether a shape is one of which some lengths are open, -1."""
    same = len(shape) >= len(expected) if open_end else len(shape) == len(expected)
    return same and all(b in (-1, a) for a, b in zip(shape, expected, strict=False))


def _all(arrays, kind):
    return all(np.issubdtype(x.dtype, kind) for x in arrays)


def _in_order(ts):
    missing, infinite = np.isnan(ts), np.isinf(ts)
    changes = np.diff(ts, axis=-1)
    one_way = np.all(~(changes < 0), axis=-1) | np.all(~(changes > 0), axis=-1)
    only_after = np.all(np.diff(missing.astype(int), axis=-1) >= 0)
    return bool(np.all(one_way) and only_after and not np.any(infinite))
