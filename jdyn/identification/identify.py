"""Identification: a model that can exist, from measured forces and a nominal model."""

import dataclasses
import io
import warnings
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from jdyn.identification.base_fit import BaseFit, fit_base_parameters
from jdyn.identification.entropic import inertia_residuals, positive_residuals
from jdyn.identification.not_negative import NotNegative
from jdyn.identification.standard import OF_JOINT, PARTS, Part, standard_names, standard_values
from jdyn.model import Model, checked
from jdyn.terminal.tables import print_table
from jdyn.tuning import PhysicalInertia, TuneWarning, tune_least_squares

# Levenberg-Marquardt takes some twenty; nearly impossible bodies, more.
STEPS = 500

# Of a column of the regressor, a smaller share that others do not have is rounding.
OWN_SHARE = 1e-9


@dataclasses.dataclass(frozen=True)
class Identification:
    """An identified model, and what is known about its parameters. `print` shows it as tables.

    >>> model, t = jdyn.load("pendulum"), jnp.linspace(0.0, 3.0, 40)[:, None]
    >>> q, v, a = jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)
    >>> longer = jdyn.vary(model, {"body:link1.com": [0.0, 0.0, -0.6]})
    >>> tau = jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(longer, q, v, a))(q, v, a)
    >>> noisy = tau + 0.01 * jax.random.normal(jax.random.key(0), tau.shape)
    >>> found = jdyn.identify(model, q, v, a, noisy, parts=["inertias"])
    >>> moment = found.model.inertias.first_moment[0]
    >>> print(moment.round(2) + 0.0)
    [ 0.   0.  -0.6]

    Attributes:
        model: All of its bodies can exist; dampers, friction and rotors are not negative.
        fit: What forces alone tell: base parameters with intervals, and noise.
        names: Of the standard parameters.
        nominal, values: Theirs before and after, shape (parameters,).
        message: How the minimisation ended.
    """

    model: Model
    fit: BaseFit
    names: tuple[str, ...]
    nominal: Float[np.ndarray, " parameters"]
    values: Float[np.ndarray, " parameters"]
    message: str

    def __post_init__(self):
        checked(self.model)

    def __str__(self):
        out = io.StringIO()
        print_table(
            ("parameter", "nominal", "estimate", "95 % interval", "identifiable"), list(self._parameters()), out
        )
        print("\ncombinations, as forces alone tell them:", file=out)
        print_table(("nominal", "estimate", "95 % interval", "combination"), list(self._combinations()), out)
        noise = zip(self.model.topology.v_names, self.fit.noise, strict=True)
        print("\nnoise of forces:", ", ".join(f"{name} {size:.3g}" for name, size in noise), file=out)
        return out.getvalue().rstrip("\n")

    def _parameters(self):
        """Rows of all standard parameters, with intervals of those that forces tell alone."""
        kinds, intervals = (
            self.fit.base.identifiable,
            dict(zip(self.fit.base.columns, self.fit.intervals(), strict=True)),
        )
        for i, (name, before, after, kind) in enumerate(zip(self.names, self.nominal, self.values, kinds, strict=True)):
            yield name, f"{before:.4g}", f"{after:.4g}", _interval(intervals[i]) if kind == "alone" else "", kind

    def _combinations(self):
        """Rows of the base parameters that are sums."""
        fit, kinds = self.fit, self.fit.base.identifiable
        columns = fit.base.columns, fit.nominal, fit.values, fit.intervals(), fit.base.names
        for first, before, after, interval, name in zip(*columns, strict=True):
            if kinds[first] != "alone":
                yield f"{before:.4g}", f"{after:.4g}", _interval(interval), name


def _interval(ends):
    return f"{ends[0]:.4g} to {ends[1]:.4g}"


def identify(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    tau: ArrayLike,
    *,
    parts: Sequence[Part] = PARTS,
    spread: float = 1.0,
) -> Identification:
    """Estimate masses, inertias, dampers, friction and rotors from the measured forces of a motion.

    ```
    result = jdyn.identify(jdyn.load("my_arm.urdf"), q, v, a, tau)
    print(result)
    jdyn.save_urdf(result.model, "identified.urdf")
    ```

    Forces tell some combinations of these parameters alone (`jdyn.identification.fit_base_parameters`). Of all models
    that can exist, this is the one with the least sum of squared errors of these combinations, each by its covariance,
    and of the distances of its bodies from nominal ones, 2 / spread² times the relative entropy of their distributions
    of mass. So what forces do not tell stays as near to the nominal model as it can. Dampers, friction and rotors that
    are not zero nominally have the same distance; others follow forces alone, and stay zero where these do not tell
    them apart.

    >>> model, t = jdyn.load("pendulum"), jnp.linspace(0.0, 3.0, 40)[:, None]
    >>> q, v, a = jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)
    >>> true = jdyn.vary(model, {"body:link1.com": [0.0, 0.0, -0.6]})
    >>> tau = jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(true, q, v, a))(q, v, a)
    >>> noisy = tau + 0.01 * jax.random.normal(jax.random.key(0), tau.shape)
    >>> found = jdyn.identify(model, q, v, a, noisy, parts=["inertias"])
    >>> level = jnp.array([jnp.pi / 2])
    >>> print(jdyn.gravity_forces(found.model, level).round(1), jdyn.gravity_forces(true, level).round(1))
    [5.9] [5.9]

    Args:
        model: The mechanism, with nominal values. Springs and what `parts` leaves out are taken from it.
        q: Configurations [rad or m], shape (samples, nq).
        v, a: Velocities [rad/s or m/s] and accelerations [rad/s² or m/s²], shape (samples, nv), whose errors are taken
            for none.
        tau: Measured forces of the actuators [N m or N], shape (samples, nv).
        parts: What is unknown. Leave out `"armature"` where inertias of links contain the rotors.
        spread: How far parameters may be from nominal ones: a mass distribution that is larger by the share ε in all
            costs as much as one force that is wrong by 2 ε / spread of its noise.

    Returns:
        The model, and what is known about its parameters.

    Raises:
        ValueError: as `fit_base_parameters`; if `spread` is not positive; or if a nominal body is a point, a rod or
            impossible.

    Warns:
        jdyn.tuning.TuneWarning: if the minimisation fails, or does not end.

    Source: Lee, Wensing, Park, Geometric robot dynamic identification: a convex programming approach, T-RO 2020;
    Rucker, Wensing, Smooth parameterization of rigid-body inertia, RA-L 2022.
    """
    checked(model)
    check_request(model, parts, spread)
    return nearest_possible(model, fit_base_parameters(model, q, v, a, tau, parts=parts), parts, spread)


