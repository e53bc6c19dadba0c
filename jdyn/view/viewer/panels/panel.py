"""What panels of the page have in common."""

from __future__ import annotations

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
                self._ask(f"change of {id(handle)}", lambda: action(value))

    def on_click(self, handle: Any, action: Callable[[], None]) -> None:
        """Call `action()` in the worker's thread after someone has pressed a button."""
        handle.on_click(lambda _: self._ask(f"click on {id(handle)}", action))
