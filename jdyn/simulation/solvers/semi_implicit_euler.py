"""Euler's method that moves configurations with the new velocities."""

import diffrax

from jdyn.model import Model
from jdyn.simulation.solver import Work
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration


class SemiImplicitEuler(GeodesicSolver):
    """v₁ = v₀ + h a(q₀, v₀), then q₁ = q₀ ⊕ h v₁: of order 1, with one evaluation of forward dynamics a step.

    It evaluates velocity-dependent forces at the start, so that bodies that spin fast need short steps.

    >>> import diffrax
    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> options = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.001}
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.SemiImplicitEuler(), **options)
    >>> print(motion.q[-1].round(1))
    [-0.9]

    Source: Hairer, Lubich, Wanner 2006, section I.1, the symplectic Euler method.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    def order(self, terms):
        return 1

    def advance(self, terms, t0, t1, y0, args):
        control = terms.contr(t0, t1)
        y = incremented(y0, without_configuration(terms.prod(terms.vf(t0, y0, args), control)))
        displacement = terms.prod(y.v, control)
        return displaced(self.mechanism, y, displacement), displacement, diffrax.RESULTS.successful, Work.of(1)
