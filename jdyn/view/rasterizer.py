"""Which triangle is seen in each pixel: a z-buffer, vectorised over all rows of all triangles."""

import dataclasses

import numpy as np
from jaxtyping import Float32, Int


@dataclasses.dataclass(frozen=True)
class Seen:
    """Covered pixels, each once.

    Attributes:
        pixels: Their numbers, row by row from the top left.
        triangles: The nearest triangle there.
        nearness: How near it is, as its corners count.
        values: What its corners have, between them.
    """

    pixels: Int[np.ndarray, " p"]
    triangles: Int[np.ndarray, " p"]
    nearness: Float32[np.ndarray, " p"]
    values: Float32[np.ndarray, " p"]


@dataclasses.dataclass(frozen=True)
class _Spans:
    """Rows of pixels of one triangle each.

    Attributes:
        triangle: Number of the triangle.
        y: Number of the row.
        first, last: Pixels of the row, without the last.
        start: Nearness and value at the first pixel's centre, shape (2, spans).
        slope: How they grow from pixel to pixel.
    """

    triangle: np.ndarray
    y: np.ndarray
    first: np.ndarray
    last: np.ndarray
    start: np.ndarray
    slope: np.ndarray


def nearest(screen: Float32[np.ndarray, "3 3 m"], values: Float32[np.ndarray, "3 m"], size: tuple[int, int]) -> Seen:
    """The nearest triangle in every pixel whose centre a triangle covers.

    Every triangle is cut into rows, and every row into pixels. The edges of neighbours are computed from the same
    numbers in the same order, so that no pixel between them is missed, and none belongs to both.

    Args:
        screen: x to the right and y down [pixels], and nearness, of the three corners of each triangle. The top left
            pixel has its centre at (0.5, 0.5). Nearness is positive, affine in x and y, and larger for what is nearer.
            Both windings count.
        values: A number at each of the corners, which is interpolated linearly in the picture.
        size: Width and height of the picture [pixels].
    """
    spans = _spans(np.concatenate([screen, values[None]]).astype(np.float32, copy=False), size)
    of, x, step = _counted(spans.first, spans.last)
    pixels = (spans.y * size[0])[of] + x
    fragments = _largest(spans.start[0][of] + spans.slope[0][of] * step, pixels, size[0] * size[1])
    of, step = of[fragments], step[fragments]
    nearness, values = (start[of] + slope[of] * step for start, slope in zip(spans.start, spans.slope, strict=True))
    return Seen(pixels[fragments], spans.triangle[of], nearness, values)


def _spans(corners, size) -> _Spans:
    """Rows that have pixels, from x, y, nearness and value of the corners, shape (4, 3, m)."""
    left, top = (_first_center(_least(x), end) for x, end in zip(corners, size, strict=False))
    right, bottom = (_first_center(-_least(-x), end) for x, end in zip(corners, size, strict=False))
    number = np.flatnonzero((bottom > top) & (right > left))
    corners = _downwards(np.take(corners, number, 2))
    of, y, _ = _counted(top[number], bottom[number])
    center, heights, others = y.astype(np.float32) + np.float32(0.5), corners[1], corners[[0, 2, 3]]
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = [(others[:, j] - others[:, i]) / (heights[j] - heights[i]) for i, j in ((0, 1), (1, 2), (0, 2))]
    # Two edges meet each row: the long one, and the upper or the lower one of the others.
    below = (center >= heights[1, of]).astype(np.int32)
    lower = below * len(number) + of
    short = np.take(others[:, :2].reshape(3, -1), lower, 1)
    short += (center - heights[:2].ravel()[lower]) * np.take(np.concatenate(edges[:2], axis=1), lower, 1)
    long = np.take(others[:, 0], of, 1)
    long += (center - heights[0, of]) * np.take(edges[2], of, 1)
    ordered = short[0] <= long[0]
    start, end = np.where(ordered, short, long), np.where(ordered, long, short)
    first, last = _first_center(start[0], size[0]), _first_center(end[0], size[0])
    covering = np.flatnonzero(last > first)
    start, end, first = np.take(start, covering, 1), np.take(end, covering, 1), first[covering]
    slope = (end[1:] - start[1:]) / (end[0] - start[0])
    at_first = start[1:] + slope * (first.astype(np.float32) + np.float32(0.5) - start[0])
    return _Spans(number[of[covering]], y[covering], first, last[covering], at_first, slope)


def _least(x):
    return np.minimum(np.minimum(x[0], x[1]), x[2])


def _first_center(x, end):
    """The first pixel with its centre at or beyond `x`, from 0 to `end`."""
    return np.clip(np.ceil(x - np.float32(0.5)), 0, end).astype(np.int32)


def _downwards(corners):
    """Corners in the order of y."""
    highest, lowest = np.argmin(corners[1], axis=0), np.argmax(corners[1], axis=0)
    order = np.stack([highest, 3 - highest - lowest, lowest])
    return np.take_along_axis(corners, order[None], axis=1)


def _counted(first, last):
    """For all ranges from `first` up to `last`: the range that each number belongs to, the number, and its place."""
    counts = last - first
    of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    place = np.arange(len(of), dtype=np.int32) - (np.cumsum(counts, dtype=np.int32) - counts)[of]
    return of, first[of] + place, place.astype(np.float32)


def _largest(nearness, pixels, count):
    """Number of the fragment with the largest nearness, for each pixel that has one. Positive floats are in the order
    of their bits, so that one maximum of integers finds the fragment, too."""
    keys = nearness.view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    best = np.zeros(count, np.uint64)
    np.maximum.at(best, pixels, keys)
    return (best[best > 0] & np.uint64(0xFFFFFFFF)).astype(np.int64)
