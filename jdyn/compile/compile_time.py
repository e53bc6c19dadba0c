"""Share of compiling in what takes time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from jax import monitoring

# What JAX does before a program runs for the first time: it traces, lowers and compiles.
COMPILING = "/jax/core/compile/"


class Times:
    """Seconds that passed, of which some were spent on compiling.

    Attributes:
        compiling: Tracing, lowering and compiling [s]; what is found in a cache takes a little, too.
        running: The rest [s].
    """

    def __init__(self):
        self.compiling = self.running = 0.0
        # Programs are traced within others: ends of what was counted, and of what it spans.
        self._spans: list[tuple[float, float]] = []

    def add(self, event: str, duration_secs: float, **_: str | int) -> None:
        """Note what JAX has just done."""
        if event.startswith(COMPILING):
            end = time.perf_counter()
            start = end - duration_secs
            # What began later is a part of this.
            self._spans = [span for span in self._spans if span[0] < start]
            self._spans.append((start, end))


@contextlib.contextmanager
def timed() -> Iterator[Times]:
    """Times of what happens in this context, once it ends.

    Yields:
        The times.
    """
    times, began = Times(), time.perf_counter()
    monitoring.register_event_duration_secs_listener(times.add)
    try:
        yield times
    finally:
        monitoring.unregister_event_duration_listener(times.add)
        times.compiling = sum(end - start for start, end in times._spans)
        times.running = max(time.perf_counter() - began - times.compiling, 0.0)
