"""Motions of least cost under limited forces."""

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int, Scalar

from jdyn.array import shaped
from jdyn.control.arguments import configuration, inputs, scalar_or
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Model, checked
from jdyn.model.compiled import compiled
from jdyn.planning.backward_pass import Policy, Stage, backward_pass
from jdyn.planning.costs import AnyCost, Cost
from jdyn.planning.time_step import TimeStep

# Shares of the policy's change that are tried at once. The largest one whose cost falls enough is taken: the one of
# least cost leads to shorter steps from then on, and takes a third more of them.
SHARES = 2.0 ** -np.arange(10)
# Of the fall that the quadratic model predicts, this much must come.
ENOUGH = 1e-4
# μ changes by factors that themselves grow by this one; below the least it is zero, above the most there is no way.
FACTOR, LEAST, MOST = 2.0, 1e-5, 1e6
# With more than this the predicted fall says nothing about how far the minimum is.
SMALL = 1e-3


class Optimized(enum.IntEnum):
    """End of an optimization: no change promises that the cost falls; none of those tried made it fall; there were too
    many steps; or the first motion is not finite.

    >>> [code.name for code in jdyn.Optimized]
    ['converged', 'stuck', 'max_steps', 'nonfinite']
    """

    converged = 0
    stuck = 1
    max_steps = 2
    nonfinite = 3


class Plan(NamedTuple):
    """Result of `ilqr`.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> cost = jdyn.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    >>> final = jdyn.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    >>> plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((50, 1)), 0.02)
    >>> print(plan.q.shape, plan.u.shape, plan.gains.shape)
    (51, 1) (50, 1) (50, 1, 2)

    Attributes:
        t: Times [s].
        q, v: States at these times [rad or m, rad/s or m/s], quaternions of unit length.
        u: Forces of the actuators from each time to the next [N m or N].
        gains: K: by how much forces change for a deviation [e; w] from the state at the start of a step, the tangent
            vector that leads to the deviating configuration and the deviation of the velocity. Zero for forces at a
            bound.
        inputs: From forces of the actuators to generalized forces.
        lower, upper: Bounds of the actuators' forces.
        cost: Of the motion.
        costs: Of the first motion, and after each step; NaN after the last one.
        steps: How many there were.
        result: `jdyn.Optimized`.
    """

    t: Float[Array, " nodes+1"]
    q: Float[Array, "nodes+1 nq"]
    v: Float[Array, "nodes+1 nv"]
    u: Float[Array, "nodes nu"]
    gains: Float[Array, "nodes nu 2*nv"]
    inputs: Float[Array, "nv nu"]
    lower: Float[Array, " nu"]
    upper: Float[Array, " nu"]
    cost: Scalar
    costs: Float[Array, " max_steps+1"]
    steps: Int[Array, ""]
    result: Int[Array, ""]


