"""Interface of solvers: traits that they declare, work that they report, base classes of solvers, of their wrappers and
of their dense output. No other file asks for the class of a solver."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PyTree, Scalar

from jdyn.contact import Overlap, PointForces
from jdyn.model import Model
from jdyn.simulation.state import Owner


class Traits(NamedTuple):
    """Capabilities and needs of a solver, as its attribute `traits`. Solvers without it, such as those of diffrax, have
    the defaults.

    Attributes:
        backwards: Whether it goes backwards in time.
        charts: Whether steps are taken in charts about their starts, in which no turn is longer than π.
        constraints: Whether its stages may be under constraints.
        impacts: Whether its steps have the impacts of rigid contact in them, so that no event has to find these.
        jacobians: Whether it needs derivatives of the forces of controllers and of contact.
        limited_by_stability: Function from its state after a step and the length of the step [s] to whether stability
            limited the step, not accuracy; None for solvers that cannot tell.
        owners: Owners of parts of the state that it needs.
        resumes: Whether a step follows from the state at its start, so that replays may begin with any step.
        stages: Kind of the stages of a Runge-Kutta method of diffrax; None for other methods.
        vibrations: Whether steps may become as short as vibrations that derivatives alone have.
        stepsize_controller: The step controller by default, a function of whether numbers are in single precision; None
            for the default of all solvers.
    """

    backwards: bool = True
    charts: bool = False
    constraints: bool = True
    impacts: bool = False
    jacobians: bool = False
    limited_by_stability: Callable[[Any, Scalar], Bool[Array, ""]] | None = None
    owners: tuple[Owner, ...] = ()
    resumes: bool = True
    stages: Literal["explicit", "diagonal", "other"] | None = None
    vibrations: bool = True
    stepsize_controller: Callable[[bool], diffrax.AbstractStepSizeController] | None = None


def traits(solver: diffrax.AbstractSolver) -> Traits:
    """Traits of any solver: its own, or those of the solver that it wraps."""
    inner = wrapped(solver)
    return getattr(solver, "traits", _of_diffrax(solver) if inner is None else traits(inner))


def wrapped(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver | None:
    """Solver that a solver wraps, if it wraps one."""
    return solver.solver if isinstance(solver, diffrax.AbstractWrappedSolver) else None


def is_solver(x: Any) -> bool:
    """Tell whether something is a solver."""
    return isinstance(x, diffrax.AbstractSolver)


def _of_diffrax(solver: diffrax.AbstractSolver) -> Traits:
    kinds = {"explicit": diffrax.AbstractERK, "diagonal": diffrax.AbstractDIRK, "other": diffrax.AbstractRungeKutta}
    stages: Any = next((name for name, kind in kinds.items() if isinstance(solver, kind)), None)
    return Traits(
        stages=stages,
        limited_by_stability=never_limited if isinstance(solver, diffrax.AbstractImplicitSolver) else None,
    )


def never_limited(state: Any, length: Scalar) -> Bool[Array, ""]:
    """Tell that stability limits no step, for methods that are implicit or shorten steps by themselves."""
    return jnp.array(False)


class Work(eqx.Module):
    """Number of times that a solver evaluated the equations of motion.

    A Jacobian is a closed-form derivative at one state, with all its columns and the acceleration that it is taken at.
    It counts apart, and is no evaluation of forward dynamics.

    Attributes:
        evaluations: Of forward dynamics.
        jacobians: Of its derivatives by the state.
        implicit: Steps of a method that chooses, in which it was implicit in the forces of joints.
    """

    evaluations: Int[Array, ""]
    jacobians: Int[Array, ""]
    implicit: Int[Array, ""]

    @classmethod
    def of(cls, evaluations: ArrayLike = 0, jacobians: ArrayLike = 0, implicit: ArrayLike = 0) -> Self:
        return cls(*(jnp.asarray(count, jnp.int32) for count in (evaluations, jacobians, implicit)))

    def __add__(self, other: "Work") -> "Work":
        return jax.tree.map(jnp.add, self, other)

    def where(self, condition) -> "Work":
        """This work if a condition holds, else none."""
        return jax.tree.map(lambda count: jnp.where(condition, count, 0), self)


class Counted(eqx.Module):
    """State of a solver that reports its work. Wrappers hand it on as it is.

    A lane of a batch counts what it would evaluate alone.

    Attributes:
        memory: Memory that the next step needs.
        work: Work of the last step; None for a solver that does not report it.
        order: Order of the error estimate of the last step; None for a solver whose order does not change.
        overlap: Overlap of shapes at the start of the last step; None for a solver that does not report it.
    """

    memory: PyTree[Any] = None
    work: Work | None = None
    order: Int[Array, ""] | None = None
    overlap: Overlap | None = None


def work_of(solver_state) -> Work | None:
    """Work of the last step of any solver; None for one that does not report it."""
    return solver_state.work if isinstance(solver_state, Counted) else None


def order_of(solver_state) -> Int[Array, ""] | None:
    """Order of the error estimate of the last step of a solver; None if it does not change."""
    return solver_state.order if isinstance(solver_state, Counted) else None


def overlap_of(solver_state) -> Overlap | None:
    """Overlap of shapes at the start of the last step; None for a solver that does not report it."""
    return solver_state.overlap if isinstance(solver_state, Counted) else None


class Tolerances(NamedTuple):
    """Relative and absolute tolerance of a step controller."""

    rtol: Any
    atol: Any


def tolerances(controller: diffrax.AbstractStepSizeController) -> Tolerances | None:
    """Tolerances of a step controller; None for one that does not compare errors with states."""
    if isinstance(controller, diffrax.ClipStepSizeController):
        return tolerances(controller.controller)
    return Tolerances(controller.rtol, controller.atol) if isinstance(controller, diffrax.PIDController) else None


class ManifoldSolver(diffrax.AbstractSolver):
    """A solver that moves the configurations of a model along their manifold.

    Leaves of a `State` other than `q` are numbers that add.
    """

    # None until `simulate` sets it.
    model: eqx.AbstractVar[Model | None]

    traits: ClassVar[Traits] = Traits()

    term_structure: ClassVar = diffrax.AbstractTerm

    def on(self, model: Model) -> Self:
        """This solver for a model."""
        return dataclasses.replace(self, model=model)

    @property
    def mechanism(self) -> Model:
        """The model.

        Raises:
            ValueError: at trace time, if there is none.
        """
        if self.model is None:
            name = type(self).__name__
            raise ValueError(f"{name}: expected a model, got none; outside of jdyn.simulate make it with {name}(model)")
        return self.model

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


class Delegating(diffrax.AbstractWrappedSolver):
    """A solver that changes the steps of the one it wraps, and is like it in everything else."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def interpolation_cls(self):
        return self.solver.interpolation_cls

    @property
    def traits(self) -> Traits:
        """Traits of the inner solver."""
        return traits(self.solver)

    @property
    def forces_like(self):
        """Shapes of contact forces in dense output, of a solver that reports them."""
        return getattr(self.solver, "forces_like", None)

    @property
    def term_compatible_contr_kwargs(self):
        return self.solver.term_compatible_contr_kwargs

    # Diffrax reads and replaces these fields on whatever passes `isinstance` for the wrapped solver's class, which has
    # them then.

    @property
    def root_finder(self):
        return self.solver.root_finder  # type: ignore[attr-defined]

    @property
    def root_find_max_steps(self):
        return self.solver.root_find_max_steps  # type: ignore[attr-defined]

    @property
    def scan_kind(self):
        return self.solver.scan_kind  # type: ignore[attr-defined]


