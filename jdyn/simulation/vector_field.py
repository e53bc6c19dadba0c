"""The equations of motion as a first-order system."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Method, forward_dynamics
from jdyn.model import Model

Control = Callable[[Scalar, Float[Array, " nq"], Float[Array, " nv"]], Float[Array, " nv"]]


class State(eqx.Module):
    """What is integrated.

    Attributes:
        q: Configuration.
        v: Velocity.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]


class VectorField(eqx.Module):
    """(q, v) ↦ (dq/dt, dv/dt).

    Attributes:
        model: The mechanism.
        controller: `controller(t, q, v) -> tau`; no torque if None.
        method: Forward-dynamics method; `jdyn.ABA()` if None.
    """

    model: Model
    controller: Control | None
    method: Method | None

    def __call__(self, t: Scalar, y: State, args: Any = None) -> State:
        q, v = y.q, y.v
        tau = jnp.zeros_like(v) if self.controller is None else jnp.asarray(self.controller(t, q, v)).astype(v.dtype)
        return State(self.model.rate(q, v), forward_dynamics(self.model, q, v, tau, method=self.method))