def check_request(model: Model, parts: Sequence[Part], spread: float) -> None:
    """Refuse what needs no measurement to be wrong.

    Raises:
        ValueError: if `spread` is not positive, or bodies whose inertias are unknown are points, rods or impossible.
    """
    if not spread > 0:
        raise ValueError(f"spread: expected a positive number, got {spread}")
    if "inertias" in parts:
        _check_bodies(model)


def nearest_possible(model: Model, fit: BaseFit, parts: Sequence[Part], spread: float) -> Identification:
    """The model that can exist, with the base parameters of a fit, near the nominal one.

    Warns:
        jdyn.tuning.TuneWarning: if the minimisation fails, or does not end.
    """
    start, bounds = {}, {}
    if "inertias" in parts:
        start["inertias"], bounds["inertias"] = model.inertias, PhysicalInertia()
    free, joints = _joint_parameters(model, fit, parts)
    if len(free):
        start["joints"], bounds["joints"] = jnp.asarray(joints, model.dtype), NotNegative()
    names, nominal = standard_names(model), np.asarray(standard_values(model), float)
    if not start:
        return Identification(model, fit, names, nominal, nominal, "forces ask for none of these parameters")
    residuals = _residuals(model, fit, free, spread)
    found = tune_least_squares(residuals, start, bounds=bounds, steps=STEPS, progress=False)
    better = _with_parameters(model, free, found.params)
    values = np.asarray(standard_values(better), float)
    message = found.message or f"not converged after {STEPS} steps"
    if not found.message:
        warnings.warn(f"identify: {message}; the model is the best one met", TuneWarning, stacklevel=3)
    return Identification(better, fit, names, nominal, values, message)


def _residuals(model, fit, free, spread):
    """Residuals of the base parameters, in their own noise, and of the distances from nominal parameters."""
    whitened = jnp.asarray(fit.root @ fit.base.combinations, model.dtype)
    shift = jnp.asarray(fit.root @ (fit.values - fit.nominal), model.dtype)
    nominal = standard_values(model)
    known = free[np.asarray(nominal)[free] > 0]

    def residuals(params):
        values = standard_values(_with_parameters(model, free, params))
        parts = {"forces": whitened @ (values - nominal) - shift}
        if "inertias" in params:
            parts["inertias"] = inertia_residuals(params["inertias"], model.inertias) / spread
        parts["joints"] = positive_residuals(values[known], nominal[known]) / spread
        return parts

    return residuals


def _joint_parameters(model, fit, parts) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the unknown dampers, friction and rotors, and where their estimates start: at nominal values, or where
    `_from_zero` has them. Those that are zero there stay so."""
    start = np.array(standard_values(model), float)
    chosen = 10 * model.nb + np.flatnonzero(np.repeat([what in parts for what in OF_JOINT], len(model.damping)))
    zero = chosen[start[chosen] == 0]
    if len(zero):
        start[zero] = _from_zero(fit, zero)
    free = chosen[start[chosen] > 0]
    return free, start[free]


def _from_zero(fit, which) -> np.ndarray:
    """Dampers, friction and rotors as forces would have them if bodies need not be possible; zero where forces do not
    tell them from other parameters."""
    from scipy.optimize import nnls  # it takes long to import, and few need it

    whitened = fit.root @ fit.base.combinations
    others, columns = np.delete(whitened, which, axis=1), whitened[:, which]
    own = _orthogonal(others, columns)
    own[:, np.linalg.norm(own, axis=0) < OWN_SHARE * np.linalg.norm(columns, axis=0)] = 0
    return nnls(own, _orthogonal(others, fit.root @ (fit.values - fit.nominal)))[0]


def _orthogonal(columns, x) -> np.ndarray:
    """Part of x beside the space of some columns."""
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    U = U[:, sizes > OWN_SHARE * sizes.max(initial=0)]
    return x - U @ (U.T @ x)


def _with_parameters(model, free, params) -> Model:
    joints = jnp.concatenate([getattr(model, what) for what in OF_JOINT])
    if "joints" in params:
        joints = joints.at[free - 10 * model.nb].set(params["joints"])
    changed = dict(zip(OF_JOINT, jnp.split(joints, len(OF_JOINT)), strict=True))
    return dataclasses.replace(model, inertias=params.get("inertias", model.inertias), links=None, **changed)


def _check_bodies(model):
    free = np.asarray(PhysicalInertia().to_free(model.inertias))
    bad = [name for name, row in zip(model.body_names, free, strict=True) if not np.all(np.isfinite(row))]
    if bad:
        raise ValueError(
            f"model: expected bodies that fill a volume, got points, rods or impossible ones: {', '.join(bad)}; "
            "give them a mass and an inertia by model.with_body, or leave 'inertias' out of parts"
        )
