"""Figures of sweeps show the numbers they were given."""

import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.view import plot_fan, plot_pairs

pytestmark = pytest.mark.fast_compile


@pytest.fixture(scope="module")
def dataset():
    def lane(p):
        return {"y": jnp.sqrt(p["a"]) * p["b"], "rows": p["b"] * jnp.arange(4.0)}

    over = jdyn.Grid(a=[-1.0, 1.0, 4.0], b=[1.0, 10.0, 100.0])
    return jdyn.sweep(lane, over, attrs={"y": {"units": "rad"}}, progress=False)


def test_pairs_show_each_lane_over_two_parameters_and_over_each(dataset, tmp_path):
    figure = plot_pairs(dataset, "y")
    ba, hidden, ya, yb, colors = figure.axes
    assert not hidden.get_visible() and colors.get_ylabel() == "y [rad]"
    # Three lanes of a root of -1.
    assert len(ba.lines[0].get_xdata()) == 3 and ba.get_yscale() == "log"
    np.testing.assert_array_equal(ba.collections[0].get_offsets()[:, 0], [1, 1, 1, 4, 4, 4])
    np.testing.assert_array_equal(ya.collections[0].get_offsets()[:, 1], [1, 10, 100, 2, 20, 200])
    assert (ya.get_ylabel(), yb.get_xlabel()) == ("y [rad]", "b")
    figure.savefig(tmp_path / "pairs.png")
    with pytest.raises(ValueError, match="'rows': expected one number per lane"):
        plot_pairs(dataset, "rows")


def test_a_fan_shows_quantiles_over_time(dataset, tmp_path):
    axes = plot_fan(dataset, "rows", "rows_0", times=[0.0, 0.1, 0.2, 0.3]).axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), 10 * np.arange(4.0))
    wide = axes.collections[0].get_paths()[0].vertices
    assert wide[:, 1].max() == pytest.approx(300) and axes.get_xlabel() == "time [s]"
    axes.figure.savefig(tmp_path / "fan.png")
    with pytest.raises(ValueError, match="'y': expected dimensions"):
        plot_fan(dataset, "y", "rows_0")
