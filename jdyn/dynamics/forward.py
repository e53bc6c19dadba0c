"""Forward dynamics: the front door to all methods, with the derivative rule that they share."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from jdyn.dynamics.compiled import compiled
from jdyn.dynamics.inverse import inverse_dynamics, mass_product
from jdyn.dynamics.methods import ABA, Method
from jdyn.model import Model, checked


@compiled
def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | None = None,
) -> Float[Array, " nv"]:
    """Accelerations that generalized forces `tau` produce at `(q, v)`.

    Forward and reverse derivatives of any order, with respect to every argument and every leaf of the model, come
    from the equation itself, M da = dτ − d(inverse dynamics) at constant a, with the factors of M reused; the
    recursions of the method are never differentiated.

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: How to solve; `jdyn.ABA()` if left out.

    Returns:
        Accelerations [rad/s² or m/s²]; not finite where the mass matrix is singular.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Featherstone 2008, chapters 6 and 7; the derivative is the implicit function theorem.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    if f_ext is not None:
        (f_ext,) = checked(model, f_ext=f_ext)
    return _solve(ABA() if method is None else method, model, q, v, tau, f_ext)[0]


@eqx.filter_custom_jvp
def _solve(method, model, q, v, tau, f_ext):
    """The acceleration and the method's factors. The factors carry no derivative and must not be given one."""
    factors = method.factor(model, q)
    return method.accelerations(model, factors, q, v, tau, f_ext), factors


@_solve.def_jvp
def _solve_jvp(primals, tangents):
    method, *arguments = primals
    a, factors = _solve(method, *arguments)
    model, q, *_ = arguments

    def residual(model, q, v, tau, f_ext):
        return tau - inverse_dynamics(model, q, v, a, f_ext=f_ext)

    _, r = eqx.filter_jvp(residual, tuple(arguments), tuple(tangents[1:]))
    da = jax.lax.custom_linear_solve(
        lambda x: mass_product(model, q, x), r, lambda _, b: method.solve(model, factors, b), symmetric=True
    )
    return (a, factors), (da, jax.tree.map(lambda _: None, factors))
