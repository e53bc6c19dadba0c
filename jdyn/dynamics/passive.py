"""What joints exert of themselves: forces of their springs, dampers and friction."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from jdyn.dynamics.linear_map import LinearMap
from jdyn.model import Joint, Model


def passive_forces(model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]) -> Float[Array, " nv_full"]:
    """What the joints' own dampers, friction and springs exert, in full coordinates [N m or N]."""
    by_kind = (model.by_group(*x) for x in (("v", model.stiffness), ("q", model.rest), ("q", q)))
    springs = model.merge_groups("v", list(map(_springs, model.joints, *by_kind)))
    return springs - model.damping * v - _if_any(_friction, model.friction, (v, model.friction_speed))


def _friction(friction, x):
    v, speed = x
    return friction * jnp.tanh(v / speed)


def _springs(joints: Joint, stiffness: Float[Array, "n nv"], rest: Float[Array, "n nq"], q: Float[Array, "n nq"]):
    """Forces of the springs of all joints of a kind."""
    x = joints, rest, q
    return _spring_forces(stiffness, x) if joints.nq == joints.nv else _if_any(_spring_forces, stiffness, x)


def _spring_forces(stiffness, x):
    return jax.vmap(lambda stiffness, joint, rest, q: joint.spring_force(rest, q, stiffness))(stiffness, *x)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _if_any(forces, weights, x):
    """forces(weights, x), which is linear in the weights, and zero without being computed where all of them are.

    Compilers leave out these forces and their slopes along x if they know that a model has none. Derivatives by weights
    are those of the forces, at zero as well.
    """
    return _where_any(weights, weights, forces, weights, x)


def _derivative(forces, primals, tangents):
    (weights, x), (d_weights, dx) = primals, tangents
    leaves, tree = jax.tree.flatten(x)
    parts = [] if _is_zero(d_weights) else [forces(d_weights, x)]
    for i, d in enumerate(jax.tree.leaves(dx, is_leaf=_is_zero)):
        if not _is_zero(d):
            parts += _slope(forces, tree, i, jax.typeof(leaves[i]), jax.typeof(weights))(weights, *leaves, d)
    return _if_any(forces, weights, x), functools.reduce(jnp.add, parts)


_if_any.defjvp(_derivative, symbolic_zeros=True)


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
        return _where_any(arrays[0], like_forces, plain, arrays, dx)

    def apply_transposed(arrays, df):
        return _where_any(arrays[0], like_x, plain_transposed, arrays, df)

    return LinearMap(apply, apply_transposed, plain, like_x, like_forces)


def _where_any(weights, like, function, *x):
    return jax.lax.cond(jnp.any(weights != 0), function, lambda *_: jnp.zeros(like.shape, like.dtype), *x)


def _is_zero(x):
    return isinstance(x, SymbolicZero)
