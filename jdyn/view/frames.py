"""Frames of a movie or a page: how many there may be, and some of many."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

# Two hours at 30 frames a second are 216 000: a page of them takes minutes and 100 MB for an arm of seven joints, a
# movie hours. What asks for more is a horizon mistyped, or meant to do harm.
MOST_FRAMES = 250_000


def expect_few_frames(count: float, change: str) -> None:
    """Refuse a motion of very many frames, before anything is computed of it.

    Args:
        count: Number of frames; it may be infinite.
        change: What else than a shorter motion makes it smaller.

    Raises:
        ValueError: if there are more than `MOST_FRAMES`.
    """
    if count > MOST_FRAMES:
        raise ValueError(
            f"expected a motion of at most {MOST_FRAMES} frames, got {count:.3g}; give {change} or a shorter motion"
        )


def spread(count: int, most: int) -> Int[np.ndarray, " chosen"]:
    """Numbers of some of `count` frames, rows or lanes, evenly spread, the first and the last included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
