"""Base parameters from measured forces."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import ArrayLike, Float

from jdyn.dynamics import inverse_dynamics
from jdyn.identification.base import ROUNDINGS, BaseParameters, basis, measured, stacked_regressor
from jdyn.identification.standard import PARTS, Part, standard_values
from jdyn.identification.weighted import weighted_least_squares
from jdyn.model import Model, checked


@dataclasses.dataclass(frozen=True)
class BaseFit:
    """Base parameters of a model that forces of a motion tell, and how well.

    >>> model, t = jdyn.load("pendulum"), jnp.linspace(0.0, 3.0, 40)[:, None]
    >>> q, v, a = jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)
    >>> tau = jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(model, q, v, a))(q, v, a)
    >>> noisy = tau + 0.01 * jax.random.normal(jax.random.key(0), tau.shape)
    >>> fit = jdyn.identification.fit_base_parameters(model, q, v, a, noisy, parts=["inertias"])
    >>> bool(0.005 < fit.noise[0] < 0.02)
    True

    Attributes:
        base: Which combinations of standard parameters they are.
        nominal: Their values by the model that was given, shape (rank,).
        values: Their estimates, shape (rank,).
        covariance: Of the estimates, shape (rank, rank).
        noise: Standard deviation of the measured force on each coordinate [N m or N], shape (nv,).
        freedom: Number of measured forces beyond that of base parameters.
        root: Upper triangular R with Rᵀ R the inverse of the covariance.
    """

    base: BaseParameters
    nominal: Float[np.ndarray, " rank"]
    values: Float[np.ndarray, " rank"]
    covariance: Float[np.ndarray, "rank rank"]
    noise: Float[np.ndarray, " nv"]
    freedom: int
    root: Float[np.ndarray, "rank rank"]

    def intervals(self, level: float = 0.95) -> Float[np.ndarray, "rank 2"]:
        """Confidence intervals of the base parameters: the ends of those that contain the true value with the
        probability `level`, if noise of forces is the only error, and normal and independent from row to row."""
        if not 0 < level < 1:
            raise ValueError(f"level: expected a probability between 0 and 1, got {level}")
        reach = scipy.special.stdtrit(self.freedom, (1 + level) / 2) * np.sqrt(np.diag(self.covariance))
        return np.stack([self.values - reach, self.values + reach], axis=1)


def fit_base_parameters(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    tau: ArrayLike,
    *,
    parts: Sequence[Part] = PARTS,
) -> BaseFit:
    """Estimate the base parameters of a mechanism from measured forces, by weighted least squares.

    Forces of each coordinate are weighted by their noise, which the residuals show. Nothing keeps masses positive:
    `jdyn.identify` finds a model that can exist.

    >>> model, t = jdyn.load("pendulum"), jnp.linspace(0.0, 3.0, 40)[:, None]
    >>> q, v, a = jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)
    >>> tau = jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(model, q, v, a))(q, v, a)
    >>> noisy = tau + 0.01 * jax.random.normal(jax.random.key(0), tau.shape)
    >>> fit = jdyn.identification.fit_base_parameters(model, q, v, a, noisy, parts=["inertias"])
    >>> for name, value in zip(fit.base.names, fit.values): print(name, value.round(1))
    body:link1.mx -0.0
    body:link1.mz -0.5
    body:link1.Iyy 0.3

    Args:
        model: The mechanism, with nominal values. Springs and what `parts` leaves out are taken from it.
        q: Configurations [rad or m], shape (samples, nq).
        v, a: Velocities [rad/s or m/s] and accelerations [rad/s² or m/s²], shape (samples, nv). Their errors are taken
            for none: filter both, as they bias what is found.
        tau: Measured forces of the actuators [N m or N], shape (samples, nv).
        parts: What is unknown.

    Returns:
        The estimates, their covariance, and the noise.

    Raises:
        ValueError: if a shape is wrong, a number is not finite, there is no such part, there are no more measured
            forces than base parameters, or all forces are zero.

    Warns:
        jdyn.tuning.TuneWarning: if there are too few samples to know the noise, or it does not settle.

    Source: Gautier, Poignet, Extended Kalman filtering and weighted least squares dynamic identification of robot,
    Control Engineering Practice 2001.
    """
    checked(model)
    q, v, a, tau = measured(model, q=q, v=v, a=a, tau=tau)
    Y = stacked_regressor(model, q, v, a)
    base = basis(model, Y, parts)
    if not base.rank:
        raise ValueError(f"q, v: forces of this motion depend on no parameter of {', '.join(parts)}; move more joints")
    expected = _expected(model.without_shapes(), q, v, a)
    largest = float(jnp.max(jnp.maximum(jnp.abs(tau), jnp.abs(expected))))
    if not largest:
        raise ValueError("tau: expected forces that tell something, got zeros where the model has none either")
    least = ROUNDINGS * float(jnp.finfo(Y.dtype).eps) * largest
    fit = weighted_least_squares(np.asarray(Y, float)[..., base.columns], np.asarray(tau - expected, float), least)
    nominal = base.combinations @ np.asarray(standard_values(model), float)
    return BaseFit(base, nominal, nominal + fit.values, fit.covariance, fit.noise, fit.freedom, fit.root)


@jax.jit
def _expected(model, q, v, a):
    return jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, q, v, a)
