"""Tables as text."""

from collections.abc import Sequence
from typing import TextIO


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO | None = None):
    """Columns as wide as what is in them, on standard output or to a file."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        line = "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        print(line, file=file)
