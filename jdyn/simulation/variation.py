"""Errors of derivatives: how a motion varies with what it is differentiated by, beside the motion itself.

What rests in equilibrium has no error however long a step is, but its derivatives vibrate: those of a ball that slides
at the depth at which its weight holds it were wrong by their size and sign. So where derivatives are asked for, steps
carry a variation of the motion, and its error counts as that of the motion does.

Where stability holds the steps of an explicit method, a motion stays as near to the right one as its error is judged,
and its derivatives do not: each step may enlarge what the last one has left. Those of a robot arm under stiff springs
were wrong by nineteen digits.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree, Scalar

from jdyn.model import Model
from jdyn.simulation.solver import Tolerances
from jdyn.simulation.state import State

# What a variation may err in a step, as a share of the relative tolerance: its errors add up over all its vibrations,
# which are more than those of motions. They count from so many roundings on; a part of the state counts with a share of
# the largest one at least.
SHARE, ROUNDINGS, LEAST = 0.1, 1e3, 1e-3
# A coordinate rests that moves by less than so many tolerances in a step; variations are asked for where one does so,
# or stability holds steps, for this share of the time.
RESTS, LONG = 10, 0.05
# Explicit methods are stable up to h ρ = 2 and more; most steps that accuracy limits are shorter.
HELD = 2


class Variation(eqx.Module):
    """A variation of a motion.

    Attributes:
        tangent: Of the motion's numbers.
        sizes: The largest tangents of each part of the state so far.
        missed: Whether the last step that was tried was too long for it alone.
        held: Whether stability held the last step, of a solver that cannot tell.
    """

    tangent: PyTree[Array]
    sizes: State
    missed: Bool[Array, ""]
    held: Bool[Array, ""]

    @classmethod
    def of(cls, motion: Any, start: State) -> "Variation":
        """Variation of a motion before its first step, with the tangent of its state there."""
        numbers = jax.tree.map(jnp.zeros_like, eqx.filter(motion, eqx.is_inexact_array))
        tangent = eqx.tree_at(lambda motion: motion.y, numbers, start)
        return cls(tangent, _sizes(start), jnp.array(False), jnp.array(False))

    def moved(self, tangent: PyTree[Array], missed: Bool[Array, ""]) -> "Variation":
        """The variation after a step, or after a jump."""
        return Variation(tangent, jax.tree.map(jnp.maximum, self.sizes, _sizes(tangent.y)), missed, self.held)

    def error(self, tangent: PyTree[Array], error: State, allowed: Tolerances) -> Scalar:
        """The error of a step in units of the tolerance, by the tangents at its end and of its error. Zero where it is
        not finite: derivatives then are not, either."""
        sizes = self.moved(tangent, self.missed).sizes
        largest = jnp.max(jnp.stack(jax.tree.leaves(sizes)))
        rtol = jnp.maximum(SHARE * allowed.rtol, ROUNDINGS * jnp.finfo(largest.dtype).eps)

        def missed(error, size):
            scale = rtol * jnp.maximum(size, LEAST * largest)
            return jnp.max(jnp.abs(error), initial=0) / jnp.where(scale > 0, scale, 1)

        errors = jnp.max(jnp.stack(jax.tree.leaves(jax.tree.map(missed, error, sizes))))
        return jnp.where(jnp.isfinite(errors), errors, 0)


def _sizes(y: State) -> State:
    return jax.tree.map(lambda x: jnp.max(jnp.abs(x), initial=0), y)


def carried(change: Callable[[Any], Any], motion: Any) -> Any:
    """`change(motion)`, with the variation after that, if there is one."""
    variation, motion = motion.variation, eqx.tree_at(_variation, motion, None, is_leaf=_is_none)
    if variation is None:
        return change(motion)
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)

    def changed(moving):
        return eqx.partition(change(eqx.combine(moving, fixed)), eqx.is_inexact_array)

    moved, tangent, rest = jax.jvp(changed, (moving,), (variation.tangent,), has_aux=True)
    return with_variation(eqx.combine(moved, rest), variation.moved(tangent, variation.missed))


def with_variation(motion: Any, variation: Variation | None) -> Any:
    """A motion with another variation, or with none."""
    return eqx.tree_at(_variation, motion, variation, is_leaf=_is_none)


def _variation(motion):
    return motion.variation


def _is_none(x):
    return x is None


def counted(error: State, y0: State, y1: State, missed: Scalar, allowed: Tolerances) -> tuple[State, Bool[Array, ""]]:
    """An error of a step that is at least so many tolerances, and whether they are too many though it is not."""

    def scale(y0, y1):
        return allowed.atol + allowed.rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))

    scales = jax.tree.map(scale, y0, y1)
    good = [jnp.all(jnp.abs(e) <= s) for e, s in zip(*map(jax.tree.leaves, (error, scales)), strict=True)]
    # NaN stays.
    more = jax.tree.map(lambda e, s: jnp.where(missed * s > jnp.abs(e), missed * s, e).astype(e.dtype), error, scales)
    return more, (missed > 1) & jnp.all(jnp.stack(good))


class Direction(NamedTuple):
    """Tangents of those arrays of a problem that are differentiated, in one direction that nothing is special about.

    Attributes:
        numbers: Of what motions depend on beside their start, by the order of itself; None for what is fixed.
        start: Of the state there, by the order of 1.
    """

    numbers: Any
    start: State


def direction(problem: Any, wanted: Any) -> Direction | None:
    """The direction for those arrays of a problem that are `wanted`; None if motions feel nothing of them."""
    numbers = np.random.default_rng(0)
    if not any(jax.tree.leaves((wanted.y0, _felt(wanted)))):
        return None

    def noise(x):
        return jnp.asarray(numbers.standard_normal(x.shape), x.dtype)

    def along(x, wanted):
        return noise(x) * jnp.where(jnp.any(x != 0), jnp.abs(x), 1) if wanted else None

    problem = jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, problem)
    found = jax.tree.map(along, *(_felt(tree) for tree in (eqx.filter(problem, eqx.is_array), wanted)))
    y, model = problem.y0, problem.equations.field.model
    start = jax.tree.map(lambda x, wanted: noise(x) if wanted else jnp.zeros_like(x), y, wanted.y0)
    if wanted.y0.q:
        _, q = jax.jvp(lambda way: model.integrate(y.q, way), (jnp.zeros_like(y.v),), (noise(y.v),))
        start = eqx.tree_at(lambda y: y.q, start, q)
    return Direction(found, start)


def directed(problem: Any, towards: Direction) -> tuple[Any, Callable[[Any], Any]]:
    """The arrays of a problem that a direction has tangents of, and what makes the problem of others in their place."""
    mine = jax.tree.map(lambda x: x is not None, towards.numbers, is_leaf=_is_none)
    moving, fixed = eqx.partition(_felt(problem), mine)

    def problem_of(moving):
        equations, events = eqx.combine(moving, fixed)
        return dataclasses.replace(problem, equations=equations, events=events)

    return moving, problem_of


def _felt(problem):
    return problem.equations, problem.events


def rests(model: Model, y0: State, y1: State, allowed: Tolerances) -> Bool[Array, ""]:
    """Tell whether a coordinate has hardly moved in a step, by what tolerances say: it may rest in an equilibrium."""
    moved, faster = jnp.abs(model.difference(y0.q, y1.q)), jnp.abs(y1.v - y0.v)
    still = moved <= RESTS * (allowed.atol + allowed.rtol * jnp.max(jnp.abs(y0.q), initial=0))
    return jnp.any(still & (faster <= RESTS * (allowed.atol + allowed.rtol * jnp.abs(y0.v))))


def stability_holds(equations: diffrax.AbstractTerm, h: Scalar, y: State, error: State) -> Bool[Array, ""]:
    """Tell whether a step of a length `h` is about as long as explicit methods can take it, by its end and its error:
    by how fast forces change along that, which shows what is fastest."""

    def forces(q, v):
        return equations.vf(h, eqx.tree_at(lambda y: (y.q, y.v), y, (q, v)), None).v

    def changed(dq, dv):
        return jnp.linalg.norm(jax.jvp(forces, (y.q, y.v), (dq, dv))[1])

    # Springs, which have a rate of √(k / m), and dampers.
    by_q, by_v = jax.vmap(changed)(*(jnp.stack(pair) for pair in ((error.q, 0 * error.q), (0 * error.v, error.v))))
    q, v = jnp.linalg.norm(error.q), jnp.linalg.norm(error.v)
    rates = jnp.sqrt(by_q / jnp.where(q > 0, q, 1)), by_v / jnp.where(v > 0, v, 1)
    return jnp.abs(h) * jnp.maximum(*rates) > HELD
