"""Simulations with contact: forces, and steps of both models of it."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp

import jdyn
from tests.oracles import zoo
from tests.oracles.case import case, solved
from tests.oracles.zoo import ball, box

FINE = diffrax.PIDController(rtol=1e-8, atol=1e-8)
# An explicit method compiles in half of the time of the default one, which `thrown_ball` and others take.
CLOSE = {"solver": diffrax.Tsit5(), "stepsize_controller": FINE}
SLIPPING = solved(1e-3, "friction divides errors of speeds by the slip speed of 1 mm/s")
EVEN = diffrax.ConstantStepSize()


def thrown(model, height=0.3):
    """A ball that is thrown along the ground, and turns."""
    q0 = model.neutral().at[2].set(height)
    return q0, jnp.asarray([0.5, 2.0, 0.0, 1.0, 0.0, -1.0], model.dtype)


def pushed(motion, model, contact, shape):
    """A motion, and the forces on one shape."""
    return zoo.rows(motion) | {"forces": motion.contacts.force(shape)}


@case(solved(1e-5, "steps at 1e-8"), forces=SLIPPING)
def thrown_ball():
    """Bounces, slides and rolls, by the law of Hunt and Crossley."""
    model, contact = ball(), jdyn.CompliantContact()
    motion = jdyn.simulate(
        model, *thrown(model), 0.5, contact=contact, saveat=jnp.array([0.21, 0.3, 0.5]), stepsize_controller=FINE
    )
    return pushed(motion, model, contact, "ball")


@case(solved(3e-3, "steps of single precision at their default tolerance of 1e-4"))
def thrown_ball_in_float32():
    """Without forces, which rounding moves by several per cent through the friction."""
    model, at = ball(jnp.float32), jnp.array([0.4, 0.5], jnp.float32)
    return zoo.rows(jdyn.simulate(model, *thrown(model), 0.5, contact=jdyn.CompliantContact(), saveat=at))


@case(solved(1e-4, "steps at 1e-8 through the kinks of these laws"))
def other_laws():
    """A ball that falls, by a spring with a damper and by one that is stiffer on the way in."""
    model, found = ball(), {}
    for law in (jdyn.contact.SpringDamper(), jdyn.contact.TwoStiffnesses()):
        contact = jdyn.CompliantContact(
            law=law, material=jdyn.contact.Material(stiffness=2e4, dissipation=0.3, friction=0.4)
        )
        motion = jdyn.simulate(model, *thrown(model), 0.4, contact=contact, saveat=jnp.array([0.21, 0.4]), **CLOSE)
        found |= {f"{type(law).__name__}_{name}": x for name, x in zoo.rows(motion).items()}
    return found


@case(solved(1e-4, "steps at 1e-8, and sticking at slip speeds of 1 mm/s"))
def box_on_a_slope():
    """Slides, on four points, under compliant contact."""
    model = box(0.4)
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=1e4, friction=0.2))
    q0 = model.neutral().at[2].set(0.06).at[3:].set(jnp.array([jnp.cos(0.2), 0.0, jnp.sin(0.2), 0.0]))
    motion = jdyn.simulate(model, q0, zoo.still(model), 0.3, contact=contact, saveat=jnp.array([0.1, 0.3]), **CLOSE)
    return pushed(motion, model, contact, "box")


@case(solved(1e-5, "the minimum that a step looks for"), forces=solved(1e-4, "the minimum's slope"))
def box_by_convex_steps():
    """A box that falls on an edge, by steps of one length."""
    model, contact = box(), jdyn.ConvexContact(material=jdyn.contact.Material(friction=0.5))
    q0 = model.neutral().at[2].set(0.16).at[3:].set(jnp.array([jnp.cos(0.3), 0.0, jnp.sin(0.3), 0.0]))
    motion = jdyn.simulate(
        model, q0, zoo.still(model).at[3].set(0.5), 0.2, contact=contact, dt0=0.005, stepsize_controller=EVEN,
        saveat=jnp.array([0.1, 0.15, 0.2]),
    )  # fmt: skip
    return pushed(motion, model, contact, "box")


@case(solved(1e-2, "steps of first order at the default tolerance of 1e-4"))
def gripper_lifts():
    """Fingers close on a cube and lift it, by convex contact and its own steps."""
    model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    raised = model.neutral().at[:3].set(jnp.array([0.05, 0.035, 0.035]))
    kp, kd = (jnp.zeros(model.nv).at[:3].set(jnp.array(gains)) for gains in ([1000.0] * 3, [60.0, 20.0, 20.0]))
    contact, hold = jdyn.ConvexContact(), jdyn.PD(model, raised, kp=kp, kd=kd)
    motion = jdyn.simulate(
        model, model.neutral(), zoo.still(model), 0.5, contact=contact, controller=hold, saveat=jnp.array([0.2, 0.5])
    )
    return zoo.rows(motion)


@case(solved(1e-3, "steps at 1e-6 between stiff feet and the ground"), v=solved(1e-2), forces=solved(1e-2))
def quadruped_lands():
    """Four feet on the ground under PD, by compliant contact."""
    model, contact = jdyn.with_ground(zoo.quadruped()), jdyn.CompliantContact()
    q0, hold = zoo.standing(model)
    motion = jdyn.simulate(
        model, q0.at[2].add(0.01), zoo.still(model), 0.2, controller=hold, contact=contact,
        saveat=jnp.array([0.1, 0.2]), stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
    )  # fmt: skip
    return pushed(motion, model, contact, "ground")


@case(solved(1e-5, "steps at 1e-8"))
def batch_of_balls():
    """Lanes with other friction, mass and height."""
    model, lanes = ball(), 4
    frictions = jnp.linspace(0.0, 0.9, lanes)
    contact = jax.vmap(lambda friction: jdyn.CompliantContact(material=jdyn.contact.Material(friction=friction)))(
        frictions
    )
    heavier = jax.vmap(lambda mass: model.with_body("ball", mass=mass))(jnp.linspace(0.5, 2.0, lanes))
    q0, v0 = jax.vmap(lambda height: thrown(model, height))(jnp.linspace(0.1, 0.3, lanes))
    motion = jdyn.simulate_batch(
        heavier, q0, v0, 0.3, contact=contact, in_axes={"model": 0, "q0": 0, "v0": 0, "contact": 0},
        saveat=diffrax.SaveAt(t1=True), **CLOSE,
    )  # fmt: skip
    return zoo.rows(motion)


@case(solved(1e-6))
def ball_touches():
    """An event where shapes touch, with a reset."""
    model = ball()
    turned = jdyn.touch_event(model, reset=lambda t, y, entry: dataclasses.replace(y, v=y.v.at[5].multiply(-0.7)))
    motion = jdyn.simulate(
        model, *thrown(model), 0.6, events=[turned], saveat=jnp.array([0.3, 0.6]), max_events=4, **CLOSE
    )
    return zoo.rows(motion) | {"ts": motion.events.ts, "which": motion.events.which}


@case(solved(1e-5, "steps at 1e-8"), forces=SLIPPING)
def ball_on_a_string():
    """A constraint and contact at once."""
    model, contact = ball(), jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=1e4, friction=0.3))
    string = [jdyn.constraints.Distance("ball", "world", point_b=(0.0, 0.0, 1.095), length=1.0)]
    q0 = model.neutral().at[0].set(0.3).at[2].set(1.095 - jnp.sqrt(0.91))
    motion = jdyn.simulate(
        model, q0, zoo.still(model), 0.6, constraints=string, contact=contact, saveat=jnp.array([0.3, 0.6]),
        **CLOSE,
    )  # fmt: skip
    return pushed(motion, model, contact, "ball")
