"""Ctrl-C as a wish to stop soon, or at once."""

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


@contextlib.contextmanager
def ended_by_interruptions() -> Iterator[None]:
    """Within, Ctrl-C ends the process at once and in silence, as it ends programs that know nothing of it. While
    modules are imported, the exception that Python makes of it would be lost in some, or leave a traceback."""
    before = signal.getsignal(signal.SIGINT)
    # Whoever ignores it, as shells have background processes do, goes on doing so.
    ends = threading.current_thread() is threading.main_thread() and before is signal.default_int_handler
    if ends:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if ends:
            signal.signal(signal.SIGINT, before)
