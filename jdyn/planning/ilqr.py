"""Motions of least cost under limited forces."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int, PyTree, Scalar

from jdyn.actuators import Actuators
from jdyn.array import shaped
from jdyn.control.arguments import inputs, scalar_or
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.planning.backward_pass import Policy, Stage, backward_pass
from jdyn.planning.costs import AnyCost, Cost
from jdyn.simulation import Result, SemiImplicitEuler, State, System
from jdyn.simulation.deviation import deviating, deviation, deviation_size
from jdyn.simulation.sensor_memory import without_memory
from jdyn.simulation.simulate import checked_start, named
from jdyn.terminal.messages import unknown

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

    >>> [code.name for code in jdyn.planning.Optimized]
    ['converged', 'stuck', 'max_steps', 'nonfinite']
    """

    converged = 0
    stuck = 1
    max_steps = 2
    nonfinite = 3


class Plan(NamedTuple):
    """Result of `ilqr`.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    >>> final = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    >>> plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((50, 1)), 0.02)
    >>> print(plan.q.shape, plan.u.shape, plan.gains.shape)
    (51, 1) (50, 1) (50, 1, 2)

    Attributes:
        t: Times [s].
        q, v: States at these times [rad or m, rad/s or m/s], quaternions of unit length.
        parts: What these states have beside the motion, see `jdyn.State`.
        u: Forces of the actuators from each time to the next [N m or N].
        gains: K: by how much forces change for a deviation [e; w; z] from the state at the start of a step, the tangent
            vector that leads to the deviating configuration and the deviations of the velocity and of the parts, in
            the order of their leaves. Zero for forces at a bound.
        inputs: From forces of the actuators to generalized forces.
        lower, upper: Bounds of the actuators' forces.
        cost: Of the motion.
        costs: Of the first motion, and after each step; NaN after the last one.
        steps: How many there were.
        result: `jdyn.planning.Optimized`.
    """

    t: Float[Array, " nodes+1"]
    q: Float[Array, "nodes+1 nq"]
    v: Float[Array, "nodes+1 nv"]
    parts: dict[str, PyTree[Array]]
    u: Float[Array, "nodes nu"]
    gains: Float[Array, "nodes nu nx"]
    inputs: Float[Array, "nv nu"]
    lower: Float[Array, " nu"]
    upper: Float[Array, " nu"]
    cost: Scalar
    costs: Float[Array, " max_steps+1"]
    steps: Int[Array, ""]
    result: Int[Array, ""]


@overload
def ilqr(
    system: System,
    cost: Callable[..., Scalar],
    final_cost: Callable[..., Scalar],
    state: State,
    u: Float[Array, "nodes nu"],
    dt: ArrayLike,
    *,
    bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
    actuated: ArrayLike | None = None,
    solver: diffrax.AbstractSolver | None = None,
    tolerance: ArrayLike | None = None,
    max_steps: int = 200,
) -> Plan: ...


@overload
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
    solver: diffrax.AbstractSolver | None = None,
    tolerance: ArrayLike | None = None,
    max_steps: int = 200,
) -> Plan: ...


