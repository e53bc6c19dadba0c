"""Poses of bodies at the instants of a movie's frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float

from jdyn.dynamics import forward_kinematics
from jdyn.dynamics.kinematics import carrier
from jdyn.model import Model
from jdyn.simulation import Trajectory
from jdyn.simulation.interpolation import hermite

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
        """Where the origin of a named body or frame is [m].

        Raises:
            ValueError: if there is no such body or frame.
        """
        body, frame = carrier(model, name)
        rotation, translation = self.of(body)
        return translation if frame < 0 else rotation @ np.asarray(model.frames.translation[frame]) + translation


def played(model: Model, trajectory: Trajectory, lanes: Sequence[int] | None, fps: float, speed: float) -> Poses:
    """Poses at the instants of frames, by `Trajectory.interpolate`; a lane that failed stays where it failed.

    Args:
        model: The mechanism.
        trajectory: One motion, or a batch of them along one axis.
        lanes: Which of a batch are drawn, the solid one first; evenly chosen ones if left out.
        fps: Frames a second.
        speed: Seconds of motion in a second of the movie.

    Raises:
        ValueError: if there is no such lane, the batch has several axes, or the first lane has no finite row.
    """
    ts, q, v = (np.asarray(x) for x in (trajectory.ts, trajectory.q, trajectory.v))
    if ts.ndim > 2:
        raise ValueError(
            f"trajectory: expected one motion or a batch along one axis, got shape {ts.shape[:-1]} of lanes"
        )
    if ts.ndim == 1:
        ts, q, v = ts[None], q[None], v[None]
    if q.shape[2] != model.nq:
        raise ValueError(f"trajectory: expected {model.nq} coordinates for {model.name!r}, got {q.shape[2]}")
    chosen = _chosen(lanes, len(ts))
    reached = [_reached(ts[lane], q[lane]) for lane in chosen]
    if reached[0] == 0:
        raise ValueError(f"trajectory: lane {chosen[0]} has no row of finite numbers; it failed at its start")
    kept = [(lane, count) for lane, count in zip(chosen, reached, strict=True) if count]
    rows = [_kept_rows(ts[lane], q[lane], v[lane], count) for lane, count in kept]
    ends = np.array([ts[lane, count - 1] for lane, count in kept])
    start = min(ts[lane, 0] for lane, _ in kept)
    frames = max(int((ends.max() - start) * fps / speed * (1 + 1e-9)) + 1, 1)
    instants = start + np.arange(frames) * speed / fps
    times = np.stack([np.clip(instants, ts[lane, 0], end) for (lane, _), end in zip(kept, ends, strict=True)])
    poses = _interpolated(
        model.without_shapes(), *(np.stack(x) for x in zip(*rows, strict=True)), times.astype(ts.dtype)
    )
    return Poses(*(np.asarray(x, float) for x in (poses.rotation, poses.translation)))


@jax.jit
def _interpolated(model, ts, q, v, times):
    def lane(ts, q, v, times):
        return jax.vmap(lambda t: forward_kinematics(model, hermite(model, ts, q, v, t)[0]))(times)

    return jax.vmap(lane)(ts, q, v, times)


def _chosen(lanes, count) -> list[int]:
    if lanes is None:
        return sorted(set(np.linspace(0, count - 1, min(count, LANES)).round().astype(int).tolist()))
    chosen = [int(lane) for lane in lanes]
    if not chosen:
        raise ValueError("lanes: expected at least one")
    if outside := [lane for lane in chosen if not 0 <= lane < count]:
        raise ValueError(f"lanes: expected numbers from 0 to {count - 1}, got {outside[0]}")
    return chosen


def _reached(ts, q) -> int:
    """Number of rows up to the first one that is not finite."""
    finite = np.isfinite(ts) & np.all(np.isfinite(q), axis=1)
    return int(np.sum(np.cumprod(finite)))


def _kept_rows(ts, q, v, count):
    """Rows of equal number for every lane: after what was reached, the lane rests."""
    row = np.minimum(np.arange(len(ts) + 1), count - 1)
    after = np.arange(len(ts) + 1) - row
    return ts[row] + after.astype(ts.dtype), q[row], np.where((after > 0)[:, None], 0, v[row])
