"""Linear systems of linearly implicit methods, with derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.execution.compiled import precise
from jdyn.simulation.solvers.implicit_motion import Eliminated
from jdyn.simulation.solvers.step_rate import StepRate

Vector = Float[Array, " n"]


def shifted_solution(rate: StepRate, share: Scalar | float, system: Eliminated, after: Scalar, s: Vector) -> Vector:
    """k with (1 − share ∂f/∂x) k = s + share ∂f/∂θ after, where f(θ, x) is the rate over the step, at its start.

    Its derivatives are those of the exact solution: r(p, k) = 0 with the residual r, and any parameter p, gives
    (1 − share ∂f/∂x) dk = ∂r/∂p dp. No derivative is taken of the Jacobian as a whole.

    Args:
        rate: f.
        share: Of the step.
        system: By elimination, the same for this share.
        after: Share of the step over which the rate changes with time.
        s: Right-hand side.
    """
    return _solved(rate, jnp.asarray(share, s.dtype), jax.lax.stop_gradient(system), after, s)


@eqx.filter_custom_jvp
def _solved(rate, share, system, after, s):
    return system.solution(after, s)


@_solved.def_jvp
@precise
def _solved_jvp(primals, tangents):
    rate, share, system, after, s = primals
    k = _solved(*primals)

    def residual(rate, share, after, s):
        _, change = jax.jvp(rate, (jnp.zeros_like(after), rate.start), (after, k))
        return s + share * change - k

    d_rate, d_share, _, d_after, ds = tangents
    _, dr = eqx.filter_jvp(residual, (rate, share, after, s), (d_rate, d_share, d_after, ds))
    return k, _solved(rate, share, system, jnp.zeros_like(after), dr)
