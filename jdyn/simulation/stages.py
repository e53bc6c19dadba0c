"""Weighted sums of the stages of a method, which are the first axis of every leaf."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def weighted(weights: Any, k: PyTree) -> PyTree:
    """Σ_i weights_i k_i; several sums for a matrix of weights."""
    return jax.tree.map(lambda k: jnp.tensordot(jnp.asarray(weights, k.dtype), k, 1, precision="highest"), k)


def plus(y: PyTree, weights: Any, k: PyTree) -> PyTree:
    """y + Σ_i weights_i k_i."""
    return jax.tree.map(jnp.add, y, weighted(weights, k))
