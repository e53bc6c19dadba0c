"""Figures of formulation stiffness: what is drawn is what was given."""

import numpy as np
import pytest

from jdyn.studies.cloutier1995.plots import plot_curves, plot_evaluations

pytestmark = pytest.mark.fast_compile


def test_evaluations_leave_failures_out_and_mark_them(tmp_path):
    figure = plot_evaluations({"a": ([1, 1e3, 1e6], [10, 20, np.nan]), "b": ([1, 1e3, 1e6], [10, 11, 12])}, "title")
    (axes,) = figure.axes
    lines = [line for line in axes.lines if line.get_label() in ("a", "b")]
    np.testing.assert_array_equal(lines[0].get_ydata(), [10, 20, np.nan])
    marks = [line for line in axes.lines if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in marks] == [[1e6], []]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    figure.savefig(tmp_path / "evaluations.png")


def test_curves_over_a_common_axis():
    angles = np.linspace(0, 6, 5)
    (axes,) = plot_curves(
        angles, {"one": angles**2, "two": angles + 1}, "angle", "acceleration", scales=("linear", "log")
    ).axes
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), angles + 1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("angle", "acceleration")
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
