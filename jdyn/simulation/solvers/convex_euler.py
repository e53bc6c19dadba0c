"""Steps of Euler's method, implicit in the impulses of all that holds or pushes."""

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
from jdyn.dynamics import bias_forces, mass_matrix
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


def _by_default(single: bool) -> diffrax.PIDController:
    """Small tolerances follow the vibrations of each light bounce, long after they matter to the motion. After impacts,
    steps that grow tenfold at once, as those of diffrax do, are rejected half as often again."""
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
        impulses: Solver of the problem that each substep poses.
        forces: Whether a trajectory keeps the contact forces of steps, three numbers a row and point, or six where
            something resists turning. Without them `Trajectory.contacts` finds forces from states, as far as these are
            known.
        model: The mechanism; `simulate` fills it in.

    Raises:
        ValueError: if there are no rows.
    """

    # Steps are to pass over vibrations of stiff shapes, in derivatives as in motions.
    traits: ClassVar[Traits] = Traits(backwards=False, vibrations=False, stepsize_controller=_by_default)

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
        contact, *_ = _apart(terms)
        return contact.forces_like(self.mechanism, y.q, y.v) if self.forces else None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        if SuppliedEnergy.part in y0.parts:
            raise ValueError("ConvexEuler: it does not know the work of contact, which jdyn.solvers.EnergyError needs")
        rows, overlap, forces = self._in_rows(terms, t0, t1, y0)
        found = rows.converged
        ends = [jax.tree.map(lambda x, row=row: x[row], rows.y) for row in range(self.rows)]
        y1, error = self._extrapolated(ends) if self.rows > 1 else (ends[0], None)
        # Step controllers measure errors by both ends.
        y1 = jax.tree.map(lambda y1, y0: jnp.where(found, y1, y0), y1, y0)
        error = jax.tree.map(lambda error: jnp.where(found, error, jnp.inf), error)
        done, failed = diffrax.RESULTS.successful, diffrax.RESULTS.nonlinear_divergence
        # `where` takes traced conditions, and is annotated for bool.
        result = diffrax.RESULTS.where(found, done, failed)  # type: ignore[arg-type]
        work = Work.of(self.rows * (self.rows + 1) // 2, rows.newton)
        counted = Counted(None, work, overlap=jax.lax.stop_gradient(overlap))
        return y1, error, {"y0": y0, "y1": y1, FORCES: forces if self.forces else None}, counted, result

    @property
    def interpolation_cls(self):
        return functools.partial(_Interpolation, self.mechanism)

    def _in_rows(self, terms, t0, t1, y0: State) -> tuple["_Rows", Overlap, tuple[PointForces, PointForces]]:
        """The substeps of all rows, the overlap of shapes where the step begins, and contact forces where it begins and
        ends.

        What substeps from one state have in common is found once: first ones of all rows begin where the step does. One
        program for all.
        """
        H, counts = terms.contr(t0, t1), range(1, self.rows + 1)
        # Rows by their numbers of substeps, and the shares of the step where substeps begin.
        places = [(n, 0.0) for n in counts] + [(n, m / n) for n in counts for m in range(1, n)]
        numbers, shares = (jnp.array(x) for x in zip(*places, strict=True))
        anew = jnp.array([place[0] == 1 or place[1] > 0 for place in places])
        # Found again in reverse mode: what that keeps of it else takes a quadruped's gradient 1.6 times as long.
        begin, none = traced_once(jax.checkpoint(functools.partial(self._begun, terms, H)), t0, y0)

        def substep(carry, place):
            rows, begun = carry
            count, share, new = place
            y = jax.tree.map(lambda x: x[count - 1], rows.y)
            begun = jax.lax.cond(new, lambda: begin(t0 + share * (t1 - t0), y), lambda: begun)
            length = 1 / count.astype(H.dtype)
            end = share + length
            y, found, forces = self._advanced(terms, begun, length * H, y0.v + end * (rows.v1 - y0.v))
            return (rows.after(count, y, found, end > 1 - length / 2), begun), (begun.contact.overlap, forces)

        ends = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.rows, *x.shape)), y0)
        # Backwards in time friction and dampers push, and the function has no minimum. Traced times show it only here.
        start = _Rows(ends, y0.v, H >= 0, jnp.array(0, jnp.int32))
        (rows, _), (overlaps, forces) = jax.lax.scan(substep, (start, none), (numbers, shares.astype(t0.dtype), anew))
        # Forces of first and of last substeps become those at both ends of the step when substeps become short.
        first = np.array([places.index((n, 0.0)) for n in counts])
        last = np.array([places.index((n, (n - 1) / n)) for n in counts])
        return rows, jax.tree.map(lambda x: x[0], overlaps), (_of_places(forces, first), _of_places(forces, last))

    def _begun(self, terms, H: Scalar, t: Scalar, y: State) -> "_Begun":
        model = self.mechanism
        contact, field, terms = _apart(terms)
        system = JointImplicit.of(terms, t, y, H)
        clock, smooth, turned = system.clock(t), system.field, turning(model, y.v)
        tau = system.force(t, y)
        return _Begun(
            y=y,
            contact=contact.at_time(t).at_start(model, y.q, y.v, -turned),
            constraints=constraint_rows(model, field.constraints, clock, y.q, y.v) if field.constraints else None,
            M=mass_matrix(smooth.model, y.q),
            force=tau - bias_forces(smooth.model, y.q, y.v),
            turned=turned,
            rates=smooth.part_rates(clock, y, tau),
            slopes=system.slopes,
            coupled=field.coupled_slopes(clock, y),
        )

    def _advanced(
        self, terms, begun: "_Begun", h: Scalar, guess: Float[Array, " nv"]
    ) -> tuple[State, Solution, PointForces]:
        """The state after a substep, how its velocity was found, from a guess of the velocity at its end, and contact
        forces in it."""
        model, y, turned = self.mechanism, begun.y, begun.turned
        _, field, terms = _apart(terms)
        system = JointImplicit(equations_of_motion(terms), clock_of(terms), *begun.slopes)
        A = begun.M + reduced(model, jnp.diag(system.rotors(h)))
        pull = system.pull(h * y.v, jnp.zeros_like(y.v))
        if begun.coupled is not None:
            # Symmetric parts: the function has a minimum, and what is left out costs no order.
            K, D = ((slope + slope.T) / 2 for slope in begun.coupled)
            A, pull = A + h * (D + h * K), pull + K @ (h * y.v)
        impulse = h * (A @ turned + begun.force - pull)
        touching = begun.contact.rows(h, A)
        others = joint_rows(field, y, h, A) + rows_of_constraints(begun.constraints, y.v, h, turned, A)
        found = self.impulses.solve(ImpulseProblem(A, impulse, (*touching, *others)), guess - y.v)
        forces = begun.contact.forces(h, found.gammas[: len(touching)])
        end = eqx.tree_at(
            lambda y: y.v, incremented(y, without_configuration(terms.prod(begun.rates, h))), y.v + found.dv
        )
        return straight(model, end, h * end.v), found, forces

    def _extrapolated(self, ends: list[State]) -> tuple[State, State | None]:
        """The state at h = 0, and how far it is from that without the first row."""
        model, last = self.mechanism, ends[-1]
        moved = [eqx.tree_at(lambda y: y.q, y, model.difference(last.q, y.q)) for y in ends]
        at_zero, without = _at_zero(range(1, self.rows + 1)), np.append(0, _at_zero(range(2, self.rows + 1)))
        all_rows = jax.tree.map(lambda *x: jnp.stack(x), *moved)
        y, error = (weighted(weights, all_rows) for weights in (at_zero, at_zero - without))
        end = displaced(model, eqx.tree_at(lambda end: end.q, y, last.q), y.q)
        return end, eqx.tree_at(lambda error: error.q, error, model.rate(end.q, error.q))


def _at_zero(counts: range) -> np.ndarray:
    """Weights of values at h = 1/n in the polynomial in h through them, at h = 0."""
    return np.array([np.prod([n / (n - other) for other in counts if other != n]) for n in counts])


def _of_places(forces: PointForces, places: Int[np.ndarray, " rows"]) -> PointForces:
    """Forces of one substep of each row, at h = 0."""
    weights = _at_zero(range(1, len(places) + 1))
    return jax.tree.map(lambda x: weighted(weights, x[places]), forces)


def _apart(terms: Any) -> tuple[StepwiseForces, VectorField, Any]:
    """Contact, the equations of motion, and their terms without what the convex function has.

    Raises:
        ValueError: at trace time, if there is something that this method does not know.
    """
    field = equations_of_motion(terms)
    contact = field.contact
    if contact is None or not contact.by_rows:
        raise ValueError(
            "ConvexEuler: expected contact=jdyn.ConvexContact(), got none or another model; leave the solver out"
        )
    smooth = without_joint_rows(eqx.tree_at(lambda field: field.contact, field, None))
    return cast(StepwiseForces, contact), field, eqx.tree_at(lambda terms: terms.field, terms, smooth)


class _Begun(NamedTuple):
    """Common part of substeps from one state.

    Attributes:
        y: The state.
        contact: Points where shapes may touch.
        constraints: Their rows; None where there are none.
        M: Inertia.
        force: On the coordinates, at this velocity, and but for that of motion [N m or N].
        turned: What changes of velocities have more than those of accelerations, see `turning`.
        rates: Of what moves beside configuration and velocity.
        slopes: As `JointImplicit` has them.
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


class _Rows(NamedTuple):
    """Rows of substeps, as far as they have come.

    Attributes:
        y: States of all rows.
        v1: The velocity at the end of the step, as the last row that has ended has it.
        converged: Whether the velocities of all substeps were found.
        newton: In how many Newton steps.
    """

    y: State
    v1: Float[Array, " nv"]
    converged: Bool[Array, ""]
    newton: Int[Array, ""]

    def after(self, count: Int[Array, ""], y: State, found: Solution, last: Bool[Array, ""]) -> "_Rows":
        """With the state after a substep, of the row that has so many; its last one ends where the step does."""
        ends = jax.tree.map(lambda all, x: all.at[count - 1].set(x), self.y, y)
        v1 = jnp.where(last, y.v, self.v1)
        return _Rows(ends, v1, self.converged & found.converged, self.newton + found.steps)


class _Interpolation(DenseOutput):
    """Hermite's cubic between configurations; all else changes evenly, as contact forces do. Its error is of order 4 in
    configurations and 3 in velocities."""

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
