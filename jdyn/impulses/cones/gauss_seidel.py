"""Rigid contact point by point."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jdyn.impulses.cones.problem import ConeProblem, Vectors
from jdyn.impulses.cones.solver import ConeSolver


class GaussSeidel(ConeSolver):
    """Projected Gauss-Seidel: each point in turn takes the impulse that it would with those of all others held.

    Takes few sweeps where masses are alike, and G need not be symmetric; with light bodies below heavy ones hardly
    comes nearer, see `jdyn.impulses.ADMM`.

    >>> problem = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[2.0, 0.0, -1.0]]), jnp.array([0.5]))
    >>> print(jdyn.impulses.GaussSeidel().solve(problem).gamma)
    [[-0.5  0.   1. ]]

    Source: Jean, The non-smooth contact dynamics method, Computer Methods in Applied Mechanics and Engineering 177,
    1999.

    Attributes:
        rounds: How often it sweeps and tries Newton's method, at most.
        sweeps: In each round.
    """

    rounds: int = eqx.field(static=True, default=60)
    sweeps: int = eqx.field(static=True, default=30)

    def start(self, problem: ConeProblem) -> Vectors:
        return jnp.zeros_like(problem.b)

    def swept(self, problem: ConeProblem, state: Vectors) -> Vectors:
        rates, friction = problem.rates, problem.friction

        def hit(number, gamma):
            i = number % len(gamma)
            w = jnp.einsum("ajb,jb->a", problem.G[i], gamma) + problem.b[i]
            alone = ConeProblem(problem.G[i][None], problem.b[i][None], friction[i][None])
            return gamma.at[i].set(alone.projected((gamma[i] - rates[i] * w)[None])[0])

        return jax.lax.fori_loop(0, self.sweeps * len(state), hit, state)

    def impulses(self, problem: ConeProblem, state: Vectors) -> Vectors:
        return state
