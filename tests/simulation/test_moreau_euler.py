"""Steps that have impulses of rigid contact in them, beside closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

G = 9.81


def ball():
    """A ball of 10 cm above a floor, with the moment of inertia of a full one."""
    builder = jdyn.Builder("ball", gravity=(0.0, 0.0, -G))
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * np.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


BALL = ball()


def steps(system, height, speed, h, count):
    """Height and way after each step, and whether all went well."""
    start = system.state(system.model.neutral().at[2].set(height), jnp.zeros(6).at[3].set(speed))

    def step(state, _):
        state, info = system.step(state, dt=h)
        return state, (state.q[0], state.q[2], info.result)

    return jax.lax.scan(step, start, None, length=count)


@jax.jit
def rolled(speed, friction, h):
    """After 128 steps."""
    return steps(jdyn.System(BALL, contact=jdyn.RigidContact(friction=friction)), 0.1, speed, h, 128)


@jax.jit
def bounced(restitution, h):
    """In 700 steps."""
    return steps(jdyn.System(BALL, contact=jdyn.RigidContact(restitution=restitution)), 0.6, 0.0, h, 700)


def test_a_ball_slides_then_rolls():
    """It slides for 2 v/(7 μ g), and rolls with 5 v/7 from then on. Its way has an error of a step's length times the
    speed that it loses."""
    v, mu, h = 1.0, 0.2, 1 / 128
    end, (way, height, result) = rolled(v, mu, h)
    np.testing.assert_array_equal(result, jdyn.Result.success)
    np.testing.assert_allclose(height, 0.1, atol=1e-14)
    # Along the axes of the ball, which turns.
    np.testing.assert_allclose(jnp.linalg.norm(end.v[3:]), 5 / 7, rtol=1e-12)
    exact = 5 / 7 + 2 * v**2 / (49 * mu * G)
    assert abs(way[-1] - exact) < h * (v - 5 / 7 * v)


@pytest.mark.slow
def test_lanes_and_derivatives():
    """Of a ball that slides all the time: after n steps v t − μ g h² n (n + 1)/2, which is linear in both."""
    n, h, speeds = 128, 1e-4, jnp.array([1.0, 2.0, 3.0])

    def way(v, mu):
        return rolled(v, mu, h)[1][0][-1]

    slopes = jax.jit(jax.vmap(jax.grad(way, (0, 1)), (0, None)))(speeds, 0.2)
    np.testing.assert_allclose(slopes[0], n * h, rtol=1e-12)
    np.testing.assert_allclose(slopes[1], -G * h**2 * n * (n + 1) / 2, rtol=1e-9)


def test_a_ball_bounces_by_newtons_law():
    """Within a step, which is where the ball is up to a way of a step at the speed of the impact."""
    e, h = 0.5, 1e-3
    _, (_, height, result) = bounced(e, h)
    np.testing.assert_array_equal(result, jdyn.Result.success)
    first, fast = np.sqrt(2 * 0.5 / G), np.sqrt(2 * 0.5 * G)
    t = h * np.arange(1, len(height) + 1) - first
    flight = 2 * e * fast / G
    there = (t > h) & (t < flight - h)
    exact = 0.1 + e * fast * t - G * t**2 / 2
    # The speed is that of the step before, and all bounces begin a step early at most.
    np.testing.assert_allclose(height[there], exact[there], atol=2 * h * fast)
    assert np.min(height) > 0.1 - 1e-12


def test_it_is_for_rigid_contact():
    system = jdyn.System(BALL)
    with pytest.raises(ValueError, match=r"MoreauEuler: expected contact=jdyn.RigidContact"):
        system.step(system.state(), dt=0.01, solver=jdyn.solvers.MoreauEuler())
