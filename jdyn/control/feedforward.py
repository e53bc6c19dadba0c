"""Controllers without feedback of an error."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.control.controller import Controller, ModelBased
from jdyn.dynamics import gravity_forces, inverse_dynamics_derivatives
from jdyn.model import Model, checked, dynamics_only


class Constant(Controller):
    """The same generalized forces, or commands of actuators, at all times.

    >>> print(jdyn.control.Constant(jnp.array([0.0, 2.5]))(0.0, jnp.zeros(2), jnp.zeros(2)))
    [0.  2.5]

    Args:
        tau: Generalized forces [N m or N], or commands of actuators.
    """

    tau: Float[Array, " nv"]

    def __init__(self, tau: ArrayLike):
        self.tau = jnp.asarray(tau)

    def __call__(self, t, q, v):
        return self.tau.astype(v.dtype)

    def slopes(self, model, t, q, v):
        return jnp.zeros_like(v), jnp.zeros_like(v)

    def jacobians(self, model, t, q, v):
        none = jnp.zeros((len(v), len(v)), v.dtype)
        return jnp.zeros_like(v), none, none


class GravityCompensation(ModelBased):
    """The forces that hold the mechanism against gravity; added to a `PD` they remove its static error.

    >>> model = jdyn.load("pendulum")
    >>> print(jdyn.GravityCompensation(model)(0.0, jnp.array([jnp.pi / 2]), jnp.zeros(1)).round(3))
    [4.905]

    Args:
        model: The mechanism as the controller knows it.
    """

    model: Model = eqx.field(converter=dynamics_only)

    def __check_init__(self):
        checked(self.model)

    def __call__(self, t, q, v):
        return gravity_forces(self.model, q)

    def slopes(self, model, t, q, v):
        # Gravity does not stiffen a mechanism.
        return jnp.zeros_like(v), jnp.zeros_like(v)

    def jacobians(self, model, t, q, v):
        if not self.model.topology.single_dof_joints:
            return super().jacobians(model, t, q, v)
        still = jnp.zeros_like(v)
        springless = eqx.tree_at(lambda model: model.stiffness, self.model, jnp.zeros_like(self.model.stiffness))
        by_q, _, _ = inverse_dynamics_derivatives(springless, q, still, still)
        return still, by_q, jnp.zeros_like(by_q)
