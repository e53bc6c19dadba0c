"""A page that needs no server."""

from __future__ import annotations

import os
import pathlib

import numpy as np
from jaxtyping import Array, Float

from jdyn.io.whole_file import whole_file
from jdyn.model import Model
from jdyn.view.frames import expect_few_frames
from jdyn.view.look import Look
from jdyn.view.viewer.door import with_policy
from jdyn.view.viewer.drawing import Drawing
from jdyn.view.viewer.motion import Motion
from jdyn.view.viewer.posed import posed_lanes
from jdyn.view.viewer.server import start_server, stop_server


def write_page(
    path: str | os.PathLike,
    model: Model,
    q: Float[Array, " nq"],
    motion: Motion | None,
    *,
    lane: int = 0,
    look: Look = "visual",
    frames_per_second: float = 30.0,
) -> pathlib.Path:
    """Write a robot and its motion as one HTML file, with all that it needs in it.

    Args:
        path: Of the file.
        model: The mechanism.
        q: Configuration where there is no motion.
        motion: What plays; None for a robot that stands.
        lane: Which lane of it.
        look: How links look.
        frames_per_second: Of the motion.

    Returns:
        The path.

    Raises:
        ValueError: if `frames_per_second` is not positive, or there would be very many frames.
        OSError: if the file cannot be written.
    """
    if not 0 < frames_per_second < np.inf:
        raise ValueError(f"frames_per_second: expected a positive number, got {frames_per_second}")
    times, configurations = _frames(model, q, motion, lane, frames_per_second)
    # A server that no one visits: its scene is what is written.
    server = start_server("127.0.0.1", 0)
    try:
        drawing = Drawing(server.scene, model, configurations, look)
        drawing.look_at(server)
        recording = server.get_scene_serializer()
        positions, rotations = map(np.asarray, posed_lanes(model, configurations))
        for place, turn in zip(positions[1:], rotations[1:], strict=True):
            recording.insert_sleep(float(times[1] - times[0]))
            drawing.move_bodies(place, turn)
        page = with_policy(recording.as_html())
    finally:
        stop_server(server)
    path = pathlib.Path(path).absolute()
    with whole_file(path, "w") as file:
        file.write(page)
    return path


def _frames(model, q, motion, lane, frames_per_second):
    """Evenly spaced times [s] and configurations there."""
    if motion is None:
        return np.zeros(1), q[None]
    start, end = motion.start(lane), motion.end(lane)
    count = (end - start) * frames_per_second
    expect_few_frames(count, "a smaller frames_per_second")
    times = np.linspace(start, end, max(round(count), 1) + 1)
    return times, motion.configurations(model, np.array([lane]), times)[0]
