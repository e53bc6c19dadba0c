"""The distance of parameters from nominal ones that keeps them possible, as a sum of squares.

Of bodies it is the relative entropy of their mass distributions, d(J ‖ J0) = tr(J0⁻¹ J) − log det(J0⁻¹ J) − 4 with
pseudo-inertias J. It is convex, infinite where a body stops being possible, and the same in all frames and units. With
a factor L Lᵀ of J0⁻¹ J in the right frame, it is the sum over squares of entries beside the diagonal of L, and of
e^x − x − 1 over its diagonal, x = 2 log L_ii, whose signed root is smooth.

Source: Lee, Wensing, Park, Geometric robot dynamic identification: a convex programming approach, T-RO 2020.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.spatial import SpatialInertia
from jdyn.spatial.log_cholesky import pseudo_inertia


def inertia_residuals(inertias: SpatialInertia, nominal: SpatialInertia) -> Float[Array, "bodies 10"]:
    """Ten numbers for each body whose squares add up to 2 d(J ‖ J0); both are stacked, and possible."""
    return jax.vmap(_of_body)(inertias, nominal)


def _of_body(inertia, nominal):
    root = jnp.linalg.cholesky(pseudo_inertia(nominal))
    half = jax.scipy.linalg.solve_triangular(root, pseudo_inertia(inertia), lower=True)
    relative = jax.scipy.linalg.solve_triangular(root, half.T, lower=True)
    L = jnp.linalg.cholesky(relative)
    beside = L[jnp.tril_indices(4, -1)]
    return jnp.concatenate([2**0.5 * beside, positive_residuals(jnp.diag(L) ** 2, jnp.ones_like(L[0]))])


def positive_residuals(values: Float[Array, " n"], nominal: Float[Array, " n"]) -> Float[Array, " n"]:
    """Numbers whose squares are 2 (x/x0 − log(x/x0) − 1), the same distance of positive numbers."""
    return _signed_root(jnp.log(values / nominal))


def _signed_root(x):
    """± sqrt(2 (e^x − x − 1)) with the sign of x, which is x sqrt(2 (e^x − x − 1) / x²)."""
    # Within this, the remainder of the series is below rounding, and beyond it little cancels.
    near = jnp.abs(x) < 0.1
    small, large = jnp.where(near, x, 0), jnp.where(near, 1, x)
    series = jnp.ones_like(x)
    for k in range(10, 2, -1):
        series = 1 + small / k * series
    quotient = jnp.where(near, series, 2 * (jnp.expm1(large) - large) / large**2)
    return x * jnp.sqrt(quotient)
