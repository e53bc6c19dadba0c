"""Words of files and errors in a page."""

import re


def plain(words: str) -> str:
    """Markdown that shows words as they are: names of a robot or a store, and messages with such names, may be made to
    be read as HTML, links or pictures.

    >>> plain("<b> | ![x](/etc/passwd)")
    '\\\\<b\\\\> \\\\| \\\\!\\\\[x\\\\]\\\\(\\\\/etc\\\\/passwd\\\\)'
    """
    escaped = (re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(line.split())) for line in words.splitlines())
    # Two blanks at the end of a line keep it one.
    return "  \n".join(escaped)
