"""Base parameters: the combinations of standard parameters that forces tell."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int

from jdyn.array import shaped
from jdyn.identification.standard import PARTS, Part, indices_of, standard_names, standard_regressor
from jdyn.model import Model, checked

Identifiable = Literal["alone", "combined", "no", "known"]

# A direction that moves forces by less than this many roundings of the largest may be none: a regressor's entries carry
# some ten roundings for each body on the way to the world.
ROUNDINGS = 1000


@dataclasses.dataclass(frozen=True)
class BaseParameters:
    """The combinations b = B π of standard parameters π that forces depend on, as few as there can be.

    Each is one standard parameter plus multiples of some that have no combination of their own. `print` shows them.

    >>> base = jdyn.identification.base_parameters(jdyn.load("pendulum"), parts=["inertias"])
    >>> base.rank, base.names
    (3, ('body:link1.mx', 'body:link1.mz', 'body:link1.Iyy'))

    Attributes:
        standard: Names of the standard parameters.
        unknown: Indices of those that count as unknown; the rest is taken from the model.
        columns: Index of the one that each base parameter starts with, shape (rank,).
        combinations: B, shape (rank, parameters); its columns `columns` are the identity.
        singular_values: Of the regressor whose columns are scaled to length one, largest first. Those beyond the rank
            are rounding.
    """

    standard: tuple[str, ...]
    unknown: Int[np.ndarray, " unknown"]
    columns: Int[np.ndarray, " rank"]
    combinations: Float[np.ndarray, "rank parameters"]
    singular_values: Float[np.ndarray, " values"]

    @property
    def rank(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each base parameter: the sum that it is."""
        return tuple(
            _sum(self.standard, row, first) for row, first in zip(self.combinations, self.columns, strict=True)
        )

    @property
    def identifiable(self) -> tuple[Identifiable, ...]:
        """State of each standard parameter: forces tell it alone, only combined with others, or not; or it is known."""
        # A basis has no other choice for these: no combination that moves no force contains them.
        lone = self.columns[np.count_nonzero(self.combinations, axis=1) == 1]
        found: list[Identifiable] = ["known"] * len(self.standard)
        for column in self.unknown:
            found[column] = "combined" if np.any(self.combinations[:, column]) else "no"
        for column in lone:
            found[column] = "alone"
        return tuple(found)

    def __str__(self):
        by_kind = {kind: [] for kind in get_args(Identifiable)}
        for name, kind in zip(self.standard, self.identifiable, strict=True):
            by_kind[kind].append(name)
        counts = ", ".join(f"{len(names)} {kind}" for kind, names in by_kind.items() if names)
        head = f"{self.rank} base parameters of {len(self.standard)} standard ones, which are identifiable: {counts}"
        return "\n".join([head, *self.names])


def base_parameters(
    model: Model,
    q: Float[Array, "states nq"] | None = None,
    v: Float[Array, "states nv"] | None = None,
    a: Float[Array, "states nv"] | None = None,
    *,
    parts: Sequence[Part] = PARTS,
) -> BaseParameters:
    """Which of a model's standard parameters forces tell, alone or in combination.

    >>> base = jdyn.identification.base_parameters(jdyn.load("double_pendulum"), parts=["inertias"])
    >>> len(base.standard), base.rank
    (26, 6)

    Args:
        model: The mechanism; the values of its masses and coefficients of its joints do not matter.
        q, v, a: States of a motion [rad or m, and per s, s²]: the combinations that forces of this motion tell. If left
            out, those that any motion tells: of random states.
        parts: What is unknown; the rest is taken from the model.

    Returns:
        The base parameters of `jdyn.identification.standard_names(model)`.

    Raises:
        ValueError: if some of `q, v, a` are given without the others, or sizes disagree with `model`.

    Source: Gautier, Numerical calculation of the base inertial parameters of robots, Journal of Robotic Systems 1991.
    """
    checked(model)
    if (q is None) != (v is None) or (q is None) != (a is None):
        raise ValueError("q, v, a: expected all of them, or none for random states")
    q, v, a = _random_states(model) if q is None else measured(model, q, v=v, a=a)  # type: ignore[arg-type]
    return basis(model, stacked_regressor(model, q, v, a), parts)


