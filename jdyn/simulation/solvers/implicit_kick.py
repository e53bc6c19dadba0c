"""Implicit changes of the velocity."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from jdyn.array import GAUSS_JORDAN
from jdyn.simulation.solver import Work
from jdyn.simulation.solvers.moves import incremented, without_configuration
from jdyn.simulation.state import State

# Newton steps before giving up. Each reduces the error by a factor of order h², about 10⁻³.
NEWTON_STEPS = 24

Vector = Float[Array, " n"]


def half_kicked(terms, t, y0: State, args, control, place: Callable[[State], State]):
    """y = y₀ + ½ h F(t, place(y)) in all leaves except the configuration, which does not change.

    Derivatives are those of the solution, and do not depend on the iteration.

    Args:
        terms: The equations of motion.
        t: Time at which F is evaluated [s].
        y0: State before.
        args: Passed on to `terms`.
        control: h, as `terms` have it.
        place: From y to the state at which F is evaluated.

    Returns:
        y, the `diffrax.RESULTS` of the iteration, and the `Work` of it: an evaluation an iteration, and one Jacobian.
    """
    start, unravel = ravel_pytree(without_configuration(y0))

    def after(increment: Vector) -> State:
        return incremented(y0, unravel(increment))

    def residual(increment: Vector) -> Vector:
        rate = terms.vf(t, place(after(increment)), args)
        return increment - 0.5 * ravel_pytree(without_configuration(terms.prod(rate, control)))[0]

    increment, (left, iterations) = jax.lax.custom_root(
        residual, jnp.zeros_like(start), lambda residual, guess: _newton(residual, guess, start), _solve, has_aux=True
    )
    done, failed = diffrax.RESULTS.successful, diffrax.RESULTS.nonlinear_divergence
    # `where` takes traced conditions, and is annotated for bool.
    result = diffrax.RESULTS.where(left <= 0, done, failed)  # type: ignore[arg-type]
    return after(increment), result, Work.of(iterations, 1)


class _Iterate(NamedTuple):
    """A Newton iteration.

    Attributes:
        x: Solution so far.
        change: Size of the last Newton step.
        contraction: Its ratio to the one before.
        steps: Number of steps.
    """

    x: Vector
    change: Float[Array, ""]
    contraction: Float[Array, ""]
    steps: Array


def _newton(residual, guess: Vector, origin: Vector) -> tuple[Vector, tuple[Array, Array]]:
    """The root by simplified Newton steps, with the Jacobian at the guess, to within rounding of `origin + x`; and by
    how much the last step was longer than half the digits allow, and how many steps there were.

    Source: Hairer, Wanner 1996, section IV.8, for when to stop; Hairer, Lubich, Wanner 2006, section VIII.6, for why
    only rounding may be left: what an iteration leaves adds up to a drift of the energy.
    """
    inverse = GAUSS_JORDAN.factor(jax.jacfwd(residual)(guess))
    eps = jnp.finfo(guess.dtype).eps

    def size(x):
        return jnp.max(jnp.abs(origin)) + jnp.max(jnp.abs(x))

    def unfinished(iterate):
        # The remaining error is at most the last step times θ/(1 - θ), the rest of a geometric series.
        theta = iterate.contraction
        left = iterate.change * theta / jnp.maximum(1 - theta, eps)
        return (left > eps * size(iterate.x)) & (theta < 1) & (iterate.steps < NEWTON_STEPS)

    def improved(iterate):
        step = GAUSS_JORDAN.solve(inverse, residual(iterate.x))
        change = jnp.max(jnp.abs(step))
        # Assume a bad contraction until it is known.
        theta = jnp.where(iterate.steps == 0, 0.5, change / jnp.where(iterate.change > 0, iterate.change, 1))
        return _Iterate(iterate.x - step, change, theta, iterate.steps + 1)

    start = _Iterate(guess, jnp.full((), jnp.inf, guess.dtype), jnp.full((), 0.5, guess.dtype), jnp.array(0))
    last = jax.lax.while_loop(unfinished, improved, start)
    # Steps that no longer shrink are rounding, or else the iteration does not converge.
    # `custom_root` has wrong tangents for integers, so the count is a float inside it.
    return last.x, (last.change - jnp.sqrt(eps) * size(last.x), last.steps.astype(guess.dtype))


def _solve(linear, b: Vector) -> Vector:
    return GAUSS_JORDAN.solve(GAUSS_JORDAN.factor(jax.jacfwd(linear)(jnp.zeros_like(b))), b)