def ilqr(
    *start: Any,
    bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
    actuated: ArrayLike | None = None,
    solver: diffrax.AbstractSolver | None = None,
    tolerance: ArrayLike | None = None,
    max_steps: int = 200,
    **more: Any,
) -> Plan:
    """The motion of least cost near a guess, with forces of the actuators in a box, and feedback along it.

    The cost is that of the end plus the sum over all steps of dt times `cost(t, q, v, u)`; steps are those of
    `System.step` under constant forces of the actuators, beside those of the system's controller. Contact, constraints,
    joint limits and memories of controllers are planned through.

    ```
    def cost(t, q, v, u):
        return 0.5 * jnp.sum(0.1 * u**2)

    def final_cost(q, v):
        return 50 * jnp.sum(model.difference(target, q) ** 2) + jnp.sum(v**2)

    system = jdyn.System(model, contact=jdyn.CompliantContact())
    plan = jdyn.ilqr(system, cost, final_cost, system.state(q0), jnp.zeros((100, 1)), 0.02, actuated=[0])
    ```

    `jdyn.ilqr(model, cost, final_cost, q0, v0, u, dt)` is the short form of a model alone.

    Differential dynamic programming with the first derivatives of the steps and second derivatives of the cost, on the
    tangent space of the configurations: free and ball joints need no care. Each step of the search solves the
    linear-quadratic problem about the motion with the box as a constraint, tries ten shares of the change at once, and
    takes the largest that helps; where none does, changes of the forces are made dearer. The whole is one loop; under
    `vmap` each lane has its own `result`, and spoils no other.

    Costs may close over arrays, batched ones too. Where a cost is a sum of squares, `jdyn.planning.SquaredResiduals` is
    faster.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    >>> final = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    >>> plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((50, 1)), 0.02)
    >>> print(plan.q[-1].round(2))
    [1.]

    Args:
        start: `system`, what moves; `cost`, a function of time [s], state and forces; `final_cost`, a function
            `final_cost(q, v)` of the state at the end; `state`, that at the start, see `System.state`, in the short
            form `q0` and `v0`; `u`, a guess of the forces, one row a step [N m or N], of which the nearest in the box
            is taken; and `dt`, the length of a step [s].
        bounds: Least and largest forces, scalars or shape (nu,).
        actuated: The actuators, as for `jdyn.LQR`: indices or a mask of velocity coordinates, or a matrix of shape
            (nv, nu); every coordinate if left out. A system with `actuators` has their commands planned instead.
        solver: Takes the steps, as for `System.step`; if left out, that of `System.step` where shapes touch or joints
            have limits, else `jdyn.solvers.SemiImplicitEuler()`.
        tolerance: It has converged where the predicted fall is less than this share of the cost; 1e-8 if left out, or
            a hundred times rounding where that is more, 1e-5 in float32.
        max_steps: Most steps of the search.

    Raises:
        ValueError: at trace time, if a shape is wrong, or derivatives are taken: there are none through the solution.
            The derivative of the least cost is that of the cost along the plan's forces, which stay as they are. And as
            for `System.step`.

    Source: Tassa, Mansard, Todorov, Control-limited differential dynamic programming, ICRA 2014; Li, Todorov, Iterative
    linear quadratic regulator design for nonlinear biological movement systems, ICINCO 2004.
    """
    given = named("ilqr", start, more, _WHOLE, _SHORT)
    if more:
        raise TypeError(f"ilqr: {unknown('option', next(iter(more)), _OPTIONS)}")
    system, state = _beginning(given)
    system = system.astype(state.q.dtype)
    model, dt = system.model, given["dt"]
    B = _inputs(system, actuated)
    u = jnp.asarray(given["u"], model.dtype)
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
    if solver is None and system.contact is None and system.joint_limits is None:
        solver = SemiImplicitEuler()
    problem = _Problem(
        system=system,
        inputs=B,
        h=shaped("dt", dt, model.dtype, ()),
        solver=solver,
        cost=_as_cost(given["cost"]),
        final_cost=_as_cost(given["final_cost"]),
        lower=lower,
        upper=upper,
        tolerance=shaped("tolerance", tolerance, model.dtype, ()),
    )
    return _planned(problem, state, u, max_steps)


_WHOLE = ("system", "cost", "final_cost", "state", "u", "dt")
_SHORT = ("model", "cost", "final_cost", "q0", "v0", "u", "dt")
_OPTIONS = ("bounds", "actuated", "solver", "tolerance", "max_steps")


def _beginning(given: dict[str, Any]) -> tuple[System, State]:
    """System and start, with all parts of its state."""
    if "model" in given:
        system = System(given["model"])
        return system.but(model=system.model.without_shapes()), system.state(given["q0"], given["v0"])
    system, state = checked_start(given["system"], given["state"])
    # Costs do not look at sensors, nor at what these remember.
    system, state = system.but(sensors=()), without_memory(state)
    whole = system.state(state.q, state.v)
    if system.contact is None:
        system = system.but(model=system.model.without_shapes())
    return system.but(configurations={}), dataclasses.replace(whole, parts=whole.parts | state.parts)


def _inputs(system: System, actuated: Any) -> Array:
    """From what is planned to what a step takes: commands, or generalized forces."""
    if not system.actuators:
        return inputs(system.model, actuated)
    if actuated is not None:
        raise ValueError("actuated: the system has actuators of its own, whose commands are planned; leave it out")
    return jnp.eye(len(Actuators(system.actuators).command_names), dtype=system.model.dtype)


def _as_cost(function: Callable[..., Scalar]) -> Cost:
    return function if isinstance(function, Cost) else AnyCost(function)