class Halved(Delegating, diffrax.AbstractAdaptiveSolver):
    """`diffrax.HalfSolver` with a count of evaluations in all three of its steps; it drops the state of the third.

    Attributes:
        solver: The wrapped solver, which counts if its state is a `Counted`.
    """

    solver: diffrax.AbstractSolver

    def error_order(self, terms):
        order = self.order(terms)
        return None if order is None else order + 1

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        middle = t0 + 0.5 * (t1 - t0)
        _, _, _, first, result = half = self.solver.step(terms, t0, middle, y0, args, solver_state, made_jump)
        y1, _, _, second, later = self.solver.step(terms, middle, t1, half[0], args, first, jnp.array(False))
        whole = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        for other in (later, whole[4]):
            result = diffrax.RESULTS.where(result == diffrax.RESULTS.successful, other, result)
        error = jax.tree.map(lambda fine, coarse: jnp.abs(fine - coarse), y1, whole[0])
        if work_of(second) is not None:
            work = first.work + second.work + whole[3].work
            second = dataclasses.replace(second, work=work, overlap=first.overlap)
        return y1, error, whole[2], second, result


# Name of contact forces among the data of dense output.
FORCES = "contact_forces"


class DenseOutput(diffrax.AbstractLocalInterpolation):
    """Motion within a step, which subclasses give at a share of the step."""

    t0: Float[Array, ""]
    t1: Float[Array, ""]

    @abc.abstractmethod
    def at(self, share: Scalar) -> Any:
        """The state; the step begins at 0 and ends at 1."""

    def forces(self, t: Scalar) -> PointForces | None:
        """Contact forces at a time within the step; None for a solver that does not report them."""
        return None

    def evaluate(self, t0, t1=None, left=True):
        start = self.at(jnp.asarray(t0 - self.t0) / (self.t1 - self.t0))
        return start if t1 is None else jax.tree.map(jnp.subtract, self.evaluate(t1), start)
