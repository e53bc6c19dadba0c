"""Forward dynamics under constraints."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.dynamics.constraints.rows import constraint_rows, largest
from jdyn.dynamics.constraints.saddle_point import saddle_point
from jdyn.dynamics.inverse import bias_forces
from jdyn.dynamics.methods import ABA, Method
from jdyn.model import Model, checked
from jdyn.model.compiled import compiled, widest
from jdyn.model.constraints import Constraint


class ConstrainedMotion(NamedTuple):
    """What `constrained_dynamics` finds.

    Attributes:
        a: Accelerations of the model's coordinates [rad/s² or m/s²].
        multipliers: Forces λ of all rows, in the order of the constraints; Jᵀ λ acts on the coordinates.
        forces: Jᵀ λ [N m or N].
    """

    a: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    forces: Float[Array, " nv"]


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
) -> ConstrainedMotion:
    """Accelerations of a mechanism with constraints beyond its tree of joints, and the forces that constraints exert:
    M a + h = τ + Jᵀ λ, J a = γ.

    The state has to satisfy the constraints, see `jdyn.assemble`. Redundant constraints have the smallest multipliers,
    and the same accelerations. Linear in the number of bodies for a given number of rows. Derivatives of any order and
    in both modes, by every argument and every leaf of the model and of constraints.

    Args:
        model: The mechanism.
        constraints: `jdyn.Connect`, `jdyn.Weld`, `jdyn.Gear` and others.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        t: Time, for constraints that depend on it [s].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: What factors M; `jdyn.ABA()` if left out.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, or there is no such frame or joint.

    Source: Featherstone 2008, section 8.4; Vereshchagin 1974, equation (1.3).
    """
    together = Together.of(constraints, model, q, v, tau)
    return _constrained(model, q, v, tau, f_ext, together, t, ABA() if method is None else method)


def distance(
    model: Model,
    constraints: Sequence[Constraint],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
) -> tuple[Scalar, Scalar]:
    """By how much a state misses its constraints: the largest entries of φ [m or rad] and of J v − b, per second."""
    return _distance(model, Together.of(constraints, model, q, v), q, v, t)


@compiled
def _distance(model, together, q, v, t):
    q, v = checked(model, q=q, v=v)
    rows = constraint_rows(model, together.constraints, jnp.asarray(t, q.dtype), q, v)
    return largest(rows.residual), largest(rows.J @ v - rows.b)


class Together(eqx.Module):
    """Constraints as one argument of compiled functions, which take a tuple for a list of numbers."""

    constraints: tuple[Constraint, ...]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], *others: Any) -> "Together":
        """In the floating type of other arguments."""
        checked(others[0])
        dtype = widest(others)
        return cls(jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tuple(constraints)))


@compiled
def _constrained(model, q, v, tau, f_ext, together, t, method):
    q, v, tau, f_ext = checked(model, q=q, v=v, tau=tau, f_ext=f_ext)
    rows = constraint_rows(model, together.constraints, jnp.asarray(t, q.dtype), q, v)
    f = tau - bias_forces(model, q, v, f_ext=f_ext)
    (a,), (multipliers,) = saddle_point(method, model, q, rows.J, f[None], rows.gamma[None])
    return ConstrainedMotion(a, multipliers, rows.J.T @ multipliers)
