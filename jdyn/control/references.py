"""Motions to follow."""

import abc
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.control.arguments import configuration, scalar_or
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.model.motion import motion_along


class Reference(eqx.Module):
    """A motion as a function of time.

    >>> class Swing(jdyn.control.Reference):
    ...     def __call__(self, t):
    ...         return jnp.sin(t)[None], jnp.cos(t)[None], -jnp.sin(t)[None]
    >>> model = jdyn.load("pendulum")
    >>> controller = jdyn.control.Tracking(model, Swing(), kp=100.0, kd=20.0)
    """

    @abc.abstractmethod
    def __call__(self, t: Scalar) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"]]:
        """Configuration, velocity and acceleration at time `t` [s]."""


class Quintic(Reference):
    """From rest to rest with the least jerk, or between any velocities and accelerations.

    The tangent vector that leads from q0 to the motion's configuration is a polynomial of degree five in time. Ball
    joints turn the short way round, and free joints move along a screw, if they start and end at rest. Velocities and
    accelerations, given or returned, are those of the mechanism, v and dv/dt, not the polynomial's derivatives. Before
    `t0` and after `t1` the motion rests at its ends.

    >>> reference = jdyn.control.Quintic(jdyn.load("pendulum"), [0.0], [1.0], 0.0, 2.0)
    >>> q, v, a = reference(1.0)
    >>> print(q.round(3), v.round(4))
    [0.5] [0.9375]

    Args:
        model: The mechanism.
        q0, q1: Configurations at the ends [rad or m], shape (nq,).
        t0, t1: Times of the ends [s].
        v0, v1: Velocities at the ends [rad/s or m/s], a scalar or shape (nv,).
        a0, a1: Accelerations at the ends [rad/s² or m/s²], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong, or `t1` is not after `t0`.

    Source: Flash, Hogan, The coordination of arm movements, Journal of Neuroscience 1985.
    """

    pieces: "_Pieces"

    def __init__(
        self,
        model: Model,
        q0: ArrayLike,
        q1: ArrayLike,
        t0: ArrayLike,
        t1: ArrayLike,
        *,
        v0: ArrayLike = 0.0,
        v1: ArrayLike = 0.0,
        a0: ArrayLike = 0.0,
        a1: ArrayLike = 0.0,
    ):
        checked(model)
        ends = jnp.stack([configuration(model, "q0", q0), configuration(model, "q1", q1)])
        v, a = (
            jnp.stack([jnp.broadcast_to(scalar_or(model, model.nv, name, x), model.nv) for name, x in pair.items()])
            for pair in ({"v0": v0, "v1": v1}, {"a0": a0, "a1": a1})
        )
        times = _times(model, "t0, t1", jnp.stack([jnp.asarray(t, model.dtype) for t in (t0, t1)]))
        self.pieces = _joined(model, times, ends, v, a)

    def __call__(self, t):
        return self.pieces(t)


class Spline(Reference):
    """Through waypoints with continuous accelerations.

    Where v = dq/dt this is the cubic spline. On ball and free joints it is a motion of the same smoothness: the tangent
    vectors from waypoint to waypoint, each in its own body frame, are laid out flat one after another; the cubic spline
    through the points so reached gives the body velocity and acceleration at each waypoint; between waypoints the
    tangent vector from the one before is the polynomial of degree five with these velocities and accelerations at its
    ends. From each waypoint to the next such joints turn the short way round.

    Velocities and accelerations are those of the mechanism, v and dv/dt. Before the first and after the last waypoint
    the motion rests there.

    >>> reference = jdyn.control.Spline(jdyn.load("pendulum"), [0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]])
    >>> q, v, a = reference(1.0)
    >>> print(q.round(3), a.round(3))
    [1.] [-6.]

    Args:
        model: The mechanism.
        times: Time of each waypoint [s], increasing, shape (waypoints,).
        waypoints: Configurations [rad or m], shape (waypoints, nq), two or more.
        ends: `"clamped"`: no velocity at the first and at the last waypoint; `"natural"`: no acceleration there.

    Raises:
        ValueError: if a shape is wrong, or times do not increase.

    Source: de Boor, A Practical Guide to Splines (1978), chapter IV.
    """

    pieces: "_Pieces"

    def __init__(
        self,
        model: Model,
        times: ArrayLike,
        waypoints: ArrayLike,
        *,
        ends: Literal["clamped", "natural"] = "clamped",
    ):
        if ends not in ("clamped", "natural"):
            raise ValueError(f"ends: expected 'clamped' or 'natural', got {ends!r}")
        checked(model)
        waypoints = jnp.asarray(waypoints, model.dtype)
        if waypoints.ndim != 2 or waypoints.shape[1] != model.nq or len(waypoints) < 2:
            raise ValueError(
                f"waypoints: expected shape (waypoints, {model.nq}) for {model.name!r}, two or more, "
                f"got {waypoints.shape}"
            )
        times = _times(model, "times", jnp.asarray(times, model.dtype))
        if len(times) != len(waypoints):
            raise ValueError(f"times: expected shape {(len(waypoints),)}, one a waypoint, got {times.shape}")
        self.pieces = _joined(model, times, waypoints, *_at_waypoints(model, times, waypoints, ends))

    def __call__(self, t):
        return self.pieces(t)


