"""Contact forces of a trajectory: those of the steps that were taken."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from benchmarks import resting
from tests.contact.scenes import ball, box, tilted

pytestmark = pytest.mark.fast_compile

G = 9.81
OTHERS = [scene for scene in resting.SCENES if scene not in (resting.tilted_cube, resting.gripper)]
LAW = jdyn.ConvexContact(jdyn.contact.Material(2e5, 20.0, 0.5))


def all_of(scenes):
    """Scenes for exhaustive tests alone."""
    return [pytest.param(scene, marks=pytest.mark.exhaustive) for scene in scenes]


def without(motion):
    """The same without the forces of its steps, which then follow from the states of rows."""
    return dataclasses.replace(motion, contact_forces=None)


def on_a_slope(angle=0.2, friction=0.5):
    model = tilted(box(), angle)
    law = jdyn.ConvexContact(jdyn.contact.Material(2e5, 20.0, friction))
    return model, model.neutral().at[2].set(0.2), law


@pytest.mark.slow
def test_what_friction_holds_in_single_precision_is_borne_in_every_row(tmp_path):
    model, q0, law = on_a_slope()
    model, law = model.astype(jnp.float32), jax.tree.map(jnp.float32, law)
    motion = jdyn.simulate(model, q0.astype(jnp.float32), jnp.zeros(6, jnp.float32), 30.0, contact=law)
    weight = -np.array([np.sin(0.2), 0, -np.cos(0.2)]) * G
    force, recomputed = (np.asarray(x.contacts.force("body"))[7:] for x in (motion, without(motion)))
    np.testing.assert_allclose(force, np.broadcast_to(weight, force.shape), atol=3e-4 * G)
    # States are known to less.
    assert np.abs(recomputed - weight).max() > 1e-2 * G
    a = np.asarray(motion.accelerations)[7:]
    assert np.abs(a).max() < 1e-2 and np.abs(without(motion).accelerations[7:]).max() > 0.1
    motion.save(tmp_path / "motion.npz")
    again = jdyn.Trajectory.load(tmp_path / "motion.npz")
    np.testing.assert_array_equal(again.contact_forces.force, motion.contact_forces.force)


@pytest.mark.slow
@pytest.mark.parametrize("scene", all_of([resting.box_on_arms, resting.stack, resting.gripper]))
def test_scenes_rest_in_single_precision_for_minutes(scene):
    """What each part bears, in every row after ten seconds. It was wrong by 0.7 of the weight of a box on two arms."""
    each, law = resting.astype(scene(), jnp.float32), jdyn.ConvexContact()
    motion = each.run(law, 300.0)
    assert motion.contact_forces.force.dtype == jnp.float32
    assert each.worst(motion) < 1e-3


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("turn", "reach"),
    [((0, 0, 0), 0.01), ((np.pi / 2, 0, 0), None), ((np.pi, 0, np.pi / 4), None)],
    ids=["flat, with a reach", "side", "top"],
)
def test_a_cube_on_springs_rests_on_any_side_in_single_precision(turn, reach):
    """A last digit of its height is half a percent of its weight. On its side it took all steps, with forces along
    world axes taken for those along its own."""
    each, law = resting.astype(resting.raised_cube(), jnp.float32), jdyn.CompliantContact(gradient_reach=reach)
    attitude = Rotation.from_euler("xyz", turn).as_quat(scalar_first=True)
    each = dataclasses.replace(each, q0=each.q0.at[3:].set(jnp.array(attitude, jnp.float32)))
    motion = each.run(law, 60.0)
    assert each.worst(motion) < 2e-5 and each.worst(without(motion)) > 1e-3
    assert motion.stats["accepted_steps"] < 400
    # No step leads to the start.
    assert jnp.all(jnp.isnan(motion.contact_forces.force[0]))


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "load"), [(0, lambda t: 2 * jnp.sin(jnp.pi * t)), (2, lambda t: -0.5 * t)])
def test_forces_follow_loads_that_change_as_far_as_states_tell(direction, load):
    """Steps are longer than loads take to change, and their forces are old by then: by up to 3.8 and 0.46 N."""
    each, law = resting.astype(resting.cube(), jnp.float32), jdyn.CompliantContact()

    def push(t, q, v):
        return jnp.zeros(6, q.dtype).at[3 + direction].set(load(t))

    motion = jdyn.simulate(each.model, each.q0, jnp.zeros(6, jnp.float32), 15.0, contact=law, controller=push)
    borne = np.zeros((len(motion.ts), 3))
    borne[:, 2] = G
    borne[:, direction] -= np.asarray(load(np.asarray(motion.ts)))
    error, of_states = (
        np.abs(np.asarray(x.contacts.force("part0")) - borne)[20:].max() for x in (motion, without(motion))
    )
    # Twelve roundings of the height, 1.2e-8 m and 7 mN each.
    assert error < of_states + 0.09


@pytest.mark.slow
def test_forces_of_what_rests_have_the_derivatives_of_those_of_its_states():
    each, law = resting.astype(resting.cube(), jnp.float32), jdyn.CompliantContact()
    motion = each.run(law, 20.0)

    def pressing(motion, height):
        lower = dataclasses.replace(motion, q=motion.q.at[-1, 2].add(height))
        return lower.contacts.force("part0")[-1, 2]

    slope, of_states = (jax.grad(pressing, 1)(x, jnp.float32(0)) for x in (motion, without(motion)))
    assert slope == of_states and slope < -1e5


@pytest.mark.slow
@pytest.mark.parametrize("scene", [resting.tilted_cube, *all_of([resting.gripper, *OTHERS])])
def test_scenes_rest_on_springs_in_single_precision_for_ten_minutes(scene):
    """After ten minutes a tilted cube bounced with 43 times its weight. What friction holds creeps."""
    each, law = resting.astype(scene(), jnp.float32), jdyn.CompliantContact()
    motion = each.run(law, 600.0)
    assert each.worst(motion) < 1e-3
    assert np.abs(motion.v[10:]).max() < law.slip_speed


@jax.jit
def bounces(tolerance):
    """A ball that falls onto the ground with a spin, bounces and rolls: the model, and rows at ends of steps."""
    model = ball()
    q0, v0 = model.neutral().at[2].set(0.11), jnp.array([0, 5.0, 0, 0.5, 0, 0])
    control = diffrax.PIDController(rtol=tolerance, atol=tolerance, safety=0.8, factormax=2.0)
    rows = diffrax.SaveAt(steps=True, t0=True)
    motion = jdyn.simulate(
        model, q0, v0, 0.3, contact=LAW, saveat=rows, stepsize_controller=control, max_steps=4000, throw=False
    )
    return motion, *(x.contacts.force("body") for x in (motion, without(motion))), motion.momentum


@pytest.mark.slow
def test_forces_give_the_momentum_that_the_motion_has():
    """Their integral along all steps, each of which has a straight line of them, and the weight's."""
    motion, *found = bounces(1e-4)
    reached = np.isfinite(motion.ts)
    t, force, _, momentum = (np.asarray(x)[reached] for x in (motion.ts, *found))
    assert force.max() > 20 * G
    gained = momentum[-1, 3:] - momentum[0, 3:] + np.array([0, 0, G]) * (t[-1] - t[0])
    np.testing.assert_allclose(np.trapezoid(force, t, axis=0), gained, atol=5e-3 * np.abs(gained).max())


