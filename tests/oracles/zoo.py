"""Mechanisms and states of the cases: few, so that programs are shared. States are drawn by no generator, whose numbers
another version may change."""

import functools

import diffrax
import jax.numpy as jnp
import numpy as np

import jdyn
from tests.reference.mechanisms import four_bars

TIGHT = diffrax.PIDController(rtol=1e-9, atol=1e-9)


def wave(count, phase=0.0, size=1.0, dtype=jnp.float64):
    """Numbers without a pattern that matters."""
    return jnp.asarray(size * np.sin(1.7 * np.arange(1, count + 1) + phase), dtype)


def state(model):
    """A configuration, a velocity, accelerations or forces of joints, and forces on bodies."""
    way, v, tau = (wave(model.nv, phase, size, model.dtype) for phase, size in ((0.3, 0.5), (1.0, 1.0), (2.0, 1.0)))
    f_ext = wave(6 * model.nb, 0.7, dtype=model.dtype).reshape(model.nb, 6)
    return model.integrate(model.neutral(), way), v, tau, f_ext


@functools.cache
def pendulum(dtype=jnp.float64):
    return jdyn.load("pendulum", dtype=dtype).with_joint("joint1", damping=0.1)


@functools.cache
def double_pendulum():
    return jdyn.load("double_pendulum")


@functools.cache
def panda(dtype=jnp.float64):
    return jdyn.load("panda", dtype=dtype)


def held(model, target=0.3, kp=100.0, kd=20.0):
    """PD control of all joints."""
    return jdyn.PD(model, jnp.full(model.nq, target, model.dtype), kp=kp, kd=kd)


@functools.cache
def quadruped():
    return jdyn.load("quadruped")


def standing(model):
    """A quadruped that stands on the ground: where, and what holds it."""
    q0 = jnp.array([0, 0, 0.2925, 1, 0, 0, 0, *4 * (0, -0.8, 1.6)])
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (100.0, 8.0))
    return q0, jdyn.PD(model, q0, kp=kp, kd=kd)


@functools.cache
def menagerie():
    """Joints of many kinds in a tree, with rotors, dampers, friction and springs, and one that follows another."""
    builder = jdyn.Builder("menagerie")
    joints = {
        "turn": (jdyn.Revolute((0, 0.6, 0.8)), "world"),
        "ball": (jdyn.Ball(), "turn"),
        "cross": (jdyn.Universal((1, 0, 0), (0, 1, 0)), "turn"),
        "plane": (jdyn.Planar((0, 0, 1), (1, 0, 0)), "cross"),
        "screw": (jdyn.Helical((0, 1, 0), 0.05), "world"),
        "wheel": (jdyn.Continuous((0, 0, 1)), "screw"),
        "other": (jdyn.Revolute((1, 0, 0)), "screw"),
    }
    for i, (name, (joint, parent)) in enumerate(joints.items()):
        builder.add_link(
            name, joint, parent=parent, placement=jdyn.pose(wave(3, i, 0.3), wave(3, i + 0.5)), mass=1 + 0.3 * i,
            com=wave(3, 2 * i, 0.1), inertia=0.02 + 0.01 * np.arange(3), damping=0.2, armature=0.05,
            friction=0.1, stiffness=0.0 if name == "ball" else 0.5,
            mimic=jdyn.Mimic("wheel", -0.5, 0.1) if name == "other" else None,
        )  # fmt: skip
    return builder.build()


@functools.cache
def four_bar():
    """A four-bar, what closes it, and where it starts: a rhombus, with a speed."""
    model, loops, signs = four_bars(1)
    return model, loops, jnp.asarray(signs) * 0.8, jnp.asarray(signs) * 1.5


@functools.cache
def hand():
    """A hand on a lift, whose second finger follows the first."""
    builder = jdyn.Builder("hand")
    builder.add_link("palm", jdyn.Prismatic((0, 0, 1)), mass=1.0, inertia=0.01, damping=1.0, joint_name="lift")
    for name, side in (("left", 1), ("right", -1)):
        builder.add_link(
            name, jdyn.Prismatic((0, -side, 0)), parent="palm", placement=(0, 0.05 * side, -0.06), mass=0.1,
            inertia=1e-4, damping=0.1, joint_name=name, lower=0.0, upper=0.04,
            mimic=jdyn.Mimic("left", 1.0) if name == "right" else None,
        )  # fmt: skip
    return builder.build()


@functools.cache
def ball(dtype=jnp.float64):
    """A ball above the ground."""
    return jdyn.with_ground(jdyn.load("ball", dtype=dtype))


@functools.cache
def box(slope=0.0):
    """A box on the ground, which may be a slope."""
    return jdyn.with_ground(jdyn.load("box"), jdyn.pose(rpy=(0, slope, 0)))


def still(model):
    return jnp.zeros(model.nv, model.dtype)


def rows(motion) -> dict:
    """A motion, and how it ended."""
    return {"q": motion.q, "v": motion.v, "success": motion.success}
