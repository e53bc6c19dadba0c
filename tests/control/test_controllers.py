"""Controllers against the motions that they are known to cause."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jdyn
from jdyn.control.controller import with_memory

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)
ARM = jdyn.load("double_pendulum")


@pytest.mark.slow
def test_computed_torque_moves_each_joint_like_an_oscillator():
    """e'' = -kp e - kd e' with kp = 16, kd = 4: ω = 4, ζ = 1/2, from rest."""
    target, q0 = jnp.array([0.5, -1.0]), jnp.array([1.5, 0.5])
    controller = jdyn.ComputedTorque(ARM, target, kp=16.0, kd=4.0)
    motion = jdyn.simulate(ARM, q0, jnp.zeros(2), 2.0, controller=controller, stepsize_controller=TIGHT)
    t, damped = np.asarray(motion.ts), 4 * np.sqrt(1 - 0.5**2)
    decay = np.exp(-2 * t) * (np.cos(damped * t) + 2 / damped * np.sin(damped * t))
    np.testing.assert_allclose(motion.q - target[None], decay[:, None] * (q0 - target)[None], atol=1e-7)


def test_computed_torque_follows_a_moving_target():
    target = jnp.array([0.2, 0.4])
    controller = jdyn.ComputedTorque(ARM, target, kp=0.0, kd=3.0, target_velocity=0.5, target_acceleration=0.25)
    # v' = a* + kd (v* - v): an exponential towards v* + a* / kd.
    motion = jdyn.simulate(ARM, target, jnp.zeros(2), 1.0, controller=controller, stepsize_controller=TIGHT)
    speed = (0.5 + 0.25 / 3) * (1 - np.exp(-3 * np.asarray(motion.ts)))
    np.testing.assert_allclose(motion.v, np.stack([speed, speed], axis=1), atol=1e-7)


def test_gravity_compensation_holds_still_and_pd_returns():
    q0 = jnp.array([0.7, -0.4])
    held = jdyn.simulate(ARM, q0, jnp.zeros(2), 1.0, controller=jdyn.GravityCompensation(ARM))
    np.testing.assert_allclose(held.q[-1], q0, atol=1e-12)
    controller = jdyn.PD(ARM, q0, kp=40.0, kd=20.0) + jdyn.GravityCompensation(ARM)
    pulled = jdyn.simulate(ARM, q0 + 0.3, jnp.zeros(2), 8.0, controller=controller)
    np.testing.assert_allclose(pulled.q[-1], q0, atol=1e-4)


