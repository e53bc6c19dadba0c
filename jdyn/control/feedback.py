"""Controllers that drive a mechanism to a target."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.control.controller import Controller
from jdyn.dynamics import inverse_dynamics
from jdyn.model import Model


class PD(Controller):
    """τ = kp e + kd (v* − v), where the tangent vector e leads from q to the target.

    ```
    controller = jdyn.PD(model, target, kp=100.0, kd=20.0) + jdyn.GravityCompensation(model)
    ```

    On joints with quaternions the error turns the short way round.

    Args:
        model: The mechanism as the controller knows it.
        target: Configuration to reach [rad or m], shape (nq,).
        kp: Stiffness [N m/rad or N/m], a scalar or shape (nv,).
        kd: Damping [N m s/rad or N s/m], a scalar or shape (nv,).
        target_velocity: v* [rad/s or m/s], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.
    """

    model: Model
    target: Float[Array, " nq"]
    kp: Float[Array, "*nv"]
    kd: Float[Array, "*nv"]
    target_velocity: Float[Array, "*nv"]

    def __init__(
        self, model: Model, target: ArrayLike, *, kp: ArrayLike, kd: ArrayLike, target_velocity: ArrayLike = 0.0
    ):
        self.model = model
        self.target = _configuration(model, target)
        self.kp, self.kd = _per_velocity(model, "kp", kp), _per_velocity(model, "kd", kd)
        self.target_velocity = _per_velocity(model, "target_velocity", target_velocity)

    def __call__(self, t, q, v):
        return self.kp * self.model.difference(q, self.target) + self.kd * (self.target_velocity - v)


class ComputedTorque(Controller):
    """Inverse dynamics of a* + kp e + kd (v* − v), where the tangent vector e leads from q to the target.

    With an exact model every velocity coordinate moves like an oscillator of natural frequency √kp and damping
    ratio kd / (2 √kp), independently of the others.

    Args:
        model: The mechanism as the controller knows it.
        target: Configuration to reach [rad or m], shape (nq,).
        kp: Square of the natural frequency [1/s²], a scalar or shape (nv,).
        kd: Damping [1/s], a scalar or shape (nv,).
        target_velocity: v* [rad/s or m/s], a scalar or shape (nv,).
        target_acceleration: a* [rad/s² or m/s²], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.

    Source: Siciliano, Sciavicco, Villani, Oriolo 2009, section 8.5.2.
    """

    model: Model
    target: Float[Array, " nq"]
    kp: Float[Array, "*nv"]
    kd: Float[Array, "*nv"]
    target_velocity: Float[Array, "*nv"]
    target_acceleration: Float[Array, "*nv"]

    def __init__(
        self,
        model: Model,
        target: ArrayLike,
        *,
        kp: ArrayLike,
        kd: ArrayLike,
        target_velocity: ArrayLike = 0.0,
        target_acceleration: ArrayLike = 0.0,
    ):
        self.model = model
        self.target = _configuration(model, target)
        self.kp, self.kd = _per_velocity(model, "kp", kp), _per_velocity(model, "kd", kd)
        self.target_velocity = _per_velocity(model, "target_velocity", target_velocity)
        self.target_acceleration = _per_velocity(model, "target_acceleration", target_acceleration)

    def __call__(self, t, q, v):
        error = self.model.difference(q, self.target)
        a = self.target_acceleration + self.kp * error + self.kd * (self.target_velocity - v)
        return inverse_dynamics(self.model, q, v, a)


def _configuration(model, target):
    target = jnp.asarray(target, model.dtype)
    if target.shape != (model.nq,):
        raise ValueError(f"target: expected shape {(model.nq,)} for {model.name!r}, got {target.shape}")
    return target


def _per_velocity(model, name, value):
    value = jnp.asarray(value, model.dtype)
    if value.shape not in ((), (model.nv,)):
        raise ValueError(f"{name}: expected a scalar or shape {(model.nv,)} for {model.name!r}, got {value.shape}")
    return value