def measured(model: Model, q: ArrayLike, **more: ArrayLike) -> list[Array]:
    """The rows of a motion, of q and of velocities, accelerations or forces, as arrays of the model's type.

    Raises:
        ValueError: if a shape is wrong or a number is not finite.
    """
    samples = jnp.shape(q)[0] if jnp.ndim(q) else 1
    if not samples:
        raise ValueError("q: expected one or more samples, got none")
    arrays = []
    for name, x in {"q": q, **more}.items():
        size = model.nq if name == "q" else model.nv
        array = shaped(name, x, model.dtype, (samples, size), owner=model.name)
        # Traced numbers are refused where ranks are needed.
        bad = [] if isinstance(array, Tracer) else np.flatnonzero(~np.all(np.isfinite(array), axis=1))
        if len(bad):
            raise ValueError(f"{name}: expected finite numbers, got {np.asarray(array[bad[0]])} at sample {bad[0]}")
        arrays.append(array)
    return arrays


def stacked_regressor(model, q, v, a) -> Float[np.ndarray, "states nv parameters"]:
    """The regressors of many states, on the host.

    Raises:
        ValueError: within a transformation of JAX, as ranks and names follow from numbers.
    """
    Y = _stacked(model.without_shapes(), q, v, a)
    if isinstance(Y, Tracer):
        raise ValueError(
            "model, q, v, a: expected numbers, got traced ones; which parameters forces tell depends on numbers: call "
            "identification outside of jax.jit, jax.vmap and jax.grad"
        )
    return np.asarray(Y)


@jax.jit
def _stacked(model, q, v, a):
    return jax.vmap(standard_regressor, (None, 0, 0, 0))(model, q, v, a)


def _random_states(model):
    """States at random, one for each parameter, so that the rows of any of them would suffice."""
    count = len(standard_names(model))
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], count))
    v, a = (jax.random.normal(key, (count, model.nv), model.dtype) for key in keys[1:])
    return q, v, a


def basis(model: Model, Y: Float[np.ndarray, "... parameters"], parts: Sequence[Part]) -> BaseParameters:
    """Base parameters of some parts of a model, by its regressor, all of whose axes but the last one are rows."""
    names, columns = standard_names(model), indices_of(model, parts)
    first, shares, singular_values = _factored(Y[..., columns])
    combinations = np.zeros((len(first), len(names)))
    combinations[:, columns] = shares
    return BaseParameters(names, columns, columns[first], combinations, singular_values)


def _factored(Y):
    """Columns that no others make up, what all columns have of them, and singular values, by QR with pivoting."""
    relative = ROUNDINGS * float(jnp.finfo(Y.dtype).eps)
    Y = np.asarray(Y, float).reshape(-1, Y.shape[-1])
    lengths = np.linalg.norm(Y, axis=0)
    # Units differ from column to column, so each is scaled, but for those that are rounding alone.
    scales = np.where(lengths > relative * lengths.max(initial=0), lengths, np.inf)
    factors: Any = scipy.linalg.qr(Y / scales, mode="economic", pivoting=True)
    _, R, order = factors
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > relative * diagonal.max(initial=0)))
    combinations = np.zeros((rank, len(order)))
    combinations[:, order[:rank]] = np.eye(rank)
    combinations[:, order[rank:]] = _shares(R[:rank], relative, scales[order])
    in_order = np.argsort(order[:rank])
    return order[:rank][in_order], combinations[in_order], np.linalg.svd(R, compute_uv=False)


def _shares(R, relative, scales):
    """Shares that dependent columns, the last ones, have of each independent one."""
    rank = len(R)
    if not rank:
        return np.zeros((0, len(scales)))
    shares = scipy.linalg.solve_triangular(R[:, :rank], R[:, rank:])
    # Zeros come out as the rounding of the rows, enlarged by solving.
    shares[np.abs(shares) < relative * np.linalg.cond(R[:, :rank])] = 0
    dependent = np.where(np.isinf(scales), 0, scales)[rank:]
    return shares * dependent / scales[:rank, None]


def _sum(names, row, first):
    """In words, as `a + 0.5 b - 2 c`."""
    others = [i for i in np.flatnonzero(row) if i != first]
    terms = [f" {'-' if row[i] < 0 else '+'} {_factor(abs(row[i]))}{names[i]}" for i in others]
    return names[first] + "".join(terms)


def _factor(x):
    return "" if abs(x - 1) < 1e-6 else f"{x:.4g} "