def ilqr(
    model: Model,
    cost: Callable[..., Scalar],
    final_cost: Callable[..., Scalar],
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    u: Float[Array, "nodes nu"],
    dt: ArrayLike,
    *,
    bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
    actuated: ArrayLike | None = None,
    tolerance: ArrayLike | None = None,
    max_steps: int = 200,
) -> Plan:
    """The motion of least cost near a guess, with forces of the actuators in a box, and feedback along it.

    The cost is that of the end plus the sum over all steps of dt times `cost(t, q, v, u)`; steps are those of
    `jdyn.SemiImplicitEuler` under constant forces.

    ```
    def cost(t, q, v, u):
        return 0.5 * jnp.sum(0.1 * u**2)

    def final_cost(q, v):
        return 50 * jnp.sum(model.difference(target, q) ** 2) + jnp.sum(v**2)

    plan = jdyn.ilqr(model, cost, final_cost, q0, v0, jnp.zeros((100, 1)), 0.02, bounds=(-10, 10), actuated=[0])
    motion = jdyn.simulate(model, q0, v0, plan.t[-1], controller=jdyn.PlanFeedback(model, plan))
    ```

    Differential dynamic programming with the first derivatives of the dynamics, in closed form, and second derivatives
    of the cost, on the tangent space of the configurations: free and ball joints need no care. Each step solves the
    linear-quadratic problem about the motion with the box as a constraint, tries ten shares of the change at once, and
    takes the largest that helps; where none does, changes of the forces are made dearer. The whole is one loop; under
    `vmap` each lane has its own `result`, and spoils no other.

    Costs may close over arrays, batched ones too. Where a cost is a sum of squares, `jdyn.SquaredResiduals` is faster.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> cost = jdyn.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    >>> final = jdyn.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    >>> plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((50, 1)), 0.02)
    >>> print(plan.q[-1].round(2))
    [1.]

    Args:
        model: The mechanism.
        cost: Function of time [s], state and forces.
        final_cost: Function `final_cost(q, v)` of the state at the end.
        q0: Configuration at the start [rad or m].
        v0: Velocity at the start [rad/s or m/s].
        u: Guess of the forces, one row a step [N m or N]; the nearest in the box is taken.
        dt: Length of a step [s].
        bounds: Least and largest forces, scalars or shape (nu,).
        actuated: The actuators, as for `jdyn.LQR`: indices or a mask of velocity coordinates, or a matrix of shape
            (nv, nu); every coordinate if left out.
        tolerance: It has converged where the predicted fall is less than this share of the cost; 1e-8 if left out, or
            a hundred times rounding where that is more, 1e-5 in float32.
        max_steps: Most steps.

    Raises:
        ValueError: at trace time, if a shape is wrong, or derivatives are taken: there are none through the solution.
            The derivative of the least cost is that of the cost along the plan's forces, which stay as they are.

    Source: Tassa, Mansard, Todorov, Control-limited differential dynamic programming, ICRA 2014; Li, Todorov, Iterative
    linear quadratic regulator design for nonlinear biological movement systems, ICINCO 2004.
    """
    checked(model)
    B = inputs(model, actuated)
    u = jnp.asarray(u, model.dtype)
    if u.ndim != 2 or u.shape[1] != B.shape[1] or not len(u):
        raise ValueError(
            f"u: expected shape (steps, {B.shape[1]}), one column for each actuator of {model.name!r} and at least one "
            f"row, got {u.shape}"
        )
    if not (isinstance(bounds, Sequence) and len(bounds) == 2):
        raise ValueError(f"bounds: expected the least and the largest forces, such as (-10.0, 10.0), got {bounds!r}")
    if max_steps < 0:
        raise ValueError(f"max_steps: expected a number that is not negative, got {max_steps}")
    lower, upper = (jnp.broadcast_to(scalar_or(model, B.shape[1], "bounds", side), B.shape[1]) for side in bounds)
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer) and jnp.any(lower > upper):
        raise ValueError(f"bounds: expected the least forces below the largest ones, got {lower} and {upper}")
    if not isinstance(dt, Tracer) and not np.all(np.asarray(dt) > 0):
        raise ValueError(f"dt: expected a positive number of seconds, got {dt}")
    tolerance = max(1e-8, 100 * float(jnp.finfo(model.dtype).eps)) if tolerance is None else tolerance
    problem = _Problem(
        TimeStep(model, B, shaped("dt", dt, model.dtype, ())),
        cost if isinstance(cost, Cost) else AnyCost(cost),
        final_cost if isinstance(final_cost, Cost) else AnyCost(final_cost),
        lower,
        upper,
        shaped("tolerance", tolerance, model.dtype, ()),
    )
    v0 = shaped("v0", v0, model.dtype, (model.nv,), owner=model.name)
    return _planned(problem, configuration(model, "q0", q0), v0, u, max_steps)


class _Motion(NamedTuple):
    """A motion and its cost: of states there is one more than of forces."""

    q: Array
    v: Array
    u: Array
    cost: Scalar


class _Search(NamedTuple):
    """An optimization under way.

    Attributes:
        motion: The best one so far.
        policy: About it, or about the one before where it is new.
        mu: μ.
        factor: By which μ changed last.
        steps: So far.
        costs: After each of them.
        result: So far; `max_steps` while it goes on.
        running: Whether it does.
    """

    motion: _Motion
    policy: Policy
    mu: Scalar
    factor: Scalar
    steps: Int[Array, ""]
    costs: Array
    result: Int[Array, ""]
    running: Array


