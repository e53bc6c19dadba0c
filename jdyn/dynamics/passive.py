"""What joints exert of themselves: forces of their springs, dampers and friction."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from jdyn.dynamics.compiled import compiled
from jdyn.dynamics.linear_map import LinearMap
from jdyn.model import Free, Joint, Model


@compiled
def passive_forces(model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]) -> Float[Array, " nv_full"]:
    """What the joints' own dampers, friction and springs exert, in full coordinates [N m or N]."""
    springs = model.merge_groups("v", [_springs(*kind) for kind in _by_kind(model, q)])
    return springs - model.damping * v - _if_any(_friction, model.friction, (v, model.friction_speed))


def passive_forces_pullback(
    model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"], weights: Float[Array, " nv_full"]
) -> tuple[Float[Array, " nq_full"], Float[Array, " nv_full"]]:
    """λᵀ ∂/∂q, along the coordinates as they are, and λᵀ ∂/∂v of `passive_forces`, for weights λ."""
    kinds = zip(_by_kind(model, q), model.by_group("v", weights), strict=True)
    by_q = model.merge_groups("q", [_springs_pullback(*kind, weights) for kind, weights in kinds])
    return by_q, _slopes(model, v) * weights


def passive_forces_derivatives(
    model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]
) -> tuple[Float[Array, "nv_full nv_full"], Float[Array, "nv_full nv_full"]]:
    """∂/∂q, along the tangent space, and ∂/∂v of `passive_forces`, of joints with one degree of freedom each and a free
    base."""
    by_q = -jnp.diag(model.stiffness)
    if model.topology.free_base:
        free, rest, q, stiffness = Free(), model.rest[: Free.nq], q[: Free.nq], model.stiffness[: Free.nv]

        def own(stiffness):
            return jax.jacfwd(lambda e: free.spring_force(rest, free.integrate(q, e), stiffness))(
                jnp.zeros_like(stiffness)
            )

        by_q = by_q.at[: Free.nv, : Free.nv].set(_where_any(stiffness, by_q[: Free.nv, : Free.nv], own, stiffness))
    return by_q, jnp.diag(_slopes(model, v))


def _slopes(model, v):
    """Of the force of each degree of freedom by its own velocity."""
    friction = _where_any(model.friction, v, _friction_slopes, model.friction, v, model.friction_speed)
    return -model.damping - friction


def _friction(friction, x):
    v, speed = x
    return friction * jnp.tanh(v / speed)


def _friction_slopes(friction, v, speed):
    return friction / speed * (1 - jnp.tanh(v / speed) ** 2)


def _by_kind(model, q):
    """Joints of each kind, with a row each of stiffness, rest and configuration."""
    coordinates = model.by_group("v", model.stiffness), model.by_group("q", model.rest), model.by_group("q", q)
    return list(zip(model.joints, *coordinates, strict=True))


def _springs(joints, stiffness, rest, q):
    x = joints, rest, q
    return _if_any(_spring_forces, stiffness, x) if _are_costly(joints) else _spring_forces(stiffness, x)


def _springs_pullback(joints, stiffness, rest, q, weights):
    def pullback(stiffness, q, weights):
        return jax.vjp(lambda q: _spring_forces(stiffness, (joints, rest, q)), q)[1](weights)[0]

    arguments = stiffness, q, weights
    return _where_any(stiffness, q, pullback, *arguments) if _are_costly(joints) else pullback(*arguments)


def _are_costly(joints: Joint) -> bool:
    """Whether their springs turn in space, which is rare, and takes ten small programs."""
    return joints.nq != joints.nv


def _spring_forces(stiffness, x):
    return jax.vmap(lambda stiffness, joint, rest, q: joint.spring_force(rest, q, stiffness))(stiffness, *x)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _if_any(forces, weights, x):
    """forces(weights, x), which is linear in the weights, and not computed where all weights are zero.

    Compilers leave out these forces and their first derivatives by x if they know that a model has none. Derivatives by
    weights are those of the forces, at zero as well. Where weights differ from lane to lane, all is computed.
    """
    return _where_any(weights, weights, forces, weights, x)


def _if_any_jvp(forces, primals, tangents):
    (weights, x), (d_weights, dx) = primals, tangents
    leaves, tree = jax.tree.flatten(x)
    parts = [] if _is_zero(d_weights) else [forces(d_weights, x)]
    for i, d in enumerate(jax.tree.leaves(dx, is_leaf=_is_zero)):
        if not _is_zero(d):
            parts += _slope(forces, tree, i, jax.typeof(leaves[i]), jax.typeof(weights))(weights, *leaves, d)
    return _if_any(forces, weights, x), functools.reduce(jnp.add, parts)


_if_any.defjvp(_if_any_jvp, symbolic_zeros=True)


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
