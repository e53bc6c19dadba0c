"""Surroundings of the bodies of a movie: where it is seen from, and the ground below."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8

from jdyn.model import WORLD, Model
from jdyn.view.camera import Camera, View, facing, perspective
from jdyn.view.floor import Floor, round_length
from jdyn.view.frames import spread
from jdyn.view.ground import ground_of, planes
from jdyn.view.look import Look
from jdyn.view.plane import plane_of_motion
from jdyn.view.playback import Poses
from jdyn.view.renderer import Lane, Renderer, Trail
from jdyn.view.scene import Part, parts
from jdyn.view.solids import box
from jdyn.view.surface import surfaces

# Instants a frame for trails, which are smoother than a movie.
STEPS = 4
# Frames from which a view is fitted.
_FITTED = 30
# Smallest lengths that are drawn, and that cast a shadow [pixels].
_DETAIL, _SHADOW_DETAIL = 1.3, 6.0
# Planes seen from their side: thickness, as a share of what is seen, and color.
_SLAB, _EARTH = 0.015, (0.55, 0.55, 0.58)
# Colors of trails that differ in print without colors, too.
_TRAILS = ((0.80, 0.15, 0.12), (0.10, 0.35, 0.75), (0.95, 0.60, 0.05), (0.15, 0.55, 0.30), (0.50, 0.25, 0.60))


@dataclasses.dataclass(frozen=True)
class Stage:
    """Draws any frame of a motion.

    Attributes:
        renderer: Draws bodies.
        view: Where the first frame is seen from.
        poses: Of the bodies.
        shift: How far the camera has moved in each frame [m].
        trails: Where points are that leave a line, each of shape (lanes, instants, 3) [m]; `STEPS` instants a frame.
    """

    renderer: Renderer
    view: View
    poses: Poses
    shift: Float[np.ndarray, "frames 3"]
    trails: Sequence[Float[np.ndarray, "lanes instants 3"]]

    def backgrounds(self):
        """The backgrounds of frames, by their number; that of a camera at rest is drawn once."""
        if np.any(self.shift):
            return lambda frame: self.renderer.background(self.view.moved(self.shift[frame]))
        background = self.renderer.background(self.view)
        return lambda frame: background

    def picture(self, frame: int, background: np.ndarray) -> UInt8[np.ndarray, "h w 3"]:
        """One frame before its background."""
        rotations, translations = self.poses.rotation[:, frame], self.poses.translation[:, frame]
        lanes = [Lane(*pose) for pose in zip(rotations, translations, strict=True)]
        trails = [
            Trail(points[lane, : STEPS * frame + 1], _trail_color(number, lane), solid=lane == 0)
            for number, points in enumerate(self.trails)
            for lane in reversed(range(len(points)))
        ]
        return self.renderer.picture(self.view.moved(self.shift[frame]), background, lanes, trails)


def staged(
    model: Model, fine: Poses, camera: Camera | None, size: tuple[int, int], look: Look, trails: Sequence[str]
) -> Stage:
    """The stage of a motion, which fits all of it.

    Args:
        model: The mechanism.
        fine: Poses of its bodies, at `STEPS` instants a frame.
        camera: Where it is seen from; if left out, a mechanism that moves in a plane is seen straight from the front.
        size: Width and height [pixels].
        look: How links look.
        trails: Bodies and frames that leave a trail.
    """
    drawn = parts(model, look)
    lines, poses = [fine.points(model, name) for name in trails], fine.every(STEPS)
    up = _vertical(model)
    shift = np.zeros((poses.frames, 3))
    if camera is not None and camera.follow is not None:
        shift = poses.points(model, camera.follow)[0]
    points = _points(drawn, poses, lines)
    plane = plane_of_motion(model) if camera is None else None
    seen = (points - shift[spread(poses.frames, _FITTED)][:, None]).reshape(-1, 3)
    if plane is not None:
        normal, up = plane
        view, light = facing(normal, up, seen, size), None
        floor = Floor(np.stack([np.cross(up, normal), up, normal]), 0.0, np.inf, _spacing(view))
        drawn = [*drawn, *_edges(model, normal, seen)]
    else:
        view = perspective(camera or Camera(), up, seen, size)
        floor = _ground(model, up, points.reshape(-1, 3) @ up, view)
        light = _light(view, up)
    nearest = max(float(np.min(view.from_world(seen.T)[2])), view.nearest)
    # The shadow of what can be looked through is left out.
    opaque = [part for part in drawn if part.opacity == 1]
    pixel = view.pixel(nearest)
    visible, casting = surfaces(drawn, _DETAIL * pixel), surfaces(opaque, _SHADOW_DETAIL * pixel)
    return Stage(Renderer(visible, casting, floor, up, light), view, poses, shift, lines)


def _vertical(model) -> np.ndarray:
    gravity = np.asarray(model.gravity, float)
    strength = np.linalg.norm(gravity)
    return -gravity / strength if strength > 0 else np.array([0.0, 0, 1])


def _points(drawn: Sequence[Part], poses, lines) -> Float[np.ndarray, "frames points 3"]:
    """Points around everything that is drawn, in some frames [m]."""
    sample = spread(poses.frames, _FITTED)
    found = [points[:, STEPS * sample].transpose(1, 0, 2) for points in lines]
    for part in drawn:
        rotation, translation = (x[:, sample] for x in poses.of(part.body))
        placed = _extremes(part.vertices) @ rotation.swapaxes(-1, -2) + translation[..., None, :]
        found.append(placed.swapaxes(0, 1).reshape(len(sample), -1, 3))
    return np.concatenate(found, axis=1)


def _extremes(vertices) -> np.ndarray:
    """The vertices that are farthest in some direction."""
    directions = np.random.default_rng(0).normal(size=(3, 60))
    return vertices[np.unique(np.argmax(vertices @ directions, axis=0))].astype(float)


def _edges(model, normal, seen) -> list[Part]:
    """Planes that are seen from their side, as thin slabs that reach out of the picture."""
    middle, extent = (seen.min(axis=0) + seen.max(axis=0)) / 2, float(np.max(np.ptp(seen, axis=0)))
    slabs = []
    for number, plane in enumerate(planes(model)):
        out = plane.axes[2]
        if abs(out @ normal) < 1e-6:
            vertices, faces = box((8 * extent, _SLAB * extent, _SLAB * extent))
            axes = np.stack([np.cross(normal, out), normal, out])
            center = middle - out * (out @ (middle - plane.point) + _SLAB * extent / 2)
            placed = (vertices @ axes + center).astype(np.float32)
            slabs.append(Part(WORLD, f"plane {number}", placed, faces, np.asarray(_EARTH, np.float32)))
    return slabs


def _ground(model, up, heights, view) -> Floor:
    """Ground of the model; without one, at zero, or below what is lower, such as a pendulum that hangs from there."""
    extent = view.size[1] * view.pixel(view.depth)
    found = ground_of(model, up)
    if found is not None:
        return Floor(found.axes, float(found.axes[2] @ found.point), 2.2 * extent, _spacing(view))
    x = np.cross(np.eye(3)[1 if abs(up[1]) < 0.9 else 2], up)
    x /= np.linalg.norm(x)
    lowest = heights.min()
    height = lowest if lowest < -0.02 * extent else 0.0
    return Floor(np.stack([x, np.cross(up, x), up]), float(height), 2.2 * extent, _spacing(view))


def _spacing(view) -> float:
    return round_length(view.size[1] * view.pixel(view.depth) / 5)


def _light(view, up) -> np.ndarray:
    """Towards a light above and behind the camera, to its left."""
    right, _, ahead = view.axes
    light = 1.1 * up - 0.45 * right - 0.55 * (ahead - up * (ahead @ up))
    return light / np.linalg.norm(light)


def _trail_color(number, lane) -> np.ndarray:
    color = np.array(_TRAILS[number % len(_TRAILS)])
    return color if lane == 0 else 1 - (1 - color) * 0.35
