"""Questions on a terminal."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ask(question: str, default: T, read: Callable[[str], T], shown: str | None = None) -> T:
    """Ask until there is an answer that can be read.

    Args:
        question: What to ask.
        default: What an empty answer means.
        read: Converts an answer; its ValueError or ArgumentTypeError says what is wrong with the answer.
        shown: The default as the question shows it; `str(default)` if left out.

    Raises:
        ValueError: if the input ends.
    """
    while True:
        try:
            answer = input(f"{question} [{default if shown is None else shown}]: ").strip()
        except EOFError:
            print()
            raise ValueError(f"the input ended where an answer was expected: {question}") from None
        if not answer:
            return default
        try:
            return read(answer)
        except (ValueError, argparse.ArgumentTypeError) as error:
            print(f"  {error}")


def ask_numbers(question: str, default: Sequence[float], read: Callable[[str], float]) -> tuple[float, ...]:
    """Ask for as many numbers as the default has, each read by `read`."""

    def numbers(answer):
        words = answer.split()
        if len(words) != len(default):
            raise ValueError(f"expected {len(default)} numbers, got {len(words)}")
        return tuple(map(read, words))

    return ask(question, tuple(default), numbers, " ".join(f"{x:g}" for x in default))


def ask_choice(question: str, default: str, choices: Sequence[str]) -> str:
    """Ask for one of the choices, by its number or its name."""

    def choice(answer):
        for number, name in enumerate(choices, start=1):
            if answer.lower() in (str(number), name):
                return name
        raise ValueError(f"expected a number from 1 to {len(choices)}, got {answer!r}")

    listed = " ".join(f"{number}={name.upper()}" for number, name in enumerate(choices, start=1))
    return ask(f"{question} ({listed})", default, choice, str(choices.index(default) + 1))


def ask_whether(question: str) -> bool:
    """Ask for yes or no; yes is the default."""

    def yes(answer):
        if answer.lower() not in ("y", "yes", "n", "no"):
            raise ValueError(f"expected y or n, got {answer!r}")
        return answer.lower().startswith("y")

    return ask(question, True, yes, "y")
