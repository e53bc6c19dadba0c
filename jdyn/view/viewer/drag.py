"""Bodies and frames that are dragged to where they should be."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import frame_pose
from jdyn.model import WORLD, Model
from jdyn.planning import FrameTarget, Reach, inverse_kinematics
from jdyn.spatial import Transform, matrix_to_quaternion, quaternion_to_matrix

# Error that nobody sees [m, rad].
SEEN = 1e-4
MAX_STEPS = 30
# How files name the frame of a robot by which it holds things.
_HAND = re.compile(
    r"(^|[_\W])(tcp|tool\d*|tool_?center_?point|eef?|end_?effector|grasp_?(target|frame|point))($|[_\W])", re.I
)


class Drag:
    """Inverse kinematics of one body or frame after another, from where the robot is.

    Each of them is compiled once.
    """

    def __init__(self, model: Model):
        self._programs = {}
        names = (*model.body_names, *model.frame_names)
        bodies = (*range(model.nb), *model.topology.frame_bodies)
        # What is fixed to the world is moved by no joint.
        self.names = tuple(name for name, body in zip(names, bodies, strict=True) if body != WORLD)
        depths = [len(model.topology.supports[body]) for body in bodies if body != WORLD]
        called = [bool(_HAND.search(name)) for name in self.names]
        # Of fingers and a frame between them, people mean the frame.
        self.hand = max(zip(called, depths, self.names, strict=True), key=lambda x: x[:2], default=(False, 0, None))[2]

    def place(self, model: Model, q: Float[Array, " nq"], name: str) -> tuple[np.ndarray, np.ndarray]:
        """Position [m] and orientation (quaternion wxyz) of a body or frame."""
        position, rotation = self._program(_place, name)(model.without_shapes(), q)
        return np.asarray(position), np.asarray(rotation)

    def to(
        self, model: Model, q: Float[Array, " nq"], name: str, position: np.ndarray, rotation: np.ndarray | None
    ) -> tuple[Float[Array, " nq"], str]:
        """The configuration in which it is at a place, or as near as joints let it.

        Args:
            model: The mechanism.
            q: Where the search starts [rad or m].
            name: Of the body or frame.
            position: [m], shape (3,).
            rotation: Quaternion wxyz; None where the orientation does not matter.

        Returns:
            The configuration, and what to say about it.
        """
        where = (position,) if rotation is None else (position, rotation)
        reached = self._program(_to, name)(model.without_shapes(), q, tuple(jnp.asarray(x, model.dtype) for x in where))
        missed, result = float(reached.missed), int(reached.result)
        if result == Reach.nonfinite or not np.isfinite(missed):
            return q, f"{name}: the search failed, {Reach(result).name}"
        said = "reached" if missed <= SEEN else f"out of reach, {missed:.3g} rad or m are missing"
        return reached.q, f"{name}: {said}"

    def _program(self, function, name):
        if (function, name) not in self._programs:
            self._programs[function, name] = jax.jit(lambda *arguments: function(name, *arguments))
        return self._programs[function, name]


def _place(name, model, q):
    X = frame_pose(model, q, name)
    return X.translation, matrix_to_quaternion(X.rotation)


def _to(name, model, q, where):
    position, *rotation = where
    target = Transform(quaternion_to_matrix(rotation[0]), position) if rotation else position
    return inverse_kinematics(model, [FrameTarget(name, target)], q, tolerance=SEEN, max_steps=MAX_STEPS)