class _Motion(NamedTuple):
    """A motion and its cost: of states there is one more than of forces."""

    y: State
    u: Array
    cost: Scalar

    @property
    def starts(self) -> State:
        """States where steps start."""
        return jax.tree.map(lambda x: x[:-1], self.y)

    @property
    def ends(self) -> State:
        """States where steps end."""
        return jax.tree.map(lambda x: x[1:], self.y)

    @property
    def end(self) -> State:
        return jax.tree.map(lambda x: x[-1], self.y)


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
        system: What moves.
        inputs: From forces of the actuators to generalized forces.
        h: Length of a step [s].
        solver: Takes the steps.
        cost, final_cost: What is to be least.
        lower, upper: Bounds of the forces.
        tolerance: Share of the cost.
    """

    system: System
    inputs: Array
    h: Scalar
    solver: diffrax.AbstractSolver | None
    cost: Cost
    final_cost: Cost
    lower: Array
    upper: Array
    tolerance: Scalar

    @property
    def model(self):
        return self.system.model

    def step(self, t: Scalar, y: State, u: Array) -> tuple[State, Array]:
        """The state after a step, and whether there is one."""
        y, info = self.system.step(y, self.inputs @ u, self.h, t=t, solver=self.solver)
        return y, info.result == Result.success

    def linearized(self, t: Scalar, y: State, u: Array, end: State) -> tuple[Array, Array]:
        """A and B in x₁ = A x + B u for small deviations from a step to the state `end`."""
        nx = deviation_size(y)

        def moved(z):
            near, _ = self.step(t, deviating(self.model, y, z[:nx]), u + z[nx:])
            return deviation(self.model, end, near)

        both = jax.jacfwd(moved)(jnp.zeros(nx + len(u), u.dtype))
        return both[:, :nx], both[:, nx:]

    def followed(self, motion: _Motion, policy: Policy, share: Scalar) -> _Motion:
        """The motion under the policy, of whose change of the forces a share is taken."""

        def step(state, x):
            (y, good), (t, old, u, k, K) = state, x
            u = jnp.clip(u + share * k + K @ deviation(self.model, old, y), self.lower, self.upper)
            after, arrived = self.step(t, y, u)
            return (after, good & arrived), (y, u, self.cost(t, y.q, y.v, u))

        steps = self.times(motion.u), motion.starts, motion.u, policy.k, policy.K
        start = jax.tree.map(lambda x: x[0], motion.y), jnp.array(True)
        (end, good), (ys, us, costs) = jax.lax.scan(step, start, steps)
        cost = self.h * jnp.sum(costs) + self.final_cost(end.q, end.v)
        ys = jax.tree.map(lambda xs, x: jnp.concatenate([xs, x[None]]), ys, end)
        return _Motion(ys, us, jnp.where(good, cost, jnp.nan))

    def times(self, u: Array) -> Array:
        return self.h * jnp.arange(len(u), dtype=u.dtype)

    def first(self, y: State, u: Array) -> tuple[_Motion, Policy]:
        """The motion under the guess, and the policy to keep to it."""
        nodes, nu = u.shape
        none = jnp.zeros((), u.dtype)
        still = Policy(jnp.zeros_like(u), jnp.zeros((nodes, nu, deviation_size(y)), u.dtype), none, none)
        rest = _Motion(jax.tree.map(lambda x: jnp.broadcast_to(x, (nodes + 1, *x.shape)), y), u, none)
        return self.followed(rest, still, none), still

    def policy(self, motion: _Motion, mu: Scalar) -> Policy:
        """Policy of least cost for small deviations."""
        starts, end, u = motion.starts, motion.end, motion.u
        A, B = jax.vmap(self.linearized)(self.times(u), starts, u, motion.ends)
        g, H = jax.vmap(self._expanded)(self.times(u), starts, u)
        stages = Stage(A, B, self.h * g, self.h * H, self.lower[None] - u, self.upper[None] - u)

        def place(x):
            near = deviating(self.model, end, x)
            return near.q, near.v

        return backward_pass(stages, *self.final_cost.expansion(place, jnp.zeros(deviation_size(end), u.dtype)), mu)

    def _expanded(self, t, y, u):
        nx = deviation_size(y)

        def place(z):
            near = deviating(self.model, y, z[:nx])
            return t, near.q, near.v, u + z[nx:]

        return self.cost.expansion(place, jnp.zeros(nx + len(u), u.dtype))

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
def _planned(problem, y, u, max_steps):
    problem = eqx.tree_at(lambda problem: problem.system.model, problem, with_links(problem.model))
    u = jax.vmap(lambda u: jnp.clip(u, problem.lower, problem.upper))(u)
    return _optimized(problem, y, u, max_steps)


@eqx.filter_custom_jvp
def _optimized(problem, y, u, max_steps):
    motion, policy = problem.first(y, u)
    zero, one = jnp.zeros_like(motion.cost), jnp.ones_like(motion.cost)
    costs = jnp.full(max_steps + 1, jnp.nan, u.dtype).at[0].set(motion.cost)
    finite = jnp.isfinite(motion.cost)
    result = jnp.where(finite, Optimized.max_steps, Optimized.nonfinite).astype(jnp.int32)
    start = _Search(motion, policy, zero, one, jnp.zeros((), jnp.int32), costs, result, finite)
    end = jax.lax.while_loop(lambda now: now.running, lambda now: problem.improved(now, motion.cost), start)
    times = problem.h * jnp.arange(len(u) + 1, dtype=u.dtype)
    y, u, cost = end.motion
    limits = problem.inputs, problem.lower, problem.upper
    return Plan(times, y.q, y.v, y.parts, u, end.policy.K, *limits, cost, end.costs, end.steps, end.result)


@_optimized.def_jvp
def _optimized_jvp(primals, tangents):
    raise ValueError(
        "ilqr: there are no derivatives through the solution. Wrap what it is given in jax.lax.stop_gradient, and "
        "differentiate the cost along the plan's forces: that is the derivative of the least cost"
    )
