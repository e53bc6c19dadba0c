"""The equations of motion as a first-order system."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Method, forward_dynamics
from jdyn.model import Model

Control = Callable[[Scalar, Float[Array, " nq"], Float[Array, " nv"]], Float[Array, " nv"]]
State = tuple[Float[Array, " nq"], Float[Array, " nv"]]


def has_quaternions(model: Model) -> bool:
    """Whether some coordinates of the model are constrained to unit length."""
    return any(kind.nq != kind.nv for kind in model.topology.kinds)


class VectorField(eqx.Module):
    """(q, v) ↦ (dq/dt, dv/dt).

    It reads only the direction of a quaternion, so that it is defined at the stages of a Runge-Kutta step, which
    leave the unit sphere, and so that scaling a quaternion after a step does not change it.

    Attributes:
        model: The mechanism.
        controller: `controller(t, q, v) -> tau`; no torque if None.
        method: Forward-dynamics method; `jdyn.ABA()` if None.
    """

    model: Model
    controller: Control | None
    method: Method | None

    def __call__(self, t: Scalar, state: State, args: None) -> State:
        q, v = state
        if has_quaternions(self.model):
            q = self.model.normalize(q)
        tau = jnp.zeros_like(v) if self.controller is None else jnp.asarray(self.controller(t, q, v)).astype(v.dtype)
        return self.model.rate(q, v), forward_dynamics(self.model, q, v, tau, method=self.method)
