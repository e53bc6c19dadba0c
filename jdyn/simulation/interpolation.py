"""Motion between the rows of a trajectory."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.model import Ball, Free, Model
from jdyn.model.model import compiled
from jdyn.spatial import SpatialInertia
from jdyn.spatial.rotation import (
    left_jacobian,
    left_jacobian_inverse,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_matrix,
)


@compiled
def hermite(
    model: Model,
    ts: Float[Array, " times"],
    q: Float[Array, "times nq"],
    v: Float[Array, "times nv"],
    t: Scalar,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Configuration and velocity at `t` between rows; NaN outside.

    Hermite's cubic polynomial in time meets positions and velocities of the rows. It is that of all coordinates but
    rotations; of a free joint, those of its body's centre of mass, so that it flies on a parabola while it spins; and
    of rotation vectors from an attitude that turns with the mean angular velocity of both rows, so that a spin that
    does not change is exact, however far it turns. The velocity in between is that of the interpolated configuration.
    The error falls with the fourth power of the distance of rows, that of the velocity with the third.

    Rows know turns up to whole ones. Of all turns that lead from a row to the next, it is the one that is nearest to
    the mean angular velocity times the time between them; no row tells whether it was another.
    """
    k, l = _around(ts, t)
    duration, u = _share(ts, k, l, t)
    q_between, v_between = between(model, q[k], v[k], q[l], v[l], duration, u)
    return _met(ts, k, l, t, q[k], q_between), _met(ts, k, l, t, v[k], v_between)


@compiled
def between(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    q1: Float[Array, " nq"],
    v1: Float[Array, " nv"],
    duration: Scalar,
    u: Scalar,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Configuration and velocity of `hermite` at the share u of the time from a row to the next."""
    if model.flat:
        q, dq = _cubic(q0, duration * v0, q1, duration * v1, u)
        return q, dq / duration
    q_ends = [model.by_group("q", model.expand(q)) for q in (q0, q1)]
    v_ends = [model.by_group("v", model.expand_velocity(duration * v)) for v in (v0, v1)]

    def moved(joints, inertia, q0, q1, v0, v1):
        if isinstance(joints, Free):
            return jax.vmap(_flown, (0, 0, 0, 0, 0, None))(inertia, q0, v0, q1, v1, u)
        along = _turned if isinstance(joints, Ball) else _cubic
        return jax.vmap(along, (0, 0, 0, 0, None))(q0, v0, q1, v1, u)

    groups = zip(model.joints, model.by_group("bodies", model.inertias), *q_ends, *v_ends, strict=True)
    q, v = zip(*(moved(*group) for group in groups), strict=True)
    q, v = model.merge_groups("q", list(q)), model.merge_groups("v", list(v))
    topology = model.topology
    return q[np.array(topology.independent_q)], v[np.array(topology.independent_v)] / duration


def _cubic(x0: Array, dx0: Array, x1: Array, dx1: Array, u: Scalar) -> tuple[Array, Array]:
    """Hermite's polynomial at u and its rate, between the values at 0 and 1."""
    change = x1 - x0
    c2, c3 = 3 * change - 2 * dx0 - dx1, dx0 + dx1 - 2 * change
    return x0 + ((c3 * u + c2) * u + dx0) * u, (3 * c3 * u + 2 * c2) * u + dx0


def _turned(q0: Array, w0: Array, q1: Array, w1: Array, u: Scalar) -> tuple[Array, Array]:
    """Quaternion and angular velocity in the body's frame, by rotation vectors e from an attitude that turns with the
    mean of both angular velocities."""
    mean = (w0 + w1) / 2
    turn = quaternion_multiply(quaternion_conjugate(q0), q1)
    e1 = quaternion_log(quaternion_multiply(quaternion_conjugate(quaternion_exp(mean)), turn))
    # The rate of e is the inverse of the right Jacobian times the velocity that is left, w - exp(-e) mean.
    de1 = left_jacobian_inverse(-e1, w1) - left_jacobian_inverse(e1, mean)
    e, de = _cubic(jnp.zeros_like(e1), w0 - mean, e1, de1, u)
    left = quaternion_exp(e)
    q = quaternion_multiply(quaternion_multiply(q0, quaternion_exp(u * mean)), left)
    return quaternion_normalize(q), left_jacobian(-e, de) + quaternion_to_matrix(left).T @ mean


def _flown(inertia: SpatialInertia, q0: Array, v0: Array, q1: Array, v1: Array, u: Scalar) -> tuple[Array, Array]:
    """Pose and velocity of a body on a free joint, whose centre of mass moves by a cubic polynomial."""
    c = inertia.first_moment / jnp.where(inertia.mass > 0, inertia.mass, 1)

    def centre(q, v):
        R = quaternion_to_matrix(q[3:])
        return q[:3] + R @ c, R @ (v[3:] + jnp.cross(v[:3], c))

    place, velocity = _cubic(*centre(q0, v0), *centre(q1, v1), u)
    turned, w = _turned(q0[3:], v0[:3], q1[3:], v1[:3], u)
    R = quaternion_to_matrix(turned)
    return jnp.concatenate([place - R @ c, turned]), jnp.concatenate([w, R.T @ velocity - jnp.cross(w, c)])


@compiled
def linear(ts: Float[Array, " times"], rows: Float[Array, "times ..."], t: Scalar) -> Float[Array, "..."]:
    """Linear interpolation between rows; NaN outside."""
    k, l = _around(ts, t)
    _, u = _share(ts, k, l, t)
    return _met(ts, k, l, t, rows[k], rows[k] + u * (rows[l] - rows[k]))


def _share(ts, k, l, t):
    """Time from row to row, and the fraction of it that has passed at `t`."""
    duration = jnp.where(ts[l] == ts[k], 1, ts[l] - ts[k])
    return duration, (t - ts[k]) / duration


def _met(ts, k, l, t, row, between):
    """`between`, or the row itself where `t` is its time: the next one may not have been reached."""
    inside = (t - ts[k]) * (ts[l] - t) >= 0
    return jnp.where(t == ts[k], row, jnp.where(inside, between, jnp.nan))


def _around(ts, t):
    """Numbers of the rows before and after `t`; times may fall as well as rise."""
    sign = jnp.where(jnp.any(jnp.diff(ts) < 0), -1, 1).astype(ts.dtype)
    # Rows that were not reached have no time, and stand last.
    after = jnp.searchsorted(sign * ts, sign * t, side="left")
    before = jnp.clip(after - 1, 0, max(len(ts) - 2, 0))
    return before, jnp.minimum(before + 1, len(ts) - 1)
