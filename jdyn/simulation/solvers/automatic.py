"""A method that chooses between an explicit and an implicit one while it runs."""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_max
from jaxtyping import Array, Bool, Int, Scalar

from jdyn.simulation.solvers import rosj43, verner6
from jdyn.simulation.solvers.joint_implicit import JointImplicit, local_term
from jdyn.simulation.solvers.tableau import Interpolation, Tableau, ended, stages
from jdyn.simulation.stages import weighted
from jdyn.simulation.vector_field import State
from jdyn.simulation.work import Counted, Work

# The explicit method is stable up to h ρ = 4.4 on the negative real axis. Steps that stability holds come close to it.
STIFF = 3.4
# Steps so short that an explicit method takes them as well.
MILD = 2.0
# The method changes once so many more steps say that it should than that it should not.
PATIENCE = 3

EXPLICIT = verner6.TABLEAU
STAGES = len(EXPLICIT.b)


def _in_rows_of_explicit(tableau: Tableau) -> Tableau:
    """The table behind an explicit stage without weight, where an explicit step has the one that it knows, and as many
    powers of dense output."""
    alpha, below = (np.pad(x, [(1, 0)] * 2) for x in (tableau.alpha, tableau.below))
    diagonal, b, error = (np.pad(x, (1, 0)) for x in (tableau.diagonal, tableau.b, tableau.error))
    more = len(EXPLICIT.dense) - len(tableau.dense)
    return Tableau(alpha, below, diagonal, b, error, np.pad(tableau.dense, [(0, more), (1, 0)]))


IMPLICIT = _in_rows_of_explicit(rosj43.TABLEAU)


class Memory(eqx.Module):
    """What the next step needs.

    Attributes:
        implicit: Whether it is implicit in the forces of joints.
        doubts: How many more steps were better of the other kind than not.
        speed: ρ, the largest rate of the motion, as the last explicit step or the very first step saw it; zero before
            [1/s].
        inertia: What slopes of joint forces are divided by to have their rate; zero until the first implicit step
            [kg m² or kg].
        known: Whether the next line is true.
        rate: Of the state, as the last stage of an explicit step has it.
    """

    implicit: Bool[Array, ""]
    doubts: Int[Array, ""]
    speed: Scalar
    inertia: Scalar
    known: Bool[Array, ""]
    rate: State


class Automatic(diffrax.AbstractAdaptiveSolver):
    """An explicit method of order 6 where accuracy limits the step, `jdyn.ROSJ43` where gains, dampers or friction do.

    What `jdyn.simulate` takes by itself. Each lane of a batch changes from one to the other as its motion asks for it;
    both are one program, and either takes eight evaluations a step. The first step is implicit, and compares its rate
    with the explicit one at its start. Explicit steps turn implicit when they come close to the end of the stable
    range, by the rate that their last two stages show; implicit ones turn explicit when they are so short, or forces so
    soft, that they need not be. `ROSJ43` takes no stiffness away that couples joints, as that of an LQR does;
    `jdyn.Rodas5P` takes that away, too.

    Source: Petzold, Automatic selection of methods for solving stiff and nonstiff systems of ordinary differential
    equations, SIAM Journal on Scientific and Statistical Computing 4, 1983; for the rate, Hairer, Wanner 1996, section
    IV.2; for the explicit method, Verner, Strategies for deriving new explicit Runge-Kutta pairs, Annals of Numerical
    Mathematics 1, 1994, with times of our own.
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = Interpolation

    def order(self, terms):
        # Step controllers need that of the estimates, which is 6 for the explicit method and 4 for the other.
        return 5

    def init(self, terms, t0, t1, y0, args):
        nothing, doubts = jnp.zeros((), y0.v.dtype), jnp.array(PATIENCE - 1, jnp.int32)
        rate = jax.tree.map(jnp.zeros_like, y0)
        return Counted(Memory(jnp.array(True), doubts, nothing, nothing, jnp.array(False), rate), Work.of())

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        terms = local_term(self, terms)
        memory, h = solver_state.memory, terms.contr(t0, t1)
        implicit = memory.implicit
        known = jnp.where(implicit, memory.speed > 0, memory.known & ~made_jump)
        here = terms.from_chart(y0)
        system = JointImplicit.of(terms.term, t0, here, jnp.where(implicit, rosj43.GAMMA * h, 0))
        tableau = jax.tree.map(lambda x, y: jnp.where(implicit, x, y).astype(h.dtype), IMPLICIT, EXPLICIT)
        # Charts change from step to step, and the rate in them.
        rate = eqx.tree_at(lambda rate: rate.q, memory.rate, terms.model.chart_rate(here.q, y0.q, here.v))
        evaluations = STAGES - jnp.where(known, 1, 0)
        first = STAGES - unvmap_max(evaluations)
        k, last = stages(tableau, terms, system, t0, t1, y0, rate, first)
        y1, error, dense = ended(tableau, y0, k)
        counted = Counted(_after(memory, system, h, k, last), Work.of(evaluations, implicit=implicit))
        return y1, error, dense, counted, diffrax.RESULTS.successful


def _after(memory: Memory, system: JointImplicit, h: Scalar, k: State, last: State) -> Memory:
    """The memory after a step, if it is accepted."""
    k, K, D, h = jax.lax.stop_gradient((k, system.K, system.D, jnp.abs(h)))
    implicit = memory.implicit
    first = jnp.where(memory.speed > 0, memory.speed, _first_speed(k.v) / h)
    speed = jnp.where(implicit, first, _speed(k.v) / h)
    slope = jnp.max(D + h * K, initial=0)
    inertia = jnp.where(implicit & (memory.inertia == 0), slope / jnp.where(speed > 0, speed, 1), memory.inertia)
    unsuited = jnp.where(implicit, h * slope <= MILD * inertia, h * speed > STIFF)
    doubts = jnp.where(unsuited, memory.doubts + 1, jnp.maximum(memory.doubts - 1, 0))
    changes = doubts >= PATIENCE
    return Memory(
        implicit=implicit ^ changes,
        doubts=jnp.where(changes, 0, doubts),
        speed=speed,
        inertia=jnp.where(changes, 0, inertia),
        known=~implicit,
        rate=last,
    )


def _speed(k: Array) -> Array:
    """h ρ, by the last two stages of an explicit step, which are at its end both."""
    apart, between = k[-1] - k[-2], weighted(EXPLICIT.alpha[-1] - EXPLICIT.alpha[-2], k)
    size = jnp.linalg.norm(between)
    return jnp.linalg.norm(apart) / jnp.where(size > 0, size, 1)


def _first_speed(k: Array) -> Array:
    """h ρ, by the explicit rate a₀ and the implicit one a₁ in the same state: M (a₀ − a₁) = γ h (D + γ h K) a₁, from
    rest. Never zero, so that it is found once."""
    apart, size = jnp.linalg.norm(k[0] - k[1]), jnp.linalg.norm(k[1])
    return jnp.maximum(apart / (rosj43.GAMMA * jnp.where(size > 0, size, 1)), jnp.finfo(k.dtype).tiny)
