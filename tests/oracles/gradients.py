"""Derivatives of simulations, in both modes."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp

import jdyn
from tests.oracles import zoo
from tests.oracles.case import case, solved

END = {"saveat": diffrax.SaveAt(t1=True), "throw": False}
# An explicit method compiles in half of the time of the default one, which `arm_gradient` takes.
CLOSE = END | {"solver": diffrax.Tsit5(), "stepsize_controller": diffrax.PIDController(rtol=1e-8, atol=1e-8)}


@case(solved(1e-5))
def arm_gradient():
    """By gains, a mass, a damper and the start, through steps of the default solver."""
    model = zoo.double_pendulum()

    def loss(at):
        varied = jdyn.vary(model, {"body:link2.mass": at[2], "joint:joint2.damping": at[3]})
        hold = zoo.held(model, kp=100 * at[0], kd=20 * at[1])
        motion = jdyn.simulate(
            varied, model.neutral() + at[4], zoo.still(model), 0.5, controller=hold, stepsize_controller=zoo.TIGHT,
            **END,
        )  # fmt: skip
        return jnp.sum(motion.q[-1] ** 2) + 0.1 * jnp.sum(motion.v[-1] ** 2)

    return {"gradient": jax.jit(jax.grad(loss))(jnp.array([1.0, 1.0, 0.7, 0.3, 0.1]))}


@case(solved(1e-5))
def arm_in_both_modes():
    """By gains, a mass and the start, in reverse mode and along these in forward mode."""
    model = zoo.double_pendulum()

    def loss(at, **forward):
        hold = zoo.held(model, kp=20 * at[0], kd=3 * at[1])
        heavier, q0 = model.with_body("link2", mass=at[2]), model.neutral() + at[3]
        motion = jdyn.simulate(heavier, q0, zoo.still(model), 0.5, controller=hold, **CLOSE, **forward)
        return jnp.sum(motion.q[-1] ** 2) + 0.1 * jnp.sum(motion.v[-1] ** 2)

    def found(at):
        along = jax.jvp(lambda at: loss(at, adjoint=diffrax.ForwardMode()), (at,), (at,))[1]
        return {"gradient": jax.grad(loss)(at), "along": along}

    return jax.jit(found)(jnp.array([1.0, 1.0, 0.7, 0.1]))


@case(solved(1e-4, "steps in single precision at 1e-5"))
def pendulum_gradient_in_float32():
    model = zoo.pendulum(jnp.float32)

    def loss(at):
        hold = zoo.held(model, kp=at[0], kd=at[1])
        motion = jdyn.simulate(model, at[2:], zoo.still(model), 1.0, controller=hold, solver=diffrax.Tsit5(), **END)
        return jnp.sum(motion.q[-1] ** 2)

    at = jnp.array([10.0, 2.0, 0.5], jnp.float32)
    return {"gradient": jax.jit(jax.grad(loss))(at)}


@case(solved(1e-5))
def pid_gradient_of_a_batch():
    """By the gains of a controller with a memory, lane by lane."""
    model = zoo.pendulum()

    def loss(gains):
        control = jdyn.PID(model, jnp.ones(1), kp=gains[0], ki=gains[1], kd=gains[2])
        motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 1.0, controller=control, **CLOSE)
        return jnp.sum((motion.q[-1] - 1) ** 2)

    gains = jnp.array([[20.0, 10.0, 3.0], [50.0, 0.0, 8.0], [400.0, 100.0, 40.0]])
    return {"gradient": jax.jit(jax.vmap(jax.grad(loss)))(gains)}


@case(solved(1e-5))
def gradient_through_bounces():
    """By what an event leaves, by where it happens, and by the start."""
    model = zoo.pendulum()

    def loss(at):
        hit = jdyn.Event(lambda t, y: y.q[0] - at[1], reset=lambda t, y: dataclasses.replace(y, v=-at[0] * y.v))
        motion = jdyn.simulate(model, at[2:], jnp.zeros(1), 1.5, events=[hit], max_events=4, **CLOSE)
        return jnp.sum(motion.q[-1] ** 2) + motion.events.ts[0]

    return {"gradient": jax.jit(jax.grad(loss))(jnp.array([0.8, 0.1, 1.0]))}


@case(solved(1e-5))
def four_bar_gradient():
    """Through a closed loop, by a mass and a torque."""
    model, loops, q, v = zoo.four_bar()

    def loss(at):
        heavier = model.with_body("coupler0", mass=at[0])
        drag = jdyn.control.Constant(jnp.zeros(3).at[0].set(at[1]))
        motion = jdyn.simulate(heavier, q, v, 0.3, controller=drag, constraints=loops, **CLOSE)
        return motion.q[-1, 0]

    return {"gradient": jax.jit(jax.grad(loss))(jnp.array([1.5, 2.0]))}


@case(solved(1e-4, "steps at 1e-8"))
def rodas_gradient():
    """Through implicit steps, by a gain and a mass."""
    model = zoo.pendulum()

    def loss(at):
        heavier, hold = model.with_body("link1", mass=at[1]), zoo.held(model, kp=at[0], kd=0.3 * at[0])
        motion = jdyn.simulate(
            heavier, jnp.zeros(1), jnp.zeros(1), 0.3, controller=hold, **CLOSE | {"solver": jdyn.solvers.Rodas5P()}
        )
        return jnp.sum(motion.q[-1] ** 2)

    return {"gradient": jax.jit(jax.grad(loss))(jnp.array([1000.0, 1.5]))}


@case(solved(1e-3, "bounces magnify errors of steps"))
def ball_gradient():
    """Through compliant contact, by stiffness, friction, mass and height."""
    model = zoo.ball()

    def loss(at):
        contact = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=1e5 * at[0], friction=at[1]))
        q0, v0 = model.neutral().at[2].set(at[3]), jnp.array([0.5, 2.0, 0.0, 1.0, 0.0, -1.0])
        motion = jdyn.simulate(model.with_body("ball", mass=at[2]), q0, v0, 0.15, contact=contact, **CLOSE)
        return jnp.sum(motion.q[-1] ** 2) + 0.1 * jnp.sum(motion.v[-1] ** 2)

    value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.array([1.0, 0.3, 1.0, 0.15]))
    return {"loss": value, "gradient": gradient}


@case(solved(1e-4, "the minimum that a step looks for"))
def convex_gradient():
    """Through steps of convex contact, by friction and mass."""
    model = zoo.box()

    def loss(at):
        contact = jdyn.ConvexContact(material=jdyn.contact.Material(friction=at[0]))
        q0 = model.neutral().at[2].set(0.0505)
        motion = jdyn.simulate(
            model.with_body("box", mass=at[1]), q0, zoo.still(model).at[3].set(1.0), 0.1, contact=contact, dt0=0.01,
            stepsize_controller=diffrax.ConstantStepSize(), **END,
        )  # fmt: skip
        return motion.q[-1, 0] + motion.v[-1, 3]

    value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.array([0.4, 1.2]))
    return {"loss": value, "gradient": gradient}
