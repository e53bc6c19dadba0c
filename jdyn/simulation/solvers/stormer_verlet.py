"""Störmer's and Verlet's method for forces that depend on the velocity."""

from jdyn.model import Model
from jdyn.simulation.solver import Work
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.implicit_kick import half_kicked
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration
from jdyn.simulation.state import State


class StormerVerlet(GeodesicSolver):
    """Half a kick, a drift, half a kick: symmetric and of order 2.

    v½ = v₀ + ½ h a(q₀, v½), q₁ = q₀ ⊕ h v½, v₁ = v½ + ½ h a(q₁, v½)

    The first line is solved for v½ to within rounding. So the method remains symmetric if forces depend on the
    velocity, and damping is stable, however stiff it is.

    >>> import diffrax
    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> options = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.01}
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.StormerVerlet(), **options)
    >>> print(motion.q[-1].round(2))
    [-0.9]

    Source: Hairer, Lubich, Wanner 2006, section VI.3, moved to a manifold.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    def order(self, terms):
        return 2

    def advance(self, terms, t0, t1, y0, args):
        control = terms.contr(t0, t1)

        def at_start(y: State) -> State:
            return y

        y, result, work = half_kicked(terms, t0, y0, args, control, at_start)
        displacement = terms.prod(y.v, control)
        y = displaced(self.mechanism, y, displacement)
        y = incremented(y, without_configuration(terms.prod(terms.vf(t1, y, args), control)), 0.5)
        return y, displacement, result, work + Work.of(1)
