"""Contents that a format allows in its elements, and numbers as files write them."""

import dataclasses
import re

import numpy as np

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Rule:
    """The contents allowed in an element; `foreign` elements are for other programs and ignored without a warning,
    `named` ones are ignored with one, since they say something about motion."""

    attributes: list[str]
    once: list[str]
    many: list[str]
    foreign: list[str]
    named: list[str]


def rule(attributes: str = "", *, once: str = "", many: str = "", foreign: str = "", named: str = "") -> Rule:
    """A rule, from words that spaces separate."""
    return Rule(*(words.split() for words in (attributes, once, many, foreign, named)))


def numbers(text: str, count: int) -> np.ndarray | None:
    """The finite numbers of a text; None if there are not `count` numbers and nothing else."""
    words = text.split()
    if len(words) == count and all(len(word) < 100 and NUMBER.fullmatch(word) for word in words):
        values = np.array([float(word) for word in words])
        if np.all(np.isfinite(values)):
            return values
    return None


def color_of(text: str) -> tuple[float, ...] | None:
    """Red, green, blue and opacity; None if a text is not four numbers from 0 to 1."""
    values = numbers(text, 4)
    return None if values is None or np.any(values < 0) or np.any(values > 1) else tuple(values.tolist())
