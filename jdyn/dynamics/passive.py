"""Passive joint forces: springs, dampers and friction."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.execution.left_out import if_any, where_any
from jdyn.model import Free, Joint, Model
from jdyn.model.model import compiled

Coordinates = Float[Array, " nv_full"]


def friction_share(v: Coordinates, speed: Coordinates) -> Coordinates:
    """Share of the largest friction that resists the velocity `v`, tanh(v / speed)."""
    return jnp.tanh(v / speed)


def friction_slopes(friction: Coordinates, v: Coordinates, speed: Coordinates) -> Coordinates:
    """Derivatives of `friction * friction_share(v, speed)` by the velocity [N m s/rad or N s/m]."""
    return friction / speed * (1 - friction_share(v, speed) ** 2)


@compiled
def passive_forces(model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]) -> Float[Array, " nv_full"]:
    """Forces of the joints' dampers, friction and springs, in full coordinates [N m or N]."""
    springs = model.merge_groups("v", [_springs(*kind) for kind in _by_kind(model, q)])
    return springs - model.damping * v - if_any(_friction, model.friction, (v, model.friction_speed))


def dissipated_power(model: Model, v: Float[Array, " nv_full"]) -> Scalar:
    """Power that the joints' dampers and friction take [W]."""
    return v @ (model.damping * v + _friction(model.friction, (v, model.friction_speed)))


def passive_slopes(
    model: Model, v: Float[Array, " nv_full"]
) -> tuple[Float[Array, " nv_full"], Float[Array, " nv_full"]]:
    """Slopes of `passive_forces` by each joint's own coordinate and velocity [N m/rad or N/m, N m s/rad or N s/m]; of
    springs that turn in space, at their rest."""
    return model.stiffness, -_slopes(model, v)


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
    """∂/∂q, along the tangent space, and ∂/∂v of `passive_forces`, of joints with one degree of freedom each and free
    bases."""
    by_q, topology = -jnp.diag(model.stiffness), model.topology
    in_q, in_v = ([at(base) for base in topology.bases] for at in (topology.q_slice, topology.v_slice))
    now = [by_q[place, place] for place in in_v]
    for place, slopes in zip(in_v, _base_slopes(model, q, in_q, in_v, now), strict=True):
        by_q = by_q.at[place, place].set(slopes)
    return by_q, jnp.diag(_slopes(model, v))


def _base_slopes(model, q, in_q, in_v, at_rest):
    """∂/∂q of springs of each free base, along the tangent space; of several bases in one program."""
    rows = [[x[place] for place in places] for x, places in ((model.stiffness, in_v), (model.rest, in_q), (q, in_q))]
    if len(in_q) == 1:
        ((stiffness,), (rest,), (q,)) = rows
        return [where_any(stiffness, at_rest[0], _spring_slopes, stiffness, rest, q)]
    if not in_q:
        return []
    stiffness, rest, q = map(jnp.stack, rows)
    return where_any(stiffness, jnp.stack(at_rest), jax.vmap(_spring_slopes), stiffness, rest, q)


def _spring_slopes(stiffness, rest, q):
    free = Free()
    return jax.jacfwd(lambda e: free.spring_force(rest, free.integrate(q, e), stiffness))(jnp.zeros_like(stiffness))


def _slopes(model, v):
    """Derivative of each passive force with respect to its own velocity."""
    friction = where_any(model.friction, v, friction_slopes, model.friction, v, model.friction_speed)
    return -model.damping - friction


def _friction(friction, x):
    v, speed = x
    return friction * friction_share(v, speed)


def _by_kind(model, q):
    """Joints of each kind, with a row each of stiffness, rest and configuration."""
    coordinates = model.by_group("v", model.stiffness), model.by_group("q", model.rest), model.by_group("q", q)
    return list(zip(model.joints, *coordinates, strict=True))


def _springs(joints, stiffness, rest, q):
    x = joints, rest, q
    return if_any(_spring_forces, stiffness, x) if _are_costly(joints) else _spring_forces(stiffness, x)


def _springs_pullback(joints, stiffness, rest, q, weights):
    def pullback(stiffness, q, weights):
        return jax.vjp(lambda q: _spring_forces(stiffness, (joints, rest, q)), q)[1](weights)[0]

    arguments = stiffness, q, weights
    return where_any(stiffness, q, pullback, *arguments) if _are_costly(joints) else pullback(*arguments)


def _are_costly(joints: Joint) -> bool:
    """Tell whether springs of joints turn in space, which is rare and takes ten small programs."""
    return joints.nq != joints.nv


def _spring_forces(stiffness, x):
    return jax.vmap(lambda stiffness, joint, rest, q: joint.spring_force(rest, q, stiffness))(stiffness, *x)
