"""Plots of sweeps show the numbers they were given."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import jdyn

pytestmark = pytest.mark.fast_compile


@pytest.fixture(scope="module")
def dataset():
    def lane(p):
        return {"y": jnp.sqrt(p["a"]) * p["b"], "rows": jnp.sqrt(p["a"]) * p["b"] * jnp.arange(4.0)}

    over = jdyn.designs.Grid(a=[-1.0, 1.0, 4.0], b=[1.0, 10.0, 100.0])
    return jdyn.sweep(lane, over, attrs={"y": {"units": "rad"}}, progress=False)


def grid(values):
    coordinates = {"mass": [1.0, 2.0], "kp": [1.0, 10.0, 100.0]}
    found = xarray.Dataset({"error": (("mass", "kp"), values)}, coordinates)
    found["error"].attrs.update(long_name="what is left", units="rad")
    return found


def test_a_heat_map_marks_the_smallest_and_leaves_failures_out():
    values = np.array([[3.0, np.nan, 1.0], [2.0, 0.5, 4.0]])
    drawn = jdyn.plots.heat_map(grid(values), "error")
    axes, colors = drawn.figure.axes
    assert axes is drawn
    (star,) = axes.lines
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (10.0, 2.0)
    corners = axes.collections[0].get_coordinates()
    edges = corners[0, :, 0], corners[:, 0, 1]
    for inside, bounds in zip(([1, 10, 100], [1, 2]), edges, strict=True):
        assert np.all(bounds[:-1] < inside) and np.all(inside < bounds[1:]) and bounds[0] > 0
    mesh = axes.collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh), np.isnan(values))
    np.testing.assert_array_equal(mesh.filled(np.nan), values)
    assert axes.patch.get_hatch() and colors.get_ylabel() == "what is left [rad]"
    assert (axes.get_xlabel(), axes.get_xscale(), axes.get_yscale()) == ("kp", "log", "linear")


def test_a_heat_map_in_axes_of_ones_own_has_its_colours_beside(tmp_path):
    left, right = jdyn.plots.Picture().subplots(1, 2)
    assert jdyn.plots.heat_map(grid(np.ones((2, 3))), "error", axes=left) is left
    assert len(left.figure.axes) == 3 and not right.collections


def test_a_heat_map_of_failures_alone_is_still_drawn(tmp_path):
    jdyn.plots.heat_map(grid(np.full((2, 3), np.nan)), "error").figure.savefig(tmp_path / "failed.png")


def test_a_heat_map_needs_two_axes():
    with pytest.raises(ValueError, match=r"expected a variable over two parameters, got dimensions \('mass',\)"):
        jdyn.plots.heat_map(grid(np.ones((2, 3))).isel(kp=0), "error")


def test_pairs_show_each_lane_over_two_parameters_and_over_each(dataset, tmp_path):
    axes = jdyn.plots.pairs(dataset, "y")
    (ba, hidden), (ya, yb) = axes
    colors = ba.figure.axes[-1]
    assert not hidden.get_visible() and colors.get_ylabel() == "y [rad]"
    # Three lanes of a root of -1: at their parameters, and at the bottom where they have no value.
    assert len(ba.lines[0].get_xdata()) == 3 and ba.get_yscale() == "log"
    np.testing.assert_array_equal(ya.lines[1].get_xdata(), [-1, -1, -1])
    np.testing.assert_array_equal(ba.collections[0].get_offsets()[:, 0], [1, 1, 1, 4, 4, 4])
    np.testing.assert_array_equal(ya.collections[0].get_offsets()[:, 1], [1, 10, 100, 2, 20, 200])
    assert (ya.get_ylabel(), yb.get_xlabel()) == ("y [rad]", "b")
    ba.figure.savefig(tmp_path / "pairs.png")
    own = jdyn.plots.Picture().subplots(2, 2)
    own[1, 0].scatter([1.0], [1.0], c="red")
    jdyn.plots.pairs(dataset, "y", axes=own)
    np.testing.assert_allclose(own[0, 0].figure.axes[-1].get_ylim(), (1, 200))


def test_pairs_refuse_other_variables_and_too_few_axes(dataset):
    with pytest.raises(ValueError, match="'rows': expected one number per lane"):
        jdyn.plots.pairs(dataset, "rows")
    with pytest.raises(ValueError, match=r"axes: expected shape \(2, 2\) for a, b, got \(3,\)"):
        jdyn.plots.pairs(dataset, "y", axes=jdyn.plots.Picture().subplots(3))


def test_a_fan_shows_quantiles_over_time_and_counts_failures(dataset, tmp_path):
    axes = jdyn.plots.fan(dataset, "rows", "rows_0", times=[0.0, 0.1, 0.2, 0.3])
    good = np.array([1.0, 10, 100, 2, 20, 200])[:, None] * np.arange(4)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.median(good, axis=0))
    for band, shares in zip(axes.collections, ((0.05, 0.95), (0.25, 0.75)), strict=True):
        last = band.get_paths()[0].vertices
        last = last[last[:, 0] == 0.3]
        for bound, share in zip((last[:, 1].min(), last[:, 1].max()), shares, strict=True):
            assert bound == pytest.approx(np.quantile(good[:, -1], share))
    assert axes.lines[1].get_label() == "3 of 9 lanes failed" and axes.get_xlabel() == "time [s]"
    axes.figure.savefig(tmp_path / "fan.png")
    assert jdyn.plots.fan(dataset, "rows", "rows_0", times=[0, 1, 2, 3]).get_xlabel() == "time [s]"
    assert jdyn.plots.fan(dataset, "rows", "rows_0").get_xlabel() == "row"
    with pytest.raises(ValueError, match="'y': expected dimensions"):
        jdyn.plots.fan(dataset, "y", "rows_0")
