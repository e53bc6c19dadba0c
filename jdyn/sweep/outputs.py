"""Outputs that a sweep keeps of each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from jdyn.model import Model
from jdyn.simulation import Trajectory
from jdyn.sweep.controlled_move import ControlledMove


class Lane(NamedTuple):
    """One lane with all of its motion.

    Attributes:
        parameters: What varies, by the names of the sweep.
        model: The mechanism with its own numbers.
        move: Start, target and controller.
        gains: kp and kd of the controller.
        motion: The trajectory.
    """

    parameters: dict[str, Any]
    model: Model
    move: ControlledMove
    gains: dict[str, Any]
    motion: Trajectory


class Output(NamedTuple):
    """Output that is kept of a lane.

    Attributes:
        of: What it is.
        long_name, units: In words.
    """

    of: Callable[[Lane], Array]
    long_name: str
    units: str


def _last_quarter(lane):
    distance = lane.move.distances(lane.motion)
    return jnp.max(distance[3 * distance.size // 4 :])


OUTPUTS = {
    "residual": Output(_last_quarter, "distance to the target, largest in the last quarter", "rad or m"),
    "final_error": Output(
        lambda lane: lane.move.distances(lane.motion)[-1], "distance to the target at the end", "rad or m"
    ),
    "peak_effort": Output(
        lambda lane: jnp.max(jnp.abs(lane.motion.tau / lane.move.effort[None])), "largest effort over its limit", "1"
    ),
    "peak_torque": Output(
        lambda lane: jnp.max(jnp.abs(lane.motion.tau), axis=0), "largest force of each motor", "N m or N"
    ),
    "peak_speed": Output(
        lambda lane: jnp.max(jnp.abs(lane.motion.v), axis=0), "largest speed of each joint", "rad/s or m/s"
    ),
    "steps": Output(lambda lane: lane.motion.stats["accepted_steps"], "accepted steps", "1"),
    "dynamics_calls": Output(
        lambda lane: lane.motion.stats["dynamics_calls"], "evaluations of forward dynamics", "1"
    ),
    "q": Output(lambda lane: lane.motion.q, "configuration", "rad or m"),
    "v": Output(lambda lane: lane.motion.v, "velocity", "rad/s or m/s"),
}  # fmt: skip
USUAL = ["residual", "final_error", "peak_effort", "steps", "dynamics_calls"]
