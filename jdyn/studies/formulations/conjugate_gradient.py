"""Forward dynamics by conjugate gradients."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.building_blocks import Method, bias_forces, mass_matrix_diagonal, mass_product


class ConjugateGradient(Method):
    """Never form M: products M x by inverse dynamics alone, at most about n of them at O(n): O(n²).

    Rounding makes ill-conditioned mechanisms need more than n products. Use it with a good guess, such as the
    accelerations of the step before, or as a check that shares nothing with factorisations.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.ConjugateGradient(tol=1e-6)).round(3))
    [-6.047  8.063]

    Attributes:
        tol: Iteration stops at this norm of the residual, relative to that of the forces.
        max_steps: Products at most, 10 nv if left out. Without convergence by then, all accelerations are NaN.
        preconditioner: `"diagonal"` divides residuals by M's diagonal, which balances heavy and light joints.
        guess: Accelerations to start from [rad/s² or m/s²], shape (nv,).

    Source: Walker and Orin 1982, method 4; Hestenes and Stiefel 1952.
    """

    tol: float = eqx.field(static=True, default=1e-12)
    max_steps: int | None = eqx.field(static=True, default=None)
    preconditioner: Literal["diagonal"] | None = eqx.field(static=True, default=None)
    guess: Float[Array, " nv"] | None = None

    def __check_init__(self):
        if self.preconditioner not in ("diagonal", None):
            raise ValueError(f"preconditioner: expected 'diagonal' or None, got {self.preconditioner!r}")
        if not self.tol > 0:
            raise ValueError(f"tol: expected a positive number, got {self.tol}")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"max_steps: expected at least 1, got {self.max_steps}")

    def factor(self, model, q):
        """The configuration, and the preconditioner's diagonal: nothing is factored."""
        ones = jnp.ones(model.nv, q.dtype)
        return q, ones if self.preconditioner is None else 1 / mass_matrix_diagonal(model, q)

    def solve(self, model, factors, tau):
        return self._iterate(model, factors, tau, jnp.zeros_like(tau))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        force = tau - bias_forces(model, q, v, f_ext=f_ext)
        guess = jnp.zeros_like(force) if self.guess is None else jnp.asarray(self.guess, force.dtype)
        return self._iterate(model, factors, force, guess)

    def _iterate(self, model, factors, b, x):
        q, C = factors
        # Below this no residual of this type falls.
        target = jnp.maximum(self.tol, 4 * jnp.finfo(b.dtype).eps) * jnp.linalg.norm(b)
        most = 10 * model.nv if self.max_steps is None else self.max_steps

        def unfinished(state):
            step, _, r, _, _ = state
            return (jnp.linalg.norm(r) > target) & (step < most)

        def advance(state):
            step, x, r, p, rho = state
            Mp = mass_product(model, q, p)
            alpha = rho / (p @ Mp)
            x, r = x + alpha * p, r - alpha * Mp
            following = r @ (C * r)
            return step + 1, x, r, C * r + (following / rho) * p, following

        r = b - mass_product(model, q, x)
        _, x, r, _, _ = jax.lax.while_loop(unfinished, advance, (0, x, r, C * r, r @ (C * r)))
        return jnp.where(jnp.linalg.norm(r) <= target, x, jnp.nan)
