"""Rates of change that are implicit in the forces of joints alone."""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics.methods.method import on_leaders
from jdyn.dynamics.passive import passive_slopes
from jdyn.model import Model
from jdyn.simulation.clock import Clock, clock_of
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField


class JointImplicit(NamedTuple):
    """Rates k = f(y) + W(y) (s + c k), where W ≈ ∂f/∂y knows the forces in the joints alone, and of each how it depends
    on the joint's own coordinate:

        W(y) = [[0, 1], [−M(q)⁻¹ K, −M(q)⁻¹ D]],   K and D diagonal, and the same throughout a step.

    With r the rate of the configuration in f, k = (r + s_v + c a, a), and the accelerations a solve

        (M + c D + c² K) a = τ − bias − D s_v − K (s_q + c (r + s_v)),

    which is forward dynamics with larger rotors, in O(n). Constraints hold for a as they do without W.

    Attributes:
        field: The equations of motion.
        clock: Knows the time by that of solvers.
        K, D: How the forces of all joints fall with their coordinates and velocities [N m/rad or N/m, N m s/rad or
            N s/m].
    """

    field: VectorField
    clock: Clock
    K: Float[Array, " nv_full"]
    D: Float[Array, " nv_full"]

    @classmethod
    def of(cls, terms: Any, t: Any, y: State, c: Scalar) -> "JointImplicit":
        """Rates of a step that begins at `t` in `y`, on the configuration manifold, with `c`; slopes are found if this
        is not zero for all lanes of a batch."""
        field, clock = equations_of_motion(terms), clock_of(terms)
        model = field.model
        none = jnp.zeros(model.armature.shape, y.v.dtype)
        K, D = jax.lax.cond(unvmap_any(c != 0), lambda: joint_slopes(field, clock(t), y), lambda: (none, none))
        # Backwards in time dampers push. What W leaves out costs stability, and no order.
        return cls(field, clock, jnp.where(c != 0, K, 0), jnp.where(c > 0, D, 0))

    def stiffened(self, c: Scalar) -> Model:
        """The model with W's rotors beside its own."""
        model = self.field.model
        return eqx.tree_at(lambda model: model.armature, model, model.armature + self.rotors(c))

    def rotors(self, c: Scalar) -> Float[Array, " nv_full"]:
        """c D + c² K."""
        return c * (self.D + c * self.K)

    def rate(self, t: Scalar, y: State, x: Float[Array, " nv"], s: Float[Array, " nv"], c: Scalar) -> State:
        """Rate k without r in a state `y` on the manifold, by x = s_q + c r and s_v; that is f where these and `c` [s]
        are zero."""
        field, tau = self.field, self.force(t, y)
        t = self.clock(t)
        a, held = field.accelerations(self.stiffened(c), t, y, tau - self.pull(x + c * s, s))
        beside = field.rates_beside(t, y, tau if held is None else tau + held)
        return eqx.tree_at(lambda k: (k.q, k.v), beside, (s + c * a, a))

    def force(self, t: Scalar, y: State) -> Float[Array, " nv"]:
        """τ."""
        return self.field.at_time(t).force(self.clock(t), y)

    def pull(self, x: Float[Array, " nv"], s: Float[Array, " nv"]) -> Float[Array, " nv"]:
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


def local_term(solver: diffrax.AbstractSolver, terms: diffrax.AbstractTerm) -> LocalTerm:
    """The terms, if they are in local coordinates."""
    if not isinstance(terms, LocalTerm):
        name = type(solver).__name__
        raise ValueError(f"{name}: it works in local coordinates; use jdyn.simulate, or jdyn.solvers.OnManifold")
    return terms


def equations_of_motion(terms: Any) -> VectorField:
    """Equations of motion behind a term."""
    field = getattr(terms, "field", getattr(terms, "vector_field", None))
    if not isinstance(field, VectorField):
        raise ValueError(
            "a method that is implicit in joint forces must know them: use it in jdyn.simulate, or with "
            f"diffrax.ODETerm of a VectorField, not of a {type(field).__name__}"
        )
    return field