def test_terms_add_up():
    t, q, v = 0.0, jnp.array([0.3, 0.1]), jnp.array([1.0, -2.0])
    terms = [
        jdyn.PD(ARM, [0.0, 1.0], kp=[2.0, 3.0], kd=0.5),
        jdyn.control.Constant([0.1, 0.2]),
        jdyn.GravityCompensation(ARM),
    ]
    total = (terms[0] + terms[1] + terms[2])(t, q, v)
    expected = np.array([-0.6, 2.7]) - 0.5 * v + np.array([0.1, 0.2]) + jdyn.gravity_forces(ARM, q)
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@pytest.mark.slow
def test_controllers_know_their_slopes():
    """They are what differentiation finds; on a ball joint at the target, where the logarithm is the identity."""
    builder = jdyn.Builder("arm")
    builder.add_link("upper", jdyn.Ball(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_link(
        "lower", jdyn.Revolute((1, 0, 0)), parent="upper", mass=1.0, com=(0, 0, 1), inertia=(0.1, 0.1, 0.1)
    )
    model = builder.build()
    q, v, t = model.random(jax.random.key(0)), jnp.arange(4.0), jnp.zeros(())
    pd = jdyn.PD(model, q, kp=[1.0, 2.0, 3.0, 4.0], kd=0.5)
    pid = jdyn.PID(model, q, kp=3.0, ki=1.0, kd=0.5)
    for known in (pd, jdyn.control.Constant(v), pd + jdyn.control.Constant(v)):
        for found, expected in zip(
            known.slopes(model, t, q, v), jdyn.Controller.slopes(known, model, t, q, v), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-14)
    K, D = (pid + pd).force_slopes(model, t, q, v, (v, None))
    np.testing.assert_allclose(K, [4.0, 5.0, 6.0, 7.0])
    np.testing.assert_allclose(D, [1.0] * 4)


SPRUNG = dict(mass=1.0, com=(0, 0.1, 1), inertia=(0.1, 0.2, 0.1), stiffness=2.0, damping=0.5)


def _flat():
    """With a follower."""
    builder, body = jdyn.Builder("arm"), SPRUNG
    builder.add_link("upper", jdyn.Revolute((1, 0, 0)), joint_name="upper", **body)
    builder.add_link("slide", jdyn.Prismatic((0, 1, 1)), parent="upper", **body)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="slide", mimic=jdyn.Mimic("upper", -0.5, 0.1), **body)
    return builder.build()


def _ball():
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Ball(), **SPRUNG)
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize("model", [_flat(), _ball()], ids=["flat", "ball"])
def test_controllers_know_their_jacobians(model):
    """They are those of JAX, with springs; on a ball joint by differentiation."""
    q, v, t = model.random(jax.random.key(0)), jnp.arange(1.0, model.nv + 1), jnp.array(0.3)
    gains = dict(kp=jnp.arange(1.0, model.nv + 1), kd=0.5)
    pd, pid = jdyn.PD(model, model.neutral(), **gains), jdyn.PID(model, model.neutral(), ki=1.0, **gains)
    weight, computed = jdyn.GravityCompensation(model), jdyn.ComputedTorque(model, model.neutral(), **gains)

    def near(controller, t, e, v):
        return controller.force(t, model.integrate(q, e), v, controller.start(t, q, v))

    @jax.jit
    def both(controller):
        found = controller.force_jacobians(model, t, q, v, controller.start(t, q, v))
        return found, jax.jacfwd(near, (1, 2, 3))(controller, t, jnp.zeros_like(v), v)

    # All kinds in one program.
    controller = pd + weight + jdyn.control.Constant(v) + computed + pid
    for found, expected in zip(*both(with_memory(controller)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_pd_turns_the_short_way_round():
    builder = jdyn.Builder("ball", gravity=(0, 0, 0))
    builder.add_link("ball", jdyn.Ball(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model, angle = builder.build(), 0.4
    turned = jnp.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])
    for q in (turned, -turned):
        np.testing.assert_allclose(jdyn.PD(model, model.neutral(), kp=2.0, kd=0.0)(0.0, q, jnp.zeros(3)), [0, -0.8, 0])


def test_gains_are_swept_and_differentiated():
    q, v = jnp.array([0.3, 0.1]), jnp.zeros(2)

    def torque(kp):
        return jdyn.PD(ARM, jnp.zeros(2), kp=kp, kd=0.0)(0.0, q, v)

    gains = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(jax.vmap(torque)(gains), -gains[:, None] * q[None])
    np.testing.assert_allclose(jax.jacfwd(torque)(1.0), -q)


@pytest.mark.parametrize("kind", [jdyn.PD, jdyn.ComputedTorque])
def test_wrong_shapes_are_named(kind):
    with pytest.raises(ValueError, match=r"target: expected shape \(2,\) for 'double_pendulum', got \(3,\)"):
        kind(ARM, jnp.zeros(3), kp=1.0, kd=1.0)
    with pytest.raises(ValueError, match=r"kd: expected a scalar or shape \(2,\)"):
        kind(ARM, jnp.zeros(2), kp=1.0, kd=jnp.ones(3))


def rail():
    """A mass of 2 kg on a rail, without gravity."""
    builder = jdyn.Builder("rail", gravity=(0, 0, 0))
    builder.add_link("mass", jdyn.Prismatic((1, 0, 0)), mass=2.0, inertia=[0.1] * 3)
    return builder.build()


def test_an_integral_is_that_of_the_closed_loop():
    """Under a constant load x, v and the integral's force form a linear system, whose exponential is exact."""
    model, load = rail(), 3.0
    controller = jdyn.PID(model, [0.5], kp=20.0, ki=15.0, kd=8.0) + jdyn.control.Constant([-load])
    motion = jdyn.simulate(model, [0.0], [0.0], 2.0, controller=controller, stepsize_controller=TIGHT)
    # Of (x - target, v, integral - load).
    system = np.array([[0, 1, 0], [-10, -4, 0.5], [-15, 0, 0]])
    exact = scipy.linalg.expm(2.0 * system) @ [-0.5, 0, -load]
    np.testing.assert_allclose(motion.q[-1, 0] - 0.5, exact[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.parts["controller"][0][-1, 0] - load, exact[2], rtol=0, atol=1e-8)


def test_an_integral_does_not_wind_up():
    """Held away from its target, it grows to its limit, 15 · 0.5 · t, and falls again at once on the other side."""
    model = rail()
    controller = jdyn.PID(model, [0.5], kp=0.0, ki=15.0, kd=0.0, limit=6.0)
    q, v = jnp.zeros(1), jnp.zeros(1)
    assert controller.rate(0.0, q, v, jnp.array([5.9])) == 7.5
    assert controller.rate(0.0, q, v, jnp.array([6.0])) == 0
    assert controller.rate(0.0, q + 1, v, jnp.array([6.0])) == -7.5
    assert controller.force(0.0, q, v, jnp.array([6.3])) == 6.0
    gradient = jax.grad(lambda ki: jdyn.PID(model, [0.5], kp=1.0, ki=ki, kd=0.0).rate(0.0, q, v, v)[0])(15.0)
    assert gradient == 0.5
