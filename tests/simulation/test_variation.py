"""Derivatives of what rests in equilibrium, where the motion itself has no error however long a step is, and of what
stability holds, where the motion's errors are kept small and those of derivatives are not."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
STIFFNESS, MASS, T = 400.0, 1.0, 2.0


def on_rails(count=1):
    builder = jdyn.Builder("on_rails", gravity=(0, 0, 0))
    for i in range(count):
        builder.add_link(f"slider{i}", jdyn.Prismatic((1, 0, 0)), mass=MASS, inertia=np.full(3, 0.01))
    return builder.build()


def sprung(q0, v0, force, adjoint=None):
    """Where a mass on a spring without a damper ends."""
    model = on_rails()
    controller = jdyn.PD(model, jnp.zeros(1), kp=STIFFNESS, kd=0.0) + jdyn.control.Constant(force[None])
    motion = jdyn.simulate(
        model, q0[None], v0[None], T, controller=controller, saveat=END, adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
    )  # fmt: skip
    return motion.q[0, 0], motion.stats["accepted_steps"]


def expected():
    """By how it starts and by the force: an oscillator of ω = √(k / m)."""
    omega = np.sqrt(STIFFNESS / MASS)
    return np.array([np.cos(omega * T), np.sin(omega * T) / omega, (1 - np.cos(omega * T)) / STIFFNESS])


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, 1e-9])
def test_a_spring_at_rest_vibrates_in_derivatives(start):
    """Also where it moves by less than tolerances tell. The error of a step is 1e-6 of the vibration, of 40 radians."""
    at = jnp.array(start), jnp.zeros(()), jnp.zeros(())
    found, steps = _reverse(*at)
    np.testing.assert_allclose(np.array(found), expected(), atol=1e-4 * np.abs(expected()).max())
    np.testing.assert_allclose(found[1:], expected()[1:], rtol=2e-3)
    assert steps < 400


_reverse = jax.jit(jax.grad(sprung, (0, 1, 2), has_aux=True))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forward_mode_takes_the_same_steps():
    at = (jnp.zeros(()),) * 3

    def forwards(*x):
        return sprung(*x, diffrax.ForwardMode())

    (found, steps), (expected, by_reverse) = jax.jit(jax.jacfwd(forwards, (0, 1, 2), has_aux=True))(*at), _reverse(*at)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert steps == by_reverse


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_begin_again_each_for_itself():
    """One rests, the other one does not: a lane has the derivatives that it has alone."""
    starts = jnp.array([0.0, 0.3])
    found, steps = jax.jit(jax.vmap(jax.grad(sprung, has_aux=True), (0, None, None)))(starts, *jnp.zeros(2))
    np.testing.assert_allclose(found, expected()[0], atol=1e-4)
    assert steps[0] != steps[1]


@pytest.mark.slow
def test_a_stiff_damper_at_rest_costs_no_steps():
    """By its gains and where it goes to, nothing about it is fast."""
    model = on_rails()

    def end(target, kd):
        controller = jdyn.PD(model, target[None], kp=1e4, kd=kd)
        motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), T, controller=controller, saveat=END)
        return motion.q[0, 0], motion.stats["accepted_steps"]

    (by_target, by_damping), steps = jax.jit(jax.grad(end, (0, 1), has_aux=True))(jnp.zeros(()), jnp.array(1e4))
    # Of m q'' = k (1 - q) - d q', which has left what is fast behind after 1e-4 s.
    slow = (-1e4 + np.sqrt(1e8 - 4e4)) / 2
    fast = -1e4 - slow
    np.testing.assert_allclose(by_target, 1 - fast / (fast - slow) * np.exp(slow * T), rtol=1e-4)
    assert by_damping == 0
    assert steps < 150


@pytest.mark.slow
def test_derivatives_that_no_step_resolves_have_a_code():
    """A force of 1e-6 N is nothing to the motion. Its slope is 1e12 N/m and changes from one number to the next."""
    model = on_rails(2)

    class Rough(jdyn.Controller):
        def __call__(self, t, q, v):
            return 1e-6 * jnp.where(q > 0.5, jnp.sin(1e18 * q), 0)

    def end(start):
        motion = jdyn.simulate(
            model, jnp.stack([start, 0 * start]), jnp.array([1.0, 0.0]), 1.0, controller=Rough(), saveat=END,
            throw=False,
        )  # fmt: skip
        return motion.q[0].sum(), motion.result

    assert jax.jit(end)(jnp.zeros(()))[1] == jdyn.Result.success
    assert jax.jit(jax.grad(end, has_aux=True))(jnp.zeros(()))[1] == jdyn.Result.derivatives
    assert "derivatives" in jdyn.simulation.result.MESSAGES[jdyn.Result.derivatives]


def ball_on_the_ground():
    builder = jdyn.Builder("ball")
    builder.add_link("rail", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), parent="rail", mass=1.0, inertia=np.full(3, 4e-3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_ball_that_slides_at_its_static_depth():
    """Against differences of order 4 of the same motion at a tolerance of 1e-12."""
    model, g, k = ball_on_the_ground(), 9.81, 1e4

    def end(height, stiffness, friction, speed):
        contact = jdyn.CompliantContact(
            material=jdyn.contact.Material(stiffness, 0.3, friction),
            materials={"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)},
        )
        motion = jdyn.simulate(
            model, jnp.stack([0 * height, height]), jnp.stack([speed, 0 * speed]), 0.3, contact=contact,
            controller=jdyn.control.Constant(jnp.array([0.5, 0.0])), saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
        )  # fmt: skip
        return motion.v[0]

    at = tuple(map(jnp.asarray, (0.1 - g / k, k, 0.4, 2.0)))
    by_height, by_stiffness, by_friction, by_speed = jax.jit(jax.jacrev(end, (0, 1, 2, 3)))(*at)
    np.testing.assert_allclose(by_height, [-25.4317483, 63.5794044], rtol=1e-5)
    np.testing.assert_allclose(by_stiffness, [2.4948546e-06, -6.2371399e-06], rtol=1e-5)
    np.testing.assert_allclose(by_friction, [-2.9429983, 0], rtol=1e-5)
    np.testing.assert_allclose(by_speed, [0.99999954, 0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "solver",
    [
        diffrax.Tsit5(),
        jdyn.solvers.CashKarp(),
        diffrax.Bosh3(),
        None,
    ],
    ids=str,
)
def test_derivatives_where_stability_holds_steps(solver):
    """An arm under springs and dampers that are stiff for its wrist. Explicit steps are as long as stability lets them
    be; derivatives by the motion's steps alone were wrong by up to nineteen digits (-2e16), those of the third order by
    fourteen."""
    model = jdyn.load("panda")
    start = model.neutral()

    def distance(kp, solver, adjoint=None):
        controller = jdyn.PD(model, jnp.full(7, 0.3), kp=kp, kd=20.0)
        motion = jdyn.simulate(
            model, start + 0.1, jnp.zeros(7), 0.3, controller=controller, solver=solver, saveat=END, adjoint=adjoint,
            stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8), max_steps=20000,
        )  # fmt: skip
        return jnp.sum(motion.q[0] ** 2)

    # By differences of another method, whose error at this tolerance is 1e-10, over a step of 2.
    exact = jax.jit(lambda kp: distance(kp, jdyn.solvers.Rodas5P()))
    expected = (exact(101.0) - exact(99.0)) / 2
    found = jax.jit(jax.grad(distance), static_argnums=1)(100.0, solver)
    _, forwards = jax.jit(lambda kp: jax.jvp(lambda kp: distance(kp, solver, diffrax.ForwardMode()), (kp,), (1.0,)))(
        100.0
    )
    np.testing.assert_allclose([found, forwards], expected, rtol=1e-4)