def test_forces_of_fine_steps_press_as_their_states_say():
    motion, kept, stated, _ = bounces(1e-7)
    reached = np.isfinite(motion.ts)
    np.testing.assert_allclose(kept[reached, 2], stated[reached, 2], atol=2e-4 * np.nanmax(stated))
    # It rolls in the end, without friction, which is more than the velocity says.
    assert motion.success and np.abs(kept[reached][-1, :2]).max() < 1e-6
    # No step leads to the start.
    assert np.isnan(motion.contact_forces.force[0]).all() and np.isfinite(kept[reached]).all()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_batches_and_other_times_keep_forces():
    model, q0, law = on_a_slope()

    def run(height):
        return jdyn.simulate(model, q0.at[2].add(height), jnp.zeros(6), 1.0, contact=law)

    lanes = jax.vmap(run)(jnp.array([0.0, 1e-3]))
    one = jax.tree.map(lambda x: x[1], lanes)
    alone = run(1e-3)
    np.testing.assert_allclose(one.contact_forces.force[1:], alone.contact_forces.force[1:], atol=1e-6)
    later = alone.resample(jnp.array([0.5, 0.955])).contacts.force("body")
    np.testing.assert_allclose(later[1], alone.contacts.force("body")[-1], atol=1e-6 * G)
    silent = jdyn.simulate(
        model,
        q0,
        jnp.zeros(6),
        0.1,
        contact=law,
        solver=jdyn.solvers.ConvexEuler(forces=False),
        saveat=diffrax.SaveAt(t1=True),
    )
    assert silent.contact_forces is None


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_nearest_pairs_have_the_forces_that_all_have():
    each = resting.stack()
    runs = [
        jdyn.simulate(
            each.model, each.q0, jnp.zeros(each.model.nv), 0.2, contact=jdyn.ConvexContact(nearest=nearest),
            saveat=jnp.array([0.1, 0.2]),
        )
        for nearest in (None, 6)
    ]  # fmt: skip
    for name in each.loads:
        forces = [motion.contacts.force(name) for motion in runs]
        np.testing.assert_allclose(forces[1], forces[0], atol=1e-6 * G)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["reverse", *all_of(["forward"])])
def test_derivatives_go_through_forces_of_steps(mode):
    """What friction bears at rest is m g sin α, and does not depend on the height; derivatives by the mass."""
    model, q0, law = on_a_slope()
    adjoint = diffrax.ForwardMode() if mode == "forward" else None

    def borne(mass):
        heavy = jdyn.vary(model, {"body:body.mass": mass})
        motion = jdyn.simulate(
            heavy, q0, jnp.zeros(6), 2.0, contact=law, saveat=diffrax.SaveAt(t1=True), adjoint=adjoint
        )
        return motion.contacts.force("body")[-1]

    slope = jax.jit((jax.jacfwd if mode == "forward" else jax.jacrev)(borne))(1.0)
    np.testing.assert_allclose(slope, -G * np.array([np.sin(0.2), 0, -np.cos(0.2)]), atol=1e-5)
