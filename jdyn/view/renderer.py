"""Pictures of a scene by a renderer that needs neither a GPU nor a display."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import UInt8

from jdyn.view.camera import View
from jdyn.view.floor import Floor
from jdyn.view.rasterizer import nearest
from jdyn.view.surface import Surface

# Each pixel is the mean of so many in each direction.
SAMPLES = 2
GHOST = 0.22
# Where nothing casts a shadow, light comes from the upper left behind the camera, in its axes.
_HEADLIGHT = np.array([-0.45, -0.65, -0.61])
# Light from everywhere, more of it from above, and from the light.
_AMBIENT, _SKY, _LIGHT = 0.44, 0.1, 0.41
_TRAIL_WIDTH = 2.2


@dataclasses.dataclass(frozen=True)
class Trail:
    """A line that a point has left behind.

    Attributes:
        points: In the world [m], shape (k, 3).
        color: Red, green and blue from 0 to 1.
        solid: Whether it hides those that are not, where they are in one place.
    """

    points: np.ndarray
    color: np.ndarray
    solid: bool


@dataclasses.dataclass(frozen=True)
class Lane:
    """Poses of the bodies of one mechanism.

    Attributes:
        rotation: Of each body in the world, shape (nb, 3, 3).
        translation: Of each body in the world [m], shape (nb, 3).
    """

    rotation: np.ndarray
    translation: np.ndarray

    def pose(self, body: int):
        """Rotation and translation of a body; -1 is the world."""
        return (np.eye(3), np.zeros(3)) if body < 0 else (self.rotation[body], self.translation[body])


@dataclasses.dataclass(frozen=True)
class _Triangles:
    """Triangles in a picture.

    Attributes:
        screen: As the rasterizer takes it, shape (3, 3, m).
        shades: Brightness at each corner, shape (3, m).
        colors: Red, green and blue of each triangle, shape (m, 3).
    """

    screen: np.ndarray
    shades: np.ndarray
    colors: np.ndarray


_NOTHING = _Triangles(np.zeros((3, 3, 0), np.float32), np.zeros((3, 0), np.float32), np.zeros((0, 3), np.float32))


def _joined(triangles: Iterable[_Triangles]) -> _Triangles:
    each = [_NOTHING, *triangles]
    return _Triangles(
        np.concatenate([one.screen for one in each], axis=2),
        np.concatenate([one.shades for one in each], axis=1),
        np.concatenate([one.colors for one in each]),
    )


@dataclasses.dataclass(frozen=True)
class Renderer:
    """Draws the same bodies in many poses.

    Attributes:
        surfaces: What the bodies look like.
        silhouettes: Those that cast a shadow, as fine as this needs them.
        floor: The plane below or behind them.
        up: Unit vector of the vertical.
        light: Unit vector towards the light; None if nothing casts a shadow.
    """

    surfaces: Sequence[Surface]
    silhouettes: Sequence[Surface]
    floor: Floor
    up: np.ndarray
    light: np.ndarray | None

    def background(self, view: View) -> np.ndarray:
        """The picture without the bodies, from 0 to 1, shape (height, width)."""
        return self.floor.brightness(view)

    def picture(
        self, view: View, background: np.ndarray, lanes: Sequence[Lane], trails: Sequence[Trail] = ()
    ) -> UInt8[np.ndarray, "h w 3"]:
        """One picture.

        Args:
            view: Where it is taken from.
            background: What `background` returns for this view.
            lanes: Poses of the bodies; all but the first are drawn as ghosts.
            trails: Lines that are drawn, too.
        """
        if self.light is not None:
            placed = (_placed(surface, lanes[0]) for surface in self.silhouettes)
            corners = np.concatenate([_NOTHING.screen, *placed], axis=2)
            background = background * self.floor.shadow(corners, self.light, view)
        width, height = view.size
        fine = view.resized((SAMPLES * width, SAMPLES * height))
        of_lane = self._triangles(fine, lanes[0])
        solid = _joined([of_lane.pop(1.0, _NOTHING), *(_ribbon(fine, trail) for trail in trails)])
        pale = [(triangles, opacity) for opacity, triangles in of_lane.items()]
        for lane in lanes[1:]:
            pale += [(triangles, GHOST * opacity) for opacity, triangles in self._triangles(fine, lane).items()]
        image = np.repeat(_bytes(background)[..., None], 3, axis=2)
        window = _window([solid.screen, *(triangles.screen for triangles, _ in pale)], fine.size)
        if window is not None:
            left, top, right, bottom = (end // SAMPLES for end in window)
            color = _layers(solid, pale, window)
            behind = background[top:bottom, left:right, None] * (1 - color[..., 3:])
            image[top:bottom, left:right] = _bytes(behind + color[..., :3])
        return image

    def _triangles(self, view, lane) -> dict[float, _Triangles]:
        """The triangles of a lane, by their opacity."""
        light = _HEADLIGHT if self.light is None else view.axes @ self.light
        alike: dict[float, list] = {}
        for surface in self.surfaces:
            triangles = _lit(surface, lane, view, light, view.axes @ self.up)
            alike.setdefault(surface.opacity, []).append(triangles)
        return {opacity: _joined(each) for opacity, each in alike.items()}


def _bytes(brightness) -> np.ndarray:
    return (np.clip(brightness, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _lit(surface, lane, view, light, up) -> _Triangles:
    """The triangles of a surface in a picture; light and vertical in the camera's axes."""
    rotation, translation = lane.pose(surface.body)
    turn = (view.axes @ rotation).astype(np.float32)
    corners = np.tensordot(turn, surface.corners, 1)
    corners += view.from_world(translation).astype(np.float32)[:, None, None]
    screen = view.project(corners)
    x, y = screen[:2, 1:] - screen[:2, :1]
    front = x[0] * y[1] <= x[1] * y[0]
    shown = view.ahead(corners)
    if surface.closed:
        shown = shown[front[shown]]
    # The inside of an open surface is lit as its outside would be.
    side = np.where(front, np.float32(1), np.float32(-1))
    towards = ((direction @ turn).astype(np.float32) for direction in (light, up))
    lit, sky = (side * np.tensordot(direction, surface.normals, 1) for direction in towards)
    shades = _AMBIENT + _SKY * sky + _LIGHT * np.maximum(lit, 0)
    return _Triangles(np.take(screen, shown, 2), np.take(shades, shown, 1), surface.colors[shown])


