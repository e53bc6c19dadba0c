"""Forward dynamics under constraints."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import in_type
from jdyn.constraints.rows import constraint_rows, largest
from jdyn.constraints.singular import blocked
from jdyn.dynamics.forward import resolved
from jdyn.dynamics.inverse import bias_forces
from jdyn.dynamics.methods import Method
from jdyn.execution.compiled import widest
from jdyn.impulses.conjugate_gradients import WarmStart
from jdyn.impulses.saddle_point import delassus, saddle_point
from jdyn.model import Model, checked
from jdyn.model.constraints import Constraint
from jdyn.model.model import compiled

# Number of rows from which on steps that iterate take less time; 48 rows cost about the same, 120 a third
# (benchmarks/README.md).
MANY_ROWS = 64


class ConstrainedMotion(NamedTuple):
    """Result of `constrained_dynamics`.

    >>> model, level = jdyn.load("double_pendulum"), [jdyn.constraints.Gear("joint2", "joint1", (0.0, -1.0))]
    >>> found = jdyn.constrained_dynamics(model, level, jnp.array([0.5, -0.5]), jnp.zeros(2), jnp.zeros(2))
    >>> print(found.multipliers.round(3), found.forces.round(3))
    [-2.322] [-2.322 -2.322]

    Attributes:
        a: Accelerations of the model's coordinates [rad/s² or m/s²].
        multipliers: Forces λ of all rows, in the order of the constraints; Jᵀ λ acts on the coordinates.
        forces: Jᵀ λ [N m or N].
        iterations: Of conjugate gradients from a warm start; 0 without one.
        singular: Whether constraints allow more velocities there than motions go on with, as where a linkage is
            stretched. Accelerations are then not those of a motion. Redundant rows are not singular.
    """

    a: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    forces: Float[Array, " nv"]
    iterations: Int[Array, ""]
    singular: Bool[Array, ""]


def constrained_dynamics(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | None = None,
    warm_start: WarmStart | None = None,
) -> ConstrainedMotion:
    """Accelerations of a mechanism with constraints beyond its tree of joints, and the forces that constraints exert:
    M a + h = τ + Jᵀ λ, J a = γ.

    The state has to satisfy the constraints, see `jdyn.assemble`. Redundant constraints have the smallest multipliers,
    and the same accelerations. Linear in the number of bodies for a given number of rows. Derivatives of any order and
    in both modes, by every argument and every leaf of the model and of constraints.

    >>> model, level = jdyn.load("double_pendulum"), [jdyn.constraints.Gear("joint2", "joint1", (0.0, -1.0))]
    >>> found = jdyn.constrained_dynamics(model, level, jnp.array([0.5, -0.5]), jnp.zeros(2), jnp.zeros(2))
    >>> print(found.a.round(3))
    [-5.291  5.291]

    Args:
        model: The mechanism.
        constraints: `jdyn.constraints.Connect`, `jdyn.constraints.Weld`, `jdyn.constraints.Gear` and others.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        t: Time, for constraints that depend on it [s].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: What factors M; `jdyn.ABA()` if left out.
        warm_start: From `jdyn.constraints.warm_start` at a state nearby. Conjugate gradients then take a few sweeps
            over the bodies where one for each row would be taken, and no matrix is factored: for mechanisms with many
            rows. Where rows depend on each other, multipliers are then not exactly the smallest.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, or there is no such frame or joint.

    Source: Featherstone 2008, section 8.4; Vereshchagin 1974, equation (1.3).
    """
    listed = ConstraintList.of(constraints, model, q, v, tau)
    found = _constrained(model, q, v, tau, f_ext, listed, t, resolved(method, model), warm_start)
    return ConstrainedMotion(*found, _singular(model, listed, q, v, t))


def accelerations_and_forces(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    t: ArrayLike,
    method: Method | None,
    warm_start: WarmStart | None,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Accelerations and forces of `constrained_dynamics`, without the test whether constraints are singular."""
    listed = ConstraintList.of(constraints, model, q, v, tau)
    a, _, forces, _ = _constrained(model, q, v, tau, None, listed, t, resolved(method, model), warm_start)
    return a, forces


