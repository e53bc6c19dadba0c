"""Euler's method whose steps end at velocities that rigid contact allows."""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp

from jdyn.contact import RigidForces, RigidSteps
from jdyn.impulses import ADMM, ConeSolver
from jdyn.model import Model
from jdyn.simulation.solver import Traits, Work, never_limited
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.implicit_rates import JointImplicit, equations_of_motion
from jdyn.simulation.solvers.moves import incremented, without_configuration
from jdyn.simulation.solvers.straight_motion import straight, turning


class MoreauEuler(GeodesicSolver):
    """v₁ = v₀ + h a + M⁻¹ Jᵀ γ, then q₁ = q₀ ⊕ h v₁: of order 1, with all impulses γ of `jdyn.RigidContact` at once.

    These are those of impacts in the step, and those of forces that last.

    Velocities at the end of a step, not accelerations, meet the conditions of contact: shapes do not approach by more
    than what is between them, friction opposes what slides, and what approached faster than the rest speed leaves by
    Newton's law of impact. So no step looks for instants, many points may touch, and Painlevé's configurations have an
    answer. A step has one problem of complementarity. Forces of joints are implicit, as for
    `jdyn.solvers.LinearlyImplicitEuler`; those of force elements that couple joints are not.

    What `jdyn.System.step` takes with rigid contact; for `jdyn.simulate` with constant steps.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> system = jdyn.System(builder.build(), contact=jdyn.RigidContact(friction=0.3))
    >>> state = system.state(system.model.neutral().at[2].set(0.1), jnp.zeros(6).at[3].set(1.0))
    >>> state, info = system.step(state, dt=0.01)
    >>> print(state.v[3].round(2), state.q[2].round(4))
    0.97 0.1

    Source: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Stewart, Trinkle, An implicit
    time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction, 1996.

    Attributes:
        impulses: Solver of the problem of each step.
        model: The mechanism; `simulate` fills it in.

    Raises:
        ValueError: without rigid contact.
    """

    impulses: ConeSolver = ADMM()
    model: Model | None = None

    traits: ClassVar[Traits] = Traits(
        backwards=False, impacts=True, limited_by_stability=never_limited, vibrations=False
    )

    def order(self, terms):
        return 1

    def advance(self, terms, t0, t1, y0, args):
        h, contact = terms.contr(t0, t1), equations_of_motion(terms).contact
        if not isinstance(contact, RigidForces):
            raise ValueError("MoreauEuler: expected contact=jdyn.RigidContact(), and shapes that may touch")
        turned = turning(self.mechanism, y0.v)
        contact = RigidSteps.of(contact, h, turned, self.impulses)
        terms = eqx.tree_at(lambda terms: terms.field.contact, terms, contact)
        rate = JointImplicit.of(terms, t0, y0, h).rate(t0, y0, h * y0.v, jnp.zeros_like(y0.v), h)
        change = eqx.tree_at(lambda change: change.v, terms.prod(rate, h), h * (rate.v + turned))
        end = incremented(y0, without_configuration(change))
        y1 = straight(self.mechanism, end, h * end.v)
        return y1, h * end.v, diffrax.RESULTS.successful, Work.of(1)
