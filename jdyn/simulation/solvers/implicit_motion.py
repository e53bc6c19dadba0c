"""Linear systems with the whole Jacobian of the equations of motion."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Scalar

from jdyn.array import solution
from jdyn.dynamics import inverse_dynamics_derivatives
from jdyn.execution.compiled import precise
from jdyn.model import Model
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.implicit_rates import equations_of_motion
from jdyn.simulation.state import State, clock_of
from jdyn.simulation.vector_field import VectorField

Vector = Float[Array, " n"]
Matrix = Float[Array, "m n"]


class ImplicitMotion(NamedTuple):
    """The Jacobian of the equations of motion at one state, for systems (1 − c J) k = s + c J_t dt.

    The state is (u, v, z): coordinates in the chart about the configuration, velocity, and what is integrated beside
    the motion. With du = Q e for tangent vectors e, small changes obey

        de/dt = P e + v,   M dv/dt = −K e − D v + F z + τ_t dt,   dz/dt = Z_e e + Z_v v + Z_z z + Z_t dt,

    and e = E (s_e + c v) with E = (1 − c P)⁻¹ leaves a system in v and z alone,

        (M + c D + c² K E) v − c F z = M s_v − c K E s_e + c τ_t dt,
        (1 − c Z_z) z − c (Z_v + c Z_e E) v = s_z + c Z_e E s_e + c Z_t dt.

    Forward dynamics is not differentiated: M, K and D are derivatives of inverse dynamics and of the forces, where both
    know them in closed form. Derivatives of these are not taken.

    Attributes:
        h: The step [s]; negative where time runs backwards.
        chart: P and Q; None where coordinates are flat, and they are 0 and 1.
        M, K, D: Mass matrix, and how forces of all kinds fall with configuration and velocity.
        tau_t: τ_t.
        F: ∂τ/∂z.
        Z: Z_e, Z_v, Z_z and Z_t.
    """

    h: Scalar
    chart: tuple[Matrix, Matrix] | None
    M: Matrix
    K: Matrix
    D: Matrix
    tau_t: Vector
    F: Matrix
    Z: tuple[Matrix, Matrix, Matrix, Vector]

    @classmethod
    @precise
    def of(cls, terms: LocalTerm, t0: Any, t1: Any, u: State, a: Vector) -> "ImplicitMotion":
        """At the start of a step from `t0` to `t1`, in the centre `u` of the chart, where the acceleration is `a`."""
        given = terms, t0, t1, u, a
        terms, t0, t1, u, a = jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, given)
        field, y = equations_of_motion(terms.term), terms.from_chart(u)
        if field.elements.add_inertia:
            raise ValueError(
                "elements: expected none that add inertia, such as jdyn.elements.TendonInertia, for a solver that "
                "differentiates forward dynamics; leave the solver out"
            )
        model, t = field.model, clock_of(terms.term)(t0)
        tau_t, tau_q, tau_v = field.force_jacobians(t, y)
        by_q, by_v, M = inverse_dynamics_derivatives(model, y.q, y.v, a)
        F, Z = _beside(field, t, y, (tau_t, tau_q, tau_v))
        chart = None if model.flat else _chart(model, y.q, u.q, y.v)
        return cls(terms.contr(t0, t1), chart, M, by_q - tau_q, by_v - tau_v, tau_t, F, Z)

    @precise
    def eliminated(self, share: Scalar | float) -> "Eliminated":
        """The system for c, a share of the step, solved for any right-hand side."""
        h, chart, M, K, D, tau_t, F, (Z_e, Z_v, Z_z, Z_t) = self
        c, one, to_tangent, from_tangent = share * h, jnp.eye(len(Z_t), dtype=h.dtype), None, None
        if chart is not None:
            P, Q = chart
            unit = jnp.eye(len(P), dtype=h.dtype)
            E = solution(unit - c * P, unit)
            K, Z_e, to_tangent, from_tangent = K @ E, Z_e @ E, Q.T, Q @ E
        left = [[M + c * (D + c * K), -c * F], [-c * (Z_v + c * Z_e), one - c * Z_z]]
        by_time = (c * h * tau_t)[:, None], (c * h * Z_t)[:, None]
        right = [[-c * K, M, jnp.zeros_like(F), by_time[0]], [c * Z_e, jnp.zeros_like(Z_v), one, by_time[1]]]
        return Eliminated(c, solution(jnp.block(left), jnp.block(right)), to_tangent, from_tangent)


class Eliminated(NamedTuple):
    """Solutions of such systems for one c.

    Attributes:
        c: As there [s].
        rows: From s_e, s_v, s_z and dt / h to v and z.
        to_tangent, from_tangent: Qᵀ, and Q E; None where coordinates are flat.
    """

    c: Scalar
    rows: Matrix
    to_tangent: Matrix | None
    from_tangent: Matrix | None

    @classmethod
    def blank(cls, model: Model, x: Vector) -> "Eliminated":
        """Zeros in place of such a system for a state x."""
        chart = None if model.flat else jnp.zeros((model.nv, model.nv), x.dtype)
        rows = jnp.zeros((len(x) - model.nv, len(x) + 1), x.dtype)
        return cls(jnp.zeros((), x.dtype), rows, chart, chart)

    @precise
    def solution(self, after: Scalar, s: Vector) -> Vector:
        """k, for s = (s_u, s_v, s_z) and dt a share of the step."""
        nv = self.rows.shape[1] - 1 - self.rows.shape[0]
        s_e = s[:nv] if self.to_tangent is None else self.to_tangent @ s[:nv]
        rest = self.rows @ jnp.concatenate([s_e, s[nv:], after[None]])
        e = s_e + self.c * rest[:nv]
        return jnp.concatenate([e if self.from_tangent is None else self.from_tangent @ e, rest])


def _chart(model: Model, centre: Vector, u: Vector, v: Vector) -> tuple[Matrix, Matrix]:
    """P and Q; Q is orthogonal."""

    def rate(u, v):
        return model.chart_rate(model.from_chart(centre, u), u, v)

    by_u, Q = jax.jacfwd(rate, (0, 1))(u, v)
    return Q.T @ by_u @ Q, Q


def _beside(
    field: VectorField, t: Scalar, y: State, tau_by: tuple[Vector, Matrix, Matrix]
) -> tuple[Matrix, tuple[Matrix, Matrix, Matrix, Vector]]:
    """F and Z."""
    z, unravel = ravel_pytree(y.parts)
    still = jnp.zeros_like(y.v)
    if not z.size:
        none = jnp.zeros((0, len(still)), still.dtype)
        return none.T, (none, none, none[:, :0], none[:, 0])

    def force(z):
        return field.force(t, State(y.q, y.v, unravel(z)))

    def rate(t, e, v, z, tau):
        rates = field.part_rates(t, State(field.model.integrate(y.q, e), v, unravel(z)), tau)
        return ravel_pytree(rates.parts)[0]

    F = jax.jacfwd(force)(z)
    Z_t, Z_e, Z_v, Z_z, by_tau = jax.jacfwd(rate, (0, 1, 2, 3, 4))(t, still, y.v, z, force(z))
    tau_t, tau_q, tau_v = tau_by
    return F, (Z_e + by_tau @ tau_q, Z_v + by_tau @ tau_v, Z_z + by_tau @ F, Z_t + by_tau @ tau_t)
