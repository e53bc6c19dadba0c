"""Rigid contact by alternating directions."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import CHOLESKY
from jdyn.geometry.directions import length_and_unit
from jdyn.impulses.cones.problem import ConeProblem, Points, Vectors
from jdyn.impulses.cones.solver import ConeSolver

# Weight of nearness to the impulses before, and the first penalty, as a share of the largest row of the matrix.
PROXIMAL, FIRST = 1e-6, 0.01
# The penalty grows or shrinks by the first number where residuals differ by the second.
GROWTH, UNLIKE = 2.0, 10.0


class Iterate(NamedTuple):
    """State of the iteration.

    Attributes:
        x: Impulses that obey the equations of motion.
        y: The same in the cones.
        z: Multipliers of x = y, which become the velocities less their part by friction.
        penalty: Weight of x = y.
    """

    x: Vectors
    y: Vectors
    z: Vectors
    penalty: Scalar


class ADMM(ConeSolver):
    """Alternating direction method of multipliers: impulses that obey the equations of motion, and such in the cones
    of friction, drawn together by a penalty that adapts.

    Bears mass ratios of 10⁴ and points that share a load. G has to be symmetric.

    >>> problem = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[2.0, 0.0, -1.0]]), jnp.array([0.5]))
    >>> print(jdyn.impulses.ADMM().solve(problem).gamma)
    [[-0.5  0.   1. ]]

    Source: Carpentier, Le Lidec, Montaut, From compliant to rigid contact simulation: a unified and efficient approach,
    Robotics: Science and Systems 2024; De Saxcé, Feng, The bipotential method, Mathematical and Computer Modelling 28,
    1998, for what friction adds to velocities.

    Attributes:
        rounds: How often it sweeps and tries Newton's method, at most.
        sweeps: In each round, after which the penalty adapts.
    """

    rounds: int = eqx.field(static=True, default=60)
    sweeps: int = eqx.field(static=True, default=30)

    def start(self, problem: ConeProblem) -> Iterate:
        none = jnp.zeros_like(problem.b)
        # About the geometric mean of the largest eigenvalue and of small ones that matter.
        largest = jnp.max(jnp.sum(jnp.abs(problem.matrix), axis=1))
        return Iterate(none, none, none, FIRST * largest)

    def swept(self, problem: ConeProblem, state: Iterate) -> Iterate:
        b, penalty = problem.b, state.penalty
        factors = CHOLESKY.factor(problem.matrix + (PROXIMAL + penalty) * jnp.eye(b.size, dtype=b.dtype))

        def sweep(_, iterates):
            (x, y, z), _ = iterates
            right = penalty * y + PROXIMAL * x + z - b - _by_friction(z, problem.friction)
            moved = CHOLESKY.solve(factors, right.ravel()).reshape(b.shape)
            into = jax.vmap(_in_cone)(moved - z / penalty, problem.friction)
            return (moved, into, z - penalty * (moved - into)), (x, y)

        now = state.x, state.y, state.z
        (x, y, z), (x0, y0) = jax.lax.fori_loop(0, self.sweeps, sweep, (now, now[:2]))
        apart = jnp.max(jnp.abs(x - y))
        unsettled = jnp.max(jnp.abs(penalty * (y - y0) + PROXIMAL * (x - x0)))
        grown = jnp.where(apart > UNLIKE * unsettled, GROWTH, jnp.where(unsettled > UNLIKE * apart, 1 / GROWTH, 1.0))
        return Iterate(x, y, z, penalty * grown)

    def impulses(self, problem: ConeProblem, state: Iterate) -> Vectors:
        return state.y


def _by_friction(w: Vectors, mu: Points) -> Vectors:
    """μ |w_t| along the normal: with it, velocities of points that slide are normal to the cone."""
    speed, _ = jax.vmap(length_and_unit)(w[:, :2])
    return jnp.zeros_like(w).at[:, 2].set(mu * speed)


def _in_cone(x: Float[Array, "3"], mu: Scalar) -> Float[Array, "3"]:
    """The nearest point of the cone of friction."""
    rubbing, direction = length_and_unit(x[:2])
    along = jnp.maximum(mu * rubbing + x[2], 0) / (1 + mu**2)
    on_edge = along * jnp.append(mu * direction, 1.0)
    return jnp.where(rubbing <= mu * x[2], x, on_edge)