def warm_start(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    *,
    t: ArrayLike = 0.0,
    multipliers: Float[Array, " rows"] | None = None,
    method: Method | None = None,
) -> WarmStart:
    """Start for `constrained_dynamics` at states nearby, without derivatives: the Delassus matrix J M⁻¹ Jᵀ, factored,
    and multipliers if they are given.

    The forces of the step before save hardly an iteration by themselves; its factors leave seven to nine of 15 to 80,
    in mechanisms of 12 to 120 rows (`python -m benchmarks.constraints`).

    >>> model, level = jdyn.load("double_pendulum"), [jdyn.constraints.Gear("joint2", "joint1", (0.0, -1.0))]
    >>> start = jdyn.constraints.warm_start(model, level, jnp.array([0.5, -0.5]))
    >>> q, v, tau = jnp.array([0.51, -0.51]), jnp.zeros(2), jnp.zeros(2)
    >>> print(jdyn.constrained_dynamics(model, level, q, v, tau, warm_start=start).a.round(3))
    [-5.388  5.388]

    Source: Vereshchagin 1974, end of section 1, for the start from the step before.
    """
    return _warm_start(model, ConstraintList.of(constraints, model, q), q, t, multipliers, resolved(method, model))


def iterates(model: Model, constraints: Sequence[Constraint], t: Scalar, q: Array, v: Array) -> bool:
    """Tell whether constraints have so many rows that several evaluations take less time if they iterate from a warm
    start."""
    if not constraints:
        return False
    rows = jax.eval_shape(lambda: constraint_rows(model, constraints, t, q, v).b)
    return rows.shape[0] >= MANY_ROWS


@compiled
def _warm_start(model, listed, q, t, multipliers, method):
    (q,) = checked(model, q=q)
    model, listed, q, t, multipliers = jax.tree.map(
        lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, (model, listed, q, t, multipliers)
    )
    J = constraint_rows(model, listed.constraints, jnp.asarray(t, q.dtype), q, jnp.zeros(model.nv, q.dtype)).J
    return WarmStart.of(delassus(method, model, q, J), multipliers)


def constraint_distance(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
) -> tuple[Scalar, Scalar]:
    """Residual of a state's constraints: the largest entries of φ [m or rad] and of J v − b, per second."""
    return _distance(model, ConstraintList.of(constraints, model, q, v), q, v, t)


@compiled
def _distance(model, listed, q, v, t):
    q, v = checked(model, q=q, v=v)
    rows = constraint_rows(model, listed.constraints, jnp.asarray(t, q.dtype), q, v)
    return largest(rows.residual), largest(rows.J @ v - rows.b)


class ConstraintList(eqx.Module):
    """Constraints as one argument of compiled functions, which take a tuple for a list of numbers."""

    constraints: tuple[Constraint, ...]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], *others: Any) -> "ConstraintList":
        """The constraints in the floating type of other arguments."""
        checked(others[0])
        dtype = widest(others)
        return cls(in_type(tuple(constraints), dtype))


@compiled
def _constrained(model, q, v, tau, f_ext, listed, t, method, warm_start):
    q, v, tau, f_ext = checked(model, q=q, v=v, tau=tau, f_ext=f_ext)
    rows = constraint_rows(model, listed.constraints, jnp.asarray(t, q.dtype), q, v)
    f = tau - bias_forces(model, q, v, f_ext=f_ext)
    found = saddle_point(method, model, q, rows.J, f[None], rows.gamma[None], warm_start)
    return found.x[0], found.multipliers[0], rows.J.T @ found.multipliers[0], found.iterations[0]


@compiled
def _singular(model, listed, q, v, t):
    q, v = checked(model, q=q, v=v)
    return blocked(model, listed.constraints, jnp.asarray(t, q.dtype), q, v)
