"""The choice between an explicit and an implicit method, lane by lane, while a simulation runs."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
PANDA = jdyn.load("panda")
# Without its dampers and friction, which are stiff on the light links.
FREE = dataclasses.replace(PANDA, damping=jnp.zeros(PANDA.nv), friction=jnp.zeros(PANDA.nv))
ROWS = jnp.linspace(0.0, 0.4, 9)


class Hold(jdyn.Controller):
    """Damping that ends [N m s/rad]."""

    damping: jax.Array
    until: jax.Array

    def __call__(self, t, q, v):
        return -jnp.where(t < self.until, self.damping, 0) * v


def swing(damping=0.0, until=10.0, solver=None, tolerance=1e-6, saveat=ROWS, model=FREE):
    control = Hold(jnp.asarray(damping), jnp.asarray(until))
    steps = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    return jdyn.simulate(
        model, model.neutral() + 0.4, jnp.ones(model.nv, model.dtype), 0.4, controller=control, solver=solver,
        stepsize_controller=diffrax.ClipStepSizeController(steps, jump_ts=jnp.asarray([until])), saveat=saveat,
        throw=False,
    )  # fmt: skip


def tries(motion):
    return motion.stats["accepted_steps"] + motion.stats["rejected_steps"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tolerance", "stages"),
    [(1e-6, 8), pytest.param(1e-9, 13, marks=pytest.mark.exhaustive)],
    ids=["order 6", "order 8"],
)
@pytest.mark.parametrize("compile", [lambda f: f, jax.jit], ids=["known tolerance", "traced tolerance"])
def test_where_nothing_is_stiff_it_is_explicit(tolerance, stages, compile):
    found = compile(lambda tolerance: swing(tolerance=tolerance))(tolerance)
    exact = swing(solver=diffrax.Tsit5(), tolerance=1e-11)
    # The first step is implicit, to find out, and tried until it is accepted.
    implicit = found.stats["implicit_steps"]
    assert 0 < implicit < 8
    # An explicit step takes one evaluation more where it does not know the rate at its start.
    explicit = found.stats["dynamics_calls"] - 8 * implicit
    assert 0 < explicit - stages * (tries(found) - implicit) < 8
    np.testing.assert_allclose(found.q, exact.q, atol=tolerance)


def test_where_gains_are_stiff_it_is_implicit():
    found, explicit = swing(20.0), swing(20.0, solver=diffrax.Tsit5())
    assert found.stats["implicit_steps"] > tries(found) // 4
    assert tries(found) < tries(explicit) // 10
    # Rows between the ends of steps, too.
    np.testing.assert_allclose(found.q, explicit.q, atol=2e-6)
    np.testing.assert_allclose(found.v[1:], explicit.v[1:], atol=2e-5)


def test_it_returns_when_stiffness_ends():
    found = swing(20.0, until=0.05)
    # After that as many explicit steps as without any damper, or nearly so.
    assert found.stats["implicit_steps"] > 10
    assert tries(found) - found.stats["implicit_steps"] > tries(swing()) // 2
    exact = swing(20.0, 0.05, diffrax.Tsit5(), 1e-10)
    np.testing.assert_allclose(found.q, exact.q, atol=2e-6)


@pytest.mark.slow
def test_each_lane_chooses_for_itself():
    dampings = jnp.array([0.0, 20.0, 0.0, 5.0])
    together = jax.vmap(swing)(dampings)
    for lane, damping in enumerate(dampings):
        alone = swing(damping)
        for name in ("accepted_steps", "dynamics_calls", "implicit_steps"):
            assert abs(int(together.stats[name][lane]) - int(alone.stats[name])) <= (0 if damping == 0 else 2 * 8)
        np.testing.assert_allclose(together.q[lane], alone.q, atol=1e-12 if damping == 0 else 1e-7)
    stiff = np.asarray(together.stats["implicit_steps"]) > 8
    np.testing.assert_array_equal(stiff, dampings > 0)


def sled(**joint):
    builder = jdyn.Builder("sled", gravity=(3.0, 0.0, -10.0))
    builder.add_link("sled", jdyn.Prismatic((1, 0, 0)), **joint)
    builder.add_link("foot", jdyn.Prismatic((0, 0, 1)), parent="sled", mass=1.0)
    builder.add_shape("foot", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


GROUND = jdyn.CompliantContact(jdyn.contact.SpringDamper(), jdyn.contact.Material(4e3, 0.1, 1.0), slip_speed=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "contact", "slip"),
    [(sled(), GROUND, 0.3 / np.sqrt(0.91)), (sled(friction=10.0, friction_speed=1e-3), None, np.arctanh(0.3))],
    ids=["ground", "joint"],
)
def test_explicit_steps_do_not_go_on_for_ever_where_friction_holds(model, contact, slip):
    """A sled is pulled by 0.3 of its friction. With explicit steps ten times as long as friction takes to hold, a slip
    of 1.8 or 2.3 times the slip speed is a fixed point that the motion does not have: their stages slip so fast that
    they show no stiffness, and they end as they began."""
    end = jdyn.simulate(
        model, jnp.array([0.0, 0.095]), jnp.array([3e-3, 0.0]), 0.05, contact=contact, saveat=END,
        stepsize_controller=diffrax.ConstantStepSize(), dt0=1e-3,
    )  # fmt: skip
    np.testing.assert_allclose(end.v[0, 0], 1e-3 * slip, rtol=1e-6)
    assert end.stats["implicit_steps"] > 40


def test_what_falls_stays_explicit():
    """Its rate ends as it began, and rounding alone takes it elsewhere on the way."""
    fall = jdyn.simulate(
        sled(), jnp.zeros(2), jnp.zeros(2), 1.0, saveat=END, stepsize_controller=diffrax.ConstantStepSize(), dt0=0.02
    )
    np.testing.assert_allclose(fall.v[0], [3.0, -10.0], rtol=1e-12)
    assert fall.stats["implicit_steps"] < 4


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gradients_through_a_change_of_method():
    """Central differences, with the steps of one run for all: their ends depend on the damping otherwise."""
    ends = swing(20.0, until=0.05, saveat=diffrax.SaveAt(t0=True, steps=True)).ts
    ends = ends[jnp.isfinite(ends)]

    def loss(damping):
        motion = jdyn.simulate(
            FREE, FREE.neutral() + 0.4, jnp.ones(FREE.nv), 0.4, controller=Hold(damping, jnp.array(0.05)),
            stepsize_controller=diffrax.StepTo(ts=ends), saveat=END, throw=False,
        )  # fmt: skip
        return jnp.sum(motion.q**2), motion.stats["implicit_steps"]

    (_, implicit), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(20.0)
    assert implicit > 5
    h, value = 1e-3, jax.jit(loss)
    np.testing.assert_allclose(gradient, (value(20 + h)[0] - value(20 - h)[0]) / (2 * h), rtol=1e-6)


@pytest.mark.slow
def test_single_precision():
    model = FREE.astype(jnp.float32)
    found = swing(jnp.float32(20.0), jnp.float32(10.0), tolerance=1e-5, model=model)
    assert found.q.dtype == jnp.float32 and found.stats["implicit_steps"] > tries(found) // 4
    np.testing.assert_allclose(found.q, swing(20.0, tolerance=1e-9).q, atol=1e-4)


def test_outside_of_local_coordinates_it_is_refused():
    field = diffrax.ODETerm(lambda t, y, args: y)
    with pytest.raises(ValueError, match="it works in local coordinates"):
        diffrax.diffeqsolve(
            field, jdyn.solvers.Automatic(), 0.0, 1.0, 0.1, jdyn.simulation.vector_field.State(ROWS, ROWS)
        )
