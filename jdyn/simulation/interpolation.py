"""Motion between the rows of a trajectory."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.model import Model
from jdyn.model.compiled import compiled
from jdyn.model.motion import velocity_along


@compiled
def hermite(
    model: Model,
    ts: Float[Array, " times"],
    q: Float[Array, "times nq"],
    v: Float[Array, "times nv"],
    t: Scalar,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Configuration and velocity at `t` between rows; NaN outside.

    The tangent vector from the previous row to the motion is Hermite's cubic polynomial in time. It meets positions and
    velocities of the rows, and the velocity in between is that of the interpolated configuration. The error falls with
    the fourth power of the distance of rows, that of the velocity with the third.
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

    def towards(q):
        return model.difference(q0, q)

    p, slope = jax.jvp(towards, (q1,), (model.rate(q1, v1),))
    c1, d1 = duration * v0, duration * slope
    c2, c3 = 3 * p - 2 * c1 - d1, c1 + d1 - 2 * p
    e = ((c3 * u + c2) * u + c1) * u
    de = ((3 * c3 * u + 2 * c2) * u + c1) / duration
    return model.integrate(q0, e), velocity_along(model, lambda e: model.integrate(q0, e), e, de)


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
