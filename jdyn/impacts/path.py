"""The path of an impulse: how velocities change while the normal impulse grows.

With the normal impulse p_n as time, dp_t/dp_n = −μ v_t/|v_t| where the point slides, and dv = W dp. Where the direction
of sliding stays, the path is a line; other pieces are integrated.

Source: Keller, Impact with friction, Journal of Applied Mechanics 53, 1986; Mirtich, Canny, Impulse-based simulation of
rigid bodies, Symposium on Interactive 3D Graphics 1995.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.lax import stop_gradient
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import Structure, cholesky, cholesky_solution, where
from jdyn.dynamics.recursion.batching import in_chunks
from jdyn.geometry.directions import length_and_unit

# Steps of a piece that turns, and iterations that find its end; it takes some dozens, and about ten.
STEPS, ITERATIONS = 1000, 60
# Errors of a step are below this power of rounding, against the speed of sliding and that of the approach.
TOLERANCE = 0.75
# Pieces that turn end where the speed of sliding has fallen to this many roundings, or where the direction turns by no
# more than a few errors of a step.
STOPPED, STRAIGHT = 100.0, 8.0
# So many lanes of a batch wait for each other: most need a few steps, some a hundred.
LANES = 8

EIGHTH = diffrax.Dopri8.tableau

Vector2 = Float[Array, "2"]


class Friction(Structure):
    """Mobility and roughness of a point.

    Attributes:
        W: Delassus matrix, along two tangents and the normal [1/kg].
        mu: Coefficient of sliding friction μ.
        static: Coefficient of friction that holds.
    """

    W: Float[Array, "3 3"]
    mu: Scalar
    static: Scalar

    def rate(self, direction: Vector2) -> Float[Array, "3"]:
        """dv/dp_n, where dp_t/dp_n is a direction."""
        return self.W[:, :2] @ direction + self.W[:, 2]

    def held(self, v_t: Vector2) -> Vector2:
        """The impulse that takes v_t away, without one along the normal."""
        # A mechanism may not move along a tangent. Then no impulse does, and the least one is none.
        least = 4 * jnp.finfo(v_t.dtype).eps * jnp.trace(self.W)
        return -cholesky_solution(cholesky(self.W[:2, :2] + least * jnp.eye(2, dtype=v_t.dtype)), v_t)


class Place(Structure):
    """A place on the path.

    Attributes:
        v: Velocity [m/s].
        p: Impulse so far [N s].
        work: Work of the normal impulse so far, ∫ v_n dp_n [J].
    """

    v: Float[Array, "3"]
    p: Float[Array, "3"]
    work: Scalar

    def along(self, friction: Friction, direction: Vector2, length: Scalar) -> "Place":
        """The end of a line, whose length is in p_n."""
        rate = friction.rate(direction)
        work = (self.v[2] + rate[2] * length / 2) * length
        return Place(self.v + length * rate, self.p + length * jnp.append(direction, 1.0), self.work + work)

    def at_rest(self, friction: Friction) -> "Place":
        """The same, where sliding has stopped up to rounding."""
        change = jnp.append(friction.held(self.v[:2]), 0.0)
        v = (self.v + friction.W @ change) * jnp.array([0.0, 0.0, 1.0], self.v.dtype)
        return Place(v, self.p + change, self.work)


class End(Structure):
    """End of a phase of the path: where a v_n + b p_n + c work has grown to a value.

    Attributes:
        weights: a, b and c, of which one is 1 and the others are 0.
        total: The value.
        root: √ of what the work grows by, for its derivative where that is zero.
    """

    weights: Float[Array, "3"]
    total: Scalar
    root: Scalar

    @classmethod
    def of(cls, what: str, total: Scalar, root: ArrayLike = 0.0) -> "End":
        """The end where `"speed"`, `"impulse"` or `"work"` has grown to a value."""
        weights = [float(what == each) for each in ("speed", "impulse", "work")]
        total = jnp.asarray(total)
        return cls(jnp.array(weights, total.dtype), total, jnp.asarray(root, total.dtype))

    def value(self, at: Place) -> Scalar:
        """A function that is negative before the end, and zero there."""
        a, b, c = self.weights
        return a * at.v[2] + b * at.p[2] + c * at.work - self.total

    def distance(self, at: Place, slope: Scalar) -> Scalar:
        """Length of a line to the end, along which v_n grows by a slope; infinity if it does not lead there."""
        a, b, c = self.weights
        left, rate, bend = -self.value(at), a * slope + b + c * at.v[2], c * slope
        square = rate**2 + 2 * bend * left
        root = jnp.sqrt(jnp.where(square > 0, square, 1))
        there = (left > 0) & (square > 0) & (rate + root > 0)
        length = 2 * left / jnp.where(there, rate + root, 1)
        # At the start of restitution.
        from_rest = (c > 0) & (rate == 0) & (bend > 0)
        first = self.root * jnp.sqrt(2 / jnp.where(from_rest, bend, 1))
        # With the derivative of the length where there is none left.
        none = left / jnp.where(rate > 0, rate, 1)
        length = jnp.where(there, length, jnp.where(left > 0, jnp.inf, jnp.where(left == 0, none, 0.0)))
        return jnp.where(from_rest, first, length)


class Phase(NamedTuple):
    """The end of a phase.

    Attributes:
        at: The place.
        stopped: Whether sliding has stopped so far.
        margin: Difference between lengths to the end and to the stop, as a share of the normal impulse.
    """

    at: Place
    stopped: Bool[Array, ""]
    margin: Scalar


def phase(friction: Friction, start: Place, stopped: Bool[Array, ""], onward: Vector2, end: End) -> Phase:
    """Follow the path to an end.

    Args:
        friction: The point.
        start: Where the phase begins.
        stopped: Whether sliding has stopped before.
        onward: dp_t/dp_n after sliding has stopped.
        end: Where it ends.
    """
    start, ended = _turned(friction, start, stopped, end)
    speed, u = length_and_unit(start.v[:2])
    slides = ~stopped & (speed > 0)
    sliding = -friction.mu * u
    rate = friction.rate(sliding)
    slowing = -(rate[:2] @ u)
    stops = slides & (slowing > 0)
    to_stop = jnp.where(stops, speed / jnp.where(stops, slowing, 1), jnp.inf)
    to_end = jnp.where(ended, 0.0, end.distance(start, rate[2]))
    ends_first = slides & (to_end <= to_stop)
    line = jnp.where(slides, jnp.minimum(to_stop, to_end), 0.0)
    at = start.along(friction, sliding, jnp.where(jnp.isfinite(line), line, jnp.nan))
    at = where(stopped | ends_first, at, at.at_rest(friction))
    rest = end.distance(at, friction.rate(onward)[2])
    last = at.along(friction, onward, jnp.where(ends_first, 0.0, rest))
    near = stops & jnp.isfinite(to_end)
    apart = jnp.abs(jnp.where(near, to_end, 0) - jnp.where(near, to_stop, 0))
    return Phase(last, ~ends_first, jnp.where(near, apart / last.p[2], jnp.inf))


def onward(friction: Friction) -> tuple[Vector2, Bool[Array, ""], Scalar]:
    """dp_t/dp_n after sliding has stopped, whether friction holds the point, and the margin of that.

    Friction that holds keeps v_t zero. Where that takes too much, the point slides on in the one direction u in which
    it can: W_tn − μ W_tt u = c u with c > 0.

    Source: Bhatt, Koechling, Three-dimensional frictional rigid-body impact, Journal of Applied Mechanics 62, 1995.
    """
    W_tt, W_tn, mu = friction.W[:2, :2], friction.W[:2, 2], friction.mu
    holding = friction.held(W_tn)
    needed, _ = length_and_unit(holding)
    most = jnp.maximum(friction.static, mu)
    holds = needed <= most
    b = jnp.where(holds, jnp.array([1.0, 0.0], W_tn.dtype), W_tn)
    A = jnp.where(holds, 0, mu) * W_tt

    def newton(c, A, b):
        """A step for 1 / |(A + c)⁻¹ b| = 1: from below roots of this concave function it stays below."""
        shifted = A + c * jnp.eye(2, dtype=c.dtype)
        L = cholesky(shifted)
        x = cholesky_solution(L, b)
        n = jnp.linalg.norm(x)
        return c + (n - 1) * n**2 / (x @ cholesky_solution(L, x))

    known = stop_gradient((A, b))
    start = jnp.maximum(jnp.linalg.norm(known[1]) - jnp.trace(known[0]), 0.0)
    # A start of zero is one for a matrix that is not.
    found = jax.lax.fori_loop(0, 40, lambda _, c: newton(c, *known), start)
    c = newton(stop_gradient(found), A, b)
    u = cholesky_solution(cholesky(A + c * jnp.eye(2, dtype=c.dtype)), b)
    margin = jnp.abs(needed - most) / jnp.maximum(jnp.maximum(needed, most), jnp.finfo(needed.dtype).tiny)
    return jnp.where(holds, holding, -mu * u), holds, margin


# Pieces that turn. With dτ = dp_n / |v_t| the equations dp_t/dτ = −μ v_t, dp_n/dτ = |v_t| are regular; sliding stops at
# infinity.


def _turned(friction: Friction, start: Place, stopped: Bool[Array, ""], end: End) -> tuple[Place, Bool[Array, ""]]:
    """The path while the direction of sliding turns, and whether it came to the end."""
    numbers, build = ravel_pytree((start, friction, end))
    found, ended = _turned_by_numbers(build, numbers, stopped)
    return build(found)[0], ended


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _turned_by_numbers(build, numbers, stopped):
    like = numbers, jnp.array(False)
    return in_chunks(functools.partial(_integrated, build, STRAIGHT), LANES, like)(numbers, stopped)


@_turned_by_numbers.defjvp
def _turned_jvp(build, primals, tangents):
    numbers, stopped = primals
    # A path that happens to be straight is integrated as well: its direction depends on the numbers all the same.
    found = _integrated(build, -1.0, numbers, stopped)

    def change(tangent):
        return jax.jvp(lambda x: _integrated(build, -1.0, x, stopped)[0], (numbers,), (tangent,))[1]

    # All derivatives, since a linear function of the tangents can be transposed, and a loop cannot.
    by_number = jax.vmap(change)(jnp.eye(len(numbers), dtype=numbers.dtype))
    return found, (tangents[0] @ by_number, np.zeros((), jax.dtypes.float0))


class _Step(NamedTuple):
    """State of the integration.

    Attributes:
        at: Numbers of the place.
        length: Of the next step in τ.
        steps: Number of steps so far.
        ends: Whether the phase ends within the next step.
        unfinished: Whether it goes on.
    """

    at: Float[Array, " numbers"]
    length: Scalar
    steps: Int[Array, ""]
    ends: Bool[Array, ""]
    unfinished: Bool[Array, ""]


def _integrated(
    build: Callable, straight: float, numbers: Float[Array, " numbers"], stopped: Bool[Array, ""]
) -> tuple[Float[Array, " numbers"], Bool[Array, ""]]:
    """The numbers, with the place where the path does not turn any more, sliding has about stopped, or the phase ends,
    and whether it ends there. Lengths of steps have no derivative."""
    start, friction, end = build(numbers)
    at, place = ravel_pytree(start)
    eps = float(jnp.finfo(at.dtype).eps)
    W, mu = friction.W, friction.mu
    pace = stop_gradient(mu * jnp.linalg.norm(W[:2, :2]) + jnp.linalg.norm(W[:2, 2]))
    approach, slowest = stop_gradient((jnp.abs(start.v[2]) + _speed(start.v), STOPPED * eps * _speed(start.v)))
    tolerance = eps**TOLERANCE

    def rate(at):
        here = place(at)
        speed = _speed(here.v)
        dp = jnp.append(-mu * here.v[:2], speed)
        return ravel_pytree(Place(W @ dp, dp, here.v[2] * speed))[0]

    def goes_on(at):
        here = stop_gradient(place(at))
        speed, u = length_and_unit(here.v[:2])
        turn = W[:2, :2] @ u * -mu + W[:2, 2]
        turning = jnp.abs(u[0] * turn[1] - u[1] * turn[0]) > straight * tolerance * pace
        return (speed > slowest) & turning & (end.value(here) < 0)

    def advance(state: _Step) -> _Step:
        at, h = state.at, state.length
        after, error = _runge_kutta(rate, at, h)
        wrong, speed = place(stop_gradient(error)).v, _speed(place(stop_gradient(at)).v)
        size = jnp.maximum(_speed(wrong) / speed, jnp.abs(wrong[2]) / approach) / tolerance
        good = size <= 1
        ends = good & (end.value(place(stop_gradient(after))) >= 0)
        kept = jnp.where(good & ~ends, after, at)
        longer = jnp.clip(0.9 * jnp.maximum(size, 1e-8) ** (-1 / 8), 0.2, 5.0)
        length = jnp.where(ends, h, stop_gradient(h * longer))
        return _Step(kept, length, state.steps + 1, ends, goes_on(kept) & ~ends & (state.steps < STEPS))

    h = 0.1 / jnp.where(pace > 0, pace, 1)
    state = _Step(at, h, jnp.array(0, jnp.int32), jnp.array(False), ~stopped & goes_on(at))
    last = jax.lax.while_loop(lambda state: state.unfinished, advance, state)

    def value(length):
        return end.value(place(_runge_kutta(rate, last.at, length)[0]))

    length = _first_root(lambda length: stop_gradient(value(length)), stop_gradient(last.length), last.ends)
    # The end moves with the numbers, as one step of Newton's method tells.
    late, slope = jax.jvp(value, (length,), (jnp.ones_like(length),))
    length = length - late / jnp.where(last.ends, slope, 1)
    ended, _ = _runge_kutta(rate, last.at, length)
    found = jnp.where(last.ends, ended, jnp.where(last.steps < STEPS, last.at, jnp.nan))
    return jnp.concatenate([found, numbers[len(at) :]]), last.ends


def _first_root(value: Callable, high: Scalar, there: Bool[Array, ""]) -> Scalar:
    """Root of a function from 0 to `high`, where it is negative and not negative, by false positions, of which one that
    stays counts half; `high` if there is none."""

    def closer(state):
        k, low, high, below, above = state
        middle = (low * above - high * below) / (above - below)
        found = value(middle)
        left = found < 0
        return (
            k + 1,
            jnp.where(left, middle, low),
            jnp.where(left, high, middle),
            jnp.where(left, found, below / 2),
            jnp.where(left, above / 2, found),
        )

    def unfinished(state):
        k, low, high, below, above = state
        narrow = 4 * jnp.finfo(high.dtype).eps * high
        return there & (k < ITERATIONS) & (high - low > narrow) & (above > 0) & (below < 0)

    zero = jnp.zeros_like(high)
    _, _, high, *_ = jax.lax.while_loop(unfinished, closer, (0, zero, high, value(zero), value(high)))
    return high


def _runge_kutta(rate: Callable, at: Array, h: Scalar) -> tuple[Array, Array]:
    """A step of Dormand's and Prince's method of order eight, and its error."""
    # The last stage is the first one of the next step, and counts for neither.
    stages = len(EIGHTH.b_sol) - 1
    A = np.zeros((stages, stages))
    for row, weights in enumerate(EIGHTH.a_lower[: stages - 1], start=1):
        A[row, :row] = weights
    A, b, error = (jnp.asarray(x, at.dtype) for x in (A, EIGHTH.b_sol[:stages], EIGHTH.b_error[:stages]))
    # A loop, since stages that are written out take long to compile.
    slopes = jax.lax.fori_loop(
        0,
        stages,
        lambda k, slopes: slopes.at[k].set(rate(at + h * (A[k] @ slopes))),
        jnp.zeros((stages, len(at)), at.dtype),
    )
    return at + h * (b @ slopes), h * (error @ slopes)


def _speed(v: Float[Array, "components"]) -> Scalar:
    """|v_t|, with a derivative of zero at zero."""
    return length_and_unit(v[:2])[0]
