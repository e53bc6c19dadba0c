"""History of the steps of one start, and whether there should be more of them."""

import dataclasses
from typing import NamedTuple

import numpy as np


class Patience(NamedTuple):
    """When a tuning ends because the loss does not fall.

    >>> import optax
    >>> options = {"optimizer": optax.sgd(0.25), "steps": 50, "patience": jdyn.tuning.Patience(3, tolerance=0.01)}
    >>> print(len(jdyn.tune(lambda x: 1 + x**2, 1.0, **options).losses))
    8

    Attributes:
        steps: Steps in which the loss has to fall.
        tolerance: Fraction of the loss by which it must fall to count as fallen.
    """

    steps: int
    tolerance: float = 0.0


@dataclasses.dataclass
class History:
    """Losses along the way from one start, and when it ends.

    Attributes:
        patience: When it ends without improvement; None for never.
        losses, gradient_norms: By step.
        judged: Losses by which the best step is chosen: those of all rows, where there are rows, else `losses`. NaN
            where there is none.
        best_step: Step with the smallest of them.
        message: Why there should be no more steps; empty while there should.
        stalled: Whether the reason is patience. Where other starts go on, so does this one, and may fall again.
    """

    patience: Patience | None = None
    losses: list[float] = dataclasses.field(default_factory=list)
    gradient_norms: list[float] = dataclasses.field(default_factory=list)
    judged: list[float] = dataclasses.field(default_factory=list)
    best_step: int = 0
    message: str = ""
    stalled: bool = False
    _best: float = np.inf
    _before: float = np.inf
    _fell_at: int = 0

    def __post_init__(self):
        if self.patience is not None and self.patience.steps < 1:
            raise ValueError(f"patience: expected a positive number of steps, got {self.patience.steps}")
        if self.patience is not None and not 0 <= self.patience.tolerance < 1:
            raise ValueError(
                f"patience: expected a tolerance from 0 up to 1, a fraction of the loss, got {self.patience.tolerance}"
            )

    def add(self, loss: float, gradient_norm: float, judged: float) -> None:
        """Add a step, unless one has failed."""
        if self.failed:
            return
        step = len(self.losses)
        self.losses.append(loss)
        self.gradient_norms.append(gradient_norm)
        self.judged.append(judged)
        if not np.isfinite(loss):
            self._fail(f"the loss is {loss} after {step} steps")
            return
        if np.isfinite(judged):
            self._judge(step, judged)
        if not np.isfinite(gradient_norm):
            self._fail(f"the gradient is not finite after {step} steps, where the loss is {loss:.6g}")

    def _fail(self, message):
        self.message, self.stalled = message, False

    def _judge(self, step, judged):
        if judged <= self._best:
            self._best, self.best_step = judged, step
        fell, tolerance = self._before - judged, 0.0 if self.patience is None else self.patience.tolerance
        if np.isinf(self._before) or fell > tolerance * abs(self._before):
            self._before, self._fell_at, self.stalled, self.message = judged, step, False, ""
        elif self.patience is not None and step - self._fell_at >= self.patience.steps:
            self.stalled = True
            self.message = f"the loss has fallen no further than to {self._before:.6g} in {step - self._fell_at} steps"

    @property
    def failed(self) -> bool:
        """Tell whether something stopped being finite."""
        return bool(self.message) and not self.stalled
