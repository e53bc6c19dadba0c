"""Configurations that bring bodies and frames to their targets."""

import enum
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import LeastNorm, shaped
from jdyn.control.arguments import configuration
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.model import compiled
from jdyn.planning.box_qp import box_qp
from jdyn.planning.targets import FrameTarget

# Longest step of a coordinate [rad or m].
LONGEST = 1.0
# The damping is μ times the square of the residual; μ where a search starts, and its range.
START, LEAST, MOST = 0.1, 1e-6, 1e6
# Where the damped model predicts too much of a fall, or nearly the fall that there is, μ changes by a factor.
POOR, GOOD, FACTOR = 0.25, 0.75, 4.0
# Rounds of each step's quadratic program: more save no steps.
ROUNDS = 4


class Reach(enum.IntEnum):
    """End of a search: the targets are met; no step within the limits brings them nearer; there were too many steps; or
    errors are not finite.

    >>> [code.name for code in jdyn.planning.Reach]
    ['met', 'nearest', 'max_steps', 'nonfinite']
    """

    met = 0
    nearest = 1
    max_steps = 2
    nonfinite = 3


class Reached(NamedTuple):
    """Result of `inverse_kinematics`.

    Attributes:
        q: Configuration, with joints within their limits, to rounding.
        missed: The largest component of the targets' errors there [rad or m], of those that have a weight.
        result: `jdyn.planning.Reach`.
    """

    q: Float[Array, " nq"]
    missed: Scalar
    result: Int[Array, ""]


def inverse_kinematics(
    model: Model,
    targets: Sequence[FrameTarget],
    q0: Float[Array, " nq"],
    *,
    tolerance: ArrayLike | None = None,
    max_steps: int = 100,
) -> Reached:
    """The configuration near a guess that brings bodies and frames to their targets, with joints within their limits.

    By Levenberg and Marquardt's method on the manifold. Each step is the minimum of the damped quadratic model in the
    box that the limits leave, so that joints slide along their limits, and leave them as freely as they came. Where
    targets contradict each other, or are out of reach, the weighted squares of their errors are least.

    Under `vmap` each lane has its own `result`, and the loop goes on until the last lane has ended: for thousands of
    lanes `jax.lax.map(..., batch_size=16)` is faster.

    First derivatives, in both modes, with respect to targets and every leaf of the model, by the implicit function
    theorem: those of the solution nearest to the one found, with joints that are at their limits staying there. They
    are right where the solution is regular: the rank of the targets' Jacobian does not change, and no joint just
    touches its limit. They are NaN where the search did not end at a solution. With respect to the guess they are zero.

    >>> model = jdyn.load("double_pendulum")
    >>> target = jdyn.planning.FrameTarget("tip", jnp.array([1.0, 0.0, -1.0]))
    >>> reached = jdyn.inverse_kinematics(model, [target], jnp.array([0.3, 0.3]))
    >>> print(reached.q.round(3) + 0.0, jdyn.planning.Reach(int(reached.result)).name)
    [0.    1.571] met

    Args:
        model: The mechanism.
        targets: What to meet, for one or several bodies and frames.
        q0: Guess [rad or m]; the nearest configuration within the limits is taken.
        tolerance: Largest error that counts as met [rad or m]; rounding to the power of 3/4 if left out, 2e-12 in
            float64 and 6e-6 in float32.
        max_steps: Most steps.

    Raises:
        ValueError: at trace time, if there is no target, no such body or frame, one that is fixed to the world, or a
            shape is wrong.

    Source: Nocedal and Wright, Numerical Optimization (2006), section 10.3, with the damping of Fan and Yuan, On the
    quadratic convergence of the Levenberg-Marquardt method without nonsingularity assumption, Computing 2005.
    """
    checked(model)
    return _reached(model, targets, configuration(model, "q0", q0)[None], tolerance, max_steps)


def best_inverse_kinematics(
    model: Model,
    targets: Sequence[FrameTarget],
    starts: Float[Array, "starts nq"],
    *,
    tolerance: ArrayLike | None = None,
    max_steps: int = 100,
) -> Reached:
    """`inverse_kinematics` from many guesses at once, until one search meets the targets.

    A search that ends without meeting them begins anew, half-way between its guess and another one.

    >>> model = jdyn.load("double_pendulum")
    >>> starts = jax.vmap(model.random)(jax.random.split(jax.random.key(0), 4))
    >>> target = jdyn.planning.FrameTarget("tip", jnp.array([1.0, 0.0, -1.0]))
    >>> reached = jdyn.best_inverse_kinematics(model, [target], starts)
    >>> print(jdyn.frame_pose(model, reached.q, "tip").translation.round(3) + 0.0)
    [ 1.  0. -1.]

    Args:
        model: The mechanism.
        targets: What to meet, for one or several bodies and frames.
        starts: Guesses [rad or m].
        tolerance: As in `inverse_kinematics`.
        max_steps: Most steps, with those of searches that begin anew.

    Returns:
        The first that meets the targets, or the best place that any search came by.

    Raises:
        ValueError: at trace time, as `inverse_kinematics`.
    """
    checked(model)
    starts = jnp.asarray(starts, model.dtype)
    if starts.ndim != 2 or starts.shape[1] != model.nq or not len(starts):
        raise ValueError(
            f"starts: expected shape (starts, {model.nq}) for {model.name!r}, one or more, got {starts.shape}"
        )
    return _reached(model, targets, starts, tolerance, max_steps)


