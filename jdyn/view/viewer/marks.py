"""Marks that people switch on to debug a model: frames, centres of mass, inertia ellipsoids, joint axes."""

from __future__ import annotations

import abc
from typing import Any

import jax.numpy as jnp
import numpy as np
import trimesh

from jdyn.model import WORLD, Model
from jdyn.spatial import matrix_to_quaternion
from jdyn.view.floor import round_length
from jdyn.view.ground import ground_of
from jdyn.view.inertia_ellipsoids import inertia_ellipsoids
from jdyn.view.viewer.posed import Posed

# Colours, of different brightness as well.
TURN, SLIDE, MASS = (230, 120, 0), (0, 90, 190), (190, 20, 20)
# Sizes, as shares of the robot's.
LENGTH, THIN, DOT = 0.12, 0.004, 0.012
# The least semi-axis of an ellipsoid as a share of the largest: flat ones are seen from the side, too.
FLAT = 0.01


class Mark(abc.ABC):
    """Something that a checkbox shows.

    Attributes:
        says: What the checkbox says.
        shown: Whether it is visible.
    """

    says: str
    shown = False

    @abc.abstractmethod
    def show(self, visible: bool) -> None:
        """Switch it on or off."""

    @abc.abstractmethod
    def move(self, now: Posed) -> None:
        """Take what is not fixed to a body to where it is."""


class _Fixed(Mark):
    """Nodes of the scene that move with bodies, or not at all."""

    def __init__(self, says: str, handles: list[Any], shown: bool = False):
        self.says, self.shown, self._handles = says, shown, handles

    def show(self, visible):
        self.shown = visible
        for handle in self._handles:
            handle.visible = visible

    def move(self, now):
        """Nodes of bodies take them along."""


class _Centers(_Fixed):
    """Centres of mass of the bodies, and a larger one of the whole robot."""

    def __init__(self, handles, whole):
        super().__init__("centres of mass", [*handles, whole])
        self._whole = whole

    def move(self, now):
        self._whole.position = np.asarray(now.center_of_mass)


class _Axes(Mark):
    """Arrows along joint axes, of joints whose axes are directions of their own: not of ball and free joints."""

    says = "joint axes"

    def __init__(self, scene, path, model, size):
        kinds = model.topology.kinds
        turning = [(body, motion) for body, kind in enumerate(kinds) for motion in kind.motions]
        own = [len(kinds[body].motions) == kinds[body].nq for body, _ in turning]
        self._rows = np.flatnonzero(own)
        self._bodies = np.array([turning[row][0] for row in self._rows], int)
        self._length = LENGTH * size
        self._now: Posed | None = None
        colors = np.array([SLIDE if turning[row][1] == "slide" else TURN for row in self._rows])
        self._arrows = None
        if len(self._rows):
            self._arrows = scene.add_arrows(
                path, np.zeros((len(self._rows), 2, 3)), colors.reshape(-1, 3), shaft_radius=THIN * size,
                head_radius=2.5 * THIN * size, head_length=6 * THIN * size, visible=False,
            )  # fmt: skip

    def show(self, visible):
        self.shown = visible
        if self._arrows is not None:
            self._arrows.visible = visible
            if self._now is not None:
                self.move(self._now)

    def move(self, now):
        self._now = now
        if self._arrows is None or not self.shown:
            return
        middle = np.asarray(now.positions)[self._bodies]
        along = self._length * np.asarray(now.axes)[self._rows]
        self._arrows.points = np.stack([middle - along, middle + along], axis=1).astype(np.float32)


