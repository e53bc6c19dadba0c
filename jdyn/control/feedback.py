"""Controllers that drive a mechanism to a target."""

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from jdyn.control.arguments import configuration, scalar_or
from jdyn.control.controller import Controller, DynamicController, ModelBased
from jdyn.dynamics import inverse_dynamics, inverse_dynamics_derivatives
from jdyn.model import Model, checked, dynamics_only


class PD(Controller):
    """τ = kp e + kd (v* − v), where the tangent vector e leads from q to the target.

    ```
    controller = jdyn.PD(model, target, kp=100.0, kd=20.0) + jdyn.GravityCompensation(model)
    ```

    On joints with quaternions the error turns the short way round.

    >>> model = jdyn.load("double_pendulum")
    >>> controller = jdyn.PD(model, jnp.array([1.0, 0.0]), kp=100.0, kd=20.0)
    >>> print(controller(0.0, jnp.array([0.5, 0.0]), jnp.array([0.0, 0.1])))
    [50. -2.]

    Args:
        model: The mechanism as the controller knows it.
        target: Configuration to reach [rad or m], shape (nq,).
        kp: Stiffness [N m/rad or N/m], a scalar or shape (nv,).
        kd: Damping [N m s/rad or N s/m], a scalar or shape (nv,).
        target_velocity: v* [rad/s or m/s], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.
    """

    model: Model = eqx.field(converter=dynamics_only)
    target: Float[Array, " nq"]
    kp: Float[Array, "*nv"]
    kd: Float[Array, "*nv"]
    target_velocity: Float[Array, "*nv"]

    def __init__(
        self, model: Model, target: ArrayLike, *, kp: ArrayLike, kd: ArrayLike, target_velocity: ArrayLike = 0.0
    ):
        checked(model)
        self.model = model
        self.target = configuration(model, "target", target)
        self.kp, self.kd = scalar_or(model, model.nv, "kp", kp), scalar_or(model, model.nv, "kd", kd)
        self.target_velocity = scalar_or(model, model.nv, "target_velocity", target_velocity)

    def __call__(self, t, q, v):
        return self.kp * self.model.difference(q, self.target) + self.kd * (self.target_velocity - v)

    def slopes(self, model, t, q, v):
        return jnp.broadcast_to(self.kp, v.shape), jnp.broadcast_to(self.kd, v.shape)

    def jacobians(self, model, t, q, v):
        if not model.flat:
            return super().jacobians(model, t, q, v)
        kp, kd = self.slopes(model, t, q, v)
        return jnp.zeros_like(v), -jnp.diag(kp), -jnp.diag(kd)


class PID(DynamicController):
    """τ = kp e + ki ∫ e dt + kd (v* − v), where the tangent vector e leads from q to the target.

    The integral's own torque never grows beyond a limit, so that a saturated motor does not wind it up. On ball and
    free joints the integral adds up tangent vectors of different configurations, as is usual; near the target these
    are the same.

    >>> model = jdyn.load("pendulum")
    >>> controller = jdyn.PID(model, jnp.array([0.5]), kp=20.0, ki=20.0, kd=5.0, limit=10.0)
    >>> motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 10.0, controller=controller)
    >>> print(motion.q[-1].round(2))
    [0.5]

    Args:
        model: The mechanism as the controller knows it.
        target: Configuration to reach [rad or m], shape (nq,).
        kp: Stiffness [N m/rad or N/m], a scalar or shape (nv,).
        ki: Integral gain [N m/(rad s) or N/(m s)], a scalar or shape (nv,).
        kd: Damping [N m s/rad or N s/m], a scalar or shape (nv,).
        target_velocity: v* [rad/s or m/s], a scalar or shape (nv,).
        limit: Largest size of ki ∫ e dt [N m or N], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong, or a limit is negative.

    Source: Åström, Hägglund, Advanced PID Control (2006), section 3.5, conditional integration.
    """

    pd: PD
    ki: Float[Array, "*nv"]
    limit: Float[Array, "*nv"]

    def __init__(
        self,
        model: Model,
        target: ArrayLike,
        *,
        kp: ArrayLike,
        ki: ArrayLike,
        kd: ArrayLike,
        target_velocity: ArrayLike = 0.0,
        limit: ArrayLike = jnp.inf,
    ):
        self.pd = PD(model, target, kp=kp, kd=kd, target_velocity=target_velocity)
        self.ki, self.limit = scalar_or(model, model.nv, "ki", ki), scalar_or(model, model.nv, "limit", limit)
        if not isinstance(self.limit, Tracer) and jnp.any(self.limit < 0):
            raise ValueError(f"limit: expected sizes, none of them negative, got {limit}")

    def start(self, t, q, v):
        return jnp.zeros_like(v)

    def force(self, t, q, v, memory):
        return self.pd(t, q, v) + jnp.clip(memory, -self.limit, self.limit)

    def force_slopes(self, model, t, q, v, memory):
        return self.pd.slopes(model, t, q, v)

    def force_jacobians(self, model, t, q, v, memory):
        return self.pd.jacobians(model, t, q, v)

    def rate(self, t, q, v, memory):
        growth = self.ki * self.pd.model.difference(q, self.pd.target)
        return jnp.where((jnp.abs(memory) >= self.limit) & (memory * growth > 0), 0, growth)


class ComputedTorque(ModelBased):
    """Inverse dynamics of a* + kp e + kd (v* − v), where the tangent vector e leads from q to the target.

    With an exact model every velocity coordinate moves like an oscillator of natural frequency √kp and damping
    ratio kd / (2 √kp), independently of the others; ball and free joints at least while they turn about one axis.
    `Tracking` does so from any error, along a reference.

    >>> model = jdyn.load("double_pendulum")
    >>> controller = jdyn.ComputedTorque(model, jnp.ones(2), kp=100.0, kd=20.0)
    >>> q, v = jnp.zeros(2), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, v, controller(0.0, q, v)).round(3))
    [100. 100.]

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

    model: Model = eqx.field(converter=dynamics_only)
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
        checked(model)
        self.model = model
        self.target = configuration(model, "target", target)
        self.kp, self.kd = scalar_or(model, model.nv, "kp", kp), scalar_or(model, model.nv, "kd", kd)
        self.target_velocity = scalar_or(model, model.nv, "target_velocity", target_velocity)
        self.target_acceleration = scalar_or(model, model.nv, "target_acceleration", target_acceleration)

    def __call__(self, t, q, v):
        return inverse_dynamics(self.model, q, v, self._acceleration(q, v))

    def jacobians(self, model, t, q, v):
        if not model.flat:
            return super().jacobians(model, t, q, v)
        by_q, by_v, M = inverse_dynamics_derivatives(self.model, q, v, self._acceleration(q, v))
        kp, kd = (jnp.broadcast_to(gain, M.shape) for gain in (self.kp, self.kd))
        return jnp.zeros_like(v), by_q - M * kp, by_v - M * kd

    def _acceleration(self, q, v):
        error = self.model.difference(q, self.target)
        return self.target_acceleration + self.kp * error + self.kd * (self.target_velocity - v)
