"""State of a viewer, and how it goes on as time passes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.simulation import Trajectory
from jdyn.view.frames import spread
from jdyn.view.viewer.motion import Motion
from jdyn.view.viewer.player import Player
from jdyn.view.viewer.recorder import Recorder

# Most robots that are drawn besides the one that is looked at.
MOST_GHOSTS = 15
# Configurations along a motion by which a camera is placed.
STATIONS = 20


class Session:
    """A robot in a configuration, and a motion of it that may play. It knows nothing of pages, and one thread uses it.

    Attributes:
        model: The mechanism.
        q: Configuration that is shown, of shape (nq,).
        motion: What plays; None if there is nothing.
        trajectory: Where that comes from, as it was given.
        lane: Which lane of it.
        ghosts: How many other lanes are shown besides.
        player: What time it is in the motion.
        recorder: Notes what is shown.
        motions: How many motions there have been: another number means another one, or another lane.
    """

    def __init__(self, model: Model, trajectory: Trajectory | None = None, lane: int = 0):
        """
        Args:
            model: The mechanism.
            trajectory: A motion, or a batch.
            lane: Which lane of a batch to begin with.

        Raises:
            ValueError: if the trajectory is not one of the model, has no such lane, or this failed at its start.
        """
        self.model, self.player, self.recorder = model, Player(), Recorder()
        self.motion: Motion | None = None
        self.trajectory: Trajectory | None = None
        self.lane = self.ghosts = self.motions = 0
        self._clock = 0.0
        self.q: Array = model.neutral()
        if trajectory is not None:
            self.load(trajectory, lane)

    @property
    def lanes(self) -> int:
        """Number of lanes; 0 without a motion."""
        return 0 if self.motion is None else self.motion.lanes

    def load(self, trajectory: Trajectory, lane: int = 0, model: Model | None = None) -> None:
        """Another motion, and another model of the same topology with it."""
        model = self.model if model is None else model
        if trajectory.q.shape[-1] != model.nq:
            raise ValueError(
                f"trajectory: expected rows of {model.nq} coordinates for {model.name!r}, got q of shape "
                f"{trajectory.q.shape}"
            )
        motion = Motion.of(trajectory)
        motion.check(lane)
        self.model, self.motion, self.trajectory = model, motion, trajectory
        self.choose(lane)

    def choose(self, lane: int) -> None:
        """Look at another lane, at the same time."""
        if self.motion is not None:
            self.motion.check(lane)
            self.lane = lane
            self.motions += 1
            self.player.load(self.motion.start(lane), self.motion.end(lane))
            self._look()

    def jump(self, time: float) -> None:
        """To another time [s] of the motion."""
        if self.motion is not None:
            self.player.jump(time)
            self._look()

    def take(self, q: Float[Array, " nq"]) -> None:
        """Someone has moved the robot, so that nothing plays any longer."""
        self.player.pause()
        self.q = q

    def tick(self, seconds: float) -> None:
        """Let time pass on the wall."""
        self._clock += seconds
        if self.motion is not None and self.player.advance(seconds):
            self._look()
        self.recorder.note(self._clock, self.q)

    def finish_recording(self) -> None:
        """Play what was recorded, from its start."""
        self.load(self.recorder.stop(self.model))
        self.jump(self.player.start)

    def stations(self) -> Float[Array, "stations nq"]:
        """The present configuration, and some along the lane: what a camera should see."""
        if self.motion is None:
            return self.q[None]
        times = np.linspace(self.player.start, self.player.end, STATIONS)
        return jnp.stack([self.q, *(self.motion.at(self.model, self.lane, t) for t in times)])

    def other_lanes(self) -> np.ndarray:
        """Lanes that are shown besides, evenly spread."""
        others = np.zeros(0, int) if self.motion is None else self.motion.others(self.lane)
        return others[spread(len(others), min(self.ghosts, MOST_GHOSTS))]

    def ghost_configurations(self) -> Float[Array, "ghosts nq"]:
        """Configurations of the other lanes now."""
        lanes = self.other_lanes()
        if self.motion is None or not len(lanes):
            return jnp.zeros((0, self.model.nq), self.model.dtype)
        return self.motion.lanes_at(self.model, lanes, self.player.time)

    def _look(self):
        self.q = self.motion.at(self.model, self.lane, self.player.time)  # type: ignore[union-attr]
