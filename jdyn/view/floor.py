"""The ground below a scene, or the plane behind a planar one: a grid, and a soft shadow."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float32
from scipy.ndimage import uniform_filter

from jdyn.view.camera import View
from jdyn.view.rasterizer import nearest

_GROUND, _LINE, _AXIS, _SHADOW = 0.945, 0.80, 0.55, 0.32
# Width of lines, and reach of the soft edge of a shadow [pixels].
_WIDTH, _SOFTNESS = 1.4, 5


@dataclasses.dataclass(frozen=True)
class Floor:
    """A plane with a square grid.

    Attributes:
        axes: Rows are two directions in the plane, and its normal.
        height: Of the plane along its normal [m].
        radius: How far it is seen around what is looked at [m]; infinite for a plane that fills the picture, and has
            its zero lines marked.
        spacing: Of the lines [m].
    """

    axes: np.ndarray
    height: float
    radius: float
    spacing: float

    def brightness(self, view: View) -> Float32[np.ndarray, "h w"]:
        """The plane in a picture, from 0 to 1, white where it is not seen."""
        along, seen = self._points(view)
        if np.isinf(self.radius):
            return _lines(along, self.spacing, 1.0, _LINE, _AXIS)
        middle = self.axes[:2] @ (view.position + view.depth * view.axes[2])
        distance = np.linalg.norm(along - middle, axis=-1) / self.radius
        fade = np.where(seen, np.clip(1 - distance, 0, 1), 0) ** 0.8
        return 1 - fade * (1 - _lines(along, self.spacing, _GROUND, _LINE, _LINE))

    def shadow(self, corners: np.ndarray, light: np.ndarray, view: View) -> Float32[np.ndarray, "h w"]:
        """The factor by which triangles darken each pixel of the plane; 1 everywhere, if this is seen from below.

        Args:
            corners: Of the triangles in the world [m], shape (3, 3, m).
            light: Unit vector towards the light.
            view: Of the picture.
        """
        width, height = view.size
        normal = self.axes[2]
        factor = np.ones((height, width), np.float32)
        if view.position @ normal <= self.height:
            return factor
        above = np.maximum(np.tensordot(normal, corners, 1) - self.height, 0) / (light @ normal)
        fallen = view.from_world(corners - light[:, None, None] * above).astype(np.float32)
        fallen = fallen[:, :, view.ahead(fallen)]
        seen = nearest(view.project(fallen), np.zeros(fallen.shape[1:], np.float32), view.size)
        if len(seen.pixels):
            factor.ravel()[seen.pixels] = 1 - _SHADOW
            part = factor[_around(seen.pixels, width)]
            part[:] = uniform_filter(uniform_filter(part, _SOFTNESS), _SOFTNESS)
        return factor

    def _points(self, view):
        """Points where the ray of each pixel meets the plane, along its two directions, and whether they are ahead."""
        width, height = view.size
        x = (np.arange(width) + 0.5 - width / 2) / view.scale
        y = (np.arange(height) + 0.5 - height / 2) / view.scale
        right, down, ahead = view.axes @ self.axes.T
        across = x[None, :, None] * right + y[:, None, None] * down
        start, direction = self.axes @ view.position, ahead
        if view.parallel:
            start = start + across
        else:
            direction = direction + across
        steep = np.where(np.abs(direction[..., 2]) < 1e-9, 1e-9, direction[..., 2])
        reach = (self.height - start[..., 2]) / steep
        return start[..., :2] + reach[..., None] * direction[..., :2], reach > 0


def _around(pixels, width):
    """The window of the picture that has some pixels and their soft edges."""
    ends = ((np.min(x), np.max(x) + 1) for x in np.divmod(pixels, width))
    return tuple(slice(max(low - 2 * _SOFTNESS, 0), high + 2 * _SOFTNESS) for low, high in ends)


def _lines(along, spacing, ground, line, axis):
    """Brightness of a grid whose lines are as wide everywhere in the picture, and vanish where they would merge."""
    brightness = np.full(along.shape[:2], ground, np.float32)
    for i in range(2):
        x = along[..., i] / spacing
        per_pixel = np.hypot(*np.gradient(x))
        off = np.abs(x - np.round(x)) / np.maximum(per_pixel, 1e-9)
        covered = np.clip(_WIDTH / 2 + 0.5 - off, 0, 1) * np.clip(2 - 8 * per_pixel, 0, 1)
        shade = np.where(np.round(x) == 0, axis, line)
        brightness = np.minimum(brightness, ground - covered * (ground - shade))
    return brightness.astype(np.float32)


def round_length(length: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is no longer than `length`."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(max(step for step in (1, 2, 5) if step * power <= length * (1 + 1e-9)) * power)
