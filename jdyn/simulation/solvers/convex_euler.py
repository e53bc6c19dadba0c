"""Steps of Euler's method whose velocities contact makes minima of convex functions."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Scalar

from jdyn.contact import ConvexForces
from jdyn.dynamics import bias_forces, mass_matrix
from jdyn.model import Model
from jdyn.simulation.interpolation import between
from jdyn.simulation.solvers.constraint_terms import constraint_terms
from jdyn.simulation.solvers.dense_output import DenseOutput
from jdyn.simulation.solvers.joint_implicit import JointImplicit, equations_of_motion
from jdyn.simulation.solvers.joint_terms import joint_terms, without_joint_terms
from jdyn.simulation.solvers.manifold_solver import ManifoldSolver
from jdyn.simulation.solvers.moves import drifted, kicked, rest
from jdyn.simulation.solvers.straight_motion import straight, turning
from jdyn.simulation.stages import weighted
from jdyn.simulation.vector_field import State, VectorField
from jdyn.simulation.work import Counted, Work


class ConvexEuler(ManifoldSolver, diffrax.AbstractAdaptiveSolver):
    """Euler's method, implicit in contact and in the forces of joints, extrapolated to h = 0.

    A row of 1, 2, ... substeps each: they end at the velocities that `jdyn.ConvexContact` finds, and move
    configurations by them, q₁ = q₀ ⊕ h v₁. The polynomial in h through the ends of all rows has the order of their
    number at h = 0, and that without the first row an order less, which makes the estimate of the error. Two rows are
    step doubling, and one row is Euler's method alone, for constant steps. Where contact begins or ends, and where
    stick turns into slip, the order is lost, and the estimate shortens the step.

    What `jdyn.simulate` takes with convex contact. `stats["dynamics_calls"]` counts substeps and `stats["jacobians"]`
    their Newton steps. Dry friction in joints, the springs at the ends of their ranges and constraints are terms of the
    same convex function as contact, so that joints stick and rest in large steps. Other forces of joints enter as in
    `jdyn.ROSJ43`, those of mass and motion by inverse dynamics, whatever the `method`.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> model = builder.build()
    >>> options = {"contact": jdyn.ConvexContact(), "solver": jdyn.ConvexEuler(rows=2)}
    >>> motion = jdyn.simulate(model, model.neutral().at[2].set(0.3), jnp.zeros(6), 2.0, **options)
    >>> print(motion.q[-1, 2].round(3))
    0.1

    Source: Hairer, Wanner 1996, section IV.9, for extrapolation; Kurtz, Castro, CENIC, arXiv 2511.08771, 2025, for two
    rows.

    Attributes:
        rows: How many. Three took a quarter to a tenth of the evaluations of two on boxes and balls that land and
            slide, at tolerances of 1e-5 and less; four are no better but for the smallest tolerances.
        model: The mechanism; `simulate` fills it in.

    Raises:
        ValueError: if there are none.
    """

    rows: int = eqx.field(static=True, default=3)
    model: Model | None = None

    def __check_init__(self):
        if self.rows < 1:
            raise ValueError(f"rows: expected at least 1, got {self.rows}")

    def order(self, terms):
        return self.rows

    def error_order(self, terms):
        return self.rows

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of(), overlap=jnp.zeros((), y0.v.dtype))

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        if y0.energy is not None:
            raise ValueError("ConvexEuler: it does not know the work of contact, which jdyn.EnergyError needs")
        steps = self._substeps(terms, t0, t1, y0)
        found = jnp.all(steps.converged)
        ends = [jax.tree.map(lambda x, n=n: x[n * (n + 1) // 2 - 1], steps.y) for n in range(1, self.rows + 1)]
        y1, error = self._extrapolated(ends) if self.rows > 1 else (ends[0], None)
        # Step controllers measure errors by both ends.
        y1 = jax.tree.map(lambda y1, y0: jnp.where(found, y1, y0), y1, y0)
        error = jax.tree.map(lambda error: jnp.where(found, error, jnp.inf), error)
        done, failed = diffrax.RESULTS.successful, diffrax.RESULTS.nonlinear_divergence
        # `where` takes traced conditions, and is annotated for bool.
        result = diffrax.RESULTS.where(found, done, failed)  # type: ignore[arg-type]
        work = Work.of(len(steps.converged), jnp.sum(steps.newton))
        # The first substep begins where the step does.
        counted = Counted(None, work, overlap=jax.lax.stop_gradient(steps.overlap[0]))
        return y1, error, {"y0": y0, "y1": y1}, counted, result

    @property
    def interpolation_cls(self):
        return functools.partial(_Interpolation, self.mechanism)

    def _substeps(self, terms, t0, t1, y0: State) -> "_Step":
        """Those of all rows, one after the other: one program."""

        places = [(m, n) for n in range(1, self.rows + 1) for m in range(n)]
        begins, ends = (jnp.array([(m + k) / n for m, n in places], t0.dtype) for k in (0, 1))
        firsts, lasts = (jnp.array([m == k * (n - 1) for m, n in places]) for k in (0, 1))

        def substep(carry, place):
            before, v1 = carry
            begin, end, first, last = place
            y = jax.tree.map(lambda start, before: jnp.where(first, start, before), y0, before)
            # The row before has found the velocity at the end.
            guess = y0.v + end * (v1 - y0.v)
            step = self._advance(terms, t0 + begin * (t1 - t0), t0 + end * (t1 - t0), y, guess)
            return (step.y, jnp.where(last, step.y.v, v1)), step

        return jax.lax.scan(substep, (y0, y0.v), (begins, ends, firsts, lasts))[1]

    def _advance(self, terms, t0, t1, y0: State, guess) -> "_Step":
        model, h = self.mechanism, terms.contr(t0, t1)
        contact, field, terms = _apart(terms)
        none = jax.tree.map(jnp.zeros_like, eqx.tree_at(lambda y: y.q, y0, y0.v))
        system = JointImplicit.of(terms, t0, y0, h)
        tau = system.force(t0, y0)
        force = tau - system.pull(y0.v, none, h) - bias_forces(system.field.model, y0.q, y0.v)
        A = mass_matrix(system.stiffened(h), y0.q)
        turned = turning(model, y0.v)
        impulse = h * (A @ turned + force)
        others = joint_terms(field, y0, h, A) + constraint_terms(field, system.clock(t0), y0, h, turned, A)
        contact = contact.within(t0)
        found, overlap = contact.change(model, y0.q, y0.v, -turned, h, A, impulse, guess - y0.v, others)
        v1 = y0.v + found.dv
        change = terms.prod(system.field.rates_beside(system.clock(t0), y0, tau), h)
        y1 = eqx.tree_at(lambda y: y.v, kicked(y0, rest(change)), v1)
        # Backwards in time friction and dampers push, and the function has no minimum. Traced times show it only here.
        return _Step(straight(model, y1, h * v1), found.converged & (h >= 0), found.steps, overlap)

    def _extrapolated(self, ends: list[State]) -> tuple[State, State | None]:
        """The state at h = 0, and how far it is from that without the first row."""
        model, last = self.mechanism, ends[-1]
        moved = [eqx.tree_at(lambda y: y.q, y, model.difference(last.q, y.q)) for y in ends]
        at_zero, without = _at_zero(range(1, self.rows + 1)), np.append(0, _at_zero(range(2, self.rows + 1)))
        all_rows = jax.tree.map(lambda *x: jnp.stack(x), *moved)
        y, error = (weighted(weights, all_rows) for weights in (at_zero, at_zero - without))
        end = drifted(model, eqx.tree_at(lambda end: end.q, y, last.q), y.q)
        return end, eqx.tree_at(lambda error: error.q, error, model.rate(end.q, error.q))


def _at_zero(counts: range) -> np.ndarray:
    """Weights of values at h = 1/n in the polynomial in h through them, at h = 0."""
    return np.array([np.prod([n / (n - other) for other in counts if other != n]) for n in counts])


def _apart(terms: Any) -> tuple[ConvexForces, VectorField, Any]:
    """Contact, the equations of motion, and their terms without what the convex function has.

    Raises:
        ValueError: at trace time, if there is something that this method does not know.
    """
    field = equations_of_motion(terms)
    if not isinstance(field.contact, ConvexForces):
        raise ValueError(
            "ConvexEuler: expected contact=jdyn.ConvexContact(), got none or another model; leave the solver out"
        )
    smooth = without_joint_terms(eqx.tree_at(lambda field: field.contact, field, None))
    return field.contact, field, eqx.tree_at(lambda terms: terms.field, terms, smooth)


class _Step(NamedTuple):
    """Where a step ends, whether its velocity was found, in how many Newton steps, and by how much shapes overlapped at
    its start [m]."""

    y: State
    converged: Bool[Array, ""]
    newton: Int[Array, ""]
    overlap: Scalar


class _Interpolation(DenseOutput):
    """Hermite's cubic between configurations; all else changes evenly. Its error is of order 4 in configurations and 3
    in velocities."""

    model: Model
    y0: State
    y1: State

    def __init__(self, model, *, t0, t1, y0, y1):
        self.model, self.t0, self.t1, self.y0, self.y1 = model, t0, t1, y0, y1

    def at(self, share):
        y0, y1 = self.y0, self.y1
        q, v = between(self.model, y0.q, y0.v, y1.q, y1.v, self.t1 - self.t0, share)
        increment = jax.tree.map(jnp.subtract, rest(y1), rest(y0))
        return eqx.tree_at(lambda y: (y.q, y.v), kicked(y0, increment, share), (q, v))
