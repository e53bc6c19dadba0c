"""Controllers with a memory, and actuators, against closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import jdyn

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def cart(mass=2.0, **properties):
    builder = jdyn.Builder("cart", gravity=(0, 0, 0))
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=mass, **properties)
    return builder.build()


CART = cart()
KP, KD, MASS = 30.0, 6.0, 2.0
FEEDBACK = jdyn.PD(CART, [1.0], kp=KP, kd=KD)


def run(controller, t1=1.0, model=CART, **options):
    return jdyn.simulate(
        model, jnp.zeros(1), jnp.zeros(1), t1, controller=controller, stepsize_controller=TIGHT, **options
    )


def sampled(period, delay, ticks):
    """The cart under the digital controller, at its ticks: exact between them, for the force is constant."""
    x, queue, states = np.zeros(2), [KP] * (delay + 1), []
    for k in range(ticks):
        if k:
            queue = [*queue[1:], KP * (1 - x[0]) - KD * x[1]]
        a = queue[0] / MASS
        x = np.array([x[0] + period * x[1] + a * period**2 / 2, x[1] + period * a])
        states.append(x)
    return np.array(states)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 2])
def test_a_digital_controller_sees_the_state_at_its_ticks_only(delay):
    ticks = 0.05 * jnp.arange(1.0, 20.0)
    trajectory = run(jdyn.control.ZeroOrderHold(FEEDBACK, 0.05, delay), saveat=ticks)
    exact = sampled(0.05, delay, 19)
    # The force is constant from tick to tick: every step is exact but for rounding.
    np.testing.assert_allclose(trajectory.q[:, 0], exact[:, 0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(trajectory.v[:, 0], exact[:, 1], rtol=1e-11, atol=1e-12)


def test_a_lagging_motor_makes_a_third_order_system():
    lag = 0.1
    trajectory = run(jdyn.control.FirstOrderLag(FEEDBACK, lag), saveat=jnp.array([0.3, 1.0]))
    A = np.array([[0, 1, 0], [0, 0, 1 / MASS], [-KP / lag, -KD / lag, -1 / lag]])
    end = np.array([1.0, 0, 0])
    for k, t in enumerate((0.3, 1.0)):
        # About the target, where it rests without force; the motor starts with the command.
        x = expm(t * A) @ (np.array([0, 0, KP]) - end) + end
        np.testing.assert_allclose(
            [trajectory.q[k, 0], trajectory.v[k, 0], trajectory.parts["controller"][1][k, 0]], x, atol=1e-8
        )


def test_effort_has_a_limit():
    model = CART.with_joint(CART.joint_names[0], effort=10.0)
    trajectory = run(jdyn.Saturated(FEEDBACK, model), t1=0.1, model=model)
    np.testing.assert_allclose(trajectory.q[-1, 0], 10.0 / MASS * 0.1**2 / 2, rtol=1e-9)
    free = run(jdyn.Saturated(FEEDBACK, CART.with_joint(CART.joint_names[0], effort=0.0)), t1=0.1)
    assert free.q[-1, 0] > 1.3 * trajectory.q[-1, 0]


def test_joints_have_friction():
    """Viscous and Coulomb: the cart slides to a stop as the closed form says, until the smoothing shows."""
    model = cart(damping=0.5, friction=1.0, friction_speed=1e-4)
    trajectory = jdyn.simulate(model, [0.0], [2.0], 1.0, stepsize_controller=TIGHT, saveat=[0.5])
    # m v' = -c - b v
    v = (2.0 + 1.0 / 0.5) * np.exp(-0.5 / MASS * 0.5) - 1.0 / 0.5
    np.testing.assert_allclose(trajectory.v[0, 0], v, rtol=1e-8)


class Integral(jdyn.control.DynamicController):
    gain: jax.Array

    def start(self, t, q, v):
        return jnp.zeros_like(q)

    def force(self, t, q, v, memory):
        return self.gain * memory

    def rate(self, t, q, v, memory):
        return 1.0 - q


HELD, INTEGRAL = jdyn.control.ZeroOrderHold(FEEDBACK, 0.01), Integral(jnp.array(20.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "both",
    [
        HELD + INTEGRAL,
        INTEGRAL + HELD,
        jdyn.control.Constant([5.0]) + (FEEDBACK + INTEGRAL),
    ],
    ids=["held first", "held last", "not held"],
)
def test_memories_add_up(both):
    """A held PD and an integral that is not held."""
    np.testing.assert_allclose(run(both, t1=12.0, saveat=[12.0]).q[-1], 1.0, atol=2e-3)


@pytest.mark.slow
def test_gradients_go_through_ticks_and_batches():
    def end(kp, delay=1):
        controller = jdyn.control.ZeroOrderHold(jdyn.PD(CART, [1.0], kp=kp, kd=KD), 0.05, delay)
        return run(controller, saveat=jnp.array([0.93]), max_steps=100).q[0, 0]

    gains = jnp.array([10.0, 20.0, 30.0])
    slopes = jax.jit(jax.vmap(jax.grad(end)))(gains)
    h = 1e-4
    np.testing.assert_allclose(slopes, [(end(k + h) - end(k - h)) / (2 * h) for k in gains], rtol=1e-7)


def test_what_has_a_memory_is_no_function_of_the_state():
    with pytest.raises(TypeError, match="ZeroOrderHold has a memory"):
        jdyn.control.ZeroOrderHold(FEEDBACK, 0.05)(0.0, jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(ValueError, match="ticks of its own"):
        jdyn.control.ZeroOrderHold(jdyn.control.ZeroOrderHold(FEEDBACK, 0.05), 0.1)
    with pytest.raises(ValueError, match="delay: expected a number of periods, or one for each output, got -1"):
        jdyn.control.ZeroOrderHold(FEEDBACK, 0.05, delay=-1)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_functions_within_actuators_close_over_values_that_are_differentiated(beside):
    """Also where a controller is added to them, on either side."""
    model = jdyn.load("pendulum")

    def end(gain):
        def command(t, q, v):
            return -gain * q

        if beside:
            push = jdyn.control.Constant(jnp.array([0.5]))
            command = command + push + command
        digital = jdyn.control.ZeroOrderHold(jdyn.control.FirstOrderLag(command, 0.1), 0.05)
        return jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 0.5, controller=digital, saveat=[0.5]).q[-1, 0]

    low, high = jax.vmap(end)(jnp.array([1.999, 2.001]))
    np.testing.assert_allclose(jax.grad(end)(2.0), (high - low) / 0.002, rtol=1e-5)
