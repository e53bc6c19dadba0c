"""Steps of a motion, and how deviations go through them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import forward_dynamics, forward_dynamics_derivatives
from jdyn.model import Model, dynamics_only


class TimeStep(eqx.Module):
    """A step of `jdyn.SemiImplicitEuler` under constant forces of the actuators: v₁ = v + h a(q, v, B u), then
    q₁ = q ⊕ h v₁.

    Attributes:
        model: The mechanism.
        inputs: B.
        h: Its length [s].
    """

    model: Model = eqx.field(converter=dynamics_only)
    inputs: Float[Array, "nv nu"]
    h: Scalar

    def __call__(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], u: Float[Array, " nu"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        v = v + self.h * forward_dynamics(self.model, q, v, self.inputs @ u)
        return self.model.integrate(q, self.h * v), v

    def linearized(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"],
        q1: Float[Array, " nq"],
        v1: Float[Array, " nv"],
    ) -> tuple[Float[Array, "2*nv 2*nv"], Float[Array, "2*nv nu"]]:
        """A and B in x₁ = A x + B u for small deviations from a step to (q₁, v₁); x stacks the tangent vector that
        leads to the deviating configuration, and the deviation of the velocity."""
        model, h = self.model, self.h
        by_q, by_v, by_tau = forward_dynamics_derivatives(model, q, v, self.inputs @ u)
        still = jnp.zeros_like(v)
        # Of the velocity first, which then moves the configuration.
        A = h * jnp.concatenate([by_q, by_v], axis=1) + jnp.eye(model.nv, 2 * model.nv, model.nv, dtype=v.dtype)
        B = h * by_tau @ self.inputs

        def moved(e, w):
            return model.difference(q1, model.integrate(model.integrate(q, e), h * (v1 + w)))

        by_e, by_w = jax.jacfwd(moved, (0, 1))(still, still)
        moved_A = by_w @ A + jnp.concatenate([by_e, jnp.zeros_like(by_e)], axis=1)
        return jnp.concatenate([moved_A, A]), jnp.concatenate([by_w @ B, B])