class _Problem(eqx.Module):
    """Problem of optimal control: dynamics, cost and bounds.

    Attributes:
        step: The dynamics.
        cost, final_cost: What is to be least.
        lower, upper: Bounds of the forces.
        tolerance: Share of the cost.
    """

    step: TimeStep
    cost: Cost
    final_cost: Cost
    lower: Array
    upper: Array
    tolerance: Scalar

    @property
    def model(self):
        return self.step.model

    def deviation(self, q: Array, v: Array, q_near: Array, v_near: Array) -> Array:
        return jnp.concatenate([self.model.difference(q, q_near), v_near - v])

    def followed(self, motion: _Motion, policy: Policy, share: Scalar) -> _Motion:
        """The motion under the policy, of whose change of the forces a share is taken."""

        def step(state, x):
            (q, v), (t, q_old, v_old, u, k, K) = state, x
            u = jnp.clip(u + share * k + K @ self.deviation(q_old, v_old, q, v), self.lower, self.upper)
            return self.step(q, v, u), (q, v, u, self.cost(t, q, v, u))

        steps = self.times(motion.u), motion.q[:-1], motion.v[:-1], motion.u, policy.k, policy.K
        (q, v), (qs, vs, us, costs) = jax.lax.scan(step, (motion.q[0], motion.v[0]), steps)
        cost = self.step.h * jnp.sum(costs) + self.final_cost(q, v)
        return _Motion(jnp.concatenate([qs, q[None]]), jnp.concatenate([vs, v[None]]), us, cost)

    def times(self, u: Array) -> Array:
        return self.step.h * jnp.arange(len(u), dtype=u.dtype)

    def first(self, q: Array, v: Array, u: Array) -> tuple[_Motion, Policy]:
        """The motion under the guess, and the policy to keep to it."""
        nodes, nu, nx = *u.shape, 2 * self.model.nv
        none = jnp.zeros((), u.dtype)
        still = Policy(jnp.zeros_like(u), jnp.zeros((nodes, nu, nx), u.dtype), none, none)
        q, v = (jnp.broadcast_to(x, (nodes + 1, *x.shape)) for x in (q, v))
        rest = _Motion(q, v, u, none)
        return self.followed(rest, still, none), still

    def policy(self, motion: _Motion, mu: Scalar) -> Policy:
        """Policy of least cost for small deviations."""
        q, v, u, _ = motion
        A, B = jax.vmap(self.step.linearized)(q[:-1], v[:-1], u, q[1:], v[1:])
        g, H = jax.vmap(self._expanded)(self.times(u), q[:-1], v[:-1], u)
        stages = Stage(A, B, self.step.h * g, self.step.h * H, self.lower[None] - u, self.upper[None] - u)
        end = jnp.zeros(2 * self.model.nv, u.dtype)
        return backward_pass(stages, *self.final_cost.expansion(lambda z: self._near(q[-1], v[-1], z), end), mu)

    def _expanded(self, t, q, v, u):
        split = 2 * self.model.nv
        still = jnp.zeros(split + len(u), u.dtype)
        return self.cost.expansion(lambda z: (t, *self._near(q, v, z[:split]), u + z[split:]), still)

    def _near(self, q, v, x):
        return self.model.integrate(q, x[: len(v)]), v + x[len(v) :]

    def improved(self, now: _Search, first: Scalar) -> _Search:
        """One step, or none where there is nothing to gain or no step left; but a policy about the motion always."""
        policy = self.policy(now.motion, now.mu)
        promised = -(policy.slope + policy.curvature)
        scale = jnp.maximum(jnp.abs(now.motion.cost), self.tolerance * jnp.abs(first))
        converged = (promised <= self.tolerance * scale) & (now.mu <= SMALL)
        over = converged | (now.steps + 1 >= len(now.costs))

        there, falls = self._share(now.motion, policy)
        falls = falls & ~over
        motion = jax.tree.map(lambda new, old: jnp.where(falls, new, old), there, now.motion)
        factor = jnp.where(falls, jnp.minimum(now.factor, 1) / FACTOR, jnp.maximum(now.factor, 1) * FACTOR)
        mu = jnp.where(falls, now.mu * factor, jnp.maximum(now.mu * factor, LEAST))
        mu = jnp.where(mu < LEAST, 0, mu)
        stuck = ~over & (mu > MOST)
        result = jnp.where(converged, Optimized.converged, jnp.where(stuck, Optimized.stuck, Optimized.max_steps))
        steps = jnp.where(over, now.steps, now.steps + 1)
        costs = now.costs.at[steps].set(motion.cost)
        # Where some step has no minimum, there is no new policy.
        policy = jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(promised), new, old), policy, now.policy)
        return _Search(motion, policy, mu, factor, steps, costs, result.astype(jnp.int32), ~(over | stuck))

    def _share(self, motion: _Motion, policy: Policy) -> tuple[_Motion, Array]:
        """The motion under the largest share of the policy's change with which the cost falls enough, and whether there
        is one."""
        shares = jnp.asarray(SHARES, motion.u.dtype)
        tried = jax.vmap(self.followed, (None, None, 0))(motion, policy, shares)
        wanted = -ENOUGH * shares * (policy.slope + shares * policy.curvature)
        # Comparisons with NaN fail.
        falls = motion.cost - tried.cost > wanted
        first = jnp.argmax(falls)
        return jax.tree.map(lambda x: x[first], tried), falls[first]


@compiled
def _planned(problem, q, v, u, max_steps):
    model = problem.model
    problem = eqx.tree_at(lambda problem: problem.step.model, problem, with_links(model))
    u = jax.vmap(lambda u: jnp.clip(u, problem.lower, problem.upper))(u)
    return _optimized(problem, model.normalize(q), v, u, max_steps)


@eqx.filter_custom_jvp
def _optimized(problem, q, v, u, max_steps):
    motion, policy = problem.first(q, v, u)
    zero, one = jnp.zeros_like(motion.cost), jnp.ones_like(motion.cost)
    costs = jnp.full(max_steps + 1, jnp.nan, u.dtype).at[0].set(motion.cost)
    finite = jnp.isfinite(motion.cost)
    result = jnp.where(finite, Optimized.max_steps, Optimized.nonfinite).astype(jnp.int32)
    start = _Search(motion, policy, zero, one, jnp.zeros((), jnp.int32), costs, result, finite)
    end = jax.lax.while_loop(lambda now: now.running, lambda now: problem.improved(now, motion.cost), start)
    times = problem.step.h * jnp.arange(len(u) + 1, dtype=u.dtype)
    q, v, u, cost = end.motion
    limits = problem.step.inputs, problem.lower, problem.upper
    return Plan(times, q, v, u, end.policy.K, *limits, cost, end.costs, end.steps, end.result)


@_optimized.def_jvp
def _optimized_jvp(primals, tangents):
    raise ValueError(
        "ilqr: there are no derivatives through the solution. Wrap what it is given in jax.lax.stop_gradient, and "
        "differentiate the cost along the plan's forces: that is the derivative of the least cost"
    )