def add_marks(scene: Any, root: str, bodies: list[str], model: Model, size: float, ground: float) -> dict[str, Mark]:
    """Put all marks into a scene, the ground visible.

    Args:
        scene: `server.scene` of viser.
        root: Name of the node of the whole robot.
        bodies: Names of the nodes of the bodies.
        model: The mechanism.
        size: Of the robot [m].
        ground: Height of the ground [m].
    """
    return {
        "frames": _Fixed("frames", _frames(scene, root, bodies, model, size)),
        "names": _Fixed("names of bodies", _names(scene, bodies, model)),
        "centers": _centers(scene, root, bodies, model, size),
        "ellipsoids": _Fixed("inertia ellipsoids", _ellipsoids(scene, bodies, model)),
        "axes": _Axes(scene, f"{root}/axes", model, size),
        "ground": _Fixed("ground", [_ground(scene, root, model, size, ground)], shown=True),
    }


def _frames(scene, root, bodies, model, size):
    """Frames of the world, the bodies, and smaller ones where frames are fixed to them."""

    def axes(path, scale, **where):
        length, thin = scale * LENGTH * size, scale * THIN * size
        return scene.add_frame(
            f"{path}/frame", axes_length=length, axes_radius=thin, origin_radius=2 * thin, visible=False, **where
        )

    carriers = [root if body == WORLD else bodies[body] for body in model.topology.frame_bodies]
    poses = zip(np.asarray(model.frames.translation), np.asarray(model.frames.rotation), strict=True)
    fixed = [
        axes(f"{carrier}/fixed{number}", 0.6, position=position, wxyz=np.asarray(matrix_to_quaternion(rotation)))
        for number, (carrier, (position, rotation)) in enumerate(zip(carriers, poses, strict=True))
    ]
    return [axes(root, 1.2), *(axes(path, 1.0) for path in bodies), *fixed]


def _names(scene, bodies, model):
    return [
        scene.add_label(f"{path}/name", name, visible=False)
        for path, name in zip(bodies, model.body_names, strict=True)
    ]


def _centers(scene, root, bodies, model, size):
    ellipsoids = inertia_ellipsoids(model)
    masses = np.asarray(model.inertias.mass)
    dots = [
        scene.add_icosphere(f"{path}/center", DOT * size, color=MASS, position=np.asarray(center), visible=False)
        for path, center, mass in zip(bodies, ellipsoids.centers, masses, strict=True)
        if mass > 0
    ]
    whole = scene.add_icosphere(f"{root}/center", 2 * DOT * size, color=MASS, opacity=0.5, visible=False)
    return _Centers(dots, whole)


def _ellipsoids(scene, bodies, model):
    ball = trimesh.creation.icosphere(subdivisions=3)
    handles = []
    for path, center, axes, radii in zip(bodies, *map(np.asarray, inertia_ellipsoids(model)), strict=True):
        if radii.max() > 0:
            radii = np.maximum(radii, FLAT * radii.max())
            handles.append(
                scene.add_mesh_simple(
                    f"{path}/ellipsoid", (ball.vertices * radii).astype(np.float32), ball.faces, color=MASS,
                    opacity=0.4, position=center, wxyz=axes, visible=False,
                )
            )  # fmt: skip
    return handles


def _ground(scene, root, model, size, height):
    """A grid with cells of a round length, on the ground of the model or at a height."""
    cell = round_length(0.12 * size)
    up, sign = up_axis(model)
    upwards = sign * np.eye(3)[up]
    found = ground_of(model, upwards)
    if found is None:
        plane, where = {0: "yz", 1: "xz", 2: "xy"}[up], {"position": abs(upwards) * height}
    else:
        out, rotation = found.axes[2], jnp.asarray(found.axes.T)
        plane, where = "xy", {"position": out * (out @ found.point), "wxyz": np.asarray(matrix_to_quaternion(rotation))}
    return scene.add_grid(
        f"{root}/ground", 40 * cell, 40 * cell, plane=plane, cell_size=cell, section_size=5 * cell,
        cell_color=(225, 225, 225), section_color=(190, 190, 190), **where,
    )  # fmt: skip


def up_axis(model: Model) -> tuple[int, int]:
    """The coordinate axis that points up most, against gravity, and its sign; z where there is no gravity."""
    up = -np.asarray(model.gravity)
    axis = int(np.argmax(np.abs(up))) if up.any() else 2
    return axis, -1 if up[axis] < 0 else 1
