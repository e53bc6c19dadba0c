"""M x − Jᵀ λ = f, J x = g: what constraints make of the equations of motion."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import LeastNorm
from jdyn.dynamics.at_rest import mass_product
from jdyn.dynamics.methods import Method
from jdyn.model import Model
from jdyn.model.compiled import precise


def saddle_point(
    method: Method,
    model: Model,
    q: Float[Array, " nq"],
    J: Float[Array, "rows nv"],
    f: Float[Array, "sides nv"] | None,
    g: Float[Array, "sides rows"],
) -> tuple[Float[Array, "sides nv"], Float[Array, "sides rows"]]:
    """x and λ for several right-hand sides; f is zero if left out.

    The method's factors of M serve each row of J and each f once, in O(n); the rest is a matrix of as many rows, the
    Delassus matrix J M⁻¹ Jᵀ. Rows that depend on others have the smallest multipliers.

    Derivatives of any order come from the equations, M dx − Jᵀ dλ = df − dM x + dJᵀ λ, J dx = dg − dJ x, with the same
    factors; where rows depend on each other, those of λ are the smallest, too.
    """
    return _solved(method, model, q, J, f, g)[0]


class _Factors(eqx.Module):
    """What solves the system, without derivatives.

    Attributes:
        tree: The method's factors of M.
        responses: M⁻¹ Jᵀ, transposed.
        delassus: J M⁻¹ Jᵀ.
    """

    tree: Any
    responses: Float[Array, "rows nv"]
    delassus: LeastNorm


@eqx.filter_custom_jvp
def _solved(method, model, q, J, f, g):
    """The solutions and factors. Factors have no derivative, and none may be taken of them."""
    tree = method.factor(model, q)
    # One sweep for rows and right-hand sides.
    both = jax.vmap(lambda force: method.solve(model, tree, force))(J if f is None else jnp.concatenate([J, f]))
    responses, x = both[: len(J)], None if f is None else both[len(J) :]
    factors = _Factors(tree, responses, LeastNorm.of(J @ responses.T))
    return _constrained(factors, J, x, g), factors


def _constrained(factors: _Factors, J: Array, x: Array | None, g: Array) -> tuple[Array, Array]:
    """x and λ where x would be the solution without constraints, zero if left out."""
    x = jnp.zeros((len(g), J.shape[1]), g.dtype) if x is None else x

    def improved(_, state):
        x, force = state
        more = jax.vmap(factors.delassus.solve)(g - x @ J.T)
        return x + more @ factors.responses, force + more

    # Twice, since rounding of the Delassus matrix leaves rows unmet.
    return jax.lax.fori_loop(0, 2, improved, (x, jnp.zeros_like(g)))


@_solved.def_jvp
@precise
def _solved_jvp(primals, tangents):
    method, *arguments = primals
    moves = tuple(tangents[1:])
    moving, still = eqx.partition(tuple(arguments), jax.tree.map(lambda dx: dx is not None, moves, is_leaf=_is_none))
    (x, force), factors = _solved(method, *arguments)

    def residuals(moving):
        model, q, J, f, g = eqx.combine(moving, still)
        driven, followed = _product(model, q, J, x, force)
        return (0 if f is None else f) - driven, g - followed

    sides = jax.jvp(residuals, (moving,), (moves,))[1]
    dx, dforce = _differentiable(method, factors, *arguments[:3], *sides)
    return ((x, force), factors), ((dx, dforce), jax.tree.map(lambda _: None, factors))


def _product(model, q, J, x, force):
    """M x − Jᵀ λ and J x."""
    return jax.vmap(lambda x: mass_product(model, q, x))(x) - force @ J, x @ J.T


def _differentiable(method, factors, model, q, J, f, g):
    """As `saddle_point`, from factors that are known, and differentiable by everything except these."""

    def product(unknowns):
        x, opposite = unknowns
        return _product(model, q, J, x, -opposite)

    def solved(_, sides):
        f, g = sides
        x = jax.vmap(lambda force: method.solve(frozen, factors.tree, force))(f)
        x, force = _constrained(factors, rows, x, g)
        return x, -force

    frozen, rows = jax.lax.stop_gradient((model, J))
    x, opposite = jax.lax.custom_linear_solve(product, (f, g), solved, symmetric=True)
    return x, -opposite


def _is_none(x):
    return x is None
