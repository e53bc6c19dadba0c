"""Ground that is given by its heights on a grid."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jdyn.array import Structure
from jdyn.array.dot import dot


class HeightField(Structure):
    """All points below a surface over a rectangle, whose middle is below or above the origin.

    Between the points of the grid the surface is made of triangles, two in each cell; their common edge leads from the
    corner of least x and y to the one of greatest x and y. The normal is that of the smooth ground which
    the heights are samples of: the slopes at the points of the grid, by central differences, are interpolated as the
    heights are. So it is continuous, and that of the triangles where those beside each other lie in one plane.

    >>> from jdyn.geometry import HeightField
    >>> ground = HeightField(jnp.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), sides=jnp.array([2.0, 1.0]))
    >>> height, normal = ground.surface(jnp.array([0.5, 0.2]))
    >>> print(height, normal.round(3) + 0.0)
    1.5 [-0.707  0.     0.707]

    Attributes:
        heights: Above z = 0 [m]; a row for each y, a column for each x, both increasing. At least two of each.
        sides: Lengths of the rectangle along x and y [m].

    Source: the grid and its triangles are those of MuJoCo's height fields.
    """

    heights: Float[Array, "rows columns"]
    sides: Float[Array, "2"]

    def surface(self, place: Float[Array, "2"]) -> tuple[Float[Array, ""], Float[Array, "3"]]:
        """Height [m] and unit normal of the surface at a place; those of the triangle next to it beyond the border.

        Args:
            place: x and y in the frame of the field [m].

        Raises:
            ValueError: if there are fewer than two rows or columns.
        """
        rows, columns = self.heights.shape
        if rows < 2 or columns < 2:
            raise ValueError(f"heights of a field: expected two rows and two columns or more, got {rows} x {columns}")
        cells = jnp.array([columns - 1, rows - 1])
        spacing = self.sides / cells.astype(self.sides.dtype)
        steps = (place + self.sides / 2) / spacing
        cell = jnp.clip(jnp.floor(steps).astype(cells.dtype), 0, cells - 1)
        corners = self._corners(cell, spacing)
        height, slope_x, slope_y = _interpolated(corners, steps - cell.astype(steps.dtype))
        upwards = jnp.stack([-slope_x, -slope_y, jnp.ones_like(height)])
        return height, upwards / jnp.sqrt(dot(upwards, upwards))

    @property
    def places(self) -> tuple[Float[Array, " rows"], Float[Array, " columns"]]:
        """y of the rows and x of the columns [m]."""
        y, x = (
            side * (jnp.arange(count, dtype=side.dtype) / (count - 1) - 0.5)
            for side, count in zip(self.sides[::-1], self.heights.shape, strict=True)
        )
        return y, x

    def triangles(self, cell: Int[Array, ""]) -> Float[Array, "2 3 3"]:
        """Corners of the two triangles of a cell, counter-clockwise seen from above [m]; cells count row by row."""
        row, column = jnp.divmod(cell, self.heights.shape[1] - 1)
        y, x = (jax.lax.dynamic_slice_in_dim(each, at, 2) for each, at in zip(self.places, (row, column), strict=True))
        z = jax.lax.dynamic_slice(self.heights, (row, column), (2, 2))
        corners = jnp.stack([jnp.broadcast_to(x[None], (2, 2)), jnp.broadcast_to(y[:, None], (2, 2)), z], axis=-1)
        first, last = corners[0, 0], corners[1, 1]
        return jnp.stack([jnp.stack([first, corners[0, 1], last]), jnp.stack([first, last, corners[1, 0]])])

    def covers(self, place: Float[Array, "2"]):
        """Tell whether a place is within the rectangle."""
        return jnp.all(jnp.abs(place) <= self.sides / 2)

    def _corners(self, cell, spacing) -> Float[Array, "2 2 3"]:
        """Height, slope along x and slope along y at the corners of a cell: first y, then x."""
        rows, columns = (
            jnp.clip(cell[axis] + jnp.arange(-1, 3), 0, self.heights.shape[1 - axis] - 1) for axis in (1, 0)
        )
        h = self.heights[rows[:, None], columns[None]]
        steps_x, steps_y = ((index[2:] - index[:-2]).astype(h.dtype) for index in (columns, rows))
        slopes_x = (h[1:3, 2:] - h[1:3, :-2]) / (steps_x * spacing[0])[None]
        slopes_y = (h[2:, 1:3] - h[:-2, 1:3]) / (steps_y * spacing[1])[:, None]
        return jnp.stack([h[1:3, 1:3], slopes_x, slopes_y], axis=-1)


def _interpolated(corners: Float[Array, "2 2 k"], fractions: Float[Array, "2"]) -> Float[Array, " k"]:
    """Linear on the triangle of a cell that a point is in."""
    x, y = fractions
    first, last = corners[0, 0], corners[1, 1]
    right_of_diagonal = first + x * (corners[0, 1] - first) + y * (last - corners[0, 1])
    left_of_diagonal = first + y * (corners[1, 0] - first) + x * (last - corners[1, 0])
    return jnp.where(x >= y, right_of_diagonal, left_of_diagonal)
