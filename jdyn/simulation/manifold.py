"""Solvers on the configuration manifold, in charts by rotation vectors.

These tell turns up to half a revolution. Beyond, a shorter vector the other way round is the same rotation, and after
a whole revolution the rate of the vector is infinite: a step may come out behind that pole with an error that looks
small.
"""

import dataclasses
import functools
import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.dynamics.forward import keep_solutions
from jdyn.model import Ball, Free, Model, checked
from jdyn.simulation.counted_roots import counted_step
from jdyn.simulation.solver import Counted, Delegating, Halved, Traits, Work, traits, wrapped
from jdyn.simulation.state import State

# The longest rotation vector in a step [rad], and how far one may turn that is planned: spins may become faster.
LONGEST, PLANNED = math.pi, 0.8 * math.pi


class OnManifold(Delegating):
    """A one-step method that takes every step in local coordinates about its initial state.

    Rotations move by rotation vectors φ, dφ/dt = dexp⁻¹_{-φ} ω, and the end of a step is mapped back: quaternions keep
    unit length without projection. Order, error estimate and dense output are those of the wrapped method in the
    tangent space; step controllers see the estimate as a change of coordinates. No step turns by more than π: a chart
    tells no turn beyond, and steps that leave it end nowhere, in NaN with an infinite error.

    ```
    diffrax.diffeqsolve(diffrax.ODETerm(field), jdyn.solvers.OnManifold(diffrax.Dopri5(), model), ...)
    ```

    Works with Runge-Kutta methods, explicit or diagonally implicit, and with others that keep no state between steps.
    `simulate` wraps its solver. Evaluations of Runge-Kutta methods are counted; other methods of diffrax do not report
    the evaluations of their root finders.

    >>> import diffrax
    >>> model = jdyn.load("pendulum")
    >>> solver = jdyn.solvers.OnManifold(diffrax.Dopri5(), model)
    >>> solver.order(diffrax.ODETerm(lambda t, y, args: y))
    5

    Source: Munthe-Kaas, High order Runge-Kutta methods on manifolds, Applied Numerical Mathematics 1999; Hairer,
    Lubich, Wanner 2006, section IV.8.

    Attributes:
        solver: The wrapped method.
        model: Defines the coordinates of a `State`.
    """

    solver: diffrax.AbstractSolver
    model: Model

    def __check_init__(self):
        checked(self.model)

    def on(self, model: Model) -> "OnManifold":
        """This solver for a model."""
        return OnManifold(self.solver, model)

    def init(self, terms, t0, t1, y0, args):
        local = LocalTerm(terms, self.model, y0.q)
        u0 = local.to_chart(y0)
        if self._stages == "explicit":
            first = (jnp.array(True), jax.tree.map(jnp.zeros_like, u0)) if self._tableau.fsal else None
            return Counted(first, Work.of())
        state = self.solver.init(local, t0, t1, u0, args)
        if isinstance(state, Counted):
            # One of jdyn's solvers, whose state does not depend on the chart.
            return state
        if not (state is None or self.model.flat or self._stages):
            raise ValueError(
                f"{type(self.solver).__name__} keeps states of its own between steps, which do not follow the "
                f"rotations of {self.model.name!r}; take a Runge-Kutta method, or one of jdyn's own solvers"
            )
        return Counted(state, Work.of() if self._stages == "diagonal" else None)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        local = LocalTerm(terms, self.model, y0.q)
        u0 = local.to_chart(y0)
        u1, error, dense_info, solver_state, result = self._advance(local, t0, t1, u0, args, solver_state, made_jump)
        y1 = local.from_chart(u1)
        return (
            y1,
            None if error is None else pushed(local, u1, error),
            {"centre": y0.q, "local": dense_info},
            dataclasses.replace(solver_state, memory=self._carried(solver_state.memory, y1)),
            result,
        )

    @property
    def traits(self) -> Traits:
        return traits(self.solver)._replace(charts=True)

    @property
    def interpolation_cls(self):
        return functools.partial(ChartInterpolation, self.solver.interpolation_cls, self.model)

    def _advance(self, terms, t0, t1, y0, args, state, made_jump) -> Any:
        """Take a step of the wrapped method, with a `Counted` state."""
        if self._stages == "explicit":
            return _explicit_step(self._tableau, terms, t0, t1, y0, args, state.memory, made_jump)
        if self._stages == "diagonal":
            return counted_step(self._with_roots, terms, t0, t1, y0, args, state.memory, made_jump)
        if state.work is not None:
            return self.solver.step(terms, t0, t1, y0, args, state, made_jump)
        y1, error, dense, memory, result = self.solver.step(terms, t0, t1, y0, args, state.memory, made_jump)
        return y1, error, dense, Counted(memory), result

    @property
    def _stages(self):
        return traits(self.solver).stages

    @property
    def _with_roots(self) -> Any:
        # For diagonally implicit methods alone.
        return self.solver

    @property
    def _tableau(self):
        # For explicit Runge-Kutta methods alone.
        return self.solver.tableau  # type: ignore[attr-defined]

    def _carried(self, memory, y1: State):
        """State of a first-same-as-last method: whether it must be evaluated, and the rate at its last stage in the
        chart about the end of the step."""
        if memory is None or not self._stages:
            return memory
        missing, rate = memory
        rotated = self.model.chart_rate(y1.q, self.model.to_chart(y1.q), y1.v)
        return missing, eqx.tree_at(lambda rate: rate.q, rate, rotated)


