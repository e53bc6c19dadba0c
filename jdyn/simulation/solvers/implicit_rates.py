"""Rates of stages that are implicit in the stiff terms of the equations of motion: in the forces of joints alone, or
also in forces that couple joints, of contact and force elements."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import LU, SMALL, is_single, solution
from jdyn.contact import PointForces
from jdyn.dynamics.mass_matrix import reduced
from jdyn.dynamics.methods.method import on_leaders
from jdyn.dynamics.passive import passive_slopes
from jdyn.execution.compiled import precise
from jdyn.model import Model
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.state import Clock, State, clock_of
from jdyn.simulation.vector_field import VectorField


class JointImplicit(NamedTuple):
    """Rates k = f(y) + W(y) (s + c k), where W ≈ ∂f/∂y has the forces in the joints alone, and each by the joint's own
    coordinate:

        W(y) = [[0, 1], [−M(q)⁻¹ K, −M(q)⁻¹ D]],   K and D diagonal, and the same throughout a step.

    With r the rate of the configuration in f, k = (r + s_v + c a, a), and the accelerations a solve

        (M + c D + c² K) a = τ − bias − D s_v − K (s_q + c (r + s_v)),

    which is forward dynamics with larger rotors, in O(n). Constraints hold for a as they do without W.

    Attributes:
        field: The equations of motion.
        clock: Converts the time of solvers to time.
        K, D: Slopes by which the forces of all joints fall with their coordinates and velocities [N m/rad or N/m,
            N m s/rad or N s/m].
    """

    field: VectorField
    clock: Clock
    K: Float[Array, " nv_full"]
    D: Float[Array, " nv_full"]

    @classmethod
    def of(cls, terms: Any, t: Any, y: State, c: Scalar) -> "JointImplicit":
        """Linearize the forces of joints at `t` in `y`, on the configuration manifold, for a step with the coefficient
        `c`. Slopes are computed unless `c` is zero for all lanes of a batch."""
        field, clock = equations_of_motion(terms), clock_of(terms)
        model = field.model
        none = jnp.zeros(model.armature.shape, y.v.dtype)
        K, D = jax.lax.cond(unvmap_any(c != 0), lambda: joint_slopes(field, clock(t), y), lambda: (none, none))
        # Backwards in time dampers push. Terms that W leaves out cost stability, and no order.
        return cls(field, clock, jnp.where(c != 0, K, 0), jnp.where(c > 0, D, 0))

    def with_added_inertia(self, c: Scalar) -> Model:
        """The model with c D + c² K beside the inertia of its rotors."""
        model = self.field.model
        return eqx.tree_at(lambda model: model.armature, model, model.armature + self.added_inertia(c))

    def added_inertia(self, c: Scalar) -> Float[Array, " nv_full"]:
        """c D + c² K."""
        return c * (self.D + c * self.K)

    def rate(self, t: Scalar, y: State, x: Float[Array, " nv"], s: Float[Array, " nv"], c: Scalar) -> State:
        """Stage rate k without r, in a state `y` on the manifold, by x = s_q + c r and s = s_v; f if x, s and `c` [s]
        are zero."""
        field, tau = self.field, self.force(t, y)
        t = self.clock(t)
        a, reaction = field.accelerations(self.with_added_inertia(c), t, y, tau - self.linear_force(x + c * s, s))
        k = field.part_rates(t, y, tau if reaction is None else tau + reaction)
        return eqx.tree_at(lambda k: (k.q, k.v), k, (s + c * a, a))

    def force(self, t: Scalar, y: State) -> Float[Array, " nv"]:
        """τ."""
        return self.field.at_time(t).force(self.clock(t), y)

    def linear_force(self, x: Float[Array, " nv"], s: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """K x + D s."""
        model = self.field.model
        return model.reduce_force(self.K * model.expand_velocity(x) + self.D * model.expand_velocity(s))

    @property
    def slopes(self) -> tuple[Float[Array, " nv_full"], Float[Array, " nv_full"]]:
        """K and D."""
        return self.K, self.D


def joint_slopes(field: VectorField, t: Scalar, y: State) -> tuple[Float[Array, " nv_full"], Float[Array, " nv_full"]]:
    """Slopes by which the forces of all joints fall with their coordinates and velocities."""
    by_control = (on_leaders(field.model, slope) for slope in field.force_slopes(t, y))
    passive = passive_slopes(field.model, field.model.expand_velocity(y.v))
    K, D = (control + passive for control, passive in zip(by_control, passive, strict=True))
    return K, D


def equations_of_motion(terms: Any) -> VectorField:
    """Equations of motion behind a term."""
    field = getattr(terms, "field", getattr(terms, "vector_field", None))
    if not isinstance(field, VectorField):
        raise ValueError(
            "a method that is implicit in joint forces must know them: use it in jdyn.simulate, or with "
            f"diffrax.ODETerm of a VectorField, not of a {type(field).__name__}"
        )
    return field


class Coupling(NamedTuple):
    """Slopes by which forces that couple joints fall with configuration and velocity, in one state. They have no
    derivatives: neither the order nor the limit of a method depends on them.

    Attributes:
        K, D: The slopes, with those of the forces in joints [N m/rad, ...].
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

    def step_times_rate(self, h: Scalar) -> Scalar:
        """h times the largest rate of single coordinates while all others stand still: at most that of the motion."""
        return jnp.max(h * (jnp.diag(self.D) + h * jnp.diag(self.K)) / jnp.diag(self.M), initial=0)


