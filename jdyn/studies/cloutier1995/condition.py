"""Condition numbers of the mass matrix."""

import functools

import jax
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import mass_matrix
from jdyn.model import Model
from jdyn.studies.cloutier1995.rows import in_rows


def condition_numbers(model: Model, q: Float[Array, "rows nq"]) -> np.ndarray:
    """Ratio of the largest singular value of the mass matrix to the smallest, in each of many configurations.

    The matrix has the precision of the model, its singular values float64.

    Args:
        model: The mechanism, or one for each configuration, stacked along the first axis of their leaves.
        q: Configurations [rad or m].

    Returns:
        Shape (rows,), NaN where a configuration is not finite.
    """
    found = (
        in_rows(_mass_matrices, model, q) if _stacked(model) else in_rows(functools.partial(_mass_matrices, model), q)
    )
    matrices = np.asarray(found, float)
    finite = np.all(np.isfinite(matrices), axis=(1, 2))
    conditions = np.full(len(matrices), np.nan)
    conditions[finite] = np.linalg.cond(matrices[finite])
    return conditions


@jax.jit
def _mass_matrices(model, q):
    return jax.vmap(mass_matrix, (0 if _stacked(model) else None, 0))(model, q)


def _stacked(model) -> bool:
    return model.gravity.ndim > 1
