"""Smooth maps between bounded parameters and free coordinates, in which an optimizer may go anywhere."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.spatial import SpatialInertia, from_log_cholesky, log_cholesky


class Bijection(eqx.Module):
    """A one-to-one map between values within bounds and free coordinates.

    Attributes:
        of: Type of the values that are no arrays; None for arrays.
        expected: What lies within the bounds, in words.
    """

    of: ClassVar[type | None] = None

    @property
    @abc.abstractmethod
    def expected(self) -> str: ...

    @abc.abstractmethod
    def to_free(self, value: Any) -> Float[Array, "..."]:
        """Free coordinates of a value; some are not finite if it is on the bounds or outside."""

    @abc.abstractmethod
    def from_free(self, free: Float[Array, "..."]) -> Any:
        """The value with these free coordinates."""


class Positive(Bijection):
    """Positive numbers, by their logarithms, each by itself.

    A step of an optimizer then changes a parameter by a factor: gains may be wrong by orders of magnitude, and units do
    not matter. (The inverse of softplus, the usual alternative, goes from 1 to 1000 in as many unit steps.)
    Beyond exp(±86) in float32, exp(±701) in float64, values stay where they are, so that none becomes zero or infinite.

    >>> bounds = jdyn.tuning.Positive()
    >>> print(bounds.to_free(jnp.array(1.0)), bounds.from_free(jnp.array(0.0)))
    0.0 1.0
    """

    @property
    def expected(self):
        return "positive numbers"

    def to_free(self, value):
        return jnp.log(value)

    def from_free(self, free):
        limit = -0.99 * float(np.log(jnp.finfo(free.dtype).tiny))
        return jnp.exp(jnp.clip(free, -limit, limit))


class Interval(Bijection):
    """Numbers between two ends, each by itself: low + (high - low) / (1 + exp(-z)).

    Rounding may put values onto an end, but not beyond: in float32 where |z| exceeds 17, in float64 37.

    >>> import optax
    >>> tuned = jdyn.tune(
    ...     lambda p: (p["kp"] - 7.0) ** 2, {"kp": 1.0}, optimizer=optax.adam(0.2), steps=100,
    ...     bounds={"kp": jdyn.tuning.Interval(0.0, 5.0)}, progress=False,
    ... )
    >>> print(jnp.round(tuned.params["kp"], 1))
    5.0

    Attributes:
        low, high: Ends; numbers, or arrays that broadcast to the parameters.

    Raises:
        ValueError: if an end is not finite, or low is not below high.
    """

    low: Float[np.ndarray, "..."] = eqx.field(converter=lambda x: np.asarray(x, float))
    high: Float[np.ndarray, "..."] = eqx.field(converter=lambda x: np.asarray(x, float))

    def __check_init__(self):
        if not (np.all(np.isfinite([*self.low.flat, *self.high.flat])) and np.all(self.low < self.high)):
            raise ValueError(
                f"Interval: expected finite ends, low below high, got {_shown(self.low)} and {_shown(self.high)}; "
                "jdyn.tuning.Positive() has no upper end"
            )

    @property
    def expected(self):
        return f"numbers between {_shown(self.low)} and {_shown(self.high)}"

    def to_free(self, value):
        low, high = self._ends(value)
        return jnp.log((value - low) / (high - value))

    def from_free(self, free):
        low, high = self._ends(free)
        # From the nearer end, so that values close to it are exact and none is rounded to beyond it.
        share = (high - low) * jax.nn.sigmoid(-jnp.abs(free))
        return jnp.where(free < 0, low + share, high - share)

    def _ends(self, like):
        return (jnp.broadcast_to(jnp.asarray(end, like.dtype), like.shape) for end in (self.low, self.high))


class Simplex(Bijection):
    """Positive numbers with the sum 1 along the last axis, such as weights or shares of a load: n numbers by n - 1.

    The coordinates are isometric log-ratios: no number plays a part of its own.

    >>> bounds = jdyn.tuning.Simplex()
    >>> print(bounds.from_free(jnp.zeros(2)).round(3))
    [0.333 0.333 0.333]

    Source: Egozcue, Pawlowsky-Glahn, Mateu-Figueras, Barceló-Vidal 2003, Isometric logratio transformations for
    compositional data analysis, Mathematical Geology.
    """

    @property
    def expected(self):
        return "positive numbers with the sum 1 along the last axis"

    def to_free(self, value):
        rounding = float(jnp.finfo(value.dtype).eps) ** 0.5
        whole = jnp.abs(jnp.sum(value, axis=-1, keepdims=True) - 1) < rounding
        return jnp.where(whole, jnp.log(value), jnp.nan) @ _contrasts(value.shape[-1], value.dtype)

    def from_free(self, free):
        return jax.nn.softmax(free @ _contrasts(free.shape[-1] + 1, free.dtype).T, axis=-1)


class PhysicalInertia(Bijection):
    """Inertias of bodies that can exist, `jdyn.SpatialInertia`, by ten numbers each: `jdyn.spatial.log_cholesky`.

    The mass stays positive and the principal moments satisfy the triangle inequality strictly. Bodies without volume,
    point masses and thin rods, are on the bounds.

    >>> inertia = jdyn.SpatialInertia.from_com(2.0, jnp.array([0.0, 0.0, 0.5]), 0.1 * jnp.eye(3))
    >>> bounds = jdyn.tuning.PhysicalInertia()
    >>> free = bounds.to_free(inertia)  # ten numbers without bounds
    >>> print(free.shape, bounds.from_free(free).mass.round(3))
    (10,) 2.0

    Source: Rucker and Wensing 2022, Smooth parameterization of rigid-body inertia, RA-L.
    """

    of = SpatialInertia

    @property
    def expected(self):
        return "a positive mass, and principal moments below the sum of the two others (no point mass, no thin rod)"

    def to_free(self, value):
        return _batched(log_cholesky, jnp.ndim(value.mass))(value)

    def from_free(self, free):
        return _batched(from_log_cholesky, free.ndim - 1)(free)


def _contrasts(n, dtype):
    """Orthonormal vectors that are orthogonal to (1, ..., 1), in the columns (Helmert's)."""
    columns = [np.r_[np.ones(k), -k, np.zeros(n - k - 1)] / np.sqrt(k * (k + 1)) for k in range(1, n)]
    return jnp.asarray(np.reshape(columns, (n - 1, n)).T, dtype)


def _batched(function, axes):
    for _ in range(axes):
        function = jax.vmap(function)
    return function


def _shown(ends):
    return np.array2string(ends, precision=6, threshold=8, separator=", ")
