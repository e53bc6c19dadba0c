"""The implicit midpoint rule."""

from typing import ClassVar

import jax

from jdyn.model import Model
from jdyn.simulation.solver import Traits, never_limited
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.implicit_kick import half_kicked
from jdyn.simulation.solvers.moves import displaced, with_configuration_of, without_configuration
from jdyn.simulation.state import State


class ImplicitMidpoint(GeodesicSolver):
    """The implicit midpoint rule: symmetric, A-stable and of order 2.

    v½ = v₀ + ½ h a(q₀ ⊕ ½ h v½, v½), q₁ = q₀ ⊕ h v½, v₁ = 2 v½ - v₀

    The first line is solved to within rounding. With constant steps, the energy of conservative mechanisms does not
    drift in regular motion; in chaotic motion it wanders, since the rule is symplectic in momenta, not in velocities.

    >>> import diffrax
    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> options = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.01}
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.ImplicitMidpoint(), **options)
    >>> print(motion.q[-1].round(2))
    [-0.9]

    Source: Hairer, Lubich, Wanner 2006, section I.1 and chapter XI, moved to a manifold.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    traits: ClassVar[Traits] = Traits(limited_by_stability=never_limited)

    def order(self, terms):
        return 2

    def advance(self, terms, t0, t1, y0, args):
        model, control = self.mechanism, terms.contr(t0, t1)

        def midpoint(y: State) -> State:
            return displaced(model, y, 0.5 * terms.prod(y.v, control))

        y, result, work = half_kicked(terms, t0 + 0.5 * (t1 - t0), y0, args, control, midpoint)
        displacement = terms.prod(y.v, control)
        y1 = with_configuration_of(
            y0, jax.tree.map(lambda y, y0: 2 * y - y0, without_configuration(y), without_configuration(y0))
        )
        return displaced(model, y1, displacement), displacement, result, work
