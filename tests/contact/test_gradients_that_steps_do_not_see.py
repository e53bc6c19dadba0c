"""Derivatives that grow though the motion is smooth: of what slips by nothing, and of springs with a reach."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jdyn
from benchmarks.contact_gradients import table
from tests.contact.scenes import box

pytestmark = [pytest.mark.fast_compile, pytest.mark.slow]

END = diffrax.SaveAt(t1=True)


@pytest.mark.exhaustive
def test_a_reach_brings_a_puck_to_its_target_from_where_nothing_touches():
    """Steps take no longer than a radian of the springs that derivatives feel: 1 / √(2 k / m) = 5 ms. With the speed at
    the start the pusher stops 20 cm before it touches the puck, and differences of the motion are zero."""
    model, contact = table(), jdyn.CompliantContact(material=jdyn.contact.Material(2e4, 0.1, 0.0), gradient_reach=0.1)
    steps = diffrax.PIDController(rtol=1e-6, atol=1e-8, dtmax=5e-3)

    def end(speed):
        return jdyn.simulate(
            model, jnp.zeros(2), jnp.stack([speed, jnp.zeros_like(speed)]), 2.0, contact=contact, saveat=END,
            stepsize_controller=steps, throw=False,
        ).q[0, 1]  # fmt: skip

    def missed(speed):
        return (end(speed) - 0.3) ** 2

    # Optax mixes types. Differences are not what these derivatives are to agree with.
    with jax.numpy_dtype_promotion("standard"):
        found = jdyn.tune(
            missed, jnp.asarray(0.3), optimizer=optax.adam(0.1), steps=25, check=False, progress=False
        )  # fmt: skip
    assert found.losses[0] == 0.3**2
    assert found.losses[found.best_step] < 0.01**2


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtmax", [5e-3, pytest.param(1e-3, marks=pytest.mark.exhaustive)])
def test_a_reach_does_not_feel_friction_before_shapes_touch(dtmax):
    """Of a box that is thrown onto the ground. With friction that is felt from a distance, its derivatives are 1e97 and
    more."""
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(2e4, friction=0.6), gradient_reach=0.01)
    q = jnp.array([0, 0, 0.3, 0.96, 0.2, 0.1, 0.1])
    v = jnp.array([1.0, -2.0, 0.5, 0.6, 0.3, -1.0])

    def end(v):
        motion = jdyn.simulate(
            box(), q, v, 0.15, contact=contact, saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8, dtmax=dtmax),
        )  # fmt: skip
        return motion.q[0, :3].sum()

    by_velocity = jax.jit(jax.grad(end))(v)
    # That along the ground is at most the time.
    assert np.all(np.abs(by_velocity) < 0.2)


@pytest.mark.exhaustive
def test_a_hopper_on_the_spot_has_the_derivatives_of_its_motion():
    """Nothing slips, so that no error estimate sees friction that steps are too long for. Differences are those of
    motions that lean a little, by a tighter tolerance."""
    model = jdyn.with_ground(jdyn.load("hopper"), friction=1.0)
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=2e4, dissipation=1.0), slip_speed=1e-2)
    start, joints = jnp.array([0.0, 1.2, 0.0, 0.0, 0.0]), np.arange(5)

    def ahead(lean, tolerance):
        legs = jdyn.PD(
            model, jnp.where(joints == 3, lean, 0.0), kp=jnp.array([0.0, 0, 0, 120, 2000]),
            kd=jnp.array([0.0, 0, 0, 20, 5]),
        )  # fmt: skip
        motion = jdyn.simulate(
            model, start, jnp.zeros(5), 0.8, controller=legs, contact=contact, saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance), adjoint=diffrax.ForwardMode(),
        )  # fmt: skip
        return motion.q[0, 0]

    program = jax.jit(lambda lean, tolerance: jax.jvp(lambda x: ahead(x, tolerance), (lean,), (jnp.ones_like(lean),)))
    (_, slope), (after, _), (before, _) = (
        program(jnp.array(lean), jnp.array(tolerance)) for lean, tolerance in ((0.0, 1e-5), (1e-4, 1e-8), (-1e-4, 1e-8))
    )
    np.testing.assert_allclose(slope, (after - before) / 2e-4, rtol=0.1)