def _reached(model, targets, starts, tolerance, max_steps):
    listed = () if isinstance(targets, FrameTarget) else tuple(targets)
    if not listed or not all(isinstance(target, FrameTarget) for target in listed):
        raise ValueError(f"targets: expected a list of one or more jdyn.planning.FrameTarget, got {targets!r}")
    problem = _Problem(model, tuple(target.checked(model) for target in listed))
    tolerance = jnp.finfo(model.dtype).eps ** 0.75 if tolerance is None else tolerance
    return _found(problem, starts, shaped("tolerance", tolerance, model.dtype, ()), max_steps)


class _Search(NamedTuple):
    """A search under way.

    Attributes:
        q: Configuration.
        residual: Weighted errors there.
        J: Their Jacobian.
        mu: μ.
        fresh: Whether it has not begun, and knows nothing but q.
        result: So far; `max_steps` while it goes on.
    """

    q: Array
    residual: Array
    J: Array
    mu: Array
    fresh: Bool[Array, ""]
    result: Int[Array, ""]


class _Problem(eqx.Module):
    """Targets of a mechanism."""

    model: Model = eqx.field(converter=dynamics_only)
    targets: tuple[FrameTarget, ...]

    def residual(self, q: Array) -> tuple[Array, Array]:
        """Weighted errors and their Jacobian."""
        errors, J = zip(*(target.error(self.model, q) for target in self.targets), strict=True)
        weight = jnp.concatenate([target.weight for target in self.targets])
        return weight * jnp.concatenate(errors), weight[:, None] * jnp.concatenate(J)

    def gradient(self, q: Array) -> Array:
        """Gradient of half the squared residual."""
        residual, J = self.residual(q)
        return J.T @ residual

    def missed(self, residual: Array) -> Array:
        """The largest error."""
        weight = jnp.concatenate([target.weight for target in self.targets])
        return jnp.max(jnp.abs(residual / jnp.where(weight == 0, 1, weight)))

    def search_from(self, q: Array) -> _Search:
        q = self.model.normalize(q)
        rows = sum(jnp.size(target.weight) for target in self.targets)
        residual, J = jnp.zeros(rows, q.dtype), jnp.zeros((rows, self.model.nv), q.dtype)
        result = jnp.asarray(Reach.max_steps, jnp.int32)
        return _Search(q, residual, J, jnp.asarray(START, q.dtype), jnp.ones((), bool), result)

    def step(self, now: _Search, tolerance: Array) -> _Search:
        """One step; none where the search has ended. The first only enters the limits, and looks where it is."""
        move, predicted = self._move(now)
        q = self.model.integrate(now.q, move)
        residual, J = self.residual(q)
        cost = now.residual @ now.residual
        fall = cost - residual @ residual
        falls = now.fresh | (fall > 0)
        factor = jnp.where(fall < POOR * predicted, FACTOR, jnp.where(fall > GOOD * predicted, 1 / FACTOR, 1))
        mu = jnp.where(now.fresh, START, jnp.clip(now.mu * factor, LEAST, MOST)).astype(cost.dtype)
        q, residual, J = (jnp.where(falls, x, old) for x, old in ((q, now.q), (residual, now.residual), (J, now.J)))
        # Smaller falls are lost in the rounding of the cost.
        lost = ~(predicted > 10 * jnp.finfo(cost.dtype).eps * cost) | (~falls & (mu == MOST))
        result = self._result(residual, lost & ~now.fresh, tolerance)
        after = _Search(q, residual, J, mu, jnp.zeros((), bool), result)
        return jax.tree.map(lambda new, old: jnp.where(now.result == Reach.max_steps, new, old), after, now)

    def _move(self, now: _Search) -> tuple[Array, Array]:
        """A step within the limits, and by how much the squared residual would fall if it were linear."""
        squared, slope = now.J.T @ now.J, now.J.T @ now.residual
        # More than rounding, since targets leave some motions free.
        least = jnp.finfo(slope.dtype).eps ** (2 / 3) * jnp.trace(squared)
        damping = now.mu * (now.residual @ now.residual) + least
        damped = squared + damping * jnp.eye(len(slope), dtype=slope.dtype)
        lower, upper = self.model.room(now.q)
        still = jnp.zeros_like(slope)
        move = box_qp(damped, slope, jnp.maximum(lower, -LONGEST), jnp.minimum(upper, LONGEST), still, ROUNDS).x
        move = jnp.where(now.fresh, jnp.clip(still, lower, upper), move)
        return move, -(2 * slope @ move + move @ squared @ move)

    def _result(self, residual, rests, tolerance):
        going = jnp.where(rests, Reach.nearest, Reach.max_steps)
        result = jnp.where(self.missed(residual) <= tolerance, Reach.met, going)
        return jnp.where(jnp.all(jnp.isfinite(residual)), result, Reach.nonfinite).astype(jnp.int32)


