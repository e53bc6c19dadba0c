"""Movies as GIF and MP4 files, and as strips of pictures."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from jdyn.io.whole_file import whole_file
from jdyn.view.frames import spread

# Pictures whose colors those of a GIF are chosen from, and pictures of a strip.
_SAMPLED, _STRIP = 4, 5


class Pictures(Protocol):
    """Pictures to write, of one size, at a constant rate."""

    fps: float
    frames: int
    size: tuple[int, int]

    def frame(self, number: int) -> UInt8[np.ndarray, "h w 3"]: ...

    def __iter__(self) -> Iterator[UInt8[np.ndarray, "h w 3"]]: ...


def write_gif(path: pathlib.Path, movie: Pictures) -> None:
    """A GIF of 256 colors, chosen for all of the movie, that starts again at its end.

    Frames last whole hundredths of a second; they are rounded so that the movie as a whole keeps its time. Viewers play
    frames of less than two hundredths slower than they are.
    """
    palette = _palette(movie)
    pictures = (Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE) for picture in movie)
    ends = np.round(100 * np.arange(movie.frames + 1) / movie.fps).astype(int)
    durations = [10 * int(length) for length in np.maximum(np.diff(ends), 1)]
    first = next(pictures)
    with whole_file(path, "wb") as file:
        first.save(file, "GIF", save_all=True, append_images=pictures, duration=durations, loop=0, optimize=False)


def write_mp4(path: pathlib.Path, movie: Pictures) -> None:
    """An MP4 file with H.264, by FFmpeg.

    Raises:
        ImportError: if there is none.
    """
    program = ffmpeg()
    if program is None:
        raise ImportError('MP4 files need FFmpeg: pip install "jdyn[view]", or install ffmpeg; *.gif needs neither')
    width, height = movie.size
    with whole_file(path, "wb") as file, tempfile.TemporaryDirectory() as folder:
        unfinished = pathlib.Path(folder) / "movie.mp4"
        words = [
            program, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
            "-r", f"{movie.fps}", "-i", "-", "-an", "-c:v", "libx264", "-crf", "22", "-pix_fmt", "yuv420p",
            # The encoder takes even sizes alone.
            "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white", "-movflags", "+faststart", str(unfinished),
        ]  # fmt: skip
        with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            # FFmpeg closes its end where it fails, and says why.
            with contextlib.suppress(BrokenPipeError):
                for picture in movie:
                    process.stdin.write(picture.tobytes())  # type: ignore[union-attr]
            _, complaint = process.communicate()
        if process.returncode:
            raise OSError(f"{path}: FFmpeg failed: {complaint.decode(errors='replace').strip()}")
        file.write(unfinished.read_bytes())


def write_strip(path: pathlib.Path, movie: Pictures) -> None:
    """A PNG picture of some frames, from the first to the last, side by side."""
    strip = np.concatenate([movie.frame(number) for number in spread(movie.frames, _STRIP)], axis=1)
    with whole_file(path, "wb") as file:
        Image.fromarray(strip).save(file, "PNG", optimize=True)


def ffmpeg() -> str | None:
    """The program of the wheel imageio-ffmpeg, or of the system; None if there is neither."""
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    # The wheel is not installed, or has no program for this machine.
    except (ImportError, RuntimeError):
        return shutil.which("ffmpeg")


def _palette(movie) -> Image.Image:
    """A picture whose palette has the colors of the whole movie.

    Pillow looks colors up by the six upper bits of each channel. White stays white where nothing is nearer to its lower
    bound, 252.
    """
    together = np.concatenate([movie.frame(number) for number in spread(movie.frames, _SAMPLED)])
    palette = Image.fromarray(together).quantize(256, method=Image.Quantize.MEDIANCUT)
    colors = np.reshape(palette.getpalette() or [], (-1, 3))
    colors[np.min(colors, axis=1) > 248] = 255
    palette.putpalette(colors.ravel().tolist())
    return palette
