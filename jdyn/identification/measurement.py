"""Measured motions from labelled datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from jdyn.model import Model, checked

if TYPE_CHECKING:
    import xarray

# Fewest rows that a smoothing spline takes.
FEWEST_ROWS = 5


class Measurement(NamedTuple):
    """A measured motion, as `jdyn.identify(model, *measurement)` takes it.

    >>> q = np.zeros((5, 1))
    >>> measured = jdyn.identification.Measurement(q=q, v=q, a=q, tau=q)
    >>> print(measured.tau.shape)
    (5, 1)

    Attributes:
        q: Configurations [rad or m], shape (samples, nq).
        v, a, tau: Velocities, accelerations and forces of actuators, shape (samples, nv).
    """

    q: Float[np.ndarray, "samples nq"]
    v: Float[np.ndarray, "samples nv"]
    a: Float[np.ndarray, "samples nv"]
    tau: Float[np.ndarray, "samples nv"]


def measurement(model: Model, dataset: xarray.Dataset) -> Measurement:
    """The motion in a dataset such as `Trajectory.to_xarray` makes, with forces.

    >>> model, ts = jdyn.load("pendulum"), jnp.linspace(0.0, 1.0, 6)
    >>> driven = jdyn.PD(model, jnp.ones(1), kp=5.0, kd=1.0)
    >>> swing = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 1.0, controller=driven, saveat=ts)
    >>> dataset = swing.to_xarray().assign(tau=(("time", "v_coordinate"), np.asarray(swing.tau)))
    >>> print(jdyn.identification.measurement(model, dataset).a.shape)
    (6, 1)

    Args:
        model: The mechanism.
        dataset: `time` [s], `q` along `time` and `q_coordinate`, and along `time` and `v_coordinate` `v`, `tau`, and
            `a` if accelerations are known; those of `accelerations` if it is left out. Coordinates that have names are
            put into the model's order.

    Raises:
        ValueError: if something is missing, has other dimensions, times do not increase, or coordinates are not those
            of `model`.
    """
    checked(model)
    missing = [name for name in ("time", "q", "v", "tau") if name not in dataset.variables]
    if missing:
        raise ValueError(f"dataset: expected time, q, v and tau, and a if it is known; it lacks {', '.join(missing)}")
    times = _increasing(dataset["time"].values)
    q = _column(model, dataset, "q", "q_coordinate", model.topology.q_names)
    v, tau = (_column(model, dataset, name, "v_coordinate", model.topology.v_names) for name in ("v", "tau"))
    if "a" in dataset.variables:
        a = _column(model, dataset, "a", "v_coordinate", model.topology.v_names)
    else:
        a = accelerations(times, v)
    return Measurement(q, v, a, tau)


def _column(model, dataset, name, coordinate, expected):
    array = dataset[name]
    if set(array.dims) != {"time", coordinate}:
        raise ValueError(f"dataset: expected {name} along time and {coordinate}, got {', '.join(array.dims)}")
    named = coordinate in dataset.coords and dataset[coordinate].dtype.kind in "UOST"
    found = [str(x) for x in dataset[coordinate].values] if named else list(expected)[: array.sizes[coordinate]]
    if array.sizes[coordinate] != len(expected) or sorted(found) != sorted(expected):
        raise ValueError(
            f"dataset: expected the coordinates {', '.join(expected)} of {model.name!r} along {coordinate}, "
            f"got {array.sizes[coordinate]}: {', '.join(found)}"
        )
    order = [found.index(name) for name in expected]
    return np.asarray(array.transpose("time", coordinate).values, float)[:, order]


def _increasing(times):
    times = np.asarray(times, float)
    bad = np.flatnonzero(~np.isfinite(np.diff(times)) | (np.diff(times) <= 0))
    if len(bad):
        before, after = times[bad[0] : bad[0] + 2]
        raise ValueError(f"times: expected increasing numbers, got {after} after {before} at sample {bad[0] + 1}")
    return times


def accelerations(times: ArrayLike, v: ArrayLike) -> Float[np.ndarray, "samples nv"]:
    """Accelerations of a measured motion: slopes of a cubic smoothing spline through the velocities of each coordinate.

    How smooth it is follows from the data, by generalized cross-validation, if their noise is independent from row to
    row.

    >>> t = np.linspace(0.0, 1.0, 21)
    >>> print(jdyn.identification.accelerations(t, 3.0 * t[:, None])[10].round(6))
    [3.]

    Args:
        times: [s], increasing, shape (samples,).
        v: Velocities [rad/s or m/s], shape (samples, nv).

    Raises:
        ValueError: if shapes disagree, times do not increase, a number is not finite, or rows are fewer than 5.

    Source: Wahba, Estimating the smoothing parameter, in: Spline Models for Observational Data (1990); by SciPy.
    """
    from scipy.interpolate import make_smoothing_spline  # it takes long to import, and few need it

    t, v = np.asarray(times, float), np.asarray(v, float)
    if t.ndim != 1 or v.ndim != 2 or len(t) != len(v):
        raise ValueError(
            f"v: expected shape ({t.size}, nv), one row a time, got {v.shape} for times of shape {t.shape}"
        )
    if len(t) < FEWEST_ROWS:
        raise ValueError(f"v: expected at least {FEWEST_ROWS} rows, got {len(t)}")
    _increasing(t)
    if not np.all(np.isfinite(v)):
        raise ValueError(f"v: expected finite numbers, got others at sample {np.argwhere(~np.isfinite(v))[0, 0]}")
    # A unit of time like that of the data: knots of milliseconds would be ill-conditioned in seconds.
    unit = (t[-1] - t[0]) / (len(t) - 1)
    slopes = [make_smoothing_spline((t - t[0]) / unit, column).derivative()((t - t[0]) / unit) for column in v.T]
    return np.stack(slopes, axis=1) / unit
