"""Motions with contact that end in one number of a few parameters, in closed form where there is one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax.numpy as jnp
import numpy as np

import jdyn

G, END = 9.81, diffrax.SaveAt(t1=True)
GROUND = {"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)}
UP, AHEAD, ASIDE = jnp.array([0.0, 0.0, 1.0]), jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0])


class Case(NamedTuple):
    """A number at the end of a motion.

    Attributes:
        end: From the tolerance, the `adjoint` of `jdyn.simulate` and the parameters.
        exact: From the parameters, in closed form; None where there is none.
        at: The parameters.
        tolerances: Of the motion and its derivatives; and of differences, where these are what is compared with.
    """

    name: str
    end: Callable
    exact: Callable | None
    at: tuple[float, ...]
    tolerances: tuple[float, float] = (1e-8, 1e-10)


def compliant(
    stiffness, friction=0.0, dissipation=0.0, slip_speed=1e-3, materials=GROUND, **options
) -> jdyn.contact.Contact:
    """Of bodies of a stiffness with a rigid ground."""
    material = jdyn.contact.Material(stiffness, dissipation, friction)
    return jdyn.CompliantContact(material=material, materials=materials, slip_speed=slip_speed, **options)


def convex(stiffness, friction=0.0, dissipation=0.0, slip_speed=1e-3, materials=GROUND) -> jdyn.contact.Contact:
    """The same by the other model."""
    material = jdyn.contact.Material(stiffness, dissipation, friction)
    return jdyn.ConvexContact(material=material, materials=materials, slip_speed=slip_speed)


def _ended(model, q0, v0, T, tolerance, adjoint, **options) -> jdyn.Trajectory:
    steps = diffrax.PIDController(rtol=tolerance, atol=1e-3 * tolerance)
    return jdyn.simulate(
        model, q0, v0, T, stepsize_controller=steps, saveat=END, adjoint=adjoint, max_steps=131072, **options
    )


def ball() -> jdyn.Model:
    """Of 1 kg, on a vertical rail; its coordinate is the height of its lowest point."""
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic(UP), mass=1.0, inertia=(0.01, 0.01, 0.01))
    builder.add_shape("ball", "sphere", 0.1, placement=(0, 0, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def block() -> jdyn.Model:
    """Of 1 kg, which moves along x and z, and does not turn; its bottom is at the height of its coordinate."""
    builder = jdyn.Builder("block")
    builder.add_link("rail", jdyn.Prismatic(AHEAD))
    builder.add_link("block", jdyn.Prismatic(UP), parent="rail", mass=1.0, inertia=(0.01, 0.01, 0.01))
    builder.add_shape("block", "box", (0.2, 0.2, 0.2), placement=(0, 0, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def bounce(located: bool) -> Case:
    """Height after a bounce without losses, by the height at the start and the stiffness."""
    model, T = ball(), 0.6

    def end(tolerance, adjoint, height, stiffness):
        contact = compliant(stiffness, located=located)
        return _ended(model, height[None], jnp.zeros(1), T, tolerance, adjoint, contact=contact).q[0, 0]

    def exact(height, stiffness):
        speed, omega = jnp.sqrt(2 * G * height), jnp.sqrt(stiffness)
        left = T - speed / G - 2 * (jnp.pi - jnp.arctan(speed * omega / G)) / omega
        return speed * left - G * left**2 / 2

    return Case("bouncing ball" + ", kinks located" * located, end, exact, (0.2, 1e5))


def _on_the_ground(model, friction, push, v0, T, tolerance, adjoint):
    q0 = jnp.array([0.0, -G / 4e5])
    return _ended(
        model, q0, jnp.stack([v0, jnp.zeros_like(v0)]), T, tolerance, adjoint, contact=compliant(1e5, friction, 5.0),
        controller=jdyn.control.Constant(jnp.stack([push, jnp.zeros_like(push)])),
    )  # fmt: skip


def sliding() -> Case:
    """Way of a block until it stops, by its speed and the friction."""
    model, slip = block(), 1e-3

    def end(tolerance, adjoint, speed, friction):
        return _on_the_ground(model, friction, jnp.zeros(()), speed, 0.5, tolerance, adjoint).q[0, 0]

    def exact(speed, friction):
        return (speed * jnp.sqrt(speed**2 + slip**2) + slip**2 * jnp.arcsinh(speed / slip)) / (2 * friction * G)

    return Case("sliding block", end, exact, (1.0, 0.5))


def sticking() -> Case:
    """Speed at which a pushed block creeps, by the push and the friction."""
    model, slip = block(), 1e-3

    def end(tolerance, adjoint, push, friction):
        return _on_the_ground(model, friction, push, jnp.zeros(()), 0.3, tolerance, adjoint).v[0, 0]

    def exact(push, friction):
        share = push / (friction * G)
        return slip * share / jnp.sqrt(1 - share**2)

    return Case("sticking block", end, exact, (3.0, 0.5))


def peg_and_hole() -> jdyn.Model:
    """A round peg of 4 cm and 0.5 kg, which moves along x and z and turns about y, above a slot that is 1 mm wider."""
    builder = jdyn.Builder("peg")
    builder.add_link("across", jdyn.Prismatic(AHEAD))
    builder.add_link("along", jdyn.Prismatic(UP), parent="across")
    builder.add_link("peg", jdyn.Revolute(ASIDE), parent="along", mass=0.5, inertia=1e-3 * np.ones(3))
    builder.add_shape("peg", "capsule", (0.02, 0.1), role="collision")
    for name, x in (("left", -0.0705), ("right", 0.0705)):
        builder.add_shape("world", "box", (0.1, 0.1, 0.2), placement=(x, 0, -0.1), role="collision", name=name)
    return builder.build()


def peg(contact: Callable, tolerances: tuple[float, float]) -> Case:
    """How deep a soft hand that holds a peg off the middle has pressed it, by its offset, stiffness and friction."""
    model = peg_and_hole()
    push = jdyn.control.Constant(jnp.array([0.0, -15.0, 0.0]))
    kp, kd = jnp.array([1e3, 0.0, 5.0]), jnp.array([20.0, 40.0, 0.1])

    def end(tolerance, adjoint, offset, stiffness, friction):
        held = jnp.stack([offset, jnp.full_like(offset, 0.075), jnp.zeros_like(offset)])
        return -_ended(
            model, held, jnp.zeros(3), 0.4, tolerance, adjoint, controller=jdyn.PD(model, held, kp=kp, kd=kd) + push,
            contact=contact(stiffness, friction, 1.0, slip_speed=1e-2, materials={}),
        ).q[0, 1]  # fmt: skip

    return Case(f"peg, {contact.__name__}", end, None, (0.004, 2e4, 0.3), tolerances)


BODY, FOOT, CROUCH = 1.0, 0.1, 0.9


def leg() -> jdyn.Model:
    """A body on a vertical rail and a foot below it; with the leg's coordinate at 0, the foot's lowest point is 1 m
    below the body's coordinate."""
    builder = jdyn.Builder("leg")
    builder.add_link("body", jdyn.Prismatic(UP), mass=BODY, inertia=0.01)
    builder.add_link("foot", jdyn.Prismatic(-UP), parent="body", mass=FOOT, inertia=1e-4)
    builder.add_shape("foot", "sphere", 0.05, placement=(0, 0, -0.95), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def _apex(z, v, z_foot, v_foot):
    """Of the middle of both masses, from a state without contact."""
    height, speed = ((BODY * x + FOOT * y) / (BODY + FOOT) for x, y in ((z, z_foot), (v, v_foot)))
    return height + speed**2 / (2 * G)


def hop(contact: Callable, tolerances: tuple[float, float], kd: float | None = None, **options: Any) -> Case:
    """How high a leg jumps that crouches and lets go, by stiffness and rest length of its spring, and by its damper if
    `kd` is given. Without a damper it has a closed form but for (k / m) / (K / m_foot), with the spring k and the
    ground K: how far the foot's own oscillation is from none."""
    model, ground = leg(), 1e7

    def end(tolerance, adjoint, kp, rest, kd=0.0):
        none = jnp.zeros_like(kp)
        load = (kp * (rest + 1 - CROUCH) - kp * FOOT * G / ground) / (1 + kp / ground)
        depth = (load + FOOT * G) / ground
        q0 = jnp.stack([jnp.full_like(depth, CROUCH), CROUCH + depth - 1])
        spring = jdyn.PD(
            model, jnp.stack([none, rest]), kp=jnp.stack([none, kp]), kd=jnp.stack([none, none + kd])
        )  # fmt: skip
        law = contact(ground, **options)
        motion = _ended(model, q0, jnp.zeros(2), 0.15, tolerance, adjoint, contact=law, controller=spring)
        (z, extension), (v, rate) = motion.q[0], motion.v[0]
        return _apex(z, v, z - extension - 1, v - rate)

    def exact(kp, rest):
        series = kp * ground / (kp + ground)
        first, last = rest + 1 - CROUCH - FOOT * G / ground, -FOOT * G / series
        v = jnp.sqrt(series * (first**2 - last**2) / BODY - 2 * G * (first - last))
        return _apex(CROUCH + first - last, v, 0.0, v * series / ground)

    name = f"hopping leg{', damped' * (kd is not None)}, {contact.__name__}"
    return Case(name, end, exact if kd is None else None, (1e3, 0.05, *([] if kd is None else [kd])), tolerances)


def cube() -> jdyn.Model:
    """A cube of 10 cm and 0.1 kg above a floor, under a fifth of the weight it has on earth."""
    builder = jdyn.Builder("cube", gravity=(0.0, 0.0, -2.0))
    builder.add_link("cube", jdyn.Free(), mass=0.1, inertia=0.1 * 0.1**2 / 6 * np.ones(3))
    builder.add_shape("cube", "box", (0.1, 0.1, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


def toss(contact: jdyn.contact.Contact, tolerances: tuple[float, float]) -> Case:
    """Where along y a cube, turned by 60 degrees, is 1 s after it was thrown at a floor, by its speed downwards: it
    falls on an edge, tips over another one, and slides.

    Source: DiffMJX, arXiv 2506.14186, whose case it is.
    """
    model = cube()
    c, s = 0.5, np.sqrt(3) / 2
    turn = jnp.array([np.sqrt(3) / 2, 0.5, 0.0, 0.0])
    q0 = model.neutral().at[2].set(0.2).at[3:].set(turn)

    def end(tolerance, adjoint, speed):
        # Along the axes of the cube.
        v0 = jnp.zeros(6).at[4].set(-0.1 * c - s * speed).at[5].set(0.1 * s - c * speed)
        return _ended(model, q0, v0, 1.0, tolerance, adjoint, contact=contact, max_events=100).q[0, 1]

    return Case(f"cube toss, {type(contact).__name__}", end, None, (2.0,), tolerances)
