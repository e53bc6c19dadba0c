"""Forward dynamics: the front door to all methods, with the derivative rule that they share."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from jdyn.dynamics.at_rest import mass_product
from jdyn.dynamics.derivatives import inverse_dynamics_derivatives
from jdyn.dynamics.diagnosis import chosen_method
from jdyn.dynamics.inverse import inverse_dynamics
from jdyn.dynamics.methods import ABA, Method
from jdyn.dynamics.pullback import inverse_dynamics_pullback
from jdyn.dynamics.recursion.floating_base import base_acceleration
from jdyn.execution.compiled import precise
from jdyn.execution.linear_map import LinearMap
from jdyn.model import Free, Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import dof_tree

_SOLUTION = "accelerations and factors"

# For `jax.checkpoint`: keep accelerations and factors for the reverse pass; everything else is cheap to recompute.
keep_solutions = jax.checkpoint_policies.save_only_these_names(_SOLUTION)


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | Literal["auto"] | None = None,
) -> Float[Array, " nv"]:
    """Accelerations that generalized forces `tau` produce at `(q, v)`.

    Forward and reverse derivatives of any order, with respect to every argument and every leaf of the model, come
    from the equation itself, M da = dτ − d(inverse dynamics) at constant a, with the factors of M reused; the
    recursions of the method are never differentiated.

    >>> model = jdyn.load("pendulum")
    >>> print(jdyn.forward_dynamics(model, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.zeros(1)).round(3))
    [-14.715]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: How to solve; `jdyn.ABA()` if left out, and with `"auto"` what `jdyn.diagnose(model).method` is, found
            once for each model that is given. A model that is traced has no numbers to look at: diagnose it outside.

    Returns:
        Accelerations [rad/s² or m/s²]; not finite where the mass matrix is singular.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, `method` is something else, or `"auto"` is to
            choose for a traced model.

    Source: Featherstone 2008, chapters 6 and 7; the derivative is the implicit function theorem.
    """
    return accelerations(resolved(method, model), model, q, v, tau, f_ext)


def resolved(method: Method | Literal["auto"] | None, model: Model) -> Method:
    """The method itself, `ABA()` for None, and what `diagnose` recommends for `"auto"`.

    Raises:
        ValueError: if it is something else, or `"auto"` is to choose for a traced model.
    """
    if method is None:
        return ABA()
    if isinstance(method, Method):
        return method
    if method == "auto":
        return chosen_method(model)
    raise ValueError(f"method: expected one such as jdyn.ABA() or jdyn.CRBA(), 'auto' or None, got {method!r}")


@compiled
def accelerations(method: Method, model: Model, q, v, tau, f_ext):
    """M⁻¹ (τ − h) by `method`, and nothing where nothing moves; arguments are those of `forward_dynamics`."""
    q, v, tau, f_ext = checked(model, q=q, v=v, tau=tau, f_ext=f_ext)
    if not model.nv:
        return tau
    return _solve(method, model, q, v, tau, f_ext)[0]


@eqx.filter_custom_jvp
def _solve(method, model, q, v, tau, f_ext):
    """The acceleration and the method's factors. Factors have no derivative, and none may be taken of them."""
    return method.accelerations_and_factors(model, q, v, tau, f_ext)


@_solve.def_jvp
@precise
def _solve_jvp(primals, tangents):
    method, *arguments = primals
    a, factors = jax.tree.map(lambda x: checkpoint_name(x, _SOLUTION), _solve(method, *arguments))
    da = _implied(method, factors, a, tuple(arguments), tuple(tangents[1:]))
    return (a, factors), (da, jax.tree.map(lambda _: None, factors))


def _implied(method, factors, a, arguments, tangents):
    """da of r(x, a) = 0, with r = τ − ID(x, a) and M = −∂r/∂a, by tangents dx: M⁻¹ ∂r/∂x dx."""
    # One array of tangents: JAX would otherwise transpose the map once for each of them.
    dx, split = ravel_pytree(tangents)
    varies = jax.tree.map(lambda dx: dx is not None, tangents, is_leaf=_is_none)
    arrays, rest = eqx.partition((method, factors, a, arguments), eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)

    def equation(leaves):
        method, factors, a, arguments = eqx.combine(tree.unflatten(leaves), rest)
        return _Equation(method, factors, a, *eqx.partition(arguments, varies))

    @precise
    def apply(leaves, dx):
        return equation(leaves).response(split(dx))

    @precise
    def apply_transposed(leaves, weights):
        return ravel_pytree(equation(leaves).pulled_back(weights))[0]

    @precise
    def plain(leaves, dx):
        return equation(leaves).solution(split(dx))

    @precise
    def apply_to_many(leaves, dx):
        return equation(leaves).responses(jax.vmap(split)(dx))

    x, y = map(jax.typeof, (dx, a))
    many = apply_to_many if equation(leaves).in_closed_form else None
    return LinearMap(apply, apply_transposed, plain, x, y, many)(*leaves, dx)[0]


