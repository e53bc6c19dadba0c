"""Gragg's, Bulirsch's and Stoer's extrapolation method."""

from collections.abc import Callable
from typing import Any, ClassVar

import optimistix as optx
from jaxtyping import PyTree, Scalar

from jdyn.simulation.solver import Traits, Work, never_limited
from jdyn.simulation.solvers.extrapolation import Extrapolation, System, Tables


class BulirschStoer(Extrapolation):
    """Gragg's modified midpoint rule, extrapolated in h², with control of order and step: for smooth motions and
    small tolerances, with dense output of the same order as the steps.

    Rows have 2, 6, 10, ... 26 substeps, whose common midpoint serves dense output. A step takes one evaluation at its
    start and one for each substep. Orders are 4 to 14, for steps that end in columns 2 to 7. See `Extrapolation`.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.BulirschStoer())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Hairer, Nørsett, Wanner 1993, section II.9, the program ODEX; Deuflhard, Order and stepsize control in
    extrapolation methods, Numerische Mathematik 41, 1983; Hairer, Ostermann, Dense output for extrapolation methods,
    Numerische Mathematik 58, 1990.

    Attributes:
        columns: Number of columns of every step, 2 to 7; chosen step by step if None.
        rtol, atol, norm: Tolerances for choosing the order; `simulate` takes them from the step controller.
    """

    columns: int | None = None
    rtol: Any = None
    atol: Any = None
    norm: Callable[[PyTree], Scalar] = optx.rms_norm

    tables: ClassVar[Tables] = Tables.of((2, 6, 10, 14, 18, 22, 26))
    smoothing: ClassVar[float] = 0.5
    loss: ClassVar[int] = 0

    @property
    def traits(self) -> Traits:
        # Steps that stability holds have few columns, unless they are told otherwise.
        return Traits(limited_by_stability=never_limited if self.columns is None else None)

    def system(self, rate):
        return System(lambda row, after, b: b, Work.of())

    def overhead(self, size):
        return 0
