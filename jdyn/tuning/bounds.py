"""Bounds of a PyTree of parameters: a bijection, or none, for each of its parts."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from jdyn.tuning.bijections import Bijection
from jdyn.tuning.parameters import path_name


def to_free(bounds: PyTree[Bijection | None], tuned: PyTree[Array]) -> PyTree[Array]:
    """Free coordinates of parameters.

    Args:
        bounds: A prefix of `tuned`: each bijection holds for all that is below it, None leaves it as it is.
        tuned: The parameters.

    Raises:
        ValueError: if `bounds` is no prefix, or a parameter is on its bounds or outside, naming it.
    """
    problems = []

    def part(path, bijection, below):
        if bijection is None:
            return below
        return jax.tree_util.tree_map_with_path(
            lambda deeper, value: leaf(bijection, path_name((*path, *deeper)), value),
            below,
            is_leaf=lambda x: bijection.of is not None and isinstance(x, bijection.of),
        )

    def leaf(bijection, name, value):
        free = _free(bijection, name, value)
        if not np.all(np.isfinite(free)):
            problems.append(f"{name}: expected {bijection.expected}, got {_shown(value)}")
        return free

    free = _over_parts(part, bounds, tuned)
    if problems:
        raise ValueError(f"params: outside of their bounds, or on them; {'; '.join(problems)}")
    return free


def from_free(bounds: PyTree[Bijection | None], free: PyTree[Array]) -> PyTree[Array]:
    """The parameters with these free coordinates."""
    return _over_parts(lambda _, b, below: below if b is None else jax.tree.map(b.from_free, below), bounds, free)


def _over_parts(function, bounds, tree):
    """`function(path, bijection, part of the tree)` for each entry of `bounds`."""

    def is_entry(x):
        return x is None or isinstance(x, Bijection)

    entries = jax.tree.leaves(bounds, is_leaf=is_entry)
    if wrong := [entry for entry in entries if not is_entry(entry)]:
        raise ValueError(f"bounds: expected bijections such as jdyn.tuning.Positive(), or None, got {wrong[0]!r}")
    try:
        return jax.tree_util.tree_map_with_path(function, bounds, tree, is_leaf=is_entry)
    except ValueError as error:
        if str(error).startswith("bounds"):
            raise
        raise ValueError(
            "bounds: expected a bijection or None for each part of params, as in {'kp': jdyn.tuning.Positive(), 'kd': "
            "None}, "
            f"or one for all of them; {error}"
        ) from error


def _free(bijection, name, value):
    kind = type(bijection).__name__
    if bijection.of is not None and not isinstance(value, bijection.of):
        raise ValueError(f"bounds: {kind} is for a {bijection.of.__name__}, but {name} is not part of one")
    try:
        # On the bounds, coordinates are infinite, and a caller who looks for infinities should not be told so by JAX.
        with jax.debug_nans(False), jax.debug_infs(False):
            return bijection.to_free(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"bounds: {kind} does not fit {name} of shape {jnp.shape(value)}; {error}") from error


def _shown(value):
    numbers = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(value)])
    return np.array2string(numbers if numbers.size > 1 else numbers[0], precision=6, threshold=12, separator=", ")
