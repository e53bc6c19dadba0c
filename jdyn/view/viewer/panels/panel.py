"""Base of the panels of the page."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from typing import Any

# Has the worker do something, in place of what waits of the same kind.
Ask = Callable[[str, Callable[[], None]], None]


class Panel:
    """Controls on the page.

    Callbacks only ask the worker; everything else happens in its thread.
    """

    def __init__(self, ask: Ask):
        self._ask = ask

    def refresh(self) -> None:
        """Show what there is now. Called a few times a second, and only after something has happened."""

    def on_change(self, handle: Any, action: Callable[[Any], None]) -> None:
        """Call `action(value)` in the worker's thread after someone has moved a control."""

        @handle.on_update
        def _(event):
            # What the program itself sets is no one's wish. The value is that of now: the program may change it.
            if event.client_id is not None:
                value = handle.value
                self._ask(f"change of {id(handle)}", lambda: action(checked(handle, value)))

    def on_click(self, handle: Any, action: Callable[[], None]) -> None:
        """Call `action()` in the worker's thread after someone has pressed a button."""
        handle.on_click(lambda _: self._ask(f"click on {id(handle)}", action))


def checked(handle: Any, value: Any) -> Any:
    """A control's value, which a page may have set to whatever it likes.

    Raises:
        ValueError: if it is no finite number in the control's range, or none of its choices.
    """
    options = getattr(handle, "options", None)
    if options is not None and value not in options:
        raise ValueError(f"{handle.label}: expected one of {', '.join(options)}, got {reprlib.repr(value)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = (getattr(handle, name, None) for name in ("min", "max"))
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        # Ends of sliders are rounded to their steps.
        room = getattr(handle, "step", None) or 0.0
        if not (math.isfinite(value) and low - room <= value <= high + room):
            raise ValueError(f"{handle.label}: expected a number from {low:g} to {high:g}, got {value:g}")
        return min(max(value, low), high)
    return value
