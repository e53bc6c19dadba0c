"""Free bodies that move straight ahead in the world while they turn.

Their velocities are in their own axes, which turn within a step. What is constant in the world is not constant there.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import Free, Model
from jdyn.simulation.state import State
from jdyn.spatial.rotation import quaternion_exp, quaternion_to_matrix

Vector = Float[Array, " nv"]


def straight(model: Model, y: State, displacement: Vector) -> State:
    """The state after it has moved as its velocity at the start says: turned by the first half of a free body's
    displacement, and moved by the second. Velocities keep their direction in the world."""
    chart = model.to_chart(y.q)
    q = model.normalize(model.from_chart(y.q, chart + model.chart_rate(y.q, chart, displacement)))
    v = _of_free(model, lambda v, moved: _back(moved[:3], v), y.v, displacement)
    return State(q, v, y.parts)


def turning(model: Model, v: Vector) -> Vector:
    """Surplus of the accelerations of free bodies in the world over those in their own axes, ω × v."""
    turned = _of_free(model, lambda v: jnp.concatenate([v[:3], v[3:] + jnp.cross(v[:3], v[3:])]), v)
    return turned - v


def _back(phi: Float[Array, "3"], v: Float[Array, "6"]) -> Float[Array, "6"]:
    return jnp.concatenate([v[:3], quaternion_to_matrix(quaternion_exp(-phi)) @ v[3:]])


def _of_free(model: Model, function: Callable[..., Float[Array, "6"]], v: Vector, *more: Vector) -> Vector:
    """The velocity, with `function` of that of each free body."""
    if Free not in model.topology.kinds:
        return v
    by_group = zip(*(model.by_group("v", model.expand_velocity(x)) for x in (v, *more)), strict=True)
    parts = [
        jax.vmap(function)(*group) if isinstance(joints, Free) else group[0]
        for joints, group in zip(model.joints, by_group, strict=True)
    ]
    return model.merge_groups("v", parts)[np.array(model.topology.independent_v)]
