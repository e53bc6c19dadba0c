"""The accelerations that a method finds, with the derivative rule that all methods share."""

import equinox as eqx
import jax
from jax.ad_checkpoint import checkpoint_name

from jdyn.dynamics.compiled import compiled
from jdyn.dynamics.inverse import inverse_dynamics, mass_product
from jdyn.dynamics.methods import Method
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
def _solve_jvp(primals, tangents):
    method, *arguments = primals
    a, factors = jax.tree.map(lambda x: checkpoint_name(x, _SOLUTION), _solve(method, *arguments))
    model, q, *_ = arguments

    def residual(model, q, v, tau, f_ext):
        return tau - inverse_dynamics(model, q, v, a, f_ext=f_ext)

    _, r = eqx.filter_jvp(residual, tuple(arguments), tuple(tangents[1:]))
    da = jax.lax.custom_linear_solve(
        lambda x: mass_product(model, q, x), r, lambda _, b: method.solve(model, factors, b), symmetric=True
    )
    return (a, factors), (da, jax.tree.map(lambda _: None, factors))
