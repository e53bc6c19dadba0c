"""Euler's method, implicit in the forces of joints."""

from typing import ClassVar

import diffrax
import jax.numpy as jnp

from jdyn.model import Model
from jdyn.simulation.solver import Traits, Work, never_limited
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.implicit_rates import coupling, implicit_rates
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration


class LinearlyImplicitEuler(GeodesicSolver):
    """v₁ = v₀ + (M + h D + h² K)⁻¹ h (M a(q₀, v₀) − h K v₀), then q₁ = q₀ ⊕ h v₁: of order 1, for fixed steps.

    K and D are how the forces of joints fall with their own coordinates and velocities: springs, dampers, friction, and
    controllers such as `PD`, which do not limit the step. A step evaluates forward dynamics once, and solves one linear
    system in O(n). MuJoCo's `implicitfast` does the same with D alone.

    For `jdyn.simulate`.

    >>> import diffrax
    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> options = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.001}
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.LinearlyImplicitEuler(), **options)
    >>> print(motion.q[-1].round(1))
    [-0.9]

    Source: Hairer, Wanner 1996, section IV.9, equation (9.25), with another matrix than the Jacobian.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    traits: ClassVar[Traits] = Traits(limited_by_stability=never_limited)

    def order(self, terms):
        return 1

    def advance(self, terms, t0, t1, y0, args):
        h = terms.contr(t0, t1)
        system = implicit_rates(terms, t0, y0, coupling(terms, t0, y0), h)
        change = terms.prod(system.rate(t0, y0, h * y0.v, jnp.zeros_like(y0.v), h), h)
        displacement = h * y0.v + change.q
        y1 = displaced(self.mechanism, incremented(y0, without_configuration(change)), displacement)
        return y1, displacement, diffrax.RESULTS.successful, Work.of(1)
