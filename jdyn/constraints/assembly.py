"""Configurations that meet constraints, from guesses that do not."""

import enum
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.constraints.acceleration import ConstraintList
from jdyn.constraints.rows import constraint_rows, largest, residuals
from jdyn.dynamics.forward import resolved
from jdyn.dynamics.methods import Method
from jdyn.impulses.saddle_point import saddle_point
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.constraints import Constraint
from jdyn.model.model import compiled

# Shares of a Newton step that are tried; the best one is taken.
STEP_SHARES = 2.0 ** -np.arange(12)
# Longest step of a coordinate [rad or m].
LONGEST_STEP = 0.5
# Factor by which a joint at its limit is heavier.
HEAVY = 1e8
# A step that leaves more than this share of the residual has not helped.
LEAST_REDUCTION = 1 - 1e-4


class Assembly(enum.IntEnum):
    """End of an assembly: the constraints are met; no step brings them nearer; none does within the limits of joints;
    or there were too many steps.

    >>> [code.name for code in jdyn.constraints.Assembly]
    ['met', 'stuck', 'limited', 'max_steps']
    """

    met = 0
    stuck = 1
    limited = 2
    max_steps = 3


MESSAGES = {
    Assembly.stuck: "no step from there brings them nearer; do the parts reach each other? Try another guess",
    Assembly.limited: "joints are at their limits, and no step within them brings the constraints nearer",
    Assembly.max_steps: "max_steps was reached; raise it, or start nearer",
}


