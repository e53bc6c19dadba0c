"""Methods whose configurations move with constant velocity throughout a step."""

import abc
import functools

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.simulation.solver import Counted, DenseOutput, ManifoldSolver, Work
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration
from jdyn.simulation.state import State


class GeodesicSolver(ManifoldSolver):
    """A one-step method that moves along a geodesic from one configuration to the next, without an error estimate.

    `diffrax.HalfSolver` gives it an estimate, at three times the cost.
    """

    @abc.abstractmethod
    def order(self, terms) -> int:
        """Order of convergence."""

    @abc.abstractmethod
    def advance(self, terms, t0, t1, y0: State, args) -> tuple[State, Float[Array, " nv"], diffrax.RESULTS, Work]:
        """The state at `t1`, the tangent vector that leads to its configuration, how it went, and what it took."""

    def error_order(self, terms):
        # An estimate that something else makes, `EnergyError` for one, is of the whole step.
        return self.order(terms) + 1

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of())

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, displacement, result, work = self.advance(terms, t0, t1, y0, args)
        return y1, None, {"y0": y0, "y1": y1, "displacement": displacement}, Counted(None, work), result

    @property
    def interpolation_cls(self):
        return functools.partial(_Interpolation, self.mechanism)


class _Interpolation(DenseOutput):
    """Its error is of order 2 within a step."""

    model: Model
    y0: State
    y1: State
    displacement: Float[Array, " nv"]

    def __init__(self, model, *, t0, t1, y0, y1, displacement):
        self.model, self.t0, self.t1 = model, t0, t1
        self.y0, self.y1, self.displacement = y0, y1, displacement

    def at(self, share):
        increment = jax.tree.map(jnp.subtract, without_configuration(self.y1), without_configuration(self.y0))
        return displaced(self.model, incremented(self.y0, increment, share), share * self.displacement)
