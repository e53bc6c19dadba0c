"""Place from which a picture is taken."""

from __future__ import annotations

import dataclasses

import numpy as np

# Share of the picture that stays free on each side where a view is fitted.
_MARGIN = 0.06
# Corrections of the target, each of which leaves a small share of its error.
_ROUNDS = 6


@dataclasses.dataclass(frozen=True)
class Camera:
    """A camera that looks at a point; what is left out is chosen so that the whole motion is in the picture.

    ```
    jdyn.animate(motion, "walk.gif", camera=jdyn.Camera(azimuth=1.2, follow="trunk"))
    ```

    >>> from_above = jdyn.Camera(azimuth=0.0, elevation=1.4)
    >>> picture = jdyn.snapshot(jdyn.load("puma560"), jnp.zeros(6), camera=from_above, size=(160, 120))

    Attributes:
        azimuth: Direction from the target to the camera, about the vertical and from the x axis [rad].
        elevation: Angle of that direction above the horizontal [rad].
        distance: From the target [m].
        target: The point that is looked at, in the world [m].
        field_of_view: Vertical angle that is seen [rad].
        follow: Body or frame that the camera moves along with, without turning; the target is then relative to it, in
            world axes.

    Raises:
        ValueError: if an angle or a distance cannot be.
    """

    azimuth: float = 0.9
    elevation: float = 0.35
    distance: float | None = None
    target: tuple[float, float, float] | None = None
    field_of_view: float = 0.6
    follow: str | None = None

    def __post_init__(self):
        if not 0 < self.field_of_view < np.pi:
            raise ValueError(f"field_of_view: expected an angle between 0 and π rad, got {self.field_of_view}")
        if not abs(self.elevation) <= np.pi / 2:
            raise ValueError(f"elevation: expected an angle from -π/2 to π/2 rad, got {self.elevation}")
        if not np.isfinite(self.azimuth):
            raise ValueError(f"azimuth: expected an angle in radians, got {self.azimuth}")
        if self.distance is not None and not 0 < self.distance < np.inf:
            raise ValueError(f"distance: expected a positive length in metres, got {self.distance}")
        if self.target is not None and np.shape(self.target) != (3,):
            raise ValueError(f"target: expected a point of three coordinates, got shape {np.shape(self.target)}")
        if self.target is not None and not np.all(np.isfinite(self.target)):
            raise ValueError(f"target: expected finite coordinates in metres, got {self.target}")


@dataclasses.dataclass(frozen=True)
class View:
    """A projection to a picture.

    Attributes:
        axes: Rows are the world directions to the right, down, and away from the camera.
        position: Of the camera in the world [m].
        scale: Pixels per metre at a distance of 1 m; of a parallel projection, at any distance.
        size: Width and height of the picture [pixels].
        depth: Distance of what is looked at [m].
        parallel: Whether rays are parallel, and do not meet in the camera.
    """

    axes: np.ndarray
    position: np.ndarray
    scale: float
    size: tuple[int, int]
    depth: float
    parallel: bool = False

    def pixel(self, depth: float) -> float:
        """Length of a pixel at a distance from the camera [m]."""
        return (1 if self.parallel else depth) / self.scale

    @property
    def nearest(self) -> float:
        """Distance up to which nothing is drawn [m]."""
        return 0.02 * self.depth

    def from_world(self, points: np.ndarray) -> np.ndarray:
        """Points in the camera's axes [m]; coordinates along the first axis, as in `project`."""
        shape = (3,) + (1,) * (points.ndim - 1)
        return np.tensordot(self.axes, points, 1) - (self.axes @ self.position).reshape(shape)

    def project(self, points: np.ndarray) -> np.ndarray:
        """x, y [pixels] and nearness of points in the camera's axes, as the rasterizer takes them."""
        x, y, z = points
        z = np.maximum(z, points.dtype.type(self.nearest))
        scale, middle = points.dtype.type(self.scale), np.array(self.size, points.dtype) / 2
        # Nearness is positive and affine in the picture; without perspective, it ends far behind what is looked at.
        far = points.dtype.type(4 * self.depth)
        nearness = np.maximum(far - z, 1e-6 * far) if self.parallel else 1 / z
        scale = scale if self.parallel else scale * nearness
        return np.stack([middle[0] + scale * x, middle[1] + scale * y, nearness]).astype(points.dtype, copy=False)

    def ahead(self, corners: np.ndarray) -> np.ndarray:
        """Numbers of the triangles, of shape (3, 3, m) in the camera's axes, that are before the camera as a whole."""
        depth = corners[2]
        return np.flatnonzero(np.minimum(np.minimum(depth[0], depth[1]), depth[2]) > self.nearest)

    def resized(self, size: tuple[int, int]) -> View:
        """The same view in a picture of other pixels, as high beside its width."""
        return dataclasses.replace(self, scale=self.scale * size[1] / self.size[1], size=size)

    def moved(self, by: np.ndarray) -> View:
        return dataclasses.replace(self, position=self.position + by)


