"""A method that chooses between an explicit and an implicit one while it runs."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_max
from jaxtyping import Array, Bool, Float, Int, Real, Scalar

from jdyn.array import where
from jdyn.contact import PointForces
from jdyn.simulation.manifold import LocalTerm, local_term, weighted
from jdyn.simulation.solver import FORCES, Counted, Traits, Work
from jdyn.simulation.solvers import dormand_prince8, rosj32, rosj43, verner6
from jdyn.simulation.solvers.implicit_rates import (
    Coupling,
    ImplicitRates,
    coupling,
    implicit_rates,
    stage_forces,
    stage_forces_like,
)
from jdyn.simulation.solvers.tableau import Either, Interpolation, Tableau, ended, stages
from jdyn.simulation.state import State

# Explicit methods are stable up to h ρ = 4.4 (order 6) and 5.1 (order 8) on the negative real axis. Steps that
# stability limits come close to that; beyond the third number no explicit step is stable, and below the first one an
# explicit method takes the step as well.
MILD, STIFF, UNSTABLE = 2.0, 3.4, 4.4
# The rate returns in an explicit step if it changes by less than this share of the difference between the mean rate and
# the rate at the start.
RETURNED = 0.1
# The method changes once it was unsuited to so many more steps than it was suited to.
PATIENCE = 3
# After implicit steps with h ρ below the second number, where forces of joints do next to nothing, it takes so many
# more steps to turn implicit again.
WARY, USELESS = 20, 0.05
# Order 8 pays up to the first relative tolerance, four implicit stages pay from the second one on.
FINE_RTOL, LOOSE_RTOL = 3e-7, 2e-2


class _Method(NamedTuple):
    """One of the methods.

    Attributes:
        tableau: Its weights.
        evaluations: Number of evaluations of a step that does not know the rate at its start.
        order: Order that step controllers take it for.
    """

    tableau: Tableau
    evaluations: int
    order: int


EXPLICIT = _Method(verner6.TABLEAU, 9, 6)
EXPLICIT_FINE = _Method(dormand_prince8.TABLEAU, 14, 8)
# A step has the explicit rate at its start before its own stages. Its estimate is of order 4; taken for one of order 5,
# steps grow more slowly after friction has shortened them, which leaves a fifth of the error for the same work.
IMPLICIT = _Method(rosj43.TABLEAU, 9, 5)
IMPLICIT_LOOSE = _Method(rosj32.TABLEAU, 5, 3)


def _padded_alike(*methods: _Method) -> list[_Method]:
    """The methods with tables of one shape: padded in front by explicit stages without weight, and with as many powers
    of dense output."""
    rows = max(method.evaluations for method in methods)
    powers = max(len(method.tableau.dense) for method in methods)

    def padded(table: Tableau) -> Tableau:
        before, after = rows - len(table.b), powers - len(table.dense)
        alpha, below = (np.pad(x, [(before, 0)] * 2) for x in (table.alpha, table.below))
        diagonal, b, error = (np.pad(x, (before, 0)) for x in (table.diagonal, table.b, table.error))
        return Tableau(alpha, below, diagonal, b, error, np.pad(table.dense, [(0, after), (before, 0)]))

    return [method._replace(tableau=padded(method.tableau)) for method in methods]


def _of_type(method: Any, dtype: Any) -> Any:
    """A method with weights of that type."""
    return method._replace(tableau=jax.tree.map(lambda x: jnp.asarray(x, dtype), method.tableau))


class Memory(eqx.Module):
    """Memory that the next step needs.

    Attributes:
        implicit: Whether the step is implicit in the forces of joints.
        doubts: Number of steps that the other method suited better, less the number of the others.
        largest_rate: ρ, the largest rate of the motion: by the stages of an explicit step or of the very first one, or
            by the slopes of forces in joints after an implicit step; zero before the first step [1/s].
        inertia: Inertia by which slopes of joint forces have the rate ρ; zero until the first implicit step [kg m² or
            kg].
        rate_known: Whether `rate` is the rate of the state.
        rate: Rate of the state, by the last stage of an explicit step.
        stage_differences: Differences of the last two stages of an explicit step, in their rates and in their
            velocities.
    """

    implicit: Bool[Array, ""]
    doubts: Int[Array, ""]
    largest_rate: Scalar
    inertia: Scalar
    rate_known: Bool[Array, ""]
    rate: State
    stage_differences: Float[Array, "2 nv"]

    def with_rate_of(self, tangent: Self) -> Self:
        """The memory after a step with a variation, which shows rates of coordinates that rest."""
        changed, moved = jnp.linalg.norm(jax.lax.stop_gradient(tangent.stage_differences), axis=1)
        rate = changed / jnp.where(moved > 0, moved, 1)
        faster = ~self.implicit & jnp.isfinite(rate) & (rate > self.largest_rate)
        return dataclasses.replace(self, largest_rate=jnp.where(faster, rate, self.largest_rate))


def _limited_by_stability(state: Counted, length: Scalar) -> Bool[Array, ""]:
    """Tell whether an explicit step is about as long as stability allows."""
    return ~state.memory.implicit & (jnp.abs(length) * state.memory.largest_rate > STIFF)


class Automatic(diffrax.AbstractAdaptiveSolver):
    """An explicit method where accuracy limits the step, `jdyn.solvers.ROSJ43` where gains, dampers or friction do.

    What `jdyn.simulate` takes by itself. The explicit method is of order 6, and of order 8 where the relative tolerance
    is 3e-7 or less; where it is 2e-2 or more, the implicit one is of order 3, with four stages. Each lane of a batch
    changes between explicit and implicit steps as its motion asks for it; both are one program. The first step is
    implicit, and compares its rate with the explicit one at its start. Steps turn implicit when they come close to the
    end of the explicit method's stable range, by the rate that its last two stages show, or when the motion's rate is
    at their end as at their start, and another one between; they turn explicit when they are so short, or forces so
    soft, that they need not be implicit. With compliant contact the slopes of its forces say both before each step.
    `ROSJ43` takes no stiffness away that couples joints, as that of an LQR does, but that of compliant contact;
    `jdyn.solvers.Rodas5P` takes that away, too.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> stiff = jdyn.PD(model, jnp.ones(1), kp=1e4, kd=1e4)
    >>> motion = jdyn.simulate(model, rest, rest, 1.0, controller=stiff, solver=jdyn.solvers.Automatic())
    >>> print(motion.stats["implicit_steps"] > 0)
    True

    Source: Petzold, Automatic selection of methods for solving stiff and nonstiff systems of ordinary differential
    equations, SIAM Journal on Scientific and Statistical Computing 4, 1983; for the rate, Hairer, Wanner 1996, section
    IV.2; for the explicit methods, Verner, Strategies for deriving new explicit Runge-Kutta pairs, Annals of Numerical
    Mathematics 1, 1994, with times of our own, and Prince, Dormand, High order embedded Runge-Kutta formulae, Journal
    of Computational and Applied Mathematics 7, 1981.

    Attributes:
        rtol: The relative tolerance; `jdyn.simulate` takes that of the step controller. None for orders 6 and 4.
        forces: Whether a trajectory in single precision keeps the forces of compliant contact of its steps, three
            numbers a row and point, or six where something resists turning. States, from which
            `Trajectory.contacts` finds them otherwise, are rounded by more than stiff ground gives way.
    """

    rtol: float | Real[Array | np.ndarray, ""] | None = None
    forces: bool = eqx.field(static=True, default=True)

    traits: ClassVar[Traits] = Traits(limited_by_stability=_limited_by_stability)
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = Interpolation

    def with_tolerances(self, rtol: float | Real[Array | np.ndarray, ""], atol: Any, norm: Any) -> Self:
        """This solver with the relative tolerance of a step controller, unless it has one."""
        return self if self.rtol is not None else dataclasses.replace(self, rtol=rtol)

    def order(self, terms):
        return EXPLICIT.order

    def forces_like(self, terms: Any, y: State) -> PointForces | None:
        """Shapes of the contact forces that dense output has, if any."""
        return stage_forces_like(terms, y) if self.forces else None

    def init(self, terms, t0, t1, y0, args):
        nothing, doubts = jnp.zeros((), y0.v.dtype), jnp.array(PATIENCE - 1, jnp.int32)
        rate = jax.tree.map(jnp.zeros_like, y0)
        memory = Memory(jnp.array(True), doubts, nothing, nothing, jnp.array(False), rate, jnp.stack([rate.v] * 2))
        return Counted(memory, Work.of(), jnp.array(IMPLICIT.order))

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        terms = local_term(self, terms)
        h = terms.contr(t0, t1)
        y = terms.from_chart(y0)
        coupled = coupling(terms.term, t0, y)
        memory = _memory_for_step(solver_state.memory, jnp.abs(h), coupled)
        implicit = memory.implicit
        rate_known = jnp.where(implicit, memory.largest_rate > 0, memory.rate_known & ~made_jump)
        explicit, stiff = (_of_type(method, h.dtype) for method in self._methods)
        evaluations, order = where(implicit, stiff[1:], explicit[1:])
        c = jnp.where(implicit, stiff.tableau.diagonal[-1] * h, 0)
        system = implicit_rates(terms.term, t0, y, coupled, c)
        # Charts change from step to step, and the rate in them.
        rate = eqx.tree_at(lambda rate: rate.q, memory.rate, terms.model.chart_rate(y.q, y0.q, y.v))
        evaluations = evaluations - jnp.where(rate_known, 1, 0)
        tableau = Either(implicit, (stiff.tableau, explicit.tableau))
        first = len(stiff.tableau.b) - unvmap_max(evaluations)
        k, last = stages(tableau, terms, system, t0, t1, y0, rate, first)
        y1, error, dense = ended(tableau, y0, k)
        if self.forces:
            dense = dense | {FORCES: _first_stage_forces(terms, y, stiff, implicit, k)}
        after = _memory_after(memory, system, h, explicit, stiff, k, last)
        counted = Counted(after, Work.of(evaluations, implicit=implicit), order)
        return y1, error, dense, counted, diffrax.RESULTS.successful

    @property
    def _methods(self) -> list[Any]:
        """The explicit and the implicit method."""
        rtol = np.sqrt(FINE_RTOL * LOOSE_RTOL) if self.rtol is None else self.rtol
        fine, loose = rtol <= FINE_RTOL, rtol >= LOOSE_RTOL
        if not isinstance(rtol, jax.Array):
            return _padded_alike(EXPLICIT_FINE if fine else EXPLICIT, IMPLICIT_LOOSE if loose else IMPLICIT)
        finer, coarser, looser, stricter = _padded_alike(EXPLICIT_FINE, EXPLICIT, IMPLICIT_LOOSE, IMPLICIT)
        return [where(fine, finer, coarser), where(loose, looser, stricter)]


def _first_stage_forces(terms: LocalTerm, y: State, stiff: Any, implicit: Bool[Array, ""], k: State):
    """Contact forces at the end of the first implicit stage, which alone begins with a configuration that is rounded
    once; NaN after explicit steps."""
    gamma, first = stiff.tableau.diagonal[-1], len(stiff.tableau.b) - stiff.evaluations + 1
    return stage_forces(terms, y, jax.tree.map(lambda k: gamma * k[first], k), implicit)


def _memory_for_step(memory: Memory, h: Scalar, coupled: Coupling | None) -> Memory:
    """The memory with the method that suits a step of this length, which may be ten times that of the step before.

    Slopes of contact are known before the step. Its friction is stiff at rest alone, so that stages that slip do not
    show the stiffness: explicit steps far too long for it would go on, each with an error that tolerances allow.
    """
    h = jax.lax.stop_gradient(h)
    h_rate = h * memory.largest_rate
    soft, stiff, certain = (memory.largest_rate > 0) & (h_rate <= MILD), h_rate > STIFF, False
    if coupled is not None:
        h_rate = coupled.step_times_rate(h)
        # The largest rate may be above that of single coordinates, and stages may show that.
        soft, certain = h_rate <= MILD, (h_rate > UNSTABLE) | (h_rate > MILD) & stiff
    unsuited = jnp.where(memory.implicit, soft, stiff)
    doubts = jnp.where(unsuited, memory.doubts + 1, memory.doubts - jnp.sign(memory.doubts))
    doubts = jnp.where(~memory.implicit & certain, PATIENCE, doubts)
    changes = doubts >= PATIENCE
    fresh = jnp.where(memory.implicit & (h_rate < USELESS), -WARY, 0)
    return eqx.tree_at(
        lambda memory: (memory.implicit, memory.doubts, memory.inertia),
        memory,
        (memory.implicit ^ changes, jnp.where(changes, fresh, doubts), jnp.where(changes, 0, memory.inertia)),
    )


def _memory_after(
    memory: Memory, system: ImplicitRates, h: Scalar, explicit: Any, implicit: Any, k: State, last: State
) -> Memory:
    """The memory after a step, if it is accepted."""
    kv = k.v
    k, (K, D), h = jax.lax.stop_gradient((k, system.slopes, jnp.abs(h)))
    slope = jnp.max(D + h * K, initial=0)
    first = jnp.where(memory.largest_rate > 0, memory.largest_rate, _first_step_times_rate(implicit, k.v) / h)
    inertia = jnp.where(memory.implicit & (memory.inertia == 0), slope / first, memory.inertia)
    by_slope = slope / jnp.where(inertia > 0, inertia, 1)
    return Memory(
        implicit=memory.implicit,
        doubts=memory.doubts,
        largest_rate=jnp.where(
            memory.implicit, jnp.maximum(by_slope, jnp.finfo(h.dtype).tiny), _step_times_rate(explicit, k.v) / h
        ),
        inertia=inertia,
        rate_known=~memory.implicit,
        rate=last,
        stage_differences=_stage_differences(explicit, kv) / jnp.stack([h, jnp.ones_like(h)])[:, None],
    )


def _step_times_rate(method: Any, k: Array) -> Array:
    """h ρ, by the last two stages of an explicit step, which are both at its end.

    Friction that begins to hold is stiffer than stages that slip show. A step may then end at the rate that it began
    with, which is not its mean rate, and so may all that follow: a body that should come to rest never does.
    """
    changed, size = jnp.linalg.norm(_stage_differences(method, k), axis=1)
    shown = changed / jnp.where(size > 0, size, 1)
    start, end = k[len(k) - method.evaluations], k[-1]
    change, away = (jnp.linalg.norm(x - start) for x in (end, weighted(method.tableau.b, k)))
    # More than rounding: the rate of a free fall is constant.
    away = jnp.where(away > jnp.finfo(k.dtype).eps ** 0.5 * jnp.linalg.norm(start), away, 0)
    return jnp.where(change < RETURNED * away, jnp.maximum(shown, UNSTABLE), shown)


def _stage_differences(method: Any, k: Array) -> Array:
    """Differences of the last two stages, in h times their rates and in their velocities."""
    return jnp.stack([k[-1] - k[-2], weighted(method.tableau.alpha[-1] - method.tableau.alpha[-2], k)])


def _first_step_times_rate(method: Any, k: Array) -> Array:
    """h ρ, by the explicit rate a₀ and the implicit one a₁ in the same state: M (a₀ − a₁) = γ h (D + γ h K) a₁, from
    rest. Never zero, so that it is found once."""
    explicit, implicit = k[len(k) - method.evaluations], k[len(k) - method.evaluations + 1]
    apart, size = jnp.linalg.norm(explicit - implicit), jnp.linalg.norm(implicit)
    gamma = method.tableau.diagonal[-1]
    # Explicit steps do not use this.
    return jnp.maximum(apart / jnp.where(gamma * size > 0, gamma * size, 1), jnp.finfo(k.dtype).tiny)
