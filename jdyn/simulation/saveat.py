"""Which rows a trajectory has."""

from typing import NamedTuple

import diffrax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

DEFAULT_SAMPLES = 101
_SAVE_STATE = diffrax.SubSaveAt(t1=True).fn


class RowsToSave(NamedTuple):
    """Rows of a trajectory.

    Attributes:
        times: Of rows [s], in order.
        every: A row after every so many steps as well; 0 for none.
        last: Whether the end is a row even if `every` does not make it one.
        within: Whether rows may lie within steps, not only at their ends.
    """

    times: Float[Array, " times"]
    every: int
    last: bool
    within: bool


def rows_to_save(saveat, t0, t1) -> RowsToSave:
    """The rows that `saveat` asks for: evenly spaced ones, given times, or those of a `diffrax.SaveAt`.

    Raises:
        ValueError: for options of `diffrax.SaveAt` that do not give rows of (q, v).
    """
    if saveat is None:
        return RowsToSave(jnp.linspace(t0, t1, DEFAULT_SAMPLES, dtype=t0.dtype), 0, False, True)
    if not isinstance(saveat, diffrax.SaveAt):
        times = jnp.asarray(saveat, t0.dtype)
        if times.ndim != 1 or times.size == 0:
            raise ValueError(f"saveat: expected a non-empty array of times of shape (n,), got shape {times.shape}")
        _check_times(times, t0, t1)
        return RowsToSave(times, 0, False, True)
    rows = saveat.subs
    plain = isinstance(rows, diffrax.SubSaveAt) and rows.fn is _SAVE_STATE
    if not plain or saveat.dense or saveat.solver_state or saveat.controller_state or saveat.made_jump:
        raise ValueError(
            "saveat: simulate saves rows of (q, v), so of diffrax.SaveAt it takes t0, t1, ts and steps only; "
            "compute other quantities from the trajectory"
        )
    every = int(rows.steps)
    times = [t0[None]] if rows.t0 else []
    times += [] if rows.ts is None else [rows.ts.astype(t0.dtype)]
    times += [t1[None]] if rows.t1 and not every else []
    return RowsToSave(jnp.concatenate([*times, jnp.zeros(0, t0.dtype)]), every, rows.t1, rows.ts is not None)


def _check_times(times, t0, t1):
    """Rows must lie between start and end, in the order of time; traced times are checked by diffrax."""
    if any(isinstance(x, Tracer) for x in (times, t0, t1)):
        return
    path = jnp.concatenate([t0[None], times, t1[None]])
    steps = jnp.diff(path if t1 >= t0 else -path)
    if not jnp.all(steps >= 0):
        raise ValueError(f"saveat: expected times in order between t0 = {t0} and t1 = {t1}, got {times}")
