"""What stands on simulations and dynamics: plans, gains, and losses that are tuned."""

import jax
import jax.numpy as jnp
import optax

import jdyn
from tests.oracles import zoo
from tests.oracles.case import case, rounding, solved


@case(solved(1e-8, "searches end at rounding to the power of 3/4"))
def panda_reaches():
    """Inverse kinematics, and its derivative by the target."""
    model = zoo.panda()

    def reached(place):
        target = jdyn.planning.FrameTarget("flange", place)
        return jdyn.inverse_kinematics(model, [target], zoo.wave(7, 0.4, 0.3).at[3].set(-1.5))

    def found(place):
        return {"q": reached(place).q, "by_place": jax.jacrev(lambda place: reached(place).q)(place)}

    return jax.jit(found)(jnp.array([0.4, 0.2, 0.6]))


@case(solved(1e-3, "the search ends where the cost falls by less than 1e-8 of itself"), cost=solved(1e-7))
def planned_swing():
    """iLQR with bounds."""
    model, rest = zoo.pendulum(), jnp.zeros(1)
    cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    final = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    plan = jdyn.ilqr(model, cost, final, rest, rest, jnp.zeros((20, 1)), 0.05, bounds=(-5.0, 5.0))
    return {"cost": plan.cost, "q": plan.q[::5], "u": plan.u[::5], "gains": plan.gains[::5]}


@case(rounding(1e5, why="the condition of the Riccati equation"))
def gains_of_a_cartpole():
    model = jdyn.load("cartpole")
    return {"gain": jdyn.LQR(model, jnp.zeros(2), Q=1.0, R=0.1, actuated=[0]).gain}


@case(solved(1e-4, "steps at 1e-6, whose errors the optimizer adds up"))
def tuned_gains():
    """Losses of a few steps of Adam, within bounds."""
    model = zoo.pendulum()

    def loss(gains):
        hold = jdyn.PD(model, jnp.ones(1), **gains) + jdyn.GravityCompensation(model)
        motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 1.0, controller=hold, throw=False)
        return jdyn.losses.tracking_error(motion, jnp.ones(1)) + 1e-4 * jdyn.losses.effort(motion)

    # optax promotes types and ranks.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        found = jdyn.tune(
            loss,
            {"kp": 10.0, "kd": 3.0},
            optimizer=optax.adam(0.1),
            steps=5,
            bounds=jdyn.tuning.Positive(),
            progress=False,
        )
    return {"losses": found.losses, "norms": found.gradient_norms, "kp": found.params["kp"]}
