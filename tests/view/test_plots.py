"""Figures show the numbers they were given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import jdyn
from jdyn.view import plot_heat_map, plot_motion, plot_tuning

pytestmark = pytest.mark.fast_compile

MODEL = jdyn.load("pendulum")
TARGET = jnp.array([0.3])


def swing():
    return jdyn.simulate(MODEL, [1.0], [0.0], 0.5)


def test_a_motion_shows_energies_and_coordinates_by_name(tmp_path):
    motion = swing()
    figure = plot_motion(MODEL, motion)
    energies, coordinates = figure.axes
    kinetic, potential, total = (line.get_ydata() for line in energies.lines)
    np.testing.assert_allclose(kinetic + potential, total)
    np.testing.assert_allclose(kinetic[-1], jdyn.kinetic_energy(MODEL, motion.q[-1], motion.v[-1]))
    assert [line.get_label() for line in coordinates.lines] == list(MODEL.joint_names)
    figure.savefig(tmp_path / "motion.png")


def test_coordinates_of_a_ball_joint_are_numbered():
    builder = jdyn.Builder("top")
    builder.add_link("top", jdyn.Ball(), mass=1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.01), joint_name="tip")
    model = builder.build()
    motion = jdyn.simulate(model, model.neutral(), jnp.ones(3), 0.1, saveat=[0.05, 0.1])
    labels = [line.get_label() for line in plot_motion(model, motion).axes[1].lines]
    assert labels == ["tip[0]", "tip[1]", "tip[2]", "tip[3]"]


def test_a_batch_is_refused_with_the_way_to_pick_a_lane():
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), swing())
    with pytest.raises(ValueError, match="got a batch of shape"):
        plot_motion(MODEL, batch)


def grid(values):
    coordinates = {"mass": [1.0, 2.0], "kp": [1.0, 10.0, 100.0]}
    dataset = xarray.Dataset({"error": (("mass", "kp"), values)}, coordinates)
    dataset["error"].attrs.update(long_name="what is left", units="rad")
    return dataset


def test_a_heat_map_marks_the_smallest_and_leaves_failures_out():
    values = np.array([[3.0, np.nan, 1.0], [2.0, 0.5, 4.0]])
    axes, colors = plot_heat_map(grid(values), "error").axes
    (star,) = axes.lines
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (10.0, 2.0)
    corners = axes.collections[0].get_coordinates()
    edges = corners[0, :, 0], corners[:, 0, 1]
    for inside, bounds in zip(([1, 10, 100], [1, 2]), edges, strict=True):
        assert np.all(bounds[:-1] < inside) and np.all(inside < bounds[1:]) and bounds[0] > 0
    mesh = axes.collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh), np.isnan(values))
    assert colors.get_ylabel() == "what is left [rad]"
    assert (axes.get_xlabel(), axes.get_xscale(), axes.get_yscale()) == ("kp", "log", "linear")


def test_a_heat_map_of_failures_alone_is_still_drawn(tmp_path):
    plot_heat_map(grid(np.full((2, 3), np.nan)), "error").savefig(tmp_path / "failed.png")


def test_a_heat_map_needs_two_axes():
    with pytest.raises(ValueError, match=r"expected a variable over two parameters, got dimensions \('mass',\)"):
        plot_heat_map(grid(np.ones((2, 3))).isel(kp=0), "error")


def test_tuning_shows_the_loss_and_the_distances():
    motion = swing()
    history, distances = plot_tuning(MODEL, np.array([4, 1, 2]), {"before": motion, "after": motion}, TARGET).axes
    np.testing.assert_array_equal(history.lines[0].get_ydata(), [4, 1, 2])
    assert history.lines[1].get_xdata()[0] == 1
    before, after = distances.lines
    np.testing.assert_allclose(before.get_ydata(), np.abs(np.asarray(motion.q)[:, 0] - 0.3))
    assert after.get_label() == "after"
