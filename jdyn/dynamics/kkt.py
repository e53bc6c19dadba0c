"""The minimum of ½ zᵀH z − bᵀz subject to couplings C z = d.

The minimum and the couplings' multipliers solve the symmetric indefinite system

    [ H  Cᵀ ] [ z ]   [ b ]
    [ C  0  ] [ μ ] = [ d ].
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

Matrix = Float[Array, "size size"]
Rows = Float[Array, "rows size"]
Vector = Float[Array, " size"]

# Passes of scaling: each divides a row by the square root of its largest entry.
_SCALINGS = 3


def system(H: Matrix, C: Rows) -> Float[Array, "all all"]:
    """The matrix of the whole system."""
    return jnp.block([[H, C.T], [C, jnp.zeros((len(C), len(C)), H.dtype)]])


class ScaledInverse(eqx.Module):
    """The inverse by Gaussian elimination with partial pivoting, after rows and columns have been scaled alike.

    The matrix mixes accelerations and forces, lengths and angles: without scaling, units would choose its pivots. A
    product with the inverse, refined once, is as accurate as a solve with the factors. It needs no LAPACK, with which
    programs can stall that take derivatives in both modes (`jdyn.array.small_matrices`).

    Attributes:
        K: The scaled matrix.
        inverse: Its inverse.
        scale: Ratio of z and μ to the scaled unknowns.
        size: Number of entries of z.

    Source: Ruiz 2001 for the scaling; Golub and Van Loan 2013, sections 3.4 and 3.5.3.
    """

    K: Float[Array, "all all"]
    inverse: Float[Array, "all all"]
    scale: Float[Array, " all"]
    size: int = eqx.field(static=True)

    @staticmethod
    def of(H: Matrix, C: Rows) -> "ScaledInverse":
        K = system(H, C)
        scale = jnp.ones(len(K), K.dtype)
        for _ in range(_SCALINGS):
            largest = jnp.max(jnp.abs(scale[:, None] * K * scale[None]), axis=1)
            scale = scale / jnp.sqrt(jnp.where(largest > 0, largest, 1))
        K = scale[:, None] * K * scale[None]
        return ScaledInverse(K, jnp.linalg.inv(K), scale, len(H))

    def solve(self, rhs: Float[Array, " all"]) -> Float[Array, " all"]:
        """z and μ; NaN where z misses the couplings by more than rounding, because they contradict each other."""
        rhs = self.scale * rhs
        x = self.inverse @ rhs
        x = x + self.inverse @ (rhs - self.K @ x)
        z, d = x[: self.size], rhs[self.size :]
        missed = self.K[self.size :, : self.size] @ z - d
        most = float(jnp.finfo(x.dtype).eps) ** 0.5 * (jnp.max(jnp.abs(z)) + jnp.max(jnp.abs(rhs)))
        return jnp.where(jnp.all(jnp.abs(missed) <= most), self.scale * x, jnp.nan)
