"""Clock of a motion that plays."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Player:
    """A clock between a start and an end.

    Attributes:
        start, end: Of the motion [s].
        time: Now [s].
        speed: Seconds of motion a second.
        playing: Whether time goes on.
        looping: Whether it begins again at the end.
    """

    start: float = 0.0
    end: float = 0.0
    time: float = 0.0
    speed: float = 1.0
    playing: bool = False
    looping: bool = True

    def load(self, start: float, end: float) -> None:
        """Another motion, from its start; or as far as it goes where time is within it."""
        self.start, self.end = start, end
        self.playing = self.playing and end > start
        self.jump(self.time)

    def jump(self, time: float) -> None:
        """To a time [s], or the nearest one that there is."""
        self.time = min(max(time, self.start), self.end)

    def play(self) -> None:
        """Go on; from the start if this is the end."""
        self.playing = self.end > self.start
        if self.time >= self.end:
            self.time = self.start

    def pause(self) -> None:
        self.playing = False

    def advance(self, seconds: float) -> bool:
        """Let time pass.

        Args:
            seconds: Of the clock on the wall.

        Returns:
            Whether the time in the motion has changed.
        """
        if not self.playing:
            return False
        time = self.time + self.speed * seconds
        if time > self.end:
            self.playing = self.looping
            length = self.end - self.start
            time = self.start + (time - self.start) % length if self.looping else self.end
        self.time = time
        return True
