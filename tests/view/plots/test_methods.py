"""Plots of tuning, gradients and methods show the numbers they were given, and are told apart without colours."""

import io

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jdyn
from jdyn.tuning.comparison import Derivative
from jdyn.tuning.growth import fitted_growth
from jdyn.view.plots import styles

pytestmark = pytest.mark.fast_compile


def result(losses, judged=None):
    losses = np.asarray(losses, float)
    judged = losses if judged is None else np.asarray(judged, float)
    rates = np.full(len(losses), np.nan)
    return jdyn.tuning.TuneResult({}, losses, losses, int(np.nanargmin(judged)), "", judged, rates, None, {})


def test_a_history_is_logarithmic_where_it_spans_decades():
    axes = jdyn.plots.tuning(result([100.0, 10.0, 1.0, 0.1]))
    line, best = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([range(4), [100, 10, 1, 0.1]]))
    assert best.get_xydata().tolist() == [[3, 0.1]] and best.get_marker() == "*"
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("step", "loss", "log")
    assert jdyn.plots.tuning(result([3.0, 2.0, 2.5])).get_yscale() == "linear"


def test_a_history_of_batches_shows_the_losses_that_decide():
    axes = jdyn.plots.tuning(result([4, 1, 3, 2], judged=[5, np.nan, 2.5, np.nan]))
    _, judged, best = axes.lines
    assert judged.get_xydata().tolist() == [[0, 5], [2, 2.5]] and judged.get_label() == "loss of all rows"
    assert best.get_xydata().tolist() == [[2, 2.5]]


def test_histories_of_several_starts_are_lines_of_a_style_each():
    found = jdyn.tune_starts(
        lambda p: jnp.sum(p["x"] ** 2), {"x": jnp.array([[1.0], [2.0]])}, optimizer=optax.sgd(0.1), steps=3,
        progress=False,
    )  # fmt: skip
    axes = jdyn.plots.tuning(found)
    first, _, second, _ = axes.lines
    np.testing.assert_allclose(first.get_ydata(), 0.64 ** np.arange(4))
    np.testing.assert_allclose(second.get_ydata(), 4 * 0.64 ** np.arange(4))
    assert (first.get_label(), second.get_label()) == ("start 0", "start 1")
    assert first.get_linestyle() != second.get_linestyle()
    again = jdyn.plots.tuning(found.to_xarray())
    np.testing.assert_array_equal(again.lines[2].get_ydata(), second.get_ydata())


def health(growth=None):
    derivatives = (
        Derivative("kp", "", 2.0, 2.002, 1e-6, "agrees", ""),
        Derivative("kd", "[0]", 1.0, 2.0, 0.01, "disagrees", ""),
        Derivative("m", "", np.nan, 1.0, np.inf, "not finite", ""),
    )
    return jdyn.tuning.GradientHealth(1.0, 1.0, derivatives, growth, None)


def test_derivatives_are_as_far_apart_as_they_are_and_marked_by_verdict():
    axes = jdyn.plots.gradient_health(health())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["kp", "kd[0]", "m"]
    agrees, disagrees, not_finite = axes.lines
    assert agrees.get_xdata()[0] == pytest.approx(0.002 / 2.002) and agrees.get_marker() == "o"
    assert disagrees.get_xdata()[0] == 0.5 and disagrees.get_marker() == "X" and disagrees.get_ydata()[0] == 1
    assert not_finite.get_xdata()[0] == 1
    widths = [bar.get_x() + bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(widths, [1e-6 / 2.002, 0.005, 1.0])
    assert axes.get_xscale() == "log"
    with pytest.raises(ValueError, match="health: expected derivatives, got none"):
        jdyn.plots.gradient_health(jdyn.tuning.GradientHealth(np.nan, np.nan, (), None, None))


def test_the_growth_of_a_gradient_lies_on_the_law_that_fits_it():
    t = np.array([1.0, 2.0, 3.0, 4.0])
    norms = np.append(3 * np.exp(2 * t[:3]), np.inf)
    axes = jdyn.plots.gradient_growth(health(fitted_growth(t, norms)))
    points, bad, law = axes.lines
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([t, norms])[:3])
    assert bad.get_xdata().tolist() == [4.0] and bad.get_label() == "not finite"
    np.testing.assert_allclose(law.get_ydata(), 3 * np.exp(2 * law.get_xdata()), rtol=1e-10)
    assert (law.get_label(), axes.get_xlabel()) == ("exp(2 t)", "horizon [s]")
    with pytest.raises(ValueError, match=r"give jdyn\.gradient_health horizons="):
        jdyn.plots.gradient_growth(health())


def test_errors_against_work_leave_out_what_is_not_finite():
    curves = {"a": ([1e-2, 0.0, 1e-6], [1.0, 2.0, 3.0]), "b": ([np.inf], [1.0]), "c": ([1e-3], [2.0])}
    axes = jdyn.plots.work_precision(curves, bold=["a"], work="µs")
    a, c = axes.lines
    assert a.get_xydata().tolist() == [[1e-2, 1.0], [1e-6, 3.0]] and c.get_label() == "c"
    assert a.get_linewidth() > c.get_linewidth()
    assert axes.xaxis_inverted() and (axes.get_xscale(), axes.get_yscale(), axes.get_ylabel()) == ("log", "log", "µs")
    # A second call in the same axes does not turn them back.
    assert jdyn.plots.work_precision(curves, axes=axes).xaxis_inverted()


def test_stiffness_leaves_failures_out_and_marks_them(tmp_path):
    series = {"a": ([1, 1e3, 1e6], [10, 20, np.nan]), "b": ([1, 1e3, 1e6], [10, 11, 12])}
    axes = jdyn.plots.stiffness(series)
    lines = [line for line in axes.lines if line.get_label() in ("a (×: failed)", "b")]
    np.testing.assert_array_equal(lines[0].get_ydata(), [10, 20, np.nan])
    marks = [line for line in axes.lines if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in marks] == [[1e6], []]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    axes.figure.savefig(tmp_path / "evaluations.png")


def test_curves_over_a_common_axis():
    angles = np.linspace(0, 6, 5)
    axes = jdyn.plots.curves(
        angles, {"one": angles**2, "two": angles + 1}, "angle", "acceleration", scales=("linear", "log")
    )
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), angles + 1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("angle", "acceleration")
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    with pytest.raises(ValueError, match=r"'one': expected a value for each entry of x, of shape \(5,\), got \(3,\)"):
        jdyn.plots.curves(angles, {"one": angles[:3]}, "", "")


@pytest.mark.parametrize("style", [lambda i: styles.line(i, 100), styles.marked_line])
def test_fifty_lines_are_told_apart_without_colours(style):
    assert len({(style(i)["linestyle"], style(i).get("marker")) for i in range(50)}) == 50


def test_a_legend_stands_beside_what_it_names():
    axes = jdyn.plots.curves(np.arange(3), {f"line {i}": np.arange(3) for i in range(45)}, "x [m]", "y [m]")
    axes.figure.savefig(io.BytesIO())
    box, names = axes.get_window_extent(), axes.get_legend().get_window_extent()
    assert names.x0 >= box.x1 and names.x1 <= axes.figure.bbox.x1 and names.y0 >= 0
