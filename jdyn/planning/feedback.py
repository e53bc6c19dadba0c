"""Feedback along a plan."""

import equinox as eqx
import jax.numpy as jnp

from jdyn.control.controller import Controller
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.model import compiled
from jdyn.planning.ilqr import Plan


class PlanFeedback(Controller):
    """The forces of a plan plus its gains times the deviation from its motion, within its bounds.

    Between the plan's times, its forces are constant, its velocities change linearly, and its configurations move with
    constant velocity. What controllers of the system remember does not change its forces. After its end the last gains
    hold the last state. In `jdyn.control.ZeroOrderHold` with the plan's `dt` it is the digital controller that was
    planned for.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    >>> final = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    >>> plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((50, 1)), 0.02)
    >>> feedback = jdyn.planning.PlanFeedback(model, plan)
    >>> print(jnp.allclose(feedback(plan.t[3], plan.q[3], plan.v[3]), plan.u[3], atol=1e-3))
    True

    Args:
        model: The mechanism as the plan knows it.
        plan: What `jdyn.ilqr` found.
    """

    model: Model = eqx.field(converter=dynamics_only)
    plan: Plan

    def __init__(self, model: Model, plan: Plan):
        checked(model)
        self.model, self.plan = model, plan

    def __call__(self, t, q, v):
        return _forces(self, jnp.asarray(t, self.model.dtype), q, v)


@compiled
def _forces(controller, t, q, v):
    model, plan = controller.model, controller.plan
    steps, h = len(plan.u), plan.t[1] - plan.t[0]
    # A time that is one of the plan's up to rounding starts its step.
    now = t / h * (1 + 8 * jnp.finfo(t.dtype).eps)
    k = jnp.clip(jnp.floor(now).astype(jnp.int32), 0, steps - 1)
    since = jnp.clip(t - plan.t[k], 0, h)
    q_plan = model.integrate(plan.q[k], since / h * model.difference(plan.q[k], plan.q[k + 1]))
    v_plan = plan.v[k] + since / h * (plan.v[k + 1] - plan.v[k])
    deviation = jnp.concatenate([model.difference(q_plan, q), v - v_plan])
    u = plan.u[k] + plan.gains[k, :, : len(deviation)] @ deviation
    return plan.inputs @ jnp.clip(u, plan.lower, plan.upper)
