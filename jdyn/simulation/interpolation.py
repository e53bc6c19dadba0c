"""Motion between the rows of a trajectory."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.model import Free, Model
from jdyn.model.compiled import compiled
from jdyn.model.motion import velocity_along
from jdyn.spatial.components import numbers
from jdyn.spatial.quaternions import rotate


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
    ends = jnp.stack([q0, q1]), jnp.stack([v0, v1])
    turn = duration * jnp.mean(jax.vmap(lambda q, v: model.chart_rate(q, model.to_chart(q), v))(*ends), axis=0)

    def turning(u):
        return model.from_chart(q0, model.to_chart(q0) + u * turn)

    def apart(u, q):
        return model.in_chart(turning(u), _at_centres(model, q))

    def end(u, q, v):
        return jax.jvp(apart, (u, q), (jnp.ones_like(u), duration * model.rate(q, v)))

    (e0, e1), (c1, d1) = jax.vmap(end)(jnp.array([0, 1], u.dtype), *ends)
    p = e1 - e0
    c2, c3 = 3 * p - 2 * c1 - d1, c1 + d1 - 2 * p

    def place(u):
        return _at_centres(model, model.from_chart(turning(u), e0 + ((c3 * u + c2) * u + c1) * u), back=True)

    return place(u), velocity_along(model, place, u, 1 / duration)


def _at_centres(model: Model, q: Float[Array, " nq"], back: bool = False) -> Float[Array, " nq"]:
    """The configuration whose free joints have the place of their body's centre of mass for that of its frame; or back
    from there."""
    if Free not in model.topology.kinds:
        return q

    def moved(q, inertia):
        c = inertia.first_moment / jnp.where(inertia.mass > 0, inertia.mass, 1)
        shift = rotate(numbers(q[3:]), numbers(-c if back else c))
        return q.at[:3].add(jnp.stack(shift))

    q_by_group, inertias = model.by_group("q", model.expand(q)), model.by_group("bodies", model.inertias)
    parts = [
        jax.vmap(moved)(q, inertia) if isinstance(joints, Free) else q
        for joints, q, inertia in zip(model.joints, q_by_group, inertias, strict=True)
    ]
    return model.merge_groups("q", parts)[np.array(model.topology.independent_q)]


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