class Assembled(NamedTuple):
    """Result of `assemble`.

    Attributes:
        q: Configuration.
        v: Velocity that the constraints allow.
        missed: The largest entry of the constraints' residual there [m or rad].
        result: `jdyn.constraints.Assembly`.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    missed: Scalar
    result: Int[Array, ""]


class AssemblyError(ValueError):
    """Constraints could not be met.

    >>> model, far = jdyn.load("double_pendulum"), [jdyn.constraints.Connect("tip", "world", point_b=(3.0, 0.0, 0.0))]
    >>> try:
    ...     jdyn.assemble(model, far, jnp.array([0.5, 1.0]))
    ... except jdyn.constraints.AssemblyError:
    ...     print("out of reach")
    out of reach
    """


def assemble(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    *,
    t: ArrayLike = 0.0,
    method: Method | None = None,
    max_steps: int = 100,
    throw: bool = True,
) -> Assembled:
    """The state near a guess that meets constraints, with joints within their limits.

    Newton steps that are the shortest by the kinetic energy of the way, shortened where they do not help. Derivatives
    by every leaf of the model and of constraints are those of the solution nearest to the one found; under `vmap` each
    lane has its own `result`.

    >>> model, hung = jdyn.load("double_pendulum"), [jdyn.constraints.Connect("tip", "world", point_b=(1.0, 0.0, 0.0))]
    >>> found = jdyn.assemble(model, hung, jnp.array([0.5, 1.0]))
    >>> print(jdyn.frame_pose(model, found.q, "tip").translation.round(3) + 0.0)
    [1. 0. 0.]

    Args:
        model: The mechanism.
        constraints: What to meet.
        q: Guess [rad or m]; what constraints leave free stays near it.
        v: Guess of the velocity [rad/s or m/s]; zero if left out.
        t: Time, for constraints that depend on it [s].
        method: What factors M; `jdyn.ABA()` if left out.
        max_steps: Most Newton steps.
        throw: Whether failure raises, where values are known. Otherwise `result` says.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, or there is no such frame or joint.
        AssemblyError: if `throw` and the constraints are not met.
    """
    listed = ConstraintList.of(constraints, model, q)
    v = jnp.zeros(model.nv, model.dtype) if v is None else v
    problem = _Problem(resolved(method, model), model, listed.constraints, jnp.asarray(t, model.dtype))
    found = _assembled(model, problem, q, v, max_steps)
    if throw and not isinstance(found.result, Tracer) and found.result != Assembly.met:
        raise AssemblyError(
            f"{model.name!r} misses its constraints by {float(found.missed):.3g} (m or rad) after assembly: "
            f"{MESSAGES[Assembly(int(found.result))]}"
        )
    return found


@compiled
def _assembled(model, problem, q, v, max_steps):
    q, v = checked(model, q=q, v=v)
    arrays, rest = eqx.partition((problem, model.normalize(q)), eqx.is_array)
    without_gradient, start = eqx.combine(jax.lax.stop_gradient(arrays), rest)
    end = without_gradient.search(start, max_steps)
    # One more step, with derivatives.
    last = problem.newton(end.q, problem.model)
    q = jnp.where(end.result == Assembly.met, model.integrate(end.q, last), end.q)
    return Assembled(q, problem.projected_velocity(q, v), largest(end.residual), end.result)


class _Search(NamedTuple):
    """An assembly under way.

    Attributes:
        q: Configuration.
        residual: Residual of the constraints.
        steps: Number of steps so far.
        result: Result so far.
        running: Whether to go on.
    """

    q: Array
    residual: Array
    steps: Int[Array, ""]
    result: Int[Array, ""]
    running: Bool[Array, ""]


class _Problem(eqx.Module):
    """Constraints of a mechanism at one time."""

    method: Method
    model: Model = eqx.field(converter=dynamics_only)
    constraints: Sequence[Constraint]
    t: Scalar

    def residual(self, q):
        return residuals(self.model, self.constraints, self.t, q)

    def newton(self, q: Array, model: Model) -> Array:
        """The step to φ = 0 that is the shortest for the inertia of `model`."""
        rows = constraint_rows(self.model, self.constraints, self.t, q, jnp.zeros(model.nv, q.dtype))
        if not len(rows.residual):  # Constraints of velocities alone.
            return jnp.zeros(model.nv, q.dtype)
        return saddle_point(self.method, model, q, rows.J[rows.holonomic], None, -rows.residual[None]).x[0]

    def projected_velocity(self, q: Array, v: Array) -> Array:
        """The nearest velocity that constraints allow, by the kinetic energy of the difference."""
        rows = constraint_rows(self.model, self.constraints, self.t, q, v)
        return v + saddle_point(self.method, self.model, q, rows.J, None, (rows.b - rows.J @ v)[None]).x[0]

    def search(self, q: Array, max_steps: int) -> _Search:
        tolerance = jnp.finfo(q.dtype).eps ** 0.75
        residual, zero = self.residual(q), jnp.zeros((), jnp.int32)
        start = _Search(q, residual, zero, zero + Assembly.max_steps, largest(residual) > tolerance)

        def step(now: _Search) -> _Search:
            move, limited = self._within_limits(now.q)
            move = move / jnp.maximum(largest(move) / LONGEST_STEP, 1)
            places = jax.vmap(lambda share: self._clipped(self.model.integrate(now.q, share * move)))(
                jnp.asarray(STEP_SHARES, now.q.dtype)
            )
            residuals = jax.vmap(self.residual)(places)
            errors = jnp.linalg.norm(residuals, axis=1)
            best = jnp.argmin(jnp.where(jnp.isfinite(errors), errors, jnp.inf))
            helps = errors[best] < LEAST_REDUCTION * jnp.linalg.norm(now.residual)
            q, residual = jnp.where(helps, places[best], now.q), jnp.where(helps, residuals[best], now.residual)
            stuck = jnp.where(limited, Assembly.limited, Assembly.stuck)
            result = jnp.where(helps, Assembly.max_steps, stuck).astype(jnp.int32)
            going = helps & (largest(residual) > tolerance) & (now.steps + 1 < max_steps)
            return _Search(q, residual, now.steps + 1, result, going)

        end = jax.lax.while_loop(lambda now: now.running, step, start)
        met = largest(end.residual) <= tolerance
        return end._replace(result=jnp.where(met, Assembly.met, end.result).astype(jnp.int32))

    def _within_limits(self, q: Array) -> tuple[Array, Bool[Array, ""]]:
        """A Newton step in which joints at their limits do not move outwards, and whether there are such joints."""
        move = self.newton(q, self.model)
        outwards = self._outwards(q, move)
        weight = jnp.max(self.model.inertias.mass, initial=0) + jnp.max(self.model.armature, initial=0)
        armature = self.model.armature + jnp.where(outwards, HEAVY * weight, 0)
        heavy = eqx.tree_at(lambda model: model.armature, self.model, armature)
        return jnp.where(jnp.any(outwards), self.newton(q, heavy), move), jnp.any(outwards)

    def _outwards(self, q, move):
        in_q, in_v = self.model.topology.ranged
        x, dx = self.model.expand(q)[in_q], self.model.expand_velocity(move)[in_v]
        near = jnp.sqrt(jnp.finfo(x.dtype).eps)
        upper, lower = self.model.limits.upper[in_q], self.model.limits.lower[in_q]
        outwards = ((x >= upper - near) & (dx > 0)) | ((x <= lower + near) & (dx < 0))
        return jnp.zeros(self.model.topology.v_offsets[-1], bool).at[in_v].set(outwards)

    def _clipped(self, q):
        in_q, _ = self.model.topology.ranged
        limits = self.model.limits
        full = self.model.expand(q)
        # Joints that start outside come in.
        full = full.at[in_q].set(jnp.clip(full[in_q], limits.lower[in_q], limits.upper[in_q]))
        return full[np.array(self.model.topology.independent_q)]
