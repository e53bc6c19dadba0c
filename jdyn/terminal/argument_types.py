"""Types of command-line arguments."""

import argparse
import math
import pathlib

PICTURES = (".png", ".pdf", ".svg", ".jpg")
MOVIES = (".gif", ".mp4", ".png")


def number(word: str) -> float:
    """A finite number."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"expected a number, got {word!r}")
    return value


def number_or_name(word: str) -> float | str:
    """A finite number, or a word that is no number at all."""
    try:
        float(word)
    except ValueError:
        return word
    return number(word)


def height(word: str) -> float | str:
    """A number, or `lowest`, for that of what is lowest."""
    return word if word == "lowest" else number(word)


def not_negative(word: str) -> float:
    value = number(word)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {word}")
    return value


def positive(word: str) -> float:
    value = number(word)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {word}")
    return value


def natural(word: str) -> int:
    value = _whole(word)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {word}")
    return value


def part(word: str) -> tuple[int, int]:
    """One of several parts, as in 2/8."""
    first, slash, last = word.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"expected I/N, such as 2/8, got {word!r}")
    i, n = _whole(first), _whole(last)
    if not 1 <= i <= n:
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, got {word}")
    return i, n


def count(word: str) -> int:
    value = _whole(word)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {word}")
    return value


def port(word: str) -> int:
    value = _whole(word)
    if not 0 <= value < 2**16:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {word}")
    return value


def seed(word: str) -> int:
    value = _whole(word)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 2147483647, got {word}")
    return value


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {word!r}") from None


def picture(word: str) -> pathlib.Path:
    """The path of a picture; it is checked before the work begins."""
    return _file_of_kind(word, "a picture", PICTURES)


def movie(word: str) -> pathlib.Path:
    """The path of a movie, or of a strip of its pictures."""
    return _file_of_kind(word, "a movie", MOVIES)


def _file_of_kind(word, what, endings):
    path = new_file(word)
    if path.suffix.lower() not in endings:
        raise argparse.ArgumentTypeError(f"expected the name of {what} ({', '.join(endings)}), got {word}")
    return path


def new_file(word: str) -> pathlib.Path:
    path = pathlib.Path(word).resolve()
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def frequency(word: str) -> float | str:
    """A positive number, or `auto`."""
    return word if word == "auto" else positive(word)


def share_or_file(word: str) -> float | pathlib.Path:
    """A number from 0 to less than 1, or the path of something that is there."""
    try:
        value = float(word)
    except ValueError:
        path = pathlib.Path(word)
        if not path.exists():
            raise argparse.ArgumentTypeError(f"expected a share or a file that is there, got {word}") from None
        return path
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to less than 1, got {word}")
    return value
