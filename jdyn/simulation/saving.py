"""Which rows a trajectory has."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from jdyn.model import Model

DEFAULT_SAMPLES = 101
_SAVE_STATE = diffrax.SubSaveAt(t1=True).fn


class _SaveNormalized(eqx.Module):
    model: Model

    def __call__(self, t, state, args):
        q, v = state
        return self.model.normalize(q), v


def rows_to_save(saveat, t0, t1) -> diffrax.SubSaveAt:
    """The rows that `saveat` asks for: evenly spaced ones, those at given times, or as diffrax says it.

    Raises:
        ValueError: for options of `diffrax.SaveAt` that do not give rows of (q, v).
    """
    if saveat is None:
        return diffrax.SubSaveAt(ts=jnp.linspace(t0, t1, DEFAULT_SAMPLES, dtype=t0.dtype))
    if not isinstance(saveat, diffrax.SaveAt):
        times = jnp.asarray(saveat, t0.dtype)
        if times.ndim != 1 or times.size == 0:
            raise ValueError(f"saveat: expected a non-empty array of times of shape (n,), got shape {times.shape}")
        _check_times(times, t0, t1)
        return diffrax.SubSaveAt(ts=times)
    rows = saveat.subs
    plain = isinstance(rows, diffrax.SubSaveAt) and rows.fn is _SAVE_STATE
    if not plain or saveat.dense or saveat.solver_state or saveat.controller_state or saveat.made_jump:
        raise ValueError(
            "saveat: simulate saves rows of (q, v), so of diffrax.SaveAt it takes t0, t1, ts and steps only; "
            "compute other quantities from the trajectory"
        )
    times = None if rows.ts is None else rows.ts.astype(t0.dtype)
    return diffrax.SubSaveAt(t0=rows.t0, t1=rows.t1, ts=times, steps=rows.steps)


def _check_times(times, t0, t1):
    """Rows must lie between start and end, in the order of time; traced times are checked by diffrax."""
    if any(isinstance(x, Tracer) for x in (times, t0, t1)):
        return
    path = jnp.concatenate([t0[None], times, t1[None]])
    steps = jnp.diff(path if t1 >= t0 else -path)
    if not jnp.all(steps >= 0):
        raise ValueError(f"saveat: expected times in order between t0 = {t0} and t1 = {t1}, got {times}")


def normalized(rows: diffrax.SubSaveAt, model: Model) -> diffrax.SubSaveAt:
    """The same rows with quaternions of unit length."""
    return eqx.tree_at(lambda rows: rows.fn, rows, _SaveNormalized(model))


def clean(rows: diffrax.SubSaveAt, solution: diffrax.Solution, t0, t1):
    """Times and states of a solution, with NaN for what was not reached.

    Diffrax leaves infinity in rows that were not reached, and after a failure puts the last state where the next
    row would stand.
    """
    ts, (q, v) = jnp.asarray(solution.ts), solution.ys  # type: ignore[misc]
    if rows.steps:
        ts = jnp.where(jnp.isfinite(ts), ts, jnp.nan)
        reached = jnp.isfinite(ts)
    else:
        known = _known_times(rows, t0, t1)
        reached, ts = (ts == known) & jnp.isfinite(known), known
    return ts, jnp.where(reached[:, None], q, jnp.nan), jnp.where(reached[:, None], v, jnp.nan)


def _known_times(rows, t0, t1) -> Float[Array, " times"]:
    times = [t0[None]] if rows.t0 else []
    times += [] if rows.ts is None else [rows.ts]
    return jnp.concatenate([*times, t1[None]] if rows.t1 else times)
