"""Plots of motions show the numbers they were given."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

MODEL = jdyn.load("pendulum")
PUSHED = jdyn.PD(MODEL, [0.0], kp=4000.0, kd=200.0)
EVERY_STEP = diffrax.SaveAt(t0=True, steps=True)


def swing(q0=1.0):
    return jdyn.simulate(MODEL, [q0], [0.0], 0.5, saveat=np.linspace(0, 0.5, 6))


@pytest.fixture(scope="module")
def motion():
    return swing()


def stacked(*motions):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *motions)


@pytest.mark.slow
def test_energies_have_names_and_a_unit(motion, tmp_path):
    axes = jdyn.plots.energy(motion)
    assert [line.get_label() for line in axes.lines] == ["total", "kinetic", "potential"]
    total, kinetic, potential = (line.get_ydata() for line in axes.lines)
    np.testing.assert_allclose(kinetic + potential, total)
    np.testing.assert_allclose(total, motion.energy, rtol=1e-14)
    np.testing.assert_allclose(kinetic[-1], jdyn.kinetic_energy(MODEL, motion.q[-1], motion.v[-1]), rtol=1e-14)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time [s]", "energy [J]")
    axes.figure.savefig(tmp_path / "energy.png")


def test_coordinates_and_velocities_are_lines_over_time(motion):
    for variable, label in (("q", "q [rad]"), ("v", "v [rad/s]")):
        axes = jdyn.plots.trajectory(motion, variable)
        (line,) = axes.lines
        np.testing.assert_array_equal(line.get_xdata(), motion.ts)
        np.testing.assert_array_equal(line.get_ydata(), getattr(motion, variable)[:, 0])
        assert (line.get_label(), axes.get_ylabel()) == (MODEL.joint_names[0], label)
    with pytest.raises(ValueError, match="variable: expected 'q' or 'v', got 'tau'"):
        jdyn.plots.trajectory(motion, "tau")  # pyright: ignore[reportArgumentType]


def floating():
    """A body in free flight; its motion is in closed form."""
    builder = jdyn.Builder("flight")
    builder.add_link("hull", jdyn.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1), joint_name="hull")
    model = builder.build()
    ts = jnp.linspace(0, 1, 3)
    q = jnp.zeros((3, 7)).at[:, 0].set(ts).at[:, 3].set(1.0)
    blank = swing()
    none = dataclasses.replace(blank.events, q=jnp.zeros((0, 7)), v=jnp.zeros((0, 6)))
    v = jnp.zeros((3, 6)).at[:, 3].set(1.0)
    return jdyn.Trajectory(ts, q, v, {}, none, blank.result, blank.stats).with_system(model)


def test_units_of_different_coordinates_stand_together():
    axes = jdyn.plots.trajectory(floating())
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(axes.lines) == 7 and labels == ["hull[0]", "hull[1]", "hull[2]", "hull, quaternion"]
    assert axes.get_ylabel() == "q [m, quaternion]"


def test_given_axes_are_drawn_in_and_returned(motion):
    left, right = jdyn.plots.Picture().subplots(1, 2)
    assert jdyn.plots.trajectory(motion, axes=right) is right
    assert len(right.lines) == 1 and not left.lines


def test_a_picture_shows_itself_in_a_notebook(motion):
    assert jdyn.plots.energy(motion).figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "draw",
    [
        jdyn.plots.energy,
        jdyn.plots.trajectory,
        lambda motion: jdyn.plots.distance({"before": motion}, jnp.zeros(1)),
        jdyn.plots.steps,
    ],
)
def test_a_batch_is_refused_with_the_way_to_pick_a_lane(draw, motion):
    with pytest.raises(ValueError, match=r"expected one motion, got a batch of shape.*pick a lane with"):
        draw(stacked(motion, motion))
    with pytest.raises(ValueError, match=r"expected a jdyn\.Trajectory, got (list|Array)"):
        draw([1.0])


def test_distances_are_norms_of_differences(motion):
    axes = jdyn.plots.distance({"before": motion, "after": swing(0.5)}, jnp.array([0.3]))
    before, after = axes.lines
    np.testing.assert_allclose(before.get_ydata(), np.abs(np.asarray(motion.q)[:, 0] - 0.3))
    assert after.get_label() == "after" and axes.get_ylabel() == "distance to the target [rad or m]"


def test_a_phase_portrait_marks_starts_ends_and_failures(motion):
    failed = dataclasses.replace(
        motion, q=motion.q.at[4:].set(jnp.nan), v=motion.v.at[4:].set(jnp.nan),
        result=jnp.full_like(motion.result, jdyn.Result.nonfinite),
    )  # fmt: skip
    axes = jdyn.plots.phase_portrait(stacked(motion, failed), MODEL.joint_names[0])
    path, start, end, failed_path, _, failed_end = axes.lines
    np.testing.assert_array_equal(path.get_xydata(), np.hstack([motion.q, motion.v]))
    np.testing.assert_array_equal(start.get_xydata(), path.get_xydata()[:1])
    np.testing.assert_array_equal(end.get_xydata(), path.get_xydata()[-1:])
    assert (start.get_marker(), end.get_marker(), failed_end.get_marker()) == ("o", "s", "x")
    assert len(failed_path.get_xdata()) == 4
    assert (axes.get_xlabel(), axes.get_ylabel()) == (f"{MODEL.joint_names[0]} [rad]", "velocity [rad/s]")


def test_a_phase_portrait_is_of_a_joint_with_one_coordinate(motion):
    with pytest.raises(ValueError, match="joint: expected one with a coordinate of its own, got 'hull'"):
        jdyn.plots.phase_portrait(floating())
    with pytest.raises(ValueError, match="no joint is called 'elbow'"):
        jdyn.plots.phase_portrait(motion, "elbow")
    with pytest.raises(ValueError, match="joint: expected a number below 1, got 1"):
        jdyn.plots.phase_portrait(motion, 1)


def test_steps_show_sizes_rejections_and_which_method_ran():
    motion = jdyn.simulate(
        MODEL, [1.0], [0.0], 0.5, controller=PUSHED, saveat=EVERY_STEP, dt0=0.2, max_steps=200
    )  # fmt: skip
    axes = jdyn.plots.steps(motion)
    ts = np.asarray(motion.ts)[np.isfinite(motion.ts)]
    sizes, explicit, implicit, rejected = axes.lines
    np.testing.assert_array_equal(sizes.get_ydata(), np.diff(ts))
    both = np.concatenate([explicit.get_xydata(), implicit.get_xydata()])
    np.testing.assert_array_equal(both[np.argsort(both[:, 0])], np.column_stack([ts[:-1], np.diff(ts)]))
    # Gains that are stiff at this step, so that the first steps after the start are implicit.
    assert len(implicit.get_xdata()) > 0 and rejected.get_xdata()[0] == 0
    tries = len(ts) - 1 + int(motion.stats["rejected_steps"])
    assert int(motion.stats["row_tries"][len(ts) - 1]) == tries
    assert rejected.get_label() == f"rejected before ({motion.stats['rejected_steps']})"
    assert {explicit.get_marker(), implicit.get_marker()} == {"o", "s"}
    assert (axes.get_ylabel(), axes.get_yscale()) == ("step [s]", "log")


def test_steps_need_a_row_after_every_step(motion):
    expected = "expected a row at the start and after every step, got {}.*saveat=diffrax.SaveAt"
    with pytest.raises(ValueError, match=expected.format("rows at given times")):
        jdyn.plots.steps(motion)
    stats = motion.stats | {"row_tries": jnp.arange(6), "accepted_steps": jnp.array(10)}
    sparse = jdyn.Trajectory(motion.ts, motion.q, motion.v, {}, motion.events, motion.result, stats)
    with pytest.raises(ValueError, match=expected.format("6 rows of 10 steps")):
        jdyn.plots.steps(sparse)