def on_manifold(solver: diffrax.AbstractSolver, model: Model) -> diffrax.AbstractSolver:
    """Any solver, made to follow the rotations of a model."""
    if hasattr(solver, "on"):
        return solver.on(model)  # type: ignore[attr-defined]
    if (inner := wrapped(solver)) is None:
        return OnManifold(solver, model)
    inner = on_manifold(inner, model)
    # Diffrax has no other solver whose steps do not count their work.
    return Halved(inner) if type(solver) is diffrax.HalfSolver else eqx.tree_at(lambda x: x.solver, solver, inner)


class LocalTerm(diffrax.AbstractTerm):
    """The equations of motion in the chart about `centre`."""

    term: diffrax.AbstractTerm
    model: Model
    centre: Float[Array, " nq"]

    def to_chart(self, y: State) -> State:
        """The state at the centre in the chart."""
        return eqx.tree_at(lambda y: y.q, y, self.model.to_chart(y.q))

    def from_chart(self, u: State) -> State:
        """The state with these coordinates; NaN for rotations that leave the chart."""
        return eqx.tree_at(lambda u: u.q, u, self.model.from_chart(self.centre, u.q, LONGEST))

    def vf(self, t, y, args):
        at = self.from_chart(y)
        rate = self.term.vf(t, at, args)
        return eqx.tree_at(lambda rate: rate.q, rate, self.model.chart_rate(at.q, y.q, at.v))

    def contr(self, t0, t1, **kwargs):
        return self.term.contr(t0, t1, **kwargs)

    def prod(self, vf, control):
        return self.term.prod(vf, control)


def local_term(solver: diffrax.AbstractSolver, terms: diffrax.AbstractTerm) -> LocalTerm:
    """The terms, if they are in local coordinates."""
    if not isinstance(terms, LocalTerm):
        name = type(solver).__name__
        raise ValueError(f"{name}: it works in local coordinates; use jdyn.simulate, or jdyn.solvers.OnManifold")
    return terms


def angular_speed(model: Model, v: Float[Array, " nv"]) -> Scalar:
    """Angular speed of the fastest ball or free joint [rad/s], 0 without one; it has no derivative."""
    v = model.expand_velocity(jax.lax.stop_gradient(v))
    groups = zip(model.joints, model.by_group("v", v), strict=True)
    speeds = [jnp.linalg.norm(x[:, :3], axis=1) for joints, x in groups if isinstance(joints, Ball | Free)]
    return jnp.max(jnp.concatenate([*speeds, jnp.zeros(1, v.dtype)]))


