"""Ctrl-C as a wish to stop soon."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interruptions() -> Iterator[list]:
    """A list that the first Ctrl-C is put on; a second one raises as ever. Other threads than the main one get none."""
    came, before = [], signal.getsignal(signal.SIGINT)

    def note(number, _):
        came.append(number)
        signal.signal(signal.SIGINT, before)

    heard = threading.current_thread() is threading.main_thread() and callable(before)
    if heard:
        signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)