def _placed(surface, lane) -> np.ndarray:
    """Corners in the world [m]."""
    rotation, translation = lane.pose(surface.body)
    placed = np.tensordot(rotation.astype(np.float32), surface.corners, 1)
    return placed + translation.astype(np.float32)[:, None, None]


def _ribbon(view, trail) -> _Triangles:
    """A line as triangles that face the camera."""
    in_camera = view.from_world(trail.points.T)
    ahead = np.minimum(in_camera[2, :-1], in_camera[2, 1:]) > view.nearest
    screen = view.project(in_camera)
    screen[2] *= 1 if trail.solid else 0.998
    start, end = screen[:, :-1][:, ahead], screen[:, 1:][:, ahead]
    along = (end - start)[:2]
    across = np.zeros_like(start)
    across[:2] = along[::-1] * np.array([[-1], [1]]) / np.maximum(np.linalg.norm(along, axis=0), 1e-9)
    across *= SAMPLES * _TRAIL_WIDTH / 2
    a, b, c, d = start - across, end - across, end + across, start + across
    corners = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)], axis=2).astype(np.float32)
    colors = np.broadcast_to(trail.color, (corners.shape[2], 3)).astype(np.float32)
    return _Triangles(corners, np.ones(corners.shape[1:], np.float32), colors)


def _window(screens, size):
    """Left, top, right and bottom of the pixels that triangles may cover, in whole pixels of the picture; None if there
    are none."""
    ends = [f(x[:2].reshape(2, -1), axis=1) for x in screens if x.size for f in (np.min, np.max)]
    if not ends:
        return None
    low, high = np.floor(np.min(ends, axis=0) / SAMPLES), np.ceil(np.max(ends, axis=0) / SAMPLES)
    low, high = (np.clip(SAMPLES * end, 0, size).astype(int) for end in (low, high))
    return (*low, *high) if np.all(high > low) else None


def _layers(solid, pale, window) -> np.ndarray:
    """Color times opacity, and opacity, of the pixels in a window. What is pale is hidden by what is solid, and lies
    above what is pale and stands before it in the list: of triangles with their opacity."""
    left, top, right, bottom = window
    size = width, height = right - left, bottom - top
    layer = np.zeros((height * width, 4), np.float32)
    nearness = np.zeros(height * width, np.float32)
    corner = np.array([left, top, 0], np.float32)[:, None, None]
    for triangles, opacity in ((solid, 1), *pale):
        seen = nearest(triangles.screen - corner, triangles.shades, size)
        color = np.ones((len(seen.pixels), 4), np.float32)
        np.minimum(triangles.colors[seen.triangles] * seen.values[:, None], 1, out=color[:, :3])
        if opacity == 1:
            layer[seen.pixels], nearness[seen.pixels] = color, seen.nearness
        else:
            before = seen.nearness > nearness[seen.pixels]
            pixels = seen.pixels[before]
            layer[pixels] += np.float32(opacity) * (color[before] - layer[pixels])
    layer = layer.reshape(height, width, 4)
    rows = functools.reduce(np.add, [layer[i::SAMPLES] for i in range(SAMPLES)])
    return functools.reduce(np.add, [rows[:, i::SAMPLES] for i in range(SAMPLES)]) / np.float32(SAMPLES**2)