def pushed(local: LocalTerm, u1: State, error: State) -> State:
    """The error in the coordinates of the manifold; infinite where it is in the chart, as after solvers that fail, or
    where the step leaves the chart."""
    y1, changed = jax.jvp(local.from_chart, (u1,), (error,))

    def known(y, new, old):
        return jnp.where(jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(old)), new, jnp.inf)

    return jax.tree.map(known, y1, changed, error)


class ChartInterpolation(diffrax.AbstractLocalInterpolation):
    t0: Float[Array, ""]
    t1: Float[Array, ""]
    model: Model
    centre: Float[Array, " nq"]
    interpolation: Any

    def __init__(self, wrapped, model, *, t0, t1, centre, local):
        self.t0, self.t1, self.model, self.centre = t0, t1, model, centre
        self.interpolation = wrapped(t0=t0, t1=t1, **local)

    def forces(self, t):
        """Contact forces, of a wrapped solver that says them."""
        return self.interpolation.forces(t)

    def evaluate(self, t0, t1=None, left=True):
        if t1 is not None:
            return jax.tree.map(jnp.subtract, self.evaluate(t1, left=left), self.evaluate(t0, left=left))
        u = self.interpolation.evaluate(t0, left=left)
        return eqx.tree_at(lambda u: u.q, u, self.model.from_chart(self.centre, u.q))


def _explicit_step(tableau: diffrax.ButcherTableau, terms, t0, t1, y0, args, last, made_jump):
    """A step of an explicit Runge-Kutta method as a scan over its stages, which holds the equations of motion once
    and has derivatives in both modes."""
    stages, control = tableau.num_stages, terms.contr(t0, t1)
    a = np.zeros((stages, stages))
    for i, row in enumerate(tableau.a_lower, start=1):
        a[i, : len(row)] = row
    c = np.concatenate([[0], tableau.c])
    first = 0 if last is None else jnp.where(unvmap_any(last[0] | made_jump), 0, 1)

    # Inside a loop, nothing needs protection from common-subexpression elimination.
    rate_at = jax.checkpoint(lambda t, y: terms.vf(t, y, args), prevent_cse=False, policy=keep_solutions)

    def stage(carry, row):
        k, previous = carry
        i, a_i, c_i = row
        rate = jax.lax.cond(
            i >= first,
            lambda: rate_at(t0 + c_i * (t1 - t0), plus(y0, a_i, k)),
            lambda: previous,
        )
        k = jax.tree.map(lambda k, new: k.at[i].set(new), k, terms.prod(rate, control))
        return (k, rate), None

    k = jax.tree.map(lambda y: jnp.zeros((stages, *y.shape), y.dtype), y0)
    previous = jax.tree.map(jnp.zeros_like, y0) if last is None else last[1]
    rows = jnp.arange(stages), jnp.asarray(a, t0.dtype), jnp.asarray(c, t0.dtype)
    (k, rate), _ = jax.lax.scan(stage, (k, previous), rows)
    y1, error = plus(y0, tableau.b_sol, k), weighted(tableau.b_error, k)
    memory = None if last is None else (jnp.array(False), rate)
    reused = 0 if last is None else jnp.where(last[0] | made_jump, 0, 1)
    state = Counted(memory, Work.of(stages - reused))
    return y1, error, {"y0": y0, "y1": y1, "k": k}, state, diffrax.RESULTS.successful


def weighted(weights: Any, k: PyTree) -> PyTree:
    """Σ_i weights_i k_i of stages, the first axis of every leaf; several sums for a matrix of weights."""
    return jax.tree.map(lambda k: jnp.tensordot(jnp.asarray(weights, k.dtype), k, 1, precision="highest"), k)


def plus(y: PyTree, weights: Any, k: PyTree) -> PyTree:
    """y + Σ_i weights_i k_i."""
    return jax.tree.map(jnp.add, y, weighted(weights, k))
