"""Poses of bodies at the instants of a movie's frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import forward_kinematics
from jdyn.dynamics.kinematics import carrier
from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.simulation import Trajectory
from jdyn.view.frames import expect_few_frames, spread
from jdyn.view.lanes import Lanes

# So many lanes of a batch are drawn, unless some are named.
LANES = 12


@dataclasses.dataclass(frozen=True)
class Poses:
    """Poses in the world of all bodies, in all lanes and frames.

    Attributes:
        rotation: Shape (lanes, frames, nb, 3, 3).
        translation: In [m], shape (lanes, frames, nb, 3).
    """

    rotation: Float[np.ndarray, "lanes frames nb 3 3"]
    translation: Float[np.ndarray, "lanes frames nb 3"]

    @property
    def frames(self) -> int:
        return self.rotation.shape[1]

    def every(self, step: int) -> Poses:
        """The poses of every so many frames."""
        return Poses(self.rotation[:, ::step], self.translation[:, ::step])

    def of(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and translation of one body, or of the world, which is -1, by lane and frame."""
        shape = self.rotation.shape[:2]
        if body < 0:
            return np.broadcast_to(np.eye(3), (*shape, 3, 3)), np.zeros((*shape, 3))
        return self.rotation[:, :, body], self.translation[:, :, body]

    def points(self, model: Model, name: str) -> Float[np.ndarray, "lanes frames 3"]:
        """Positions of the origin of a named body or frame [m].

        Raises:
            ValueError: if there is no such body or frame.
        """
        body, frame = carrier(model, name)
        rotation, translation = self.of(body)
        return translation if frame < 0 else rotation @ np.asarray(model.frames.translation[frame]) + translation


def one_lane(trajectory: Trajectory, lane: int) -> Trajectory:
    """The motion of one lane of a batch, which are counted row by row where it has several axes."""
    place = np.unravel_index(lane, trajectory.ts.shape[:-1]) if trajectory.ts.ndim > 1 else ()
    return jax.tree.map(lambda x: jnp.asarray(x)[place], trajectory)


def played(trajectory: Trajectory, lanes: Sequence[int] | None, fps: float, speed: float, steps: int = 1) -> Poses:
    """Poses at the instants of frames, by `Trajectory.interpolate`; a lane that failed stays where it failed.

    Args:
        trajectory: One motion, or a batch of them; one backward in time plays from its start, too.
        lanes: Which of a batch are drawn, the solid one first; evenly chosen ones if left out.
        fps: Frames a second.
        speed: Seconds of motion in a second of the movie.
        steps: Instants of each frame, of which the first is that of its picture.

    Raises:
        ValueError: if there is no such lane, the first lane has no finite row, or there would be very many frames.
    """
    motions = Lanes.of(trajectory)
    chosen = _chosen(lanes, motions.lanes)
    motions.check(chosen[0])
    kept = np.array([lane for lane in chosen if motions.counts[lane]])
    start, end = np.min(motions.starts[kept]), np.max(motions.ends[kept])
    expect_few_frames((end - start) * fps / speed, "a smaller fps, a larger speed")
    fps *= steps
    frames = max(int((end - start) * fps / speed * (1 + 1e-9)) + 1, 1)
    instants = start + np.arange(frames) * speed / fps
    models = [one_lane(trajectory, lane).system.model for lane in kept]
    configurations = motions.configurations(models[0], kept, instants)
    each = [poses_of(model, q[None]) for model, q in zip(models, configurations, strict=True)]
    rotation, translation = (np.concatenate(x) for x in zip(*((x.rotation, x.translation) for x in each), strict=True))
    return Poses(rotation, translation)


def poses_of(model: Model, q: Float[Array, "lanes frames nq"]) -> Poses:
    """Poses in given configurations."""
    poses = _posed(model, q)
    return Poses(*(np.asarray(x, float) for x in (poses.rotation, poses.translation)))


@compiled
def _posed(model, q):
    return jax.vmap(jax.vmap(lambda q: forward_kinematics(model, q)))(q)


def _chosen(lanes, count) -> list[int]:
    if lanes is None:
        return spread(count, LANES).tolist()
    chosen = [int(lane) for lane in lanes]
    if not chosen:
        raise ValueError("lanes: expected at least one")
    if outside := [lane for lane in chosen if not 0 <= lane < count]:
        raise ValueError(f"lanes: expected numbers from 0 to {count - 1}, got {outside[0]}")
    return chosen
