"""The tuned part of parameters, and the results of a loss."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


def tunable(params: PyTree) -> tuple[PyTree[Array], PyTree]:
    """The floating-point leaves, as arrays, and everything else.

    Raises:
        ValueError: if there are no such leaves.
    """
    tuned, fixed = eqx.partition(params, eqx.is_inexact_array_like)
    tuned = strong(jax.tree.map(jnp.asarray, tuned))
    if not jax.tree.leaves(tuned):
        raise ValueError("params: expected a PyTree with at least one floating-point leaf, found none to tune")
    return tuned, fixed


def named_leaves(tree: PyTree[Array]) -> list[tuple[str, Array]]:
    """Leaves with their paths."""
    return [(path_name(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def path_name(path: tuple) -> str:
    """Name of the leaf, or the part, at a path within the parameters."""
    return jax.tree_util.keystr(path) or "params"


def strong(tree: PyTree) -> PyTree:
    """Leaves without weak types: otherwise a leaf that comes back strongly typed makes JAX compile again."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype) if eqx.is_array(leaf) else leaf, tree)


def scalar(value) -> Float[Array, ""]:
    """The value and the trajectory that a loss returned.

    Raises:
        ValueError: if it is not a floating-point scalar.
    """
    value = jnp.asarray(value)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"loss: expected a floating-point scalar, got shape {value.shape} of {value.dtype}")
    return value
