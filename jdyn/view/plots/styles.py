"""Lines that are told apart without colour."""

from typing import Any

from matplotlib.axes import Axes

# Colours that colour-blind people tell apart, by Okabe and Ito; the light ones last.
COLORS = ("black", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Of what stands behind the rest.
FAINT = "0.6"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
# Of those with markers, so many points show one.
MARKED = 12
# Names that a column of a legend has room for.
COLUMN = 20


def line(number: int, points: int) -> dict[str, Any]:
    """The style of a line through many points. Those with the same dashes have other markers."""
    turn = number // len(DASHES)
    style = {"color": COLORS[number % len(COLORS)], "linestyle": DASHES[number % len(DASHES)]}
    if turn == 0:
        return style
    marks = {"marker": MARKERS[(turn - 1) % len(MARKERS)], "markevery": max(1, points // MARKED), "markersize": 4}
    return style | marks


def marked_line(number: int) -> dict[str, Any]:
    """The style of a line through few points, which are all marked."""
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
    }


def finished(axes: Axes, **settings: Any) -> Axes:
    """The axes with labels and scales, as `Axes.set` takes them, a grid and a legend."""
    axes.set(**settings)
    axes.grid(alpha=0.3)
    legend(axes)
    return axes


def legend(axes: Axes) -> None:
    """A legend beside the axes, which hides nothing."""
    names = len(axes.get_legend_handles_labels()[1])
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize="small", ncols=1 + names // COLUMN
    )
