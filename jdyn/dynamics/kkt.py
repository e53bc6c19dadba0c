"""Two ways to minimise ½ zᵀH z − bᵀz subject to couplings C z = d.

The minimum and the couplings' multipliers solve the symmetric indefinite system

    [ H  Cᵀ ] [ z ]   [ b ]
    [ C  0  ] [ μ ] = [ d ].
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

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


class ProjectedGradients(eqx.Module):
    """Conjugate gradients among the z that satisfy the couplings; no step increases the objective.

    Coordinates are scaled by positive inertias that resemble H's diagonal, and reflections of Cᵀ project off what the
    couplings forbid. In exact arithmetic it needs at most one step for each degree of freedom that C leaves, and fewer
    from a good guess.

    Attributes:
        H: The scaled matrix.
        scale: Ratio of z to the scaled coordinates.
        Q, R: Orthonormal basis of the rows of C, scaled, and their coordinates in it.
        tol: Norm of the projected gradient, relative to that without any motion that the couplings allow, at which to
            stop.
        max_steps: Steps at most; without convergence by then, everything is NaN, as it is if couplings depend on each
            other.

    Source: Gould, Hribar, Nocedal 2001, algorithm II.
    """

    H: Matrix
    scale: Vector
    Q: Float[Array, "size rows"]
    R: Float[Array, "rows rows"]
    tol: float = eqx.field(static=True)
    max_steps: int | None = eqx.field(static=True)

    @staticmethod
    def of(H: Matrix, C: Rows, inertias: Vector, tol: float, max_steps: int | None) -> "ProjectedGradients":
        scale = 1 / jnp.sqrt(inertias)
        Q, R = jnp.linalg.qr((C * scale[None]).T)
        return ProjectedGradients(scale[:, None] * H * scale[None], scale, Q, R, tol, max_steps)

    def solve(self, rhs: Float[Array, " all"], guess: Vector | None = None) -> Float[Array, " all"]:
        """z and μ, from a guess of z, which need not satisfy the couplings."""
        b, d = self.scale * rhs[: len(self.scale)], rhs[len(self.scale) :]
        particular = self.Q @ solve_triangular(self.R, d, trans="T")
        y = particular if guess is None else particular + self._allowed(guess / self.scale)
        g = b - self.H @ particular
        # Rounding leaves this much of forces that the couplings take up.
        rounding = 4 * float(jnp.finfo(b.dtype).eps) * jnp.linalg.norm(g)
        target = jnp.maximum(self.tol * jnp.linalg.norm(self._allowed(g)), rounding)
        y, r = self._iterate(y, self._allowed(b - self.H @ y), target)
        multipliers = solve_triangular(self.R, self.Q.T @ (b - self.H @ y))
        found = (jnp.linalg.norm(r) <= target) & self._independent()
        return jnp.where(found, jnp.concatenate([self.scale * y, multipliers]), jnp.nan)

    def _iterate(self, y: Vector, r: Vector, target: Float[Array, ""]) -> tuple[Vector, Vector]:
        size, rows = self.Q.shape
        most = 10 * (size - rows) if self.max_steps is None else self.max_steps

        def unfinished(state):
            step, _, r, _ = state
            return (jnp.linalg.norm(r) > target) & (step < most)

        def advance(state):
            step, y, r, p = state
            Hp = self.H @ p
            alpha = (r @ r) / (p @ Hp)
            following = self._allowed(r - alpha * Hp)
            return step + 1, y + alpha * p, following, following + ((following @ following) / (r @ r)) * p

        _, y, r, _ = jax.lax.while_loop(unfinished, advance, (0, y, r, r))
        return y, r

    def _independent(self) -> Bool[Array, ""]:
        """Whether each row of C has more of its own than rounding could leave."""
        rounding = len(self.Q) * float(jnp.finfo(self.R.dtype).eps)
        return jnp.all(jnp.abs(jnp.diag(self.R)) > rounding * jnp.linalg.norm(self.R, axis=0))

    def _allowed(self, x: Vector) -> Vector:
        """The part of x that the couplings allow."""
        return x - self.Q @ (self.Q.T @ x)
