"""Controllers that follow a reference."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.control.arguments import scalar_or
from jdyn.control.controller import ModelBased
from jdyn.dynamics import inverse_dynamics
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.model import compiled
from jdyn.model.motion import motion_along

Motion = Callable[[Scalar], tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"]]]


class _Follower(ModelBased):
    """A controller with a reference and two gains."""

    model: Model = eqx.field(converter=dynamics_only)
    reference: Motion
    kp: Float[Array, "*nv"]
    kd: Float[Array, "*nv"]

    def __init__(self, model: Model, reference: Motion, *, kp: ArrayLike, kd: ArrayLike):
        checked(model)
        self.model, self.reference = model, reference
        self.kp, self.kd = scalar_or(model, model.nv, "kp", kp), scalar_or(model, model.nv, "kd", kd)


class Tracking(_Follower):
    """Computed torque along a reference: inverse dynamics of the acceleration that makes the error obey an oscillator.

    With an exact model the tangent vector e that leads from q to the reference obeys ë + kd ė + kp e = 0, a coordinate
    at a time, on ball and free joints too and from any error below half a turn. Where v = dq/dt the acceleration is
    a* + kd (v* − v) + kp e.

    >>> model = jdyn.load("pendulum")
    >>> reference = jdyn.control.Quintic(model, [0.0], [1.0], 0.0, 2.0)
    >>> controller = jdyn.control.Tracking(model, reference, kp=100.0, kd=20.0)
    >>> motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 2.0, controller=controller)
    >>> print(motion.q[-1].round(3))
    [1.]

    Args:
        model: The mechanism as the controller knows it.
        reference: A `Reference`, or any callable `reference(t) -> (q, v, a)`.
        kp: Square of the natural frequency [1/s²], a scalar or shape (nv,).
        kd: Damping [1/s], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.

    Source: Siciliano, Sciavicco, Villani, Oriolo 2009, section 8.5.2, on the tangent space.
    """

    def __call__(self, t, q, v):
        return _computed_torque(self.model, self.kp, self.kd, q, v, *self.reference(t))


class FeedforwardPD(_Follower):
    """Inverse dynamics of the reference itself, plus kp e + kd ė, where e leads from q to the reference.

    The feed-forward does not depend on the state, so that noise and errors of the model enter through the gains alone.

    >>> model = jdyn.load("pendulum")
    >>> reference = jdyn.control.Quintic(model, [0.0], [1.0], 0.0, 2.0)
    >>> controller = jdyn.control.FeedforwardPD(model, reference, kp=50.0, kd=5.0)
    >>> print(controller(1.0, jnp.array([0.5]), jnp.array([0.9375])).round(3))
    [2.352]

    Args:
        model: The mechanism as the controller knows it.
        reference: A `Reference`, or any callable `reference(t) -> (q, v, a)`.
        kp: Stiffness [N m/rad or N/m], a scalar or shape (nv,).
        kd: Damping [N m s/rad or N s/m], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.

    Source: An, Atkeson, Hollerbach, Model-Based Control of a Robot Manipulator (1988), chapter 6.
    """

    def __call__(self, t, q, v):
        return _feedforward(self.model, self.kp, self.kd, q, v, *self.reference(t))


@compiled
def _computed_torque(model, kp, kd, q, v, q_ref, v_ref, a_ref):
    e, de = _error(model, q, v, q_ref, v_ref)
    dq_ref, ddq_ref = jax.jvp(model.rate, (q_ref, v_ref), (model.rate(q_ref, v_ref), a_ref))
    # q lies behind the reference by e: the wanted motions of e and of the reference give that of q.
    _, a = motion_along(
        model,
        lambda x: model.integrate(x[0], -x[1]),
        (q_ref, e),
        (dq_ref, de),
        (ddq_ref, -kp * e - kd * de),
    )
    return inverse_dynamics(model, q, v, a)


@compiled
def _feedforward(model, kp, kd, q, v, q_ref, v_ref, a_ref):
    e, de = _error(model, q, v, q_ref, v_ref)
    return inverse_dynamics(model, q_ref, v_ref, a_ref) + kp * e + kd * de


def _error(model, q, v, q_ref, v_ref):
    """The tangent vector that leads from q to the reference, and its rate."""
    rate = model.rate(q, v), model.rate(q_ref, v_ref)
    return jax.jvp(model.difference, (q, q_ref), rate)
