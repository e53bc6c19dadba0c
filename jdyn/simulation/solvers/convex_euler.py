"""Steps of Euler's method whose velocities contact makes minima of convex functions."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Scalar

from jdyn.contact import ConvexForces
from jdyn.dynamics import mass_matrix
from jdyn.model import Model
from jdyn.simulation.solvers.dense_output import DenseOutput
from jdyn.simulation.solvers.joint_implicit import JointImplicit, equations_of_motion
from jdyn.simulation.solvers.manifold_solver import ManifoldSolver
from jdyn.simulation.solvers.moves import drifted, kicked, rest
from jdyn.simulation.vector_field import State
from jdyn.simulation.work import Counted, Work


class ConvexEuler(ManifoldSolver, diffrax.AbstractAdaptiveSolver):
    """Euler's method, implicit in contact and in the forces of joints, extrapolated to order 2.

    A step of h and two of h/2 end at the velocities that `ConvexContact` finds, and move configurations by them:
    q₁ = q₀ ⊕ h v₁. The result is 2 y(h/2) − y(h).

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    def order(self, terms):
        return 2

    def error_order(self, terms):
        return 3

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of())

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        whole, half, end = self._three(terms, t0, t1, y0)
        y1 = self._extrapolated(whole.y, end.y)
        error = _error(self.mechanism, terms.contr(t0, t1), y0, whole.y, half.y, end.y)
        found = whole.converged & half.converged & end.converged
        error = jax.tree.map(lambda error: jnp.where(found, error, jnp.inf), error)
        done, failed = diffrax.RESULTS.successful, diffrax.RESULTS.nonlinear_divergence
        result = diffrax.RESULTS.where(found, done, failed)  # type: ignore[arg-type]
        steps = whole.steps + half.steps + end.steps
        return y1, error, {"y0": y0, "y1": y1}, Counted(None, Work.of(3, steps)), result

    @property
    def interpolation_cls(self):
        return functools.partial(_Interpolation, self.mechanism)

    def _three(self, terms, t0, t1, y0) -> list["_Step"]:
        """One step of h and two of h/2: one program, three times."""
        middle = t0 + 0.5 * (t1 - t0)

        def substep(before: State, row):
            t0, t1, first, weights = row
            y = jax.tree.map(lambda start, end: jnp.where(first, start, end), y0, before)
            guess = weights[0] * y0.v + weights[1] * before.v
            step = self._advance(terms, t0, t1, y, guess)
            return step.y, step

        times = jnp.stack([t0, t0, middle]), jnp.stack([t1, middle, t1])
        first = jnp.array([True, True, False])
        # The second begins between the start and the end that the first has found; the third, there.
        weights = jnp.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], y0.v.dtype)
        _, steps = jax.lax.scan(substep, y0, (*times, first, weights))
        return [jax.tree.map(lambda x, i=i: x[i], steps) for i in range(3)]

    def _advance(self, terms, t0, t1, y0: State, guess) -> "_Step":
        model, h = self.mechanism, terms.contr(t0, t1)
        none = jax.tree.map(jnp.zeros_like, eqx.tree_at(lambda y: y.q, y0, y0.v))
        contact, terms = _apart(terms)
        system = JointImplicit.of(terms, t0, y0, h)
        change = terms.prod(system.rate(t0, y0, y0.v, none, h), h)
        A = mass_matrix(system.stiffened(h), y0.q)
        found = contact.velocity(model, y0.q, y0.v, h, A, y0.v + change.v, guess)
        y1 = eqx.tree_at(lambda y: y.v, kicked(y0, rest(change)), found.v)
        return _Step(drifted(model, y1, h * found.v), found.converged, found.steps)

    def _extrapolated(self, whole: State, end: State) -> State:
        model = self.mechanism
        y = kicked(end, jax.tree.map(jnp.subtract, rest(end), rest(whole)))
        return drifted(model, y, model.difference(whole.q, end.q))


def _apart(terms: Any) -> tuple[ConvexForces, Any]:
    """Contact, and the equations of motion without it.

    Raises:
        ValueError: at trace time, if there is something that this method does not know.
    """
    field = equations_of_motion(terms)
    if not isinstance(field.contact, ConvexForces):
        raise ValueError(
            "ConvexEuler: expected contact=jdyn.ConvexContact(), got none or another model; leave the solver out"
        )
    if field.constraints:
        raise ValueError(
            "ConvexEuler: constraints beyond the tree of joints do not go with convex contact yet; take "
            "jdyn.CompliantContact(), or another solver"
        )
    return field.contact, eqx.tree_at(lambda terms: terms.field.contact, terms, None)


class _Step(NamedTuple):
    """Where a step ends, whether its velocity was found, and in how many Newton steps."""

    y: State
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def _error(model: Model, h: Scalar, y0: State, whole: State, half: State, end: State) -> State:
    """Two estimates differ by how they weigh the same accelerations."""
    first = jax.tree.map(jnp.subtract, end, whole)
    second = eqx.tree_at(
        lambda y: (y.q, y.v),
        first,
        (model.rate(end.q, h * (end.v - whole.v)), y0.v - whole.v + 2 * (end.v - half.v)),
    )
    return jax.tree.map(lambda x, y: jnp.where(jnp.abs(x) < jnp.abs(y), x, y), first, second)


class _Interpolation(DenseOutput):
    """Velocities change evenly within a step, and configurations as they do then."""

    model: Model
    y0: State
    y1: State

    def __init__(self, model, *, t0, t1, y0, y1):
        self.model, self.t0, self.t1, self.y0, self.y1 = model, t0, t1, y0, y1

    def at(self, share):
        increment = jax.tree.map(jnp.subtract, rest(self.y1), rest(self.y0))
        bend = (self.t1 - self.t0) * increment.v / 2
        moved = share * self.model.difference(self.y0.q, self.y1.q) - share * (1 - share) * bend
        return drifted(self.model, kicked(self.y0, increment, share), moved)
