"""Movies and pictures of a mechanism, without a GPU and without a window."""

from __future__ import annotations

import os
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, UInt8

from jdyn.model import Model
from jdyn.simulation import Trajectory
from jdyn.view.camera import Camera
from jdyn.view.look import Look
from jdyn.view.movie import Movie
from jdyn.view.playback import one_lane, played, poses_of
from jdyn.view.scene import one_model
from jdyn.view.stage import STEPS, staged


def animate(
    trajectory: Trajectory,
    path: str | os.PathLike | None = None,
    *,
    lanes: Sequence[int] | None = None,
    camera: Camera | None = None,
    fps: float = 30,
    size: tuple[int, int] = (640, 480),
    speed: float = 1.0,
    look: Look = "visual",
    trails: Sequence[str] = (),
) -> Movie:
    """A movie of a motion.

    ```
    jdyn.animate(motion, "motion.gif", trails=["hand"])
    ```

    Of a batch, the first lane is solid, and the others are ghosts; one that failed stays where it failed. A motion
    backward in time plays from its start. Between rows of the trajectory the mechanism moves as
    `Trajectory.interpolate` says. A mechanism that moves in one plane is seen straight from the front, on squared
    paper; another one in perspective, on the ground z = 0, or on a lower one, if it reaches below. Robots without
    shapes are drawn as rods along their links.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, [1.0], [0.0], 1.0, saveat=jnp.linspace(0.0, 1.0, 21))
    >>> movie = jdyn.animate(motion, "swing.gif", fps=10, size=(160, 120), trails=["tip"])
    >>> print(movie.frames, movie.duration)
    11 1.1

    Args:
        trajectory: One motion, or a batch.
        path: Where to write the movie: `*.gif`, `*.mp4`, which needs FFmpeg (`pip install "jdyn[view]"`), or `*.png`
            for a strip of five pictures. If left out, nothing is written.
        lanes: Lanes of a batch that are drawn, the solid one first; up to twelve, evenly chosen, if left out.
        camera: Where the movie is taken from; if left out, from where all of the motion is seen.
        fps: Frames a second. Of GIF files, viewers show no more than 50.
        size: Width and height [pixels].
        speed: Seconds of motion in a second of the movie; below 1 is slow motion.
        look: How links look: as `"visual"` shapes, as `"collision"` shapes, or as a `"skeleton"` of rods.
        trails: Bodies and frames whose origins leave a line.

    Returns:
        The movie, which shows itself in a notebook, and has `save(path)`. It is drawn each time that it is shown or
        saved.

    Raises:
        ValueError: if a name, a lane or a number cannot be, the solid lane has no finite row, there would be very many
            frames, or the trajectory does not know its system.
        ImportError: if `path` needs FFmpeg, and there is none.
    """
    for name, value in (("fps", fps), ("speed", speed)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name}: expected a positive number, got {value}")
    _check_size(size)
    poses = played(trajectory, lanes, fps, speed, STEPS)
    solid = one_lane(trajectory, 0 if lanes is None else lanes[0])
    stage = staged(solid.system.model, poses, camera, size, look, trails)
    movie = Movie(stage, fps)
    if path is not None:
        movie.save(path)
    return movie


def snapshot(
    model: Model,
    q: ArrayLike,
    *,
    camera: Camera | None = None,
    size: tuple[int, int] = (640, 480),
    look: Look = "visual",
) -> UInt8[np.ndarray, "h w 3"]:
    """A picture of a mechanism at rest.

    ```
    matplotlib.pyplot.imshow(jdyn.snapshot(model, q))
    ```

    >>> model = jdyn.load("double_pendulum")
    >>> print(jdyn.snapshot(model, [[0.5, 0.3], [0.8, 0.1]], size=(160, 120)).shape)
    (120, 160, 3)

    Args:
        model: The mechanism.
        q: Configuration [rad or m], shape (nq,); or several, shape (k, nq), of which the first is solid and the others
            are ghosts.
        camera: As for `jdyn.animate`.
        size: Width and height [pixels].
        look: How links look: as `"visual"` shapes, as `"collision"` shapes, or as a `"skeleton"` of rods.

    Returns:
        Red, green and blue from 0 to 255, row by row from the top.

    Raises:
        ValueError: if a shape or a size is wrong, the model is a batch, or q is not finite.
    """
    one_model(model)
    _check_size(size)
    q = np.asarray(q, model.dtype)
    if q.ndim not in (1, 2) or q.shape[-1] != model.nq or 0 in q.shape[:-1]:
        raise ValueError(f"q: expected shape ({model.nq},) or (k, {model.nq}) for {model.name!r}, got {q.shape}")
    if not np.all(np.isfinite(q)):
        raise ValueError(f"q: expected finite numbers, got {q}")
    stage = staged(model, poses_of(model, jnp.asarray(np.atleast_2d(q)[:, None])), camera, size, look, ())
    return stage.picture(0, stage.backgrounds()(0))


def _check_size(size):
    if len(size) != 2 or not all(isinstance(side, int | np.integer) and 16 <= side <= 8192 for side in size):
        raise ValueError(f"size: expected width and height, of 16 to 8192 pixels each, got {size}")