def perspective(camera: Camera, up: np.ndarray, points: np.ndarray, size: tuple[int, int]) -> View:
    """The view of a camera, which sees all points where it may choose its target and its distance.

    Args:
        camera: The camera.
        up: Unit vector of the vertical.
        points: In the world [m], shape (k, 3).
        size: Width and height of the picture [pixels].
    """
    ahead = _horizontal(up)
    side = np.cross(up, ahead)
    backward = np.cos(camera.elevation) * (np.cos(camera.azimuth) * ahead + np.sin(camera.azimuth) * side)
    backward += np.sin(camera.elevation) * up
    # Seen from straight above, what would be ahead is up.
    level = np.cos(camera.azimuth) * side - np.sin(camera.azimuth) * ahead
    axes = np.stack([level, np.cross(level, backward), -backward])
    slope = np.tan(camera.field_of_view / 2)
    slopes = slope * np.array([size[0] / size[1], 1.0])
    target, distance = _fitting(points @ axes.T, slopes * (1 - 2 * _MARGIN))
    if camera.target is not None:
        target = axes @ np.asarray(camera.target, float)
        distance = _distance(points @ axes.T - target, slopes * (1 - 2 * _MARGIN))
    distance = camera.distance or distance
    return View(axes, axes.T @ (target - [0, 0, distance]), size[1] / 2 / slope, size, distance)


def facing(normal: np.ndarray, up: np.ndarray, points: np.ndarray, size: tuple[int, int]) -> View:
    """The parallel view of a plane that shows all points.

    Args:
        normal: Unit vector towards the camera.
        up: Unit vector in the plane that is up in the picture.
        points: In the world [m], shape (k, 3).
        size: Width and height of the picture [pixels].
    """
    axes = np.stack([np.cross(up, normal), -up, -normal])
    seen = points @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    extent = np.maximum(high - low, 1e-3 * (np.max(high - low) or 1e-3))
    scale = np.min(np.array(size) * (1 - 2 * _MARGIN) / extent[:2])
    depth = 2 * float(np.max(extent))
    return View(axes, axes.T @ ((low + high) / 2 - [0, 0, depth]), float(scale), size, depth, parallel=True)


def _horizontal(up) -> np.ndarray:
    """The horizontal direction nearest to the x axis, or to the y axis where that is vertical."""
    x = np.eye(3)[0 if abs(up[0]) < 0.9 else 1]
    level = x - up * (up @ x)
    return level / np.linalg.norm(level)


def _fitting(points, slopes):
    """The target and the distance from which all points are within slopes, and touch opposite ones."""
    target = (points.min(axis=0) + points.max(axis=0)) / 2
    for _ in range(_ROUNDS):
        distance = _distance(points - target, slopes)
        seen = (points - target)[:, :2] / (points[:, 2:] - target[2] + distance)
        target = target + np.append(seen.min(axis=0) + seen.max(axis=0), 0) / 2 * distance
    return target, _distance(points - target, slopes)


def _distance(offsets, slopes) -> float:
    """The distance from which all offsets from the target are within slopes to both sides; beyond their own size where
    they are nearly on one line of sight, and 1 mm where they are one point."""
    needed = np.max(np.abs(offsets[:, :2]) / slopes, axis=1) - offsets[:, 2]
    return float(max(np.max(needed), 1e-3 * np.max(np.abs(offsets)))) or 1e-3
