"""Steps of Euler's method, implicit in the impulses of contact, of constraints and of joints."""

import functools
from typing import Any, ClassVar, NamedTuple, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.constraints import ConstraintRows, constraint_rows
from jdyn.contact import Overlap, PointForces, StartOfSteps, StepwiseForces
from jdyn.dynamics.mass_matrix import reduced
from jdyn.execution.one_trace import traced_once
from jdyn.impulses import Convex, ImpulseProblem, ImpulseSolver, Solution
from jdyn.model import Model
from jdyn.simulation.energy_control import SuppliedEnergy
from jdyn.simulation.interpolation import between
from jdyn.simulation.manifold import weighted
from jdyn.simulation.solver import FORCES, Counted, DenseOutput, ManifoldSolver, Traits, Work
from jdyn.simulation.solvers.constraint_rows import rows_of_constraints
from jdyn.simulation.solvers.implicit_rates import JointImplicit, equations_of_motion
from jdyn.simulation.solvers.joint_rows import joint_rows, without_joint_rows
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration
from jdyn.simulation.solvers.straight_motion import straight, turning
from jdyn.simulation.state import State, clock_of
from jdyn.simulation.vector_field import VectorField


def _default_controller(single: bool) -> diffrax.PIDController:
    """The step controller by default. Smaller tolerances would follow the vibrations of each light bounce, long after
    they matter to the motion. Steps that may grow tenfold at once, as by default in diffrax, are rejected half as often
    again after impacts."""
    return diffrax.PIDController(rtol=1e-4, atol=1e-4 if single else 1e-5, safety=0.8, factormax=2.0)


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
    `jdyn.solvers.ROSJ43`, those of mass and motion by inverse dynamics, whatever the `method`.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> model = builder.build()
    >>> options = {"contact": jdyn.ConvexContact(), "solver": jdyn.solvers.ConvexEuler(rows=2)}
    >>> motion = jdyn.simulate(model, model.neutral().at[2].set(0.3), jnp.zeros(6), 2.0, **options)
    >>> print(motion.q[-1, 2].round(3))
    0.1

    Source: Hairer, Wanner 1996, section IV.9, for extrapolation; Kurtz, Castro, CENIC, arXiv 2511.08771, 2025, for two
    rows.

    Attributes:
        rows: How many. Three took a quarter to a tenth of the evaluations of two on boxes and balls that land and
            slide, at tolerances of 1e-5 and less; four are no better but for the smallest tolerances.
        impulses: Solver of the impulse problem of each substep.
        forces: Whether a trajectory keeps the contact forces of steps, three numbers a row and point, or six where
            something resists turning. Without them `Trajectory.contacts` finds forces from states, as far as these are
            known.
        model: The mechanism; `simulate` fills it in.

    Raises:
        ValueError: if there are no rows.
    """

    # Steps are to pass over vibrations of stiff shapes, in derivatives as in motions.
    traits: ClassVar[Traits] = Traits(backwards=False, vibrations=False, stepsize_controller=_default_controller)

    rows: int = eqx.field(static=True, default=3)
    forces: bool = eqx.field(static=True, default=True)
    impulses: ImpulseSolver = Convex()
    model: Model | None = None

    def __check_init__(self):
        if self.rows < 1:
            raise ValueError(f"rows: expected at least 1, got {self.rows}")

    def order(self, terms):
        return self.rows

    def error_order(self, terms):
        return self.rows

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of(), overlap=Overlap.full(0.0, y0.v.dtype))

    def forces_like(self, terms: Any, y: State) -> PointForces | None:
        """Shapes of the contact forces that dense output has, if any."""
        contact, *_ = _contact_and_smooth_terms(terms)
        return contact.forces_like(self.mechanism, y.q, y.v) if self.forces else None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        if SuppliedEnergy.part in y0.parts:
            raise ValueError("ConvexEuler: it does not know the work of contact, which jdyn.solvers.EnergyError needs")
        rows, overlap, forces = self._all_rows(terms, t0, t1, y0)
        converged = rows.converged
        ends = [jax.tree.map(lambda x, row=row: x[row], rows.y) for row in range(self.rows)]
        y1, error = self._extrapolated(ends) if self.rows > 1 else (ends[0], None)
        # Step controllers measure errors by both ends.
        y1 = jax.tree.map(lambda y1, y0: jnp.where(converged, y1, y0), y1, y0)
        error = jax.tree.map(lambda error: jnp.where(converged, error, jnp.inf), error)
        done, failed = diffrax.RESULTS.successful, diffrax.RESULTS.nonlinear_divergence
        # `where` takes traced conditions, and is annotated for bool.
        result = diffrax.RESULTS.where(converged, done, failed)  # type: ignore[arg-type]
        work = Work.of(self.rows * (self.rows + 1) // 2, rows.newton)
        counted = Counted(None, work, overlap=jax.lax.stop_gradient(overlap))
        return y1, error, {"y0": y0, "y1": y1, FORCES: forces if self.forces else None}, counted, result

    @property
    def interpolation_cls(self):
        return functools.partial(_Interpolation, self.mechanism)

    def _all_rows(self, terms, t0, t1, y0: State) -> tuple["_SubstepRows", Overlap, tuple[PointForces, PointForces]]:
        """Take the substeps of all rows: their ends, the overlap of shapes at the start of the step, and contact forces
        at its start and end.

        The first substeps of all rows begin in one state, at the start of the step, and share what is computed there.
        One program takes all substeps.
        """
        H, counts = terms.contr(t0, t1), range(1, self.rows + 1)
        # For each substep the number of substeps of its row, and the share of the step at which it begins.
        substeps = [(n, 0.0) for n in counts] + [(n, m / n) for n in counts for m in range(1, n)]
        numbers, shares = (jnp.array(x) for x in zip(*substeps, strict=True))
        anew = jnp.array([row == 1 or begin > 0 for row, begin in substeps])
        # Computed again in reverse mode: a quadruped's gradient took 1.6 times as long where it was kept.
        start_at, none = traced_once(jax.checkpoint(functools.partial(self._substep_start, terms, H)), t0, y0)

        def take_substep(carry, substep):
            rows, start = carry
            count, share, new = substep
            y = jax.tree.map(lambda x: x[count - 1], rows.y)
            start = jax.lax.cond(new, lambda: start_at(t0 + share * (t1 - t0), y), lambda: start)
            length = 1 / count.astype(H.dtype)
            end = share + length
            y, found, forces = self._after_substep(terms, start, length * H, y0.v + end * (rows.v1 - y0.v))
            return (rows.after(count, y, found, end > 1 - length / 2), start), (start.contact.overlap, forces)

        ends = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.rows, *x.shape)), y0)
        # Backwards in time friction and dampers push, and the function has no minimum. Traced times show it only here.
        no_rows = _SubstepRows(ends, y0.v, H >= 0, jnp.array(0, jnp.int32))
        (rows, _), (overlaps, forces) = jax.lax.scan(
            take_substep, (no_rows, none), (numbers, shares.astype(t0.dtype), anew)
        )
        # Forces of first and of last substeps become those at both ends of the step when substeps become short.
        first = np.array([substeps.index((n, 0.0)) for n in counts])
        last = np.array([substeps.index((n, (n - 1) / n)) for n in counts])
        at_ends = _extrapolated_forces(forces, first), _extrapolated_forces(forces, last)
        return rows, jax.tree.map(lambda x: x[0], overlaps), at_ends

    def _substep_start(self, terms, H: Scalar, t: Scalar, y: State) -> "_SubstepStart":
        """Compute what all substeps from one state share."""
        model = self.mechanism
        contact, field, terms = _contact_and_smooth_terms(terms)
        system = JointImplicit.of(terms, t, y, H)
        time, smooth, turned = system.clock(t), system.field, turning(model, y.v)
        tau = system.force(t, y)
        return _SubstepStart(
            y=y,
            contact=contact.at_time(t).at_start(model, y.q, y.v, -turned),
            constraints=constraint_rows(model, field.constraints, time, y.q, y.v) if field.constraints else None,
            M=smooth.mass_matrix(y),
            force=tau - smooth.bias_forces(y),
            turned=turned,
            rates=smooth.part_rates(time, y, tau),
            slopes=system.slopes,
            coupled=field.coupled_slopes(time, y),
        )

    def _after_substep(
        self, terms, start: "_SubstepStart", h: Scalar, guess: Float[Array, " nv"]
    ) -> tuple[State, Solution, PointForces]:
        """The state after a substep, the solution of its impulse problem from a guess of the velocity at its end, and
        contact forces in it."""
        model, y, turned = self.mechanism, start.y, start.turned
        _, field, terms = _contact_and_smooth_terms(terms)
        system = JointImplicit(equations_of_motion(terms), clock_of(terms), *start.slopes)
        A = start.M + reduced(model, jnp.diag(system.added_inertia(h)))
        linear_force = system.linear_force(h * y.v, jnp.zeros_like(y.v))
        if start.coupled is not None:
            # Symmetric parts, so that the convex function has a minimum; the antisymmetric parts cost no order.
            K, D = ((slope + slope.T) / 2 for slope in start.coupled)
            A, linear_force = A + h * (D + h * K), linear_force + K @ (h * y.v)
        impulse = h * (A @ turned + start.force - linear_force)
        touching = start.contact.rows(h, A)
        others = joint_rows(field, y, h, A) + rows_of_constraints(start.constraints, y.v, h, turned, A)
        found = self.impulses.solve(ImpulseProblem(A, impulse, (*touching, *others)), guess - y.v)
        forces = start.contact.forces(h, found.gammas[: len(touching)])
        end = eqx.tree_at(
            lambda y: y.v, incremented(y, without_configuration(terms.prod(start.rates, h))), y.v + found.dv
        )
        return straight(model, end, h * end.v), found, forces

    def _extrapolated(self, ends: list[State]) -> tuple[State, State | None]:
        """The state extrapolated to h = 0, and its difference from the extrapolation without the first row."""
        model, last = self.mechanism, ends[-1]
        moved = [eqx.tree_at(lambda y: y.q, y, model.difference(last.q, y.q)) for y in ends]
        weights, without_first = (
            _extrapolation_weights(range(1, self.rows + 1)),
            np.append(0, _extrapolation_weights(range(2, self.rows + 1))),
        )
        all_rows = jax.tree.map(lambda *x: jnp.stack(x), *moved)
        y, error = (weighted(w, all_rows) for w in (weights, weights - without_first))
        end = displaced(model, eqx.tree_at(lambda end: end.q, y, last.q), y.q)
        return end, eqx.tree_at(lambda error: error.q, error, model.rate(end.q, error.q))


def _extrapolation_weights(counts: range) -> np.ndarray:
    """Weights of values at h = 1/n, by which the polynomial in h through them has its value at h = 0."""
    return np.array([np.prod([n / (n - other) for other in counts if other != n]) for n in counts])


def _extrapolated_forces(forces: PointForces, substeps: Int[np.ndarray, " rows"]) -> PointForces:
    """Forces of one substep of each row, extrapolated to h = 0."""
    weights = _extrapolation_weights(range(1, len(substeps) + 1))
    return jax.tree.map(lambda x: weighted(weights, x[substeps]), forces)


def _contact_and_smooth_terms(terms: Any) -> tuple[StepwiseForces, VectorField, Any]:
    """Contact, the equations of motion, and terms of the equations without the forces that rows have.

    Raises:
        ValueError: at trace time, if contact is not by rows.
    """
    field = equations_of_motion(terms)
    contact = field.contact
    if contact is None or not contact.by_rows:
        raise ValueError(
            "ConvexEuler: expected contact=jdyn.ConvexContact(), got none or another model; leave the solver out"
        )
    smooth = without_joint_rows(eqx.tree_at(lambda field: field.contact, field, None))
    return cast(StepwiseForces, contact), field, eqx.tree_at(lambda terms: terms.field, terms, smooth)


class _SubstepStart(NamedTuple):
    """Start of substeps: what all substeps from one state share.

    Attributes:
        y: The state.
        contact: Points where shapes may touch.
        constraints: Rows of constraints; None where there are none.
        M: Mass matrix.
        force: Forces on the coordinates less bias forces, without those of rows [N m or N].
        turned: Difference between change of velocity and acceleration times h, see `turning`.
        rates: Rates of the parts of the state beside the motion.
        slopes: Slopes of forces in joints, as `JointImplicit` has them.
        coupled: Slopes of force elements that couple joints; None where none does.
    """

    y: State
    contact: StartOfSteps
    constraints: ConstraintRows | None
    M: Float[Array, "nv nv"]
    force: Float[Array, " nv"]
    turned: Float[Array, " nv"]
    rates: State
    slopes: tuple[Float[Array, " nv_full"], Float[Array, " nv_full"]]
    coupled: tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]] | None


class _SubstepRows(NamedTuple):
    """Rows of substeps, so far.

    Attributes:
        y: States of all rows.
        v1: Velocity at the end of the step by the last row that has ended.
        converged: Whether all impulse problems were solved.
        newton: Number of Newton steps.
    """

    y: State
    v1: Float[Array, " nv"]
    converged: Bool[Array, ""]
    newton: Int[Array, ""]

    def after(self, count: Int[Array, ""], y: State, found: Solution, last: Bool[Array, ""]) -> "_SubstepRows":
        """The rows after a substep of the row that has `count` substeps; its `last` one ends where the step does."""
        ends = jax.tree.map(lambda all, x: all.at[count - 1].set(x), self.y, y)
        v1 = jnp.where(last, y.v, self.v1)
        return _SubstepRows(ends, v1, self.converged & found.converged, self.newton + found.steps)


class _Interpolation(DenseOutput):
    """Hermite's cubic between configurations; contact forces and all other numbers are linear in time. The error is of
    order 4 in configurations and 3 in velocities."""

    model: Model
    y0: State
    y1: State
    contact_forces: tuple[PointForces, PointForces]

    def __init__(self, model, *, t0, t1, y0, y1, contact_forces):
        self.model, self.t0, self.t1, self.y0, self.y1 = model, t0, t1, y0, y1
        self.contact_forces = contact_forces

    def forces(self, t):
        share = (t - self.t0) / (self.t1 - self.t0)
        return jax.tree.map(lambda start, end: start + share * (end - start), *self.contact_forces)

    def at(self, share):
        y0, y1 = self.y0, self.y1
        q, v = between(self.model, y0.q, y0.v, y1.q, y1.v, self.t1 - self.t0, share)
        increment = jax.tree.map(jnp.subtract, without_configuration(y1), without_configuration(y0))
        return eqx.tree_at(lambda y: (y.q, y.v), incremented(y0, increment, share), (q, v))
