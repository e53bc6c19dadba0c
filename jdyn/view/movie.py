"""A movie that is drawn when someone wants it."""

from __future__ import annotations

import base64
import os
import pathlib
import tempfile
from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8

from jdyn.view.movie_files import ffmpeg, write_gif, write_mp4, write_strip
from jdyn.view.stage import Stage


class Movie:
    """A movie of a motion; in a notebook it shows itself. `jdyn.animate` makes it.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, [1.0], [0.0], 1.0, saveat=jnp.linspace(0.0, 1.0, 21))
    >>> movie = jdyn.animate(motion, fps=10, size=(160, 120))
    >>> movie.save("swing.png")
    >>> print(movie.frames, movie.size, movie.frame(10).shape)
    11 (160, 120) (120, 160, 3)

    Attributes:
        fps: Frames a second.
        frames: Number of frames.
        size: Width and height [pixels].
    """

    def __init__(self, stage: Stage, fps: float):
        self.fps, self.frames, self.size = fps, stage.poses.frames, stage.view.size
        self._stage = stage
        self._background = stage.backgrounds()

    @property
    def duration(self) -> float:
        """Time for which it plays [s]."""
        return self.frames / self.fps

    def frame(self, number: int) -> UInt8[np.ndarray, "h w 3"]:
        """One picture, red, green and blue from 0 to 255."""
        return self._stage.picture(number, self._background(number))

    def __iter__(self) -> Iterator[UInt8[np.ndarray, "h w 3"]]:
        return (self.frame(number) for number in range(self.frames))

    def __len__(self) -> int:
        return self.frames

    def save(self, path: str | os.PathLike) -> None:
        """Write it to a file, which appears whole or not at all.

        Args:
            path: `*.gif`, `*.mp4`, or `*.png` for a strip of five pictures.

        Raises:
            ValueError: for another ending.
            ImportError: if there is no FFmpeg for MP4.
        """
        path = pathlib.Path(path)
        writers = {".gif": write_gif, ".mp4": write_mp4, ".png": write_strip}
        write = writers.get(path.suffix.lower())
        if write is None:
            raise ValueError(f"path: expected a name that ends with {', '.join(writers)}, got {str(path)!r}")
        write(path, self)

    def _repr_html_(self) -> str:
        kind = "gif" if ffmpeg() is None else "mp4"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"movie.{kind}"
            self.save(path)
            data = base64.b64encode(path.read_bytes()).decode()
        width, height = self.size
        shape = f'width="{width}" height="{height}"'
        if kind == "gif":
            return f'<img {shape} src="data:image/gif;base64,{data}">'
        return f'<video {shape} controls autoplay loop muted src="data:video/mp4;base64,{data}"></video>'
