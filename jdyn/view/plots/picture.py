"""Figures without pyplot."""

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Of what a notebook shows [1/inch].
DPI = 80


class Picture(Figure):
    """A figure that a notebook shows as it is, although pyplot does not know of it.

    >>> picture = jdyn.plots.Picture(figsize=(6, 3))
    >>> left, right = picture.subplots(1, 2)
    >>> axes = jdyn.plots.curves(np.arange(3), {"line": np.arange(3)}, "x", "y", axes=left)
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()


def axes_or_new(axes: Axes | None, width: float = 8.0, height: float = 4.5) -> Axes:
    """The axes that were given, or those of a new figure of this size [inch]."""
    return Picture(figsize=(width, height), layout="constrained").subplots() if axes is None else axes
