"""M x − Jᵀ λ = f, J x = g: what constraints make of the equations of motion."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array import LeastNorm, moving_and_fixed
from jdyn.dynamics.at_rest import mass_product
from jdyn.dynamics.methods import Method
from jdyn.execution.compiled import precise
from jdyn.impulses.conjugate_gradients import WarmStart, conjugate_gradients
from jdyn.model import Model


class SaddlePoint(NamedTuple):
    """The solution for several right-hand sides.

    Attributes:
        x: Solutions, such as accelerations.
        multipliers: λ.
        iterations: Number of iterations of conjugate gradients; 0 where the Delassus matrix was factored.
        smallest: Smallest pivot of the Delassus matrix, see `LeastNorm`; that of the warm start where there is one.
    """

    x: Float[Array, "sides nv"]
    multipliers: Float[Array, "sides rows"]
    iterations: Int[Array, " sides"]
    smallest: Scalar


def saddle_point(
    method: Method,
    model: Model,
    q: Float[Array, " nq"],
    J: Float[Array, "rows nv"],
    f: Float[Array, "sides nv"] | None,
    g: Float[Array, "sides rows"],
    warm_start: WarmStart | None = None,
    size: Float[Array, "sides nv"] | None = None,
) -> SaddlePoint:
    """x and λ for several right-hand sides; f is zero if left out. `size` is the size of the numbers that x is added
    to, by
    which rounding is judged: without constraints x may be much larger.

    The method's factors of M serve each row of J and each f once, in O(n); the rest is a matrix of as many rows, the
    Delassus matrix J M⁻¹ Jᵀ. Rows that depend on others have the smallest multipliers. From a warm start, conjugate
    gradients need one product with the Delassus matrix an iteration, which is one O(n) sweep, and nothing else.

    Derivatives of any order come from the equations, M dx − Jᵀ dλ = df − dM x + dJᵀ λ, J dx = dg − dJ x, with the same
    factors; where rows depend on each other, those of λ are the smallest, too.
    """
    starts = jax.lax.stop_gradient((warm_start, size))
    (x, multipliers), (factors, iterations) = _solved(method, model, q, J, f, g, *starts)
    return SaddlePoint(x, multipliers, iterations, factors.smallest)


def delassus(method: Method, model: Model, q: Float[Array, " nq"], J: Float[Array, "rows nv"]) -> LeastNorm:
    """The factors of J M⁻¹ Jᵀ, without derivatives."""
    return _Direct.of(method, model, method.factor(model, q), J, None)[0].delassus


# x, λ and the number of iterations.
_Found = tuple[Float[Array, "sides nv"], Float[Array, "sides rows"], Int[Array, " sides"]]


class _Direct(eqx.Module):
    """Solver of the system by elimination, without derivatives.

    Attributes:
        tree: The method's factors of M.
        responses: M⁻¹ Jᵀ, transposed.
        delassus: J M⁻¹ Jᵀ.
    """

    tree: Any
    responses: Float[Array, "rows nv"]
    delassus: LeastNorm

    @property
    def smallest(self) -> Scalar:
        return self.delassus.smallest

    @classmethod
    def of(cls, method: Method, model: Model, tree: Any, J: Array, f: Array | None) -> tuple["_Direct", Array | None]:
        """Factors, and M⁻¹ f, since one sweep serves rows and right-hand sides."""
        both = _free(method, model, tree, J if f is None else jnp.concatenate([J, f]))
        responses = both[: len(J)]
        return cls(tree, responses, LeastNorm.of(J @ responses.T)), None if f is None else both[len(J) :]

    def constrained(self, method: Method, model: Model, J: Array, x: Array, g: Array, size: Array) -> _Found:
        """Solve the system, given the solution x without constraints; x, λ and the number of iterations."""

        def improved(_, state):
            x, force = state
            more = jax.vmap(self.delassus.solve)(g - x @ J.T)
            return x + more @ self.responses, force + more

        # Twice, since rounding of the Delassus matrix leaves rows unmet.
        return *jax.lax.fori_loop(0, 2, improved, (x, jnp.zeros_like(g))), jnp.zeros(len(g), jnp.int32)


class _Iterated(eqx.Module):
    """Solver of the system by conjugate gradients.

    Attributes:
        tree: The method's factors of M.
        inverse: Nearly the inverse of J M⁻¹ Jᵀ.
        smallest: Smallest pivot of that matrix at a state nearby.
    """

    tree: Any
    inverse: Float[Array, "rows rows"]
    smallest: Scalar

    def constrained(self, method: Method, model: Model, J: Array, x: Array, g: Array, size: Array) -> _Found:
        """Solve like `_Direct.constrained`."""

        def response(force):
            return method.solve(model, self.tree, force @ J)

        return jax.vmap(lambda x, g, size: conjugate_gradients(response, J, self.inverse, x, g, size))(x, g, size)


@eqx.filter_custom_jvp
def _solved(method, model, q, J, f, g, start, size):
    """The solutions; and factors and the number of iterations, of which no derivative may be taken."""
    tree = method.factor(model, q)
    if start is None:
        factors, x = _Direct.of(method, model, tree, J, f)
        guess = jnp.zeros_like(g)
    else:
        factors = _Iterated(tree, start.inverse, start.smallest)
        guess = jnp.zeros_like(g) if f is None or start.multipliers is None else start.multipliers[None]
        x = None if f is None else _free(method, model, tree, f + guess @ J)
    x = jnp.zeros((len(g), J.shape[1]), g.dtype) if x is None else x
    size = jnp.abs(x) if size is None else size
    x, more, iterations = factors.constrained(method, model, J, x, g, size)
    return (x, guess + more), (factors, iterations)


@_solved.def_jvp
@precise
def _solved_jvp(primals, tangents):
    method, *arguments, start, size = primals
    moves = tuple(tangents[1:-2])
    moving, fixed = moving_and_fixed(tuple(arguments), moves)
    (x, force), (factors, iterations) = _solved(method, *arguments, start, size)

    def residuals(moving):
        model, q, J, f, g = eqx.combine(moving, fixed)
        driven, followed = _product(model, q, J, x, force)
        return (0 if f is None else f) - driven, g - followed

    sides = jax.jvp(residuals, (moving,), (moves,))[1]
    dx, dforce = _differentiable(method, factors, *arguments[:3], *sides)
    beside = factors, iterations
    return ((x, force), beside), ((dx, dforce), jax.tree.map(lambda _: None, beside))


def _product(model, q, J, x, force):
    """M x − Jᵀ λ and J x."""
    return jax.vmap(lambda x: mass_product(model, q, x))(x) - force @ J, x @ J.T


def _differentiable(method, factors, model, q, J, f, g):
    """Solve like `saddle_point`, with given factors; gradients flow through all arguments except the factors."""

    # One array, since JAX transposes solves only if all right-hand sides move.
    nv = f.shape[1]

    def product(unknowns):
        return jnp.concatenate(_product(model, q, J, unknowns[:, :nv], -unknowns[:, nv:]), axis=1)

    def solved(_, sides):
        f, g = sides[:, :nv], sides[:, nv:]
        x = _free(method, frozen, factors.tree, f)
        x, force, _ = factors.constrained(method, frozen, rows, x, g, jnp.abs(x))
        return jnp.concatenate([x, -force], axis=1)

    frozen, rows = jax.lax.stop_gradient((model, J))
    unknowns = jax.lax.custom_linear_solve(product, jnp.concatenate([f, g], axis=1), solved, symmetric=True)
    return unknowns[:, :nv], -unknowns[:, nv:]


def _free(method, model, tree, f):
    """M⁻¹ f."""
    return jax.vmap(lambda force: method.solve(model, tree, force))(f)
