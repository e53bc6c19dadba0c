"""The accelerations that a method finds, with the derivative rule that all methods share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree

from jdyn.dynamics.compiled import compiled, precise
from jdyn.dynamics.inverse import inverse_dynamics, mass_product
from jdyn.dynamics.methods import Method
from jdyn.dynamics.pullback import inverse_dynamics_pullback
from jdyn.model import Model, checked

_SOLUTION = "accelerations and factors"

# For `jax.checkpoint`: accelerations and factors are kept for the reverse pass; all else is cheap to compute again.
keep_solutions = jax.checkpoint_policies.save_only_these_names(_SOLUTION)


@compiled
def accelerations(method: Method, model: Model, q, v, tau, f_ext):
    """M⁻¹ (τ − h) by `method`; arguments are those of `forward_dynamics`."""
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    if f_ext is not None:
        (f_ext,) = checked(model, f_ext=f_ext)
    return _solve(method, model, q, v, tau, f_ext)[0]


@eqx.filter_custom_jvp
def _solve(method, model, q, v, tau, f_ext):
    """The acceleration and the method's factors. The factors carry no derivative and must not be given one."""
    return method.accelerations_and_factors(model, q, v, tau, f_ext)


@_solve.def_jvp
@precise
def _solve_jvp(primals, tangents):
    method, *arguments = primals
    a, factors = jax.tree.map(lambda x: checkpoint_name(x, _SOLUTION), _solve(method, *arguments))
    da = _implied(method, factors, a, tuple(arguments), tuple(tangents[1:]))
    return (a, factors), (da, jax.tree.map(lambda _: None, factors))


def _implied(method, factors, a, arguments, tangents):
    """da of r(x, a) = 0, with r = τ − ID(x, a) and M = −∂r/∂a, by tangents dx.

    It is the last part of a linear system, [1 0; −∂r/∂x M] [dx; da] = [dx; 0], of which both the solution and that of
    the transposed one are stated here. For derivatives beyond the first JAX turns to the system itself.
    """
    model, q, *_ = arguments
    moving, still = eqx.partition(arguments, jax.tree.map(lambda dx: dx is not None, tangents, is_leaf=_is_none))

    def residual(moving):
        model, q, v, tau, f_ext = eqx.combine(moving, still)
        return tau - inverse_dynamics(model, q, v, a, f_ext=f_ext)

    # JAX transposes a solution if its right side is linear in what is differentiated, array by array: one array is.
    right, split = ravel_pytree((tangents, jnp.zeros_like(a)))

    def joined(dx, c):
        return ravel_pytree((dx, c))[0]

    def system(y):
        dx, da = split(y)
        return joined(dx, mass_product(model, q, da) - jax.linearize(residual, moving)[1](dx))

    def solve(_, b):
        dx, c = split(b)
        return joined(dx, method.solve(model, factors, c + jax.jvp(residual, (moving,), (dx,))[1]))

    def solve_transposed(_, b):
        dx, c = split(b)
        weights = method.solve(model, factors, c)
        return joined(jax.tree.map(jnp.add, dx, _pulled_back(residual, moving, still, a, weights)), weights)

    return split(jax.lax.custom_linear_solve(system, right, solve, solve_transposed))[1]


def _pulled_back(residual, moving, still, a, weights):
    """(∂r/∂x)ᵀ λ for weights λ."""
    model, q, v, _, f_ext = eqx.combine(moving, still)
    moving_model, *_, moving_f_ext = moving
    if jax.tree.leaves((moving_model, moving_f_ext)) or not model.topology.slender:
        return jax.vjp(residual, moving)[1](weights)[0]
    by_q, by_v = inverse_dynamics_pullback(model, q, v, a, weights, f_ext)
    slopes = moving_model, -by_q, -by_v, weights, moving_f_ext
    return jax.tree.map(lambda x, slope: None if x is None else slope, moving, slopes, is_leaf=_is_none)


def _is_none(x):
    return x is None
