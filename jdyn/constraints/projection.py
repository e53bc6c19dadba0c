"""Projection of states onto the manifold of constraints."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.constraints.rows import ConstraintRows, constraint_rows, largest, residuals
from jdyn.dynamics.forward import forward_dynamics
from jdyn.dynamics.methods import Method
from jdyn.impulses.conjugate_gradients import WarmStart
from jdyn.impulses.saddle_point import saddle_point
from jdyn.model import Model
from jdyn.model.constraints import Constraint

# A projection has converged where the residual is at most this power of rounding [m or rad, and per second].
CONVERGED = 5 / 8


class StateChange(NamedTuple):
    """A small change of a state.

    Attributes:
        q: Change of the configuration, in its tangent space.
        v: Change of the velocity.
    """

    q: Float[Array, " nv"]
    v: Float[Array, " nv"]


class Projected(NamedTuple):
    """A state on the manifold of constraints.

    Attributes:
        q: Configuration.
        v: Velocity.
        distance: Distance of the state before from the constraints: the largest entries of the residual and of
            J v − b, each over the largest entry of its row of J [rad or m, and per second].
        converged: Whether next to nothing is left of the residual.
        change: Projection of a given change of the state: its part along the motions that constraints allow.
        smallest: Pivot of the Delassus matrix, see `LeastNorm`.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    distance: tuple[Scalar, Scalar]
    converged: Bool[Array, ""]
    change: StateChange | None
    smallest: Scalar


def projected(
    method: Method,
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    change: StateChange | None = None,
    warm_start: WarmStart | None = None,
) -> Projected:
    """Project a state onto the manifold of constraints: the nearest state that meets them, by the kinetic energy of the
    displacement, to fourth order in the distance. Two Newton steps for the configuration, each with one for the
    velocity; and the projection of a small change of the state, without derivatives.

    Source: Hairer, Lubich, Wanner 2006, section IV.4; Hairer, Wanner 1996, section VII.2.
    """
    changes = [] if change is None else [jax.lax.stop_gradient(change)]

    def newton_step(state, _):
        q, v = state
        rows = constraint_rows(model, constraints, t, q, v)
        J, g = jax.lax.stop_gradient(rows.J), rows.b - rows.J @ v
        residuals = jnp.stack([-rows.residual, *(-J[rows.holonomic] @ c.q for c in changes)])
        rates = jnp.stack([g, *(-J @ c.v for c in changes)])
        steps, speeds, smallest = _least_steps(method, model, q, v, rows, residuals, rates, warm_start)
        projected_changes = [StateChange(c.q + steps[1], c.v + speeds[1]) for c in changes]
        slopes = jnp.max(jnp.abs(J), axis=1)
        slopes = jnp.where(slopes > 0, slopes, 1)
        missed = largest(rows.residual / slopes[rows.holonomic]), largest(g / slopes)
        steep = largest(J)
        left = largest(J @ (v + speeds[0]) - rows.b) / (1 + largest(v) * steep)
        return (model.integrate(q, steps[0]), v + speeds[0]), (missed, steep, left, projected_changes, smallest)

    # A loop, so that both steps are compiled once.
    (q, v), (missed, steep, left, projected_changes, smallest) = jax.lax.scan(newton_step, (q, v), None, length=2)
    remaining = largest(residuals(model, constraints, *jax.lax.stop_gradient((t, q))))
    # Up to the rounding of coordinates.
    remaining = remaining / (1 + largest(q) * steep[1])
    converged = jnp.maximum(remaining, left[1]) <= jnp.finfo(v.dtype).eps ** CONVERGED
    last = jax.lax.stop_gradient(jax.tree.map(lambda x: x[1], projected_changes))
    distance = jax.lax.stop_gradient((missed[0][0], missed[1][0]))
    return Projected(q, v, distance, converged, last[0] if last else None, jax.lax.stop_gradient(smallest[1]))


def impulse_response(
    method: Method,
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    impulse: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """Change of velocity by an impulse on the coordinates, under the impulses of constraints."""
    if not constraints:
        still = jnp.zeros_like(v)
        return jax.jvp(lambda tau: forward_dynamics(model, q, still, tau, method=method), (still,), (impulse,))[1]
    rows = constraint_rows(model, constraints, t, q, v)
    return saddle_point(method, model, q, rows.J, impulse[None], jnp.zeros_like(rows.b)[None]).x[0]


def _least_steps(
    method: Method,
    model: Model,
    q: Array,
    v: Array,
    rows: ConstraintRows,
    residuals: Array,
    g: Array,
    start: WarmStart | None,
) -> tuple[Array, Array, Scalar]:
    """The shortest steps that change φ by `residuals`, the least changes of velocity that change J v by `g`, and the
    smallest pivot."""
    # Sizes of the numbers that the results are added to.
    reach, speed = (jnp.broadcast_to(size, (len(g), len(v))) for size in (1 + largest(q), jnp.abs(v)))
    if len(rows.holonomic) == len(rows.J):
        sides, sizes = jnp.concatenate([residuals, g]), jnp.concatenate([reach, speed])
        found = saddle_point(method, model, q, rows.J, None, sides, start, sizes)
        return found.x[: len(g)], found.x[len(g) :], found.smallest
    steps = saddle_point(method, model, q, rows.J[rows.holonomic], None, residuals)
    speeds = saddle_point(method, model, q, rows.J, None, g, start, speed)
    return steps.x, speeds.x, speeds.smallest
