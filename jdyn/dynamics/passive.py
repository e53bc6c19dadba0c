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
    springs = map(_springs, model.joints, *by_kind)
    friction = model.friction * jnp.tanh(v / model.friction_speed)
    return model.merge_groups("v", list(springs)) - model.damping * v - friction


def _springs(joints: Joint, stiffness: Float[Array, "n nv"], rest: Float[Array, "n nq"], q: Float[Array, "n nq"]):
    """Forces of the springs of all joints of a kind."""
    # About rotations they are rare, and cost a tenth of forward dynamics.
    forces = _forces if joints.nq == joints.nv else _forces_if_any
    return forces(stiffness, (joints, rest, q))


def _forces(stiffness, x):
    return jax.vmap(lambda stiffness, joint, rest, q: joint.spring_force(rest, q, stiffness))(stiffness, *x)


@jax.custom_jvp
def _forces_if_any(stiffness, x):
    """The same, but zero without being computed where no joint has a spring. Compilers leave the forces out, and their
    derivatives by configurations, if they know that a model has none. Derivatives by the stiffness are as they are."""
    return _if_any(stiffness, stiffness, _forces, stiffness, x)


def _derivative(primals, tangents):
    (stiffness, x), (d_stiffness, dx) = primals, tangents
    leaves, tree = jax.tree.flatten(x)
    parts = [] if _is_zero(d_stiffness) else [_forces(d_stiffness, x)]
    for i, d in enumerate(jax.tree.leaves(dx, is_leaf=_is_zero)):
        if not _is_zero(d):
            parts += _slope(tree, i, jax.typeof(leaves[i]), jax.typeof(stiffness))(stiffness, *leaves, d)
    return _forces_if_any(stiffness, x), functools.reduce(jnp.add, parts)


_forces_if_any.defjvp(_derivative, symbolic_zeros=True)


def _slope(tree, i, like_x, like_forces):
    """Derivative of the forces by the leaf `i` of what they depend on."""

    def system(arrays):
        stiffness, *leaves = arrays
        return lambda x: _forces(stiffness, tree.unflatten([*leaves[:i], x, *leaves[i + 1 :]])), leaves[i]

    def plain(arrays, dx):
        forces, x = system(arrays)
        return jax.jvp(forces, (x,), (dx,))[1]

    def plain_transposed(arrays, weights):
        forces, x = system(arrays)
        return jax.vjp(forces, x)[1](weights)[0]

    def apply(arrays, dx):
        return _if_any(arrays[0], like_forces, plain, arrays, dx)

    def apply_transposed(arrays, weights):
        return _if_any(arrays[0], like_x, plain_transposed, arrays, weights)

    return LinearMap(apply, apply_transposed, plain, like_x, like_forces)


def _if_any(stiffness, like, function, *x):
    return jax.lax.cond(jnp.any(stiffness != 0), function, lambda *_: jnp.zeros(like.shape, like.dtype), *x)


def _is_zero(x):
    return isinstance(x, SymbolicZero)
