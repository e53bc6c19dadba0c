"""Rates of change that are implicit in forces that couple joints."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, Scalar

from jdyn.array import LU, SMALL, is_single, solution
from jdyn.dynamics import mass_matrix
from jdyn.dynamics.mass_matrix import reduced
from jdyn.execution.compiled import precise
from jdyn.simulation.clock import Clock, clock_of
from jdyn.simulation.solvers.joint_implicit import equations_of_motion, joint_slopes
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField


class Coupling(NamedTuple):
    """Slopes by which forces that couple joints fall with configuration and velocity, in one state, without
    derivatives: neither the order nor the limit of a method depends on them.

    Attributes:
        K, D: The slopes, with those of the forces of joints [N m/rad, ...].
        M: The mass matrix.
    """

    K: Float[Array, "nv nv"]
    D: Float[Array, "nv nv"]
    M: Float[Array, "nv nv"]

    @classmethod
    def at(cls, terms: Any, t: Any, y: State) -> "Coupling | None":
        """Coupling of the equations of motion behind `terms`; None if neither contact nor force elements say slopes."""
        given = equations_of_motion(terms), clock_of(terms)(t), y
        found = _matrices(*jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, given))
        return None if found is None else cls(*found)

    def reach(self, h: Scalar) -> Scalar:
        """h times the largest rate of the motion, or less: that of single coordinates while all others stand still."""
        return jnp.max(h * (jnp.diag(self.D) + h * jnp.diag(self.K)) / jnp.diag(self.M), initial=0)


class CoupledImplicit(NamedTuple):
    """Rates as those of `JointImplicit`, where W also knows contact and force elements: K and D are matrices, all of
    W that at the start of the step. With f_v the accelerations in f,

        a = f_v − (M + c D + c² K)⁻¹ ((c D + c² K) f_v + D s_v + K (s_q + c (r + s_v))),

    so that one matrix serves all stages, which are forward dynamics as it is.

    Attributes:
        field: The equations of motion.
        clock: Knows the time by that of solvers.
        K, D: How forces fall with configuration and velocity [N m/rad, ...].
        inverse: (M + c D + c² K)⁻¹.
        M: The mass matrix.
    """

    field: VectorField
    clock: Clock
    K: Float[Array, "nv nv"]
    D: Float[Array, "nv nv"]
    inverse: Float[Array, "nv nv"]
    M: Float[Array, "nv nv"]

    @classmethod
    def of(cls, terms: Any, coupling: Coupling, c: Scalar) -> "CoupledImplicit":
        """Rates of a step that begins in the state of the coupling, with `c`; the inverse is found if this is not zero
        for all lanes of a batch."""
        field, clock, c = equations_of_motion(terms), clock_of(terms), jax.lax.stop_gradient(c)
        # Backwards in time dampers push. What W leaves out costs stability, and no order.
        K, D, M = jnp.where(c != 0, coupling.K, 0), jnp.where(c > 0, coupling.D, 0), coupling.M
        inverse = jax.lax.cond(unvmap_any(c != 0), lambda: _inverse(M + c * (D + c * K)), lambda: jnp.zeros_like(M))
        return cls(field, clock, K, D, inverse, M)

    def rate(self, t: Scalar, y: State, x: Float[Array, " nv"], s: Float[Array, " nv"], c: Scalar) -> State:
        """Rate k, see `JointImplicit.rate`."""
        rate = self.field.at_time(t)(self.clock(t), y)
        pull = self.D @ s + self.K @ (x + c * s)
        B, f = c * (self.D + c * self.K), rate.v
        a = f - self.inverse @ (B @ f + pull)
        if is_single(a.dtype):
            # The same, where less is lost to rounding: f is large and a small where something stiff rests.
            other = self.inverse @ (self.M @ f - pull)
            lost = jnp.abs(self.inverse) @ (jnp.abs(self.M) @ jnp.abs(f) + jnp.abs(pull))
            a = jnp.where((c != 0) & (lost < jnp.abs(f)), other, a)
        return State(s + c * a, a, rate.parts)

    @property
    def slopes(self) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Slopes of each coordinate, over its inertia [1/s², 1/s]."""
        inertia = jnp.diag(self.M)
        return jnp.diag(self.K) / inertia, jnp.diag(self.D) / inertia


@precise
def _matrices(field: VectorField, t: Scalar, y: State) -> tuple[Array, Array, Array] | None:
    model = field.model
    by_contact = None if field.contact is None else field.contact.slopes(model, y.q, y.v)
    parts = [slopes for slopes in (by_contact, field.coupled_slopes(t, y)) if slopes is not None]
    if not parts:
        return None
    in_joints = (reduced(model, jnp.diag(slope)) for slope in joint_slopes(field, t, y))
    K, D = (functools.reduce(jnp.add, slopes) for slopes in zip(*parts, in_joints, strict=True))
    return K, D, mass_matrix(model, y.q)


@precise
def _inverse(A: Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    identity = jnp.eye(len(A), dtype=A.dtype)
    return solution(A, identity) if len(A) <= SMALL else LU.solve(LU.factor(A), identity)
