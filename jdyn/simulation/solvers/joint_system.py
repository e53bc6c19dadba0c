"""Linear systems of methods that are implicit in the forces of joints alone."""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import ABA, Method, mass_product
from jdyn.dynamics.methods.method import on_leaders
from jdyn.dynamics.passive import passive_slopes
from jdyn.model import Model
from jdyn.simulation.vector_field import State, VectorField


class JointSystem(NamedTuple):
    """1/γ − h W, where W ≈ ∂f/∂x knows the forces in the joints alone, and how each depends on its own coordinate:

        W = [[0, 1], [−M⁻¹ K, −M⁻¹ D]],   K and D diagonal.

    Velocities then solve (M + Λ) x = b, Λ = γ h D + γ² h² K: forward dynamics with larger rotors, in O(n).

    Attributes:
        model: The mechanism, of mass matrix M.
        stiffened: The mechanism with rotors larger by Λ.
        q: Configuration.
        method: Of forward dynamics.
        factors: The method's factors of M + Λ.
        springs: γ h K, of all joints.
        gamma: γ.
        h: Length of the step [s].
    """

    model: Model
    stiffened: Model
    q: Float[Array, " nq"]
    method: Method
    factors: Any
    springs: Float[Array, " nv_full"]
    gamma: float
    h: Scalar

    @classmethod
    def of(cls, terms: diffrax.AbstractTerm, t: Any, y: State, h: Scalar, gamma: float) -> "JointSystem":
        """That of a step from `y`, on the configuration manifold."""
        field, t = _equations_of_motion(terms), t * getattr(terms, "direction", 1)
        model, method = field.model, ABA() if field.method is None else field.method
        K, D = (on_leaders(model, slope) for slope in field.force_slopes(t, y))
        passive_K, passive_D = passive_slopes(model, model.expand_velocity(y.v))
        # Backwards in time dampers push. What W leaves out costs stability, and no order.
        D = jnp.where(h > 0, D + passive_D, 0)
        springs = gamma * h * (K + passive_K)
        stiffened = eqx.tree_at(lambda model: model.armature, model, model.armature + gamma * h * (D + springs))
        factors = method.factor(*jax.lax.stop_gradient((stiffened, y.q)))
        return cls(model, stiffened, y.q, method, factors, springs, gamma, h)

    def solve(self, b: State) -> State:
        """x with (1/γ − h W) x = b; configurations are tangent vectors."""
        model, x = self.model, jax.tree.map(lambda b: self.gamma * b, b)
        pull = model.reduce_force(self.springs * model.expand_velocity(x.q))
        # b − (M + Λ)⁻¹ Λ b is the same, and loses digits where joints are stiff.
        v = self._velocities(mass_product(model, self.q, x.v) - pull)
        return eqx.tree_at(lambda x: (x.q, x.v), x, (x.q + self.gamma * self.h * v, v))

    def _velocities(self, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """(M + Λ)⁻¹ b."""
        stiffened = jax.lax.stop_gradient(self.stiffened)
        return jax.lax.custom_linear_solve(
            lambda x: mass_product(self.stiffened, self.q, x),
            b,
            lambda _, b: self.method.solve(stiffened, self.factors, b),
            symmetric=True,
        )


def _equations_of_motion(terms: Any) -> VectorField:
    """Those behind a term."""
    field = getattr(terms, "field", getattr(terms, "vector_field", None))
    if not isinstance(field, VectorField):
        raise ValueError(
            "a method that is implicit in joint forces must know them: use it in jdyn.simulate, or with "
            f"diffrax.ODETerm of a VectorField, not of a {type(field).__name__}"
        )
    return field
