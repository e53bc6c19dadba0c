"""One thread that does everything, so that nothing happens at the same time."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

import jax

# Seconds from tick to tick.
TICK = 1 / 30

T = TypeVar("T")


class Worker:
    """A thread for what callbacks of a page ask for, one after another, and for what happens as time passes.

    Callbacks arrive in threads of their own, and often: a slider that is drawn along sends hundreds. Of each kind only
    the newest is done.
    """

    def __init__(self, tick: Callable[[float], None], on_error: Callable[[Exception], None], x64: bool):
        """
        Args:
            tick: Called with the seconds since it was called last.
            on_error: Told of what goes wrong; the thread goes on.
            x64: Whether JAX computes in float64 in this thread.
        """
        self._tick, self._on_error, self._x64 = tick, on_error, x64
        self._waiting: dict[str, Callable[[], None]] = {}
        self._condition = threading.Condition()
        self._idle = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="jdyn viewer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def post(self, kind: str, action: Callable[[], None]) -> None:
        """Do something soon, in place of what waits of the same kind; nothing once the thread has ended."""
        with self._condition:
            if self._ended:
                return
            # The newest goes to the end of the line: it may depend on what came between.
            self._waiting.pop(kind, None)
            self._waiting[kind] = action
            self._idle.clear()
            self._condition.notify()

    def answer(self, question: Callable[[], T]) -> T:
        """Return what `question()` returns in the thread, after everything that was asked for before.

        Where the thread has ended nothing changes any longer, and within it nothing happens meanwhile: the question is
        then answered at once.

        Raises:
            Exception: what `question` raises.
        """
        answer: Future[T] = Future()

        def reply():
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)

        self.post(f"question {id(answer)}", reply)
        while self._thread.is_alive() and threading.current_thread() is not self._thread:
            # The thread may end before it comes to this.
            if wait([answer], TICK).done:
                return answer.result()
        return question()

    def finish(self, timeout: float) -> bool:
        """Wait until nothing is left to do, at most so many seconds; whether this was reached."""
        return self._idle.wait(timeout)

    def stop(self) -> None:
        """End the thread, after what it is doing."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def _run(self):
        with jax.enable_x64(self._x64):
            last = time.perf_counter()
            while (actions := self._next()) is not None:
                for action in actions:
                    self._attempt(action)
                now = time.perf_counter()
                # What takes long, such as compiling, is no time in which a motion goes on.
                passed, last = min(now - last, 3 * TICK), now
                self._attempt(lambda passed=passed: self._tick(passed))

    def _next(self):
        with self._condition:
            if not self._waiting:
                self._idle.set()
                self._condition.wait(TICK)
            if self._ended:
                self._idle.set()
                return None
            actions = list(self._waiting.values())
            self._waiting.clear()
            return actions

    def _attempt(self, action):
        try:
            action()
        except Exception as error:
            try:
                self._on_error(error)
            except Exception as another:
                # The thread goes on, also where whom it tells has just left.
                traceback.print_exception(another)
