"""Terms that compilers leave out where their coefficients are known to be zero."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jdyn.execution.linear_map import LinearMap


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def if_any(forces, weights, x):
    """`forces(weights, x)`, linear in the weights, and not computed where all weights are zero.

    If the compiler knows that all weights are zero, it leaves out the forces and their first derivatives by x.
    Derivatives by the weights are those of the forces, at zero as well. Where weights differ from lane to lane,
    everything is computed.
    """
    return where_any(weights, weights, forces, weights, x)


def _if_any_jvp(forces, primals, tangents):
    (weights, x), (d_weights, dx) = primals, tangents
    leaves, tree = jax.tree.flatten(x)
    parts = [] if _is_zero(d_weights) else [forces(d_weights, x)]
    for i, d in enumerate(jax.tree.leaves(dx, is_leaf=_is_zero)):
        if not _is_zero(d):
            parts += _slope(forces, tree, i, jax.typeof(leaves[i]), jax.typeof(weights))(weights, *leaves, d)
    return if_any(forces, weights, x), functools.reduce(jnp.add, parts)


if_any.defjvp(_if_any_jvp, symbolic_zeros=True)


def _slope(forces, tree, i, like_x, like_forces):
    """Derivative of the forces by the leaf `i` of x."""

    def system(arrays):
        weights, *leaves = arrays
        return lambda x: forces(weights, tree.unflatten([*leaves[:i], x, *leaves[i + 1 :]])), leaves[i]

    def plain(arrays, dx):
        function, x = system(arrays)
        return jax.jvp(function, (x,), (dx,))[1]

    def plain_transposed(arrays, df):
        function, x = system(arrays)
        return jax.vjp(function, x)[1](df)[0]

    def apply(arrays, dx):
        return where_any(arrays[0], like_forces, plain, arrays, dx)

    def apply_transposed(arrays, df):
        return where_any(arrays[0], like_x, plain_transposed, arrays, df)

    return LinearMap(apply, apply_transposed, plain, like_x, like_forces)


def where_any(weights, like, function, *x):
    """`function(*x)`, of the shape and type of `like`, or zeros where all weights are zero."""
    return jax.lax.cond(jnp.any(weights != 0), function, lambda *_: jnp.zeros(like.shape, like.dtype), *x)


def _is_zero(x):
    return isinstance(x, SymbolicZero)
