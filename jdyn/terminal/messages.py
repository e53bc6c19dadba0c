"""Many problems or names in one readable message."""

import difflib
import re
import reprlib
from collections.abc import Sequence

MOST = 10
# Longest word and longest message [characters]. Files may have names of megabytes.
LONGEST_WORD = 500
LONGEST = 10_000
# Longest name or value in a message about it [characters].
LONGEST_NAME = 80

_short = reprlib.Repr()
_short.maxstring = _short.maxother = LONGEST_NAME
# Text of a name or a value in quotes, as `repr` gives it, without most of a long one.
short = _short.repr


def short_name(name: str) -> str:
    """A name without quotes, and without most of a long one."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def readable(message: str) -> str:
    """A message without the middle of long words, and without the middle of what is long nevertheless."""
    message = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: _ends(word[0], LONGEST_WORD), message)
    return message if len(message) <= LONGEST else _ends(message, LONGEST)


def _ends(text, length):
    return f"{text[: length // 2]} ... {text[-length // 4 :]}"


def bulleted(messages: Sequence[str]) -> str:
    """The first messages, one per line, and the number of further ones."""
    more = [f"... and {len(messages) - MOST} more"] if len(messages) > MOST else []
    return "".join(f"\n  - {message}" for message in [*messages[:MOST], *more])


def listed(source: str, what: str, messages: Sequence[str]) -> str:
    """List of `bulleted` messages, with their number and where problems or warnings were found."""
    return f"{source}: {len(messages)} {what}{'s' if len(messages) > 1 else ''}{bulleted(messages)}"


def enumerated(names: Sequence[str], separator: str = ", ") -> str:
    """The first names, and the number of further ones."""
    more = [f"... ({len(names) - MOST} more)"] if len(names) > MOST else []
    return separator.join([*names[:MOST], *more])


def known(name: str, names: Sequence[str]) -> str:
    """The known names, for a message about an unknown one; of many names only similar ones."""
    shown = enumerated([*map(short_name, names)])
    if len(names) <= MOST:
        return f"there are {shown}" if names else "there are none"
    close = difflib.get_close_matches(str(name), names) if len(names) <= 10_000 else []
    return f"is it {' or '.join(map(short, close))}?" if close else f"there are {shown}"


def unknown(what: str, name: str, names: Sequence[str]) -> str:
    """Message about a name that nothing of a kind has, with the `known` ones."""
    return f"no {what} is called {short(name)}; {known(name, names)}"


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless `value` is among the choices."""
    if value not in choices:
        raise ValueError(f"{name}: expected {' or '.join(map(repr, choices))}, got {short(value)}")