class _Equation(NamedTuple):
    """r(x, a) = 0, solved for a.

    Attributes:
        method: The method that solved it.
        factors: Its factors of M.
        a: The solution.
        moving: The parts of x that have tangents.
        still: The rest of x.
    """

    method: Any
    factors: Any
    a: Any
    moving: Any
    still: Any

    def residual(self, moving):
        model, q, v, tau, f_ext = eqx.combine(moving, self.still)
        return tau - inverse_dynamics(model, q, v, self.a, f_ext=f_ext)

    def solve(self, c):
        """M⁻¹ c, differentiable with respect to c alone."""
        model, *_ = eqx.combine(self.moving, self.still)
        return self.method.solve(model, self.factors, c)

    def response(self, dx):
        return self.solve(jax.jvp(self.residual, (self.moving,), (dx,))[1])

    @property
    def in_closed_form(self) -> bool:
        """Tell whether derivatives of the residual are known in closed form, by the state and forces of joints."""
        model, *_ = eqx.combine(self.moving, self.still)
        moving_model, *_, moving_f_ext = self.moving
        return model.topology.single_dof_joints and not jax.tree.leaves((moving_model, moving_f_ext))

    def responses(self, dx):
        """Responses to rows of dx: to as many as there are coordinates by the derivatives as matrices."""
        model, q, v, _, f_ext = eqx.combine(self.moving, self.still)
        _, dq, dv, dtau, _ = dx
        # Coordinates of several bases, or of one that is not first, are not the columns that `_by_coordinates` takes.
        one_tree = model.flat or (model.topology.bases == (0,) and dof_tree(model.topology).roots == 1)
        if len(jax.tree.leaves(dx)[0]) < model.nv or (dq is None and dv is None) or not one_tree:
            return jax.vmap(self.response)(dx)
        by_q, by_v, M = inverse_dynamics_derivatives(model, q, v, self.a, f_ext=f_ext)
        c = jnp.zeros((), self.a.dtype) if dtau is None else dtau
        if dv is not None:
            c = c - dv @ by_v.T
        if dq is not None:
            c = c - _by_coordinates(model, q, by_q, M, dq)
        return jax.vmap(self.solve)(c)

    def pulled_back(self, weights):
        """The response's transpose."""
        weights = self.solve(weights)
        model, q, v, _, f_ext = eqx.combine(self.moving, self.still)
        if not self.in_closed_form:
            return jax.vjp(self.residual, self.moving)[1](weights)[0]
        by_q, by_v = inverse_dynamics_pullback(model, q, v, self.a, weights, f_ext)
        slopes = self.moving[0], -by_q, -by_v, weights, self.moving[-1]
        return jax.tree.map(lambda x, slope: None if x is None else slope, self.moving, slopes, is_leaf=_is_none)

    def solution(self, dx):
        """Solution like `response`, but JAX can differentiate it with respect to everything except the factors."""
        model, q, *_ = eqx.combine(self.moving, self.still)
        c = jax.jvp(self.residual, (self.moving,), (dx,))[1]
        return jax.lax.custom_linear_solve(
            lambda a: mass_product(model, q, a), c, lambda _, c: self.solve(c), symmetric=True
        )


def _by_coordinates(model, q, by_q, M, dq):
    """Changes of inverse dynamics by changes of the coordinates as they are, a row each."""
    if model.flat:
        return dq @ by_q.T
    # How a free base lies matters to gravity alone, and where it is to nothing.
    up = jax.vmap(lambda dq: jax.jvp(lambda q: base_acceleration(model, model.expand(q)), (q,), (dq,))[1])(dq)
    return dq[:, Free.nq :] @ by_q[:, Free.nv :].T + up @ M[:, : Free.nv].T


def _is_none(x):
    return x is None
