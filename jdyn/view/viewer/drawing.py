"""A robot in a viser scene: its links, and how they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import trimesh
from jaxtyping import Array, Float
from trimesh.transformations import quaternion_matrix

from jdyn.model import WORLD, Model
from jdyn.view.look import Look
from jdyn.view.scene import Part, parts
from jdyn.view.viewer.marks import Mark, add_marks, up_axis
from jdyn.view.viewer.posed import Posed, posed, posed_lanes

GHOST = (120, 150, 190)
# Edges that are sharper look like edges.
SHARP = np.radians(35)
# Where the camera stands, seen from the middle of the robot, in sizes of it, the last one up; and the angle of view.
CAMERA, VIEW = (1.15, 0.7, 0.45), np.radians(50)
ROOT = "/robot"


class Drawing:
    """A robot in a scene. Take it away with `remove`, and make another one for another model.

    Attributes:
        look: How links look.
        opacity: Of links, from 0 to 1, times that which they have of their own.
        marks: What checkboxes show.
        size: Of the robot [m]: the diagonal of the box around it where it stood at first.
    """

    def __init__(
        self, scene: Any, model: Model, configurations: Float[Array, "configurations nq"], look: Look = "visual"
    ):
        """
        Args:
            scene: `server.scene` of viser.
            model: The mechanism.
            configurations: Where it stands at first, and where else a camera should see it.
            look: How links look.
        """
        self._scene, self._model = scene, model
        self._parts: dict[str, list[Part]] = {}
        self._links: dict[str, list[Any]] = {}
        # That of each handle's shape.
        self._opacities: dict[str, list[float]] = {}
        self._ghosts: list[tuple[int, Any]] = []
        self._ghost_count = 0
        self.opacity = 1.0
        lows, highs = _boxes(self._parts_of("visual"), *map(np.asarray, posed_lanes(model, configurations)))
        self.size = _diagonal(lows[0], highs[0])
        self._seen = lows.min(axis=0), highs.max(axis=0)
        self._root = scene.add_frame(ROOT, show_axes=False)
        self._paths = [f"{ROOT}/bodies/{body}" for body in range(model.nb)]
        self._bodies = [scene.add_frame(path, show_axes=False) for path in self._paths]
        axis, sign = up_axis(model)
        ground = (lows if sign > 0 else highs)[0, axis]
        self.marks: dict[str, Mark] = add_marks(
            scene, ROOT, self._paths, model, self.size, min(ground * sign, 0) * sign
        )
        self.show_links(look)
        self.move(posed(model, configurations[0]))

    def look_at(self, server: Any) -> None:
        """Have pages that open see the robot wherever it goes, upright.

        Args:
            server: Of viser, whose scene this is drawn in.
        """
        (low, high), (axis, sign) = self._seen, up_axis(self._model)
        offset = np.roll(np.array(CAMERA), axis - 2)
        offset[axis] *= sign
        self._scene.set_up_direction(sign * np.eye(3)[axis])
        camera = server.initial_camera
        camera.fov, camera.position, camera.look_at = (
            VIEW,
            (low + high) / 2 + _diagonal(low, high) * offset,
            (low + high) / 2,
        )

    def show_links(self, look: Look) -> None:
        """Draw links as they look, as what collides, or as lines between joints."""
        if look not in self._links:
            self._links[look], self._opacities[look] = self._add_links(look)
        for name, handles in self._links.items():
            for handle in handles:
                handle.visible = name == look
        self.look: Look = look
        self.fade(self.opacity)

    def fade(self, opacity: float) -> None:
        """Let what is within links be seen.

        Args:
            opacity: Of links, from 0 to 1; that which they have of their own is multiplied by it.
        """
        self.opacity = opacity
        for handle, own in zip(self._links[self.look], self._opacities[self.look], strict=True):
            handle.opacity = opacity * own if opacity * own < 1 else None

    def move(self, now: Posed) -> None:
        """Take everything to where it is in a configuration."""
        self.move_bodies(np.asarray(now.positions), np.asarray(now.rotations))
        for mark in self.marks.values():
            mark.move(now)

    def move_bodies(self, positions: np.ndarray, rotations: np.ndarray) -> None:
        """Take links to where they are; marks that are not fixed to bodies stay.

        Args:
            positions: Origins [m], shape (nb, 3).
            rotations: Quaternions wxyz, shape (nb, 4).
        """
        for handle, position, rotation in zip(self._bodies, positions, rotations, strict=True):
            handle.position, handle.wxyz = position, rotation

    def show_ghosts(self, positions: np.ndarray, rotations: np.ndarray) -> None:
        """Draw more robots, pale ones; none where the arrays are empty.

        Args:
            positions: Of their bodies [m], shape (ghosts, nb, 3).
            rotations: Quaternions wxyz, shape (ghosts, nb, 4).
        """
        if len(positions) != self._ghost_count:
            self._add_ghosts(positions, rotations)
        for body, handle in self._ghosts:
            handle.batched_positions = positions[:, body].astype(np.float32)
            handle.batched_wxyzs = rotations[:, body].astype(np.float32)

    def remove(self) -> None:
        """Take all of it out of the scene."""
        self._root.remove()

    def _parts_of(self, look):
        if look not in self._parts:
            self._parts[look] = parts(self._model, look)
        return self._parts[look]

    def _add_links(self, look):
        """Add what draws links, with its own opacities."""
        handles, opacities = [], []
        for number, part in enumerate(self._parts_of(look)):
            carrier = ROOT if part.body == WORLD else self._paths[part.body]
            for color, vertices, faces in _of_one_color(part):
                path = f"{carrier}/{look}/{number}-{len(handles)}"
                handles.append(self._scene.add_mesh_simple(path, vertices, faces, color=color, side="double"))
                opacities.append(part.opacity)
        return handles, opacities

    def _add_ghosts(self, positions, rotations):
        for _, handle in self._ghosts:
            handle.remove()
        self._ghosts, self._ghost_count = [], len(positions)
        moving = [part for part in self._parts_of("visual") if part.body != WORLD] if len(positions) else []
        for number, part in enumerate(moving):
            vertices, faces = _smooth(part.vertices, part.faces)
            handle = self._scene.add_batched_meshes_simple(
                f"{ROOT}/ghosts/{number}", vertices, faces, rotations[:, part.body].astype(np.float32),
                positions[:, part.body].astype(np.float32), batched_colors=GHOST, opacity=0.25, side="double",
            )  # fmt: skip
            self._ghosts.append((part.body, handle))


def _boxes(drawn: list[Part], positions: np.ndarray, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of boxes around all parts and origins of bodies [m], one for each configuration.

    Args:
        drawn: The parts.
        positions: Origins of bodies [m], shape (configurations, nb, 3).
        rotations: Quaternions wxyz, shape (configurations, nb, 4).
    """
    points = [positions]
    for part in drawn:
        corners = np.stack(
            np.meshgrid(*zip(part.vertices.min(axis=0), part.vertices.max(axis=0), strict=True)), axis=-1
        )
        corners = np.broadcast_to(corners.reshape(-1, 3), (len(positions), 8, 3))
        if part.body != WORLD:
            turn = np.stack([quaternion_matrix(rotation)[:3, :3] for rotation in rotations[:, part.body]])
            corners = corners @ turn.transpose(0, 2, 1) + positions[:, None, part.body]
        points.append(corners)
    stacked = np.concatenate(points, axis=1)
    return stacked.min(axis=1), stacked.max(axis=1)


def _diagonal(low: np.ndarray, high: np.ndarray) -> float:
    """Diagonal of a box, not zero [m]."""
    return max(float(np.linalg.norm(high - low)), 1e-3)


def _of_one_color(part: Part):
    """A part's surface colour by colour: the colour in 0 to 255, vertices and faces."""
    colors = np.round(255 * np.broadcast_to(part.color, (len(part.faces), 3))).astype(int)
    different, which = np.unique(colors, axis=0, return_inverse=True)
    for number, color in enumerate(different):
        vertices, faces = _smooth(part.vertices, part.faces[np.ravel(which) == number])
        yield tuple(map(int, color)), vertices, faces


def _smooth(vertices, faces):
    """The same surface with vertices of their own for faces on both sides of a sharp edge, which is then seen."""
    mesh = trimesh.Trimesh(vertices, faces, process=True)
    smooth = trimesh.graph.smooth_shade(mesh, angle=SHARP, facet_minarea=None)
    return np.asarray(smooth.vertices, np.float32), np.asarray(smooth.faces, np.uint32)
