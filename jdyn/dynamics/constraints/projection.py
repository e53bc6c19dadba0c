"""States that meet their constraints, near ones that do not."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.dynamics.constraints.conjugate_gradients import WarmStart
from jdyn.dynamics.constraints.rows import Rows, constraint_rows, largest
from jdyn.dynamics.constraints.saddle_point import saddle_point
from jdyn.dynamics.forward import forward_dynamics
from jdyn.dynamics.methods import Method
from jdyn.model import Model
from jdyn.model.constraints import Constraint


class Projected(NamedTuple):
    """A state on the manifold of constraints.

    Attributes:
        q: Configuration.
        v: Velocity.
        distance: The largest entry of the residual, and of J v − b, before [m or rad, and per second].
        met: Whether corrections became small.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    distance: Scalar
    met: Bool[Array, ""]


def projected(
    method: Method,
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    warm_start: WarmStart | None = None,
) -> Projected:
    """The nearest state that meets the constraints, by the kinetic energy of the way there, to fourth order in the
    distance: two Newton steps for the configuration, each with one for the velocity.

    Source: Hairer, Lubich, Wanner 2006, section IV.4; Hairer, Wanner 1996, section VII.2.
    """

    def nearer(state, _):
        q, v = state
        rows = constraint_rows(model, constraints, t, q, v)
        step, change = _corrections(method, model, q, v, rows, warm_start)
        missed = largest(rows.residual), largest(rows.J @ v - rows.b)
        left = largest(rows.J @ (v + change) - rows.b) / (1 + largest(v) * largest(rows.J))
        return (model.integrate(q, step), v + change), (*missed, left)

    # A loop, so that both steps are compiled once.
    (q, v), (missed, drift, left) = jax.lax.scan(nearer, (q, v), None, length=2)
    small = jnp.finfo(v.dtype).eps ** 0.5
    met = (missed[1] <= jnp.maximum(missed[0] / 2, small)) & (left[1] <= small)
    return Projected(q, v, jnp.maximum(missed[0], drift[0]), met)


def impulse_response(
    method: Method,
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    impulse: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The change of velocity by an impulse on the coordinates, where constraints answer with impulses of their own."""
    if not constraints:
        still = jnp.zeros_like(v)
        return jax.jvp(lambda tau: forward_dynamics(model, q, still, tau, method=method), (still,), (impulse,))[1]
    rows = constraint_rows(model, constraints, t, q, v)
    return saddle_point(method, model, q, rows.J, impulse[None], jnp.zeros_like(rows.b)[None]).x[0]


def _corrections(
    method: Method, model: Model, q: Array, v: Array, rows: Rows, start: WarmStart | None
) -> tuple[Array, Array]:
    """The shortest step to φ = 0, and the least change of velocity to J v = b."""
    g = rows.b - rows.J @ v
    # Of coordinates and their rates.
    reach, speed = jnp.full_like(v, 1 + largest(q)), jnp.abs(v)
    if len(rows.holonomic) == len(rows.J):
        sides, sizes = jnp.stack([-rows.residual, g]), jnp.stack([reach, speed])
        step, change = saddle_point(method, model, q, rows.J, None, sides, start, sizes).x
        return step, change
    (step,) = saddle_point(method, model, q, rows.J[rows.holonomic], None, -rows.residual[None]).x
    (change,) = saddle_point(method, model, q, rows.J, None, g[None], start, speed[None]).x
    return step, change
