"""The algebraic Riccati equation, for batches and derivatives."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model.model import compiled

# Newton's iteration for the sign of a matrix takes about ten steps; without a sign it would not end.
_MOST_STEPS = 60


@compiled
def riccati(
    A: Float[Array, "n n"], B: Float[Array, "n m"], Q: Float[Array, "n n"], R: Float[Array, "m m"]
) -> Float[Array, "n n"]:
    """The stabilizing solution X of Aᵀ X + X A − X B R⁻¹ Bᵀ X + Q = 0.

    xᵀ X x is the least cost ∫ xᵀ Q x + uᵀ R u dt of bringing dx/dt = A x + B u from x to rest, by u = −R⁻¹ Bᵀ X x.

    By the sign of the Hamiltonian matrix and two Newton-Kleinman steps, on any device. Derivatives of any order, in
    both modes, solve the differentiated equation, which is Lyapunov's.

    Args:
        A: Dynamics.
        B: Inputs.
        Q: Cost of the state, symmetric and positive semidefinite.
        R: Cost of the input, symmetric and positive definite.

    Returns:
        X, symmetric and positive semidefinite; NaN where no feedback brings every state to rest, or where Q does not
        see a motion that neither grows nor decays.

    Source: Byers, Solving the algebraic Riccati equation with the matrix sign function, Linear Algebra and its
    Applications 1987; Kleinman, On an iterative technique for Riccati equation computations, IEEE TAC 1968.
    """
    return _stabilizing(A, B @ jnp.linalg.solve(R, B.T), Q)


@jax.custom_jvp
def _stabilizing(A, G, Q):
    """The stabilizing solution of Aᵀ X + X A − X G X + Q = 0."""
    n, eye = len(A), jnp.eye(len(A), dtype=A.dtype)
    W = _sign(jnp.block([[A, -G], [-Q, -A.T]]))
    # The columns of [I; X] span the space that the flow contracts: (W + I) [I; X] = 0.
    orthogonal, triangular = jnp.linalg.qr(jnp.concatenate([W[:n, n:], W[n:, n:] + eye]))
    right = -jnp.concatenate([W[:n, :n] + eye, W[n:, :n]])
    X = jax.scipy.linalg.solve_triangular(triangular, orthogonal.T @ right)
    for _ in range(2):
        X = lyapunov(A - G @ X, Q + X @ G @ X)
    return X


@_stabilizing.defjvp
def _stabilizing_jvp(primals, tangents):
    (A, G, _), (dA, dG, dQ) = primals, tangents
    X = _stabilizing(*primals)
    return X, lyapunov(A - G @ X, dA.T @ X + X @ dA - X @ dG @ X + dQ)


def lyapunov(A: Float[Array, "n n"], C: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """P with Aᵀ P + P A + C = 0 if all eigenvalues of A have negative real parts; NaN otherwise.

    Source: Roberts, Linear model reduction and solution of the algebraic Riccati equation by use of the sign function,
    International Journal of Control 1980.
    """
    return jax.lax.custom_linear_solve(
        lambda P: A.T @ P + P @ A,
        -C,
        lambda _, b: _lyapunov(A, -b),
        lambda _, b: _lyapunov(A.T, -b),
    )


def _lyapunov(A, C):
    """Newton's iteration for the sign of [[A, 0], [C, −Aᵀ]], by blocks."""

    def step(blocks):
        A, C = blocks
        inverse, scale = _inverse(A)
        return (scale * A + inverse / scale) / 2, (scale * C + inverse.T @ C @ inverse / scale) / 2

    S, C = _limit(step, (A, C))
    stable = jnp.all(jnp.abs(S + jnp.eye(len(A), dtype=A.dtype)) < 0.5)
    return jnp.where(stable, (C + C.T) / 4, jnp.nan)


def _sign(Z):
    """The matrix with the eigenvectors of Z and the signs of its eigenvalues' real parts."""

    def step(blocks):
        (Z,) = blocks
        inverse, scale = _inverse(Z)
        return ((scale * Z + inverse / scale) / 2,)

    return _limit(step, (Z,))[0]


def _inverse(Z):
    """Z⁻¹, and the factor that gives Z a determinant of ±1, which keeps the number of Newton's steps small."""
    factors = jax.scipy.linalg.lu_factor(Z)
    log_scale = -jnp.mean(jnp.log(jnp.abs(jnp.diagonal(factors[0]))))
    return jax.scipy.linalg.lu_solve(factors, jnp.eye(len(Z), dtype=Z.dtype)), jnp.exp(log_scale)


def _limit(step, blocks):
    """The limit of Newton's iteration. Each step squares the error, so a small step leaves only rounding."""
    small = jnp.sqrt(jnp.finfo(blocks[0].dtype).eps) / 100

    def moving(state):
        count, change, _ = state
        return (count < _MOST_STEPS) & (change > small)

    def iterate(state):
        count, _, old = state
        new = step(old)
        change = jnp.max(jnp.abs(new[0] - old[0])) / jnp.max(jnp.abs(new[0]))
        return count + 1, change, new

    start = jnp.asarray(jnp.inf, blocks[0].dtype)
    return jax.lax.while_loop(moving, iterate, (0, start, blocks))[2]
