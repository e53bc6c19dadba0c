"""Findings about parts of a URDF file beside its mechanism, and texts and numbers in them."""

from collections.abc import Iterable

from jdyn.io.rules import numbers
from jdyn.io.urdf import place_of
from jdyn.io.xml import Element
from jdyn.model import Builder
from jdyn.terminal.messages import enumerated, short


class Findings:
    """Collects problems and notes of one document.

    Args:
        builder: Reports them with its own.
    """

    def __init__(self, builder: Builder):
        self._builder = builder
        self._notes: dict[str, dict[str, None]] = {}

    def problem(self, element: Element, text: str) -> None:
        """Record why a document is not valid."""
        self._builder.problem(f"{place_of(element)}: {text}")

    def note(self, what: str, name: str) -> None:
        """Record something that is not simulated."""
        self._notes.setdefault(what, {})[name] = None

    def note_unknown(self, element: Element, known: Iterable[str]) -> None:
        """Record the children of an element that are not known."""
        for child in element.children:
            if child.tag not in known:
                self.note("unknown to jdyn", f"<{child.tag}> in <{element.tag}>")

    def number(self, element: Element, what: str, text: str) -> float:
        """A number of an element; record a problem and return zero, if the text is none."""
        if (value := number(text)) is None:
            self.problem(element, f"{what} is {short(text)}, expected a number")
        return value or 0.0

    def report(self) -> None:
        """Hand the notes to the builder, as warnings."""
        for what, names in self._notes.items():
            self._builder.warning(f"not simulated, {what}: {enumerated([*names])}")


def number(text: str) -> float | None:
    """The number that a text is, as URDF writes them; None for none."""
    values = numbers(text, 1)
    return None if values is None else float(values[0])


def texts(element: Element, *tags: str) -> list[str]:
    """Texts of the children with these tags that have one."""
    return [child.text for tag in tags for child in element.all(tag) if child.text]


def text(element: Element, *tags: str) -> str:
    """The first of those texts; empty if there is none."""
    return next(iter(texts(element, *tags)), "")


def name_of(element: Element) -> str:
    """The name of an element, in quotes."""
    return short(element.attributes.get("name", ""))