@compiled
def _found(problem, starts, tolerance, max_steps):
    return _best(problem, starts, tolerance, max_steps)


class _Best(NamedTuple):
    """The best place that searches have come by."""

    q: Array
    residual: Array
    result: Array
    order: Array

    @classmethod
    def of(cls, searches: _Search) -> "_Best":
        costs = jnp.sum(searches.residual**2, axis=1)
        costs = jnp.where(jnp.isfinite(costs) & ~searches.fresh, costs, jnp.inf)
        order = jnp.where(searches.result == Reach.met, -1, costs)
        best = jnp.argmin(order)
        return cls(searches.q[best], searches.residual[best], searches.result[best], order[best])

    def or_rather(self, other: "_Best") -> "_Best":
        return jax.tree.map(lambda x, y: jnp.where(other.order <= self.order, y, x), self, other)


@eqx.filter_custom_jvp
def _best(problem, starts, tolerance, max_steps):
    def going(state):
        steps, _, searches, best = state
        return jnp.any(searches.result == Reach.max_steps) & (best.result != Reach.met) & (steps <= max_steps)

    def step(state):
        steps, tries, searches, best = state
        searches = jax.vmap(problem.step, (0, None))(searches, tolerance)
        best = best.or_rather(_Best.of(searches))
        again = (searches.result != Reach.max_steps) & (tries + 1 < len(starts))
        tries = tries + again.astype(tries.dtype)
        anew = jax.vmap(problem.search_from)(_between(problem.model, starts, tries))
        searches = jax.vmap(lambda one, x, y: jax.tree.map(lambda x, y: jnp.where(one, x, y), x, y))(
            again, anew, searches
        )
        return steps + 1, tries, searches, best

    searches = jax.vmap(problem.search_from)(starts)
    begin = jnp.zeros((), jnp.int32), jnp.zeros(len(starts), jnp.int32), searches, _Best.of(searches)
    *_, best = jax.lax.while_loop(going, step, begin)
    return Reached(best.q, problem.missed(best.residual), best.result)


def _between(model, starts, tries):
    """Half-way from each start to another one."""
    others = starts[(jnp.arange(len(starts), dtype=tries.dtype) + tries) % len(starts)]
    return jax.vmap(lambda a, b: model.integrate(a, 0.5 * model.difference(a, b)))(starts, others)


@_best.def_jvp
@precise
def _best_jvp(primals, tangents):
    (problem, starts, tolerance, max_steps), (dproblem, *_) = primals, tangents
    # Of what does not move there is no tangent.
    dproblem = jax.tree.map(
        lambda x, dx: jnp.zeros_like(x) if dx is None and eqx.is_inexact_array(x) else dx,
        problem, dproblem, is_leaf=lambda x: x is None,
    )  # fmt: skip
    found = _best(problem, starts, tolerance, max_steps)
    model, q = problem.model, found.q
    still = jnp.zeros(model.nv, q.dtype)
    H = jax.jacfwd(lambda e: problem.gradient(model.integrate(q, e)))(still)
    (lower, upper), (dlower, dupper) = eqx.filter_jvp(lambda x: x.model.room(q), (problem,), (dproblem,))
    _, turned = eqx.filter_jvp(lambda x: x.gradient(q), (problem,), (dproblem,))
    # A step to a limit may end beside it by rounding.
    rounding = 10 * jnp.finfo(q.dtype).eps
    at_lower, at_upper = lower >= -rounding, upper <= rounding
    free = ~(at_lower | at_upper)
    # What joints at their limits do changes the gradient of the others.
    carried = jnp.where(at_lower, dlower, jnp.where(at_upper, dupper, 0))
    free_H = jnp.where(free[:, None] & free[None], H, 0)
    move = carried - jnp.where(free, LeastNorm.of(free_H).solve(jnp.where(free, turned + H @ carried, 0)), 0)
    move = jnp.where(found.result <= Reach.nearest, move, jnp.nan)

    def missed(problem, e):
        return problem.missed(problem.residual(model.integrate(q, e))[0])

    _, dmissed = eqx.filter_jvp(missed, (problem, still), (dproblem, move))
    return found, Reached(model.rate(q, move), dmissed, None)  # type: ignore[arg-type]
