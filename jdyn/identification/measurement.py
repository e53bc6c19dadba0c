"""Measured motions from labelled datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from jdyn.identification.sampling import increasing
from jdyn.model import Model, checked

if TYPE_CHECKING:
    import xarray

# Fewest rows that a smoothing spline takes.
FEWEST_ROWS = 5
# Farther beyond its limits than this, an angle may be one in degrees [rad].
BEYOND = 1.0


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
    dataset = in_radians(model, dataset)
    missing = [name for name in ("time", "q", "v", "tau") if name not in dataset.variables]
    if missing:
        raise ValueError(f"dataset: expected time, q, v and tau, and a if it is known; it lacks {', '.join(missing)}")
    times = increasing(dataset["time"].values)
    q, v, tau = (column(model, dataset, name) for name in ("q", "v", "tau"))
    if "a" in dataset.variables:
        a = column(model, dataset, "a")
    else:
        a = accelerations(times, v)
    return Measurement(q, v, a, tau)


def column(model: Model, dataset: xarray.Dataset, name: str) -> Float[np.ndarray, "samples coordinates"]:
    """A quantity of a dataset, in the order of the model's coordinates.

    Raises:
        ValueError: if it has other dimensions, or coordinates are not those of `model`.
    """
    coordinate = "q_coordinate" if name == "q" else "v_coordinate"
    expected = model.topology.q_names if name == "q" else model.topology.v_names
    array = dataset[name]
    if set(array.dims) != {"time", coordinate}:
        raise ValueError(f"dataset: expected {name} along time and {coordinate}, got {', '.join(map(str, array.dims))}")
    named = coordinate in dataset.coords and dataset[coordinate].dtype.kind in "UOST"
    found = [str(x) for x in dataset[coordinate].values] if named else list(expected)[: array.sizes[coordinate]]
    # Of robots that are measured as a whole, the model may be a part.
    fits = named and len({*found}) == len(found) and {*found} >= {*expected}
    if not fits and (array.sizes[coordinate] != len(expected) or sorted(found) != sorted(expected)):
        raise ValueError(
            f"dataset: expected the coordinates {', '.join(expected)} of {model.name!r} along {coordinate}, "
            f"got {array.sizes[coordinate]}: {', '.join(found)}"
        )
    order = [found.index(name) for name in expected]
    return np.asarray(array.transpose("time", coordinate).values, float)[:, order]


def in_radians(model: Model, dataset: xarray.Dataset, degrees: bool = False) -> xarray.Dataset:
    """A dataset whose angles, and their rates, are in radians, in the order of the model's coordinates.

    Args:
        model: The mechanism.
        dataset: As for `measurement`.
        degrees: Whether its angles are in degrees, and are converted.

    Raises:
        ValueError: if angles are in degrees, and `degrees` does not say so: by the attribute `units`, or as they are
            far beyond the limits of joints, but within them if they are degrees; or if units contradict `degrees`.
    """
    if degrees and not model.flat:
        raise ValueError(f"dataset: no degrees can be converted of {model.name!r}, some of whose joints are rotations")
    turning = {name: _turning(model, name) for name in ("q", "v", "a") if name in dataset.variables}
    for name in turning:
        units = str(dataset[name].attrs.get("units", ""))
        if units.startswith("deg") and not degrees:
            raise ValueError(f"dataset: {name} is in {units}; say that angles are in degrees to have them converted")
        if units.startswith("rad") and degrees:
            raise ValueError(f"dataset: expected {name} in degrees, got {units}")
    if degrees:
        for name, turns in turning.items():
            coordinate = "q_coordinate" if name == "q" else "v_coordinate"
            values = np.where(turns, np.deg2rad(column(model, dataset, name)), column(model, dataset, name))
            names = list(model.topology.q_names if name == "q" else model.topology.v_names)
            dataset = dataset.drop_vars(name).assign_coords({coordinate: names})
            dataset = dataset.assign({name: (("time", coordinate), values, {"units": "rad"})})
    elif "q" in turning and "units" not in dataset["q"].attrs:
        _check_reach(model, column(model, dataset, "q"), turning["q"])
    return dataset


def _turning(model, name) -> np.ndarray:
    """Tell which coordinates are angles, in the order of the model's; none of a quaternion is."""
    topology, flat = model.topology, []
    independent = topology.independent_q if name == "q" else topology.independent_v
    for kind in topology.kinds:
        size = kind.nq if name == "q" else kind.nv
        flat += [motion in ("turn", "screw") for motion in kind.motions] if kind.nq == kind.nv else [False] * size
    return np.array(flat)[list(independent)]


def _check_reach(model, q, turns):
    """Refuse angles that only degrees explain."""
    independent = list(model.topology.independent_q)
    lower, upper = (np.asarray(x, float)[independent] for x in (model.limits.lower, model.limits.upper))
    reach = np.nanmax(np.maximum(q - upper, lower - q), axis=0, initial=0.0)
    within = np.all((np.deg2rad(q) <= upper) & (np.deg2rad(q) >= lower) | np.isnan(q), axis=0)
    far = turns & (reach > BEYOND)
    if np.any(far) and np.all(within[turns]):
        name = model.topology.q_names[np.flatnonzero(far)[0]]
        raise ValueError(
            f"dataset: q of {name} is beyond the limits by {reach[far][0]:.3g} rad, and within them as degrees; "
            "say that angles are in degrees to have them converted, or give q the attribute units 'rad'"
        )


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
    increasing(t)
    if not np.all(np.isfinite(v)):
        raise ValueError(f"v: expected finite numbers, got others at sample {np.argwhere(~np.isfinite(v))[0, 0]}")
    # A unit of time like that of the data: knots of milliseconds would be ill-conditioned in seconds.
    unit = (t[-1] - t[0]) / (len(t) - 1)
    slopes = [make_smoothing_spline((t - t[0]) / unit, column).derivative()((t - t[0]) / unit) for column in v.T]
    return np.stack(slopes, axis=1) / unit