class _Pieces(eqx.Module):
    """Motions one after another: e = Σ cᵢ uⁱ leads from the start of each, u runs from 0 to 1 between two times."""

    model: Model
    times: Float[Array, " pieces+1"]
    starts: Float[Array, "pieces nq"]
    coefficients: Float[Array, "pieces 6 nv"]

    def __call__(self, t):
        return _passed(self, jnp.asarray(t, self.times.dtype))


@compiled
def _passed(pieces, t):
    model, times = pieces.model, pieces.times
    k = jnp.clip(jnp.searchsorted(times, t, side="right") - 1, 0, len(pieces.starts) - 1)
    start, c, duration = pieces.starts[k], pieces.coefficients[k], times[k + 1] - times[k]
    before, after = t < times[0], t > times[-1]
    u = jnp.where(before, 0, jnp.where(after, 1, (t - times[k]) / duration))
    e = jnp.stack([jnp.ones_like(u), u, u**2, u**3, u**4, u**5]) @ c
    de = jnp.stack([jnp.ones_like(u), 2 * u, 3 * u**2, 4 * u**3, 5 * u**4]) @ c[1:] / duration
    dde = jnp.stack([2 * jnp.ones_like(u), 6 * u, 12 * u**2, 20 * u**3]) @ c[2:] / duration**2
    v, a = motion_along(model, lambda e: model.integrate(start, e), e, de, dde)
    rests = before | after
    return model.integrate(start, e), jnp.where(rests, 0, v), jnp.where(rests, 0, a)


@compiled
def _joined(model, times, q, v, a):
    """The pieces through configurations `q` with body velocities `v` and accelerations `a`."""

    def follow(last, following):
        # The same rotation, by the quaternion nearer to the last one, so that the motion does not jump.
        following = model.integrate(last, model.difference(last, following))
        return following, following

    first = model.normalize(q[0])
    _, others = jax.lax.scan(follow, first, q[1:])
    q = jnp.concatenate([first[None], others])
    pieces = jax.vmap(_piece, (None, 0, 0, 0, 0, 0, 0, 0))
    c = pieces(model, jnp.diff(times), q[:-1], q[1:], v[:-1], v[1:], a[:-1], a[1:])
    return _Pieces(model, times, q[:-1], c)


def _piece(model, duration, q0, q1, v0, v1, a0, a1):
    """Coefficients of Hermite's polynomial of degree five on the unit interval."""

    def rate(q, v):
        return jax.jvp(lambda q: model.difference(q0, q), (q,), (model.rate(q, v),))[1]

    de1, dde1 = jax.jvp(rate, (q1, v1), (model.rate(q1, v1), a1))
    c1, c2 = duration * v0, duration**2 / 2 * a0
    # Left for the higher terms at the end: position, rate, half of the second rate.
    p = model.difference(q0, q1) - c1 - c2
    d = duration * de1 - c1 - 2 * c2
    h = duration**2 / 2 * dde1 - c2
    return jnp.stack([jnp.zeros_like(p), c1, c2, 10 * p - 4 * d + h, -15 * p + 7 * d - 2 * h, 6 * p - 3 * d + h])


@compiled
def _at_waypoints(model, times, q, ends):
    """Velocities and accelerations of the cubic spline through waypoints that are laid out flat."""
    h = jnp.diff(times)[:, None]
    slopes = jax.vmap(model.difference)(q[:-1], q[1:]) / h
    none, one = jnp.zeros_like(h[:1]), jnp.ones_like(h[:1])
    if ends == "clamped":
        end, neighbour, share = one, none, 0
    else:
        end, neighbour, share = 2 * one, one, 3
    # Accelerations agree on both sides of each waypoint.
    inner = 3 * (h[1:] * slopes[:-1] + h[:-1] * slopes[1:])
    v = jax.lax.linalg.tridiagonal_solve(
        jnp.concatenate([none, h[1:], neighbour])[:, 0],
        jnp.concatenate([end, 2 * (h[:-1] + h[1:]), end])[:, 0],
        jnp.concatenate([neighbour, h[:-1], none])[:, 0],
        jnp.concatenate([share * slopes[:1], inner, share * slopes[-1:]]),
    )
    leaving = (6 * slopes - 4 * v[:-1] - 2 * v[1:]) / h
    arriving = (2 * v[:-1] + 4 * v[1:] - 6 * slopes) / h
    return v, jnp.concatenate([leaving, arriving[-1:]])


def _times(model, name, times):
    if times.ndim != 1:
        raise ValueError(f"{name}: expected one time a configuration for {model.name!r}, got shape {times.shape}")
    if not isinstance(times, Tracer) and not np.all(np.diff(times) > 0):
        raise ValueError(f"{name}: expected increasing times, got {times}")
    return times