class CoupledImplicit(NamedTuple):
    """Rates like those of `JointImplicit`, where W also has contact and force elements: K and D are matrices, and W is
    that at the start of the step. With f_v the accelerations in f,

        a = f_v − (M + c D + c² K)⁻¹ ((c D + c² K) f_v + D s_v + K (s_q + c (r + s_v))),

    so that one matrix serves all stages, which are forward dynamics as it is.

    Attributes:
        field: The equations of motion.
        clock: Converts the time of solvers to time.
        K, D: Slopes by which forces fall with configuration and velocity [N m/rad, ...].
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
        """Rates for a step with the coefficient `c` from the state of the coupling. The inverse is computed unless `c`
        is zero for all lanes of a batch."""
        field, clock, c = equations_of_motion(terms), clock_of(terms), jax.lax.stop_gradient(c)
        # Backwards in time dampers push. Terms that W leaves out cost stability, and no order.
        K, D, M = jnp.where(c != 0, coupling.K, 0), jnp.where(c > 0, coupling.D, 0), coupling.M
        inverse = jax.lax.cond(unvmap_any(c != 0), lambda: _inverse(M + c * (D + c * K)), lambda: jnp.zeros_like(M))
        return cls(field, clock, K, D, inverse, M)

    def rate(self, t: Scalar, y: State, x: Float[Array, " nv"], s: Float[Array, " nv"], c: Scalar) -> State:
        """Stage rate k with coupled stiffness and damping, see `JointImplicit.rate`."""
        rate = self.field.at_time(t)(self.clock(t), y)
        linear_force = self.D @ s + self.K @ (x + c * s)
        B, f = c * (self.D + c * self.K), rate.v
        a = f - self.inverse @ (B @ f + linear_force)
        if is_single(a.dtype):
            # The same, where less is lost to rounding: f is large and a small where something stiff rests.
            other = self.inverse @ (self.M @ f - linear_force)
            lost = jnp.abs(self.inverse) @ (jnp.abs(self.M) @ jnp.abs(f) + jnp.abs(linear_force))
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
    return K, D, field.mass_matrix(y)


@precise
def _inverse(A: Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    identity = jnp.eye(len(A), dtype=A.dtype)
    return solution(A, identity) if len(A) <= SMALL else LU.solve(LU.factor(A), identity)


ImplicitRates = JointImplicit | CoupledImplicit


def coupling(terms: Any, t: Any, y: State) -> Coupling | None:
    """Coupling of joints at `t` in `y`, on the configuration manifold, by contact and force elements that have slopes;
    None where forces are those of each joint alone."""
    field = equations_of_motion(terms)
    return Coupling.at(terms, t, y) if field.couples_joints or field.contact is not None else None


def implicit_rates(terms: Any, t: Any, y: State, coupled: Coupling | None, c: Scalar) -> ImplicitRates:
    """Linearize forces at `t` in `y`, on the configuration manifold, for an implicit step with the coefficient `c`, by
    the `coupling` there."""
    return JointImplicit.of(terms, t, y, c) if coupled is None else CoupledImplicit.of(terms, coupled, c)


def stage_forces_like(terms: Any, y: State) -> PointForces | None:
    """Shapes of the forces of `stage_forces`; None without contact."""
    field = equations_of_motion(terms)
    contact = field.contact
    return None if contact is None else jax.eval_shape(contact.of_stage, field.model, y.q, y.v, y.v, y.v)


def stage_forces(terms: LocalTerm, y0: State, change: State, implicit: Bool[Array, ""]) -> PointForces | None:
    """Contact forces of an implicit stage of a step from `y0`, which moves by this `change` in its chart; NaN unless
    the step is `implicit`. They are computed if it is so for any lane of a batch."""
    like, field = stage_forces_like(terms.term, y0), equations_of_motion(terms.term)
    if like is None:
        return None

    def found():
        contact: Any
        contact, model, y, moved = jax.lax.stop_gradient((field.contact, field.model, y0, change))
        return contact.of_stage(model, y.q, y.v, model.body_axes(y.q, moved.q), moved.v)

    nothing = jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan, x.dtype), like)
    forces = jax.lax.cond(unvmap_any(implicit), found, lambda: nothing)
    return jax.tree.map(lambda x, nothing: jnp.where(implicit, x, nothing), forces, nothing)
