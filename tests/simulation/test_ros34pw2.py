"""A method that is implicit in the forces of joints: order, stability and cost, whatever it knows of them."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation.solvers import ros34pw2
from jdyn.simulation.vector_field import State

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
PANDA = jdyn.load("panda")
HOLD = jdyn.PD(PANDA, PANDA.neutral() + 0.3, kp=100.0, kd=20.0)


def test_conditions_of_order_three_for_any_jacobian():
    """Those of explicit methods, and sums with a γ in them vanish: Hairer, Wanner 1996, section IV.7."""
    alpha, gamma, b = ros34pw2.ALPHA, ros34pw2.IMPLICIT, ros34pw2.B
    c, g = alpha.sum(1), gamma.sum(1)
    of_f = b.sum() - 1, b @ c - 1 / 2, b @ c**2 - 1 / 3, b @ alpha @ c - 1 / 6
    of_w = b @ g, b @ alpha @ g, b @ gamma @ c, b @ gamma @ g
    np.testing.assert_allclose([*of_f, *of_w], 0, atol=1e-15)
    embedded = ros34pw2.EMBEDDED
    np.testing.assert_allclose([embedded.sum() - 1, embedded @ c - 1 / 2, embedded @ g], 0, atol=1e-15)
    # Stiffly accurate, and the dense output ends where the step does.
    np.testing.assert_allclose(b, alpha[-1] + gamma[-1], atol=1e-15)
    np.testing.assert_allclose(ros34pw2.DENSE.sum(0), ros34pw2.M, atol=1e-14)


def cart(stiffness, damping):
    builder = jdyn.Builder("cart", gravity=(0, 0, 0))
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0, stiffness=stiffness, damping=damping)
    return builder.build()


def after(model, q0, v0, steps, t1=1.0, controller=None, **options):
    return jdyn.simulate(
        model, q0, v0, t1, controller=controller, solver=jdyn.ROS34PW2(), saveat=END, dt0=t1 / steps,
        stepsize_controller=diffrax.ConstantStepSize(), **options,
    )  # fmt: skip


OMEGA = 1e6


@pytest.mark.parametrize(("stiffness", "damping"), [(0.0, 1.0), (1.0, 2.0), (1.0, 0.0)], ids=str)
def test_a_step_of_a_million_time_constants(stiffness, damping):
    """h λ = 10⁶, of a damper, of both, and of a spring alone: an L-stable method leaves a share of 1 / (h λ)."""
    q0, v0 = 0.3, 0.5
    found = after(cart(stiffness * OMEGA**2, damping * OMEGA), jnp.array([q0]), jnp.array([v0]), 1)
    if not stiffness:
        np.testing.assert_allclose(found.q, [[q0 + v0 / OMEGA]], atol=1e-5 * v0 / OMEGA)
    start = np.hypot(stiffness * OMEGA * q0, v0)
    assert np.hypot(stiffness * OMEGA * found.q[0, 0], found.v[0, 0]) < 1e-5 * start


@jax.custom_jvp
def stated(v, slopes):
    """Zero, with a derivative that is said to be another."""
    return jnp.zeros_like(v)


@stated.defjvp
def _stated_jvp(primals, tangents):
    return stated(*primals), -primals[1] * tangents[0]


class Misleading(jdyn.Controller):
    """Forces that depend on the state in another way than their derivative says."""

    model: jdyn.Model
    slopes: jax.Array

    def __call__(self, t, q, v):
        displacement = self.model.difference(self.model.neutral(), q)
        true = jnp.sin(3 * t) - jax.lax.stop_gradient(5 * displacement + v)
        return true + stated(displacement, self.slopes[0]) + stated(v, self.slopes[1])


@pytest.mark.parametrize("largest", [0.0, 30.0], ids=["nothing is known", "what is known is wrong"])
def test_order_does_not_depend_on_what_is_known(largest):
    """On a tree with a ball joint, three with no Jacobian at all, and with one drawn at random."""
    model = jdyn.random_tree(3, 3, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Prismatic)).with_gravity((0, 0, -3))
    # Rotors, so that what is not known is not stiff.
    model = dataclasses.replace(model, armature=jnp.ones(model.nv))
    controller = Misleading(model, jax.random.uniform(jax.random.key(5), (2, model.nv), maxval=largest))
    q0, v0 = model.random(jax.random.key(0)), jax.random.normal(jax.random.key(1), (model.nv,))
    exact = jdyn.simulate(
        model, q0, v0, 0.5, controller=controller, solver=diffrax.Dopri8(), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
    )  # fmt: skip
    errors = []
    for steps in (64, 128, 256):
        found = after(model, q0, v0, steps, 0.5, controller)
        errors.append(np.linalg.norm(np.append(model.difference(exact.q[0], found.q[0]), found.v[0] - exact.v[0])))
    orders = -np.diff(np.log2(errors))
    assert np.all(np.abs(orders - 3) < 0.1), orders


def test_gains_on_light_links_do_not_limit_the_step():
    """Where Tsit5 takes a thousand steps for stability, whose last digits it has for nothing."""

    def hold(solver, rtol, atol):
        return jdyn.simulate(
            PANDA, PANDA.neutral(), jnp.zeros(PANDA.nv), 0.5, controller=HOLD, solver=solver, saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        )  # fmt: skip

    explicit, implicit = (hold(solver, 1e-3, 1e-6) for solver in (diffrax.Tsit5(), jdyn.ROS34PW2()))
    tries = [int(x.stats["accepted_steps"] + x.stats["rejected_steps"]) for x in (explicit, implicit)]
    assert tries[1] < tries[0] / 15, tries
    np.testing.assert_allclose(implicit.q, explicit.q, atol=3e-4)
    np.testing.assert_allclose(implicit.v, explicit.v, atol=3e-3)


def test_friction_that_holds_does_not_limit_the_step():
    """An arm creeps where friction balances gravity; an explicit method takes 200 000 steps."""
    speed, friction = 1e-2, 60.0
    sticky = dataclasses.replace(
        PANDA, friction=jnp.full_like(PANDA.friction, friction), friction_speed=jnp.asarray(speed)
    )
    q0 = PANDA.neutral() + 0.5
    end = jdyn.simulate(
        sticky, q0, jnp.zeros(PANDA.nv), 0.5, solver=jdyn.ROS34PW2(), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
    )  # fmt: skip
    assert end.stats["accepted_steps"] + end.stats["rejected_steps"] < 50
    creep = -speed * np.arctanh(jdyn.gravity_forces(PANDA, end.q[0]) / friction)
    # What accelerates and damps the creeping arm is a hundredth of its weight.
    np.testing.assert_allclose(end.v[0], creep, atol=1e-2 * np.max(np.abs(creep)))


def test_followers_friction_and_time_that_runs_backwards():
    """A finger that follows another, with dampers, friction and a spring, there and back."""
    builder = jdyn.Builder("gripper", gravity=(0, 0, 0))
    properties = dict(mass=0.1, damping=3.0, friction=0.2, armature=0.01, stiffness=5.0)
    builder.add_link("left", jdyn.Prismatic((1, 0, 0)), joint_name="left", **properties)
    builder.add_link("right", jdyn.Prismatic((1, 0, 0)), mimic=jdyn.Mimic("left", -0.5, 0.1), **properties)
    gripper, steps = builder.build(), diffrax.PIDController(rtol=1e-8, atol=1e-10)
    exact, there = (
        jdyn.simulate(gripper, jnp.array([0.2]), jnp.array([1.0]), 0.1, solver=solver, stepsize_controller=steps,
                      saveat=END)
        for solver in (diffrax.Dopri8(), jdyn.ROS34PW2())
    )  # fmt: skip
    np.testing.assert_allclose(there.q, exact.q, atol=1e-7)
    np.testing.assert_allclose(there.v, exact.v, atol=1e-6)
    back = jdyn.simulate(
        gripper, there.q[0], there.v[0], 0.0, t0=0.1, solver=jdyn.ROS34PW2(), stepsize_controller=steps, saveat=END
    )
    np.testing.assert_allclose([back.q[0, 0], back.v[0, 0]], [0.2, 1.0], atol=1e-4)


@pytest.mark.slow
def test_single_precision():
    """Gains on light links leave the digits that the type has."""
    controller = HOLD + jdyn.GravityCompensation(PANDA)
    ends = []
    for dtype in (jnp.float64, jnp.float32):
        model, control = (jax.tree.map(lambda x, t=dtype: x.astype(t), each) for each in (PANDA, controller))
        start = model.neutral(), jnp.zeros(model.nv, dtype)
        ends.append(after(model, *start, 64, 0.5, control))
    assert ends[1].q.dtype == jnp.float32
    np.testing.assert_allclose(ends[1].q, ends[0].q, atol=1e-5)
    np.testing.assert_allclose(ends[1].v, ends[0].v, atol=1e-4)


def test_other_equations_are_refused():
    def rate(t, y, args):
        return State(PANDA.rate(y.q, y.v), jnp.zeros_like(y.v))

    start = State(PANDA.neutral(), jnp.zeros(PANDA.nv))
    for solver, message in (
        (jdyn.OnManifold(jdyn.ROS34PW2(), PANDA), "implicit in joint forces must know them: use it in"),
        (jdyn.ROS34PW2(), "it works in local coordinates"),
    ):
        with pytest.raises(ValueError, match=message):
            diffrax.diffeqsolve(diffrax.ODETerm(rate), solver, 0.0, 1.0, 0.1, start)
