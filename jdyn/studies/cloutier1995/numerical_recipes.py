"""The thesis' step control, which is that of Numerical Recipes."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import PyTree, Scalar

from jdyn.simulation import Delegating, State, largest

SAFETY = 0.9
LARGEST_GROWTH = 5.0
LARGEST_SHRINKAGE = 0.1


class Estimate(NamedTuple):
    """The error of a step's end, and the rate at its start."""

    error: PyTree
    rate: State


class WithRate(Delegating):
    """An explicit Runge-Kutta method that passes the rate at the start of a step on to the step controller, with the
    error. For `QualityControl`.

    Attributes:
        solver: The wrapped method.
    """

    solver: diffrax.AbstractSolver

    def __check_init__(self):
        if not isinstance(self.solver, diffrax.AbstractERK):
            raise ValueError(f"WithRate: expected an explicit Runge-Kutta method, got {type(self.solver).__name__}")

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, error, dense, *rest = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        # `on_manifold` has made an `OnManifold` of the wrapped method, whose stages are h dy/dt in a chart.
        stage = jax.tree.map(lambda k: k[0] / (t1 - t0), dense["local"]["k"])
        rate = self.solver.model.rate(y0.q, y0.v)  # type: ignore[attr-defined]
        return y1, Estimate(error, State(rate, stage.v, stage.parts)), dense, *rest


class QualityControl(diffrax.AbstractAdaptiveStepSizeController):
    """Accept a step if no entry of its error exceeds `accuracy` times |y| + |h dy/dt|, with the length h that was tried
    first. A rejected step shrinks with the power −1/4 of the worst ratio, at most to a tenth; an accepted one grows
    with the power −1/5, at most to five times.

    Where an entry and its rate are both zero, as at a start from rest, no error is small enough: the first step is
    shortened until rounding leaves less than `tiny`, so rounding decides its length.

    For `WithRate` and a method of order 5.

    Source: Press, Teukolsky, Vetterling, Flannery, Numerical Recipes in C, 2nd edition, section 16.2.

    Attributes:
        accuracy: Largest relative error of an entry.
        smallest: A step shorter than this ends the simulation [s].
        tiny: Keeps the scale of an error above zero [unit of the entry]; 1e-30 in Numerical Recipes. In float32 the
            rounding error of the first step from rest exceeds that, however short the step is.
        rtol, atol, norm: How exactly implicit solvers solve their equations.
    """

    accuracy: float
    smallest: float = 0.0
    tiny: float = 1e-30
    rtol: float = 1e-6
    atol: float = 1e-9
    norm: Callable[[PyTree], Scalar] = largest

    def wrap(self, direction):
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        return t0 + dt0, dt0

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        if not isinstance(y_error, Estimate):
            raise ValueError("QualityControl: expected a solver that tells the rate; wrap it as WithRate(solver)")
        tried_first = controller_state
        scale = jax.tree.map(lambda y, f: jnp.abs(y) + jnp.abs(tried_first * f) + self.tiny, y0, y_error.rate)
        ratio = largest(jax.tree.map(jnp.divide, y_error.error, scale)) / self.accuracy
        keep = ratio <= 1
        grown = jnp.minimum(SAFETY * ratio**-0.2, LARGEST_GROWTH)
        # An error that is not a number shortens the step as much as any.
        shrunk = jnp.where(ratio > 1, jnp.maximum(SAFETY * ratio**-0.25, LARGEST_SHRINKAGE), LARGEST_SHRINKAGE)
        length = (t1 - t0) * jnp.where(keep, grown, shrunk)
        result = diffrax.RESULTS.where(
            length > self.smallest, diffrax.RESULTS.successful, diffrax.RESULTS.dt_min_reached
        )
        start = jnp.where(keep, t1, t0)
        return keep, start, start + length, False, jnp.where(keep, length, tried_first), result
