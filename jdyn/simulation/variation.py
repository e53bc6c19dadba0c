"""Errors of derivatives: how a motion varies with what it is differentiated by, beside the motion itself.

A body that rests in equilibrium has no error however long a step is, but its derivatives vibrate: derivatives of a ball
that slides at the depth at which its weight holds it were wrong in size and sign. So where derivatives are asked for,
steps carry a variation of the motion, and its error counts as that of the motion does.

Where stability limits the steps of an explicit method, the step controller keeps the error of a motion small, but not
that of its derivatives: each step may enlarge the error of the last one. Derivatives of a robot arm under stiff springs
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

from jdyn.array import moving_and_fixed
from jdyn.model import Model
from jdyn.simulation.solver import Tolerances
from jdyn.simulation.state import State

# The error of a variation in a step may be this share of the relative tolerance: errors add up over all vibrations of a
# variation, which are more than those of motions. They count from so many roundings on; a part of the state counts with
# this share of the largest one at least.
ERROR_SHARE, ROUNDINGS, LEAST_SIZE = 0.1, 1e3, 1e-3
# A coordinate rests if it moves by less than so many tolerances in a step; steps follow a variation once a coordinate
# has rested, or stability has limited steps, for this share of the time.
RESTING_TOLERANCES, UNDETECTED_SHARE = 10, 0.05
# Explicit methods are stable up to h ρ = 2 and more; most steps that accuracy limits are shorter.
STABLE_STEP = 2


class Variation(eqx.Module):
    """A variation of a motion.

    Attributes:
        tangent: Tangent of the motion's numbers.
        sizes: The largest tangents of each part of the state so far.
        too_long: Whether the last step that was tried was too long for the variation alone.
        limited_by_stability: Whether stability limited the last step, of a solver that cannot tell.
    """

    tangent: PyTree[Array]
    sizes: State
    too_long: Bool[Array, ""]
    limited_by_stability: Bool[Array, ""]

    @classmethod
    def of(cls, motion: Any, start: State) -> "Variation":
        """Variation of a motion before its first step, with the tangent of its state there."""
        numbers = jax.tree.map(jnp.zeros_like, eqx.filter(motion, eqx.is_inexact_array))
        tangent = eqx.tree_at(lambda motion: motion.y, numbers, start)
        return cls(tangent, _sizes(start), jnp.array(False), jnp.array(False))

    def after(self, tangent: PyTree[Array], too_long: Bool[Array, ""]) -> "Variation":
        """The variation after a step, or after a jump."""
        sizes = jax.tree.map(jnp.maximum, self.sizes, _sizes(tangent.y))
        return Variation(tangent, sizes, too_long, self.limited_by_stability)

    def error(self, tangent: PyTree[Array], error: State, allowed: Tolerances) -> Scalar:
        """The error of a step in units of the tolerance, by the tangents of its end and of its error. Zero where it is
        not finite: derivatives then are not, either."""
        sizes = self.after(tangent, self.too_long).sizes
        largest = jnp.max(jnp.stack(jax.tree.leaves(sizes)))
        rtol = jnp.maximum(ERROR_SHARE * allowed.rtol, ROUNDINGS * jnp.finfo(largest.dtype).eps)

        def relative(error, size):
            scale = rtol * jnp.maximum(size, LEAST_SIZE * largest)
            return jnp.max(jnp.abs(error), initial=0) / jnp.where(scale > 0, scale, 1)

        errors = jnp.max(jnp.stack(jax.tree.leaves(jax.tree.map(relative, error, sizes))))
        return jnp.where(jnp.isfinite(errors), errors, 0)


def _sizes(y: State) -> State:
    return jax.tree.map(lambda x: jnp.max(jnp.abs(x), initial=0), y)


def apply_with_variation(change: Callable[[Any], Any], motion: Any) -> Any:
    """`change(motion)`, with the variation after the change, if there is one."""
    variation, motion = motion.variation, eqx.tree_at(_variation, motion, None, is_leaf=_is_none)
    if variation is None:
        return change(motion)
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)

    def changed(moving):
        return eqx.partition(change(eqx.combine(moving, fixed)), eqx.is_inexact_array)

    moved, tangent, rest = jax.jvp(changed, (moving,), (variation.tangent,), has_aux=True)
    return with_variation(eqx.combine(moved, rest), variation.after(tangent, variation.too_long))


def with_variation(motion: Any, variation: Variation | None) -> Any:
    """A motion with another variation, or with none."""
    return eqx.tree_at(_variation, motion, variation, is_leaf=_is_none)


def _variation(motion):
    return motion.variation


def _is_none(x):
    return x is None


def with_variation_error(
    error: State, y0: State, y1: State, variation_error: Scalar, allowed: Tolerances
) -> tuple[State, Bool[Array, ""]]:
    """The error of a step, raised to the error of its variation, which is in units of the tolerance; and whether the
    variation alone misses the tolerance."""

    def scale(y0, y1):
        return allowed.atol + allowed.rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))

    scales = jax.tree.map(scale, y0, y1)
    good = [jnp.all(jnp.abs(e) <= s) for e, s in zip(*map(jax.tree.leaves, (error, scales)), strict=True)]
    # NaN stays.
    least = variation_error
    larger = jax.tree.map(lambda e, s: jnp.where(least * s > jnp.abs(e), least * s, e).astype(e.dtype), error, scales)
    return larger, (variation_error > 1) & jnp.all(jnp.stack(good))


class Direction(NamedTuple):
    """Tangents of the arrays of a problem that are differentiated, in one generic direction.

    Attributes:
        numbers: Tangents of the numbers that motions depend on beside their start, of the order of these numbers; None
            for numbers that are fixed.
        start: Tangent of the state at the start, of the order of 1.
    """

    numbers: Any
    start: State


def generic_direction(problem: Any, wanted: Any) -> Direction | None:
    """A direction of the arrays of a problem that are `wanted`; None if motions do not depend on them."""
    generator = np.random.default_rng(0)
    if not any(jax.tree.leaves((wanted.y0, _inputs_of_motion(wanted)))):
        return None

    def noise(x):
        return jnp.asarray(generator.standard_normal(x.shape), x.dtype)

    def along(x, wanted):
        return noise(x) * jnp.where(jnp.any(x != 0), jnp.abs(x), 1) if wanted else None

    problem = jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, problem)
    found = jax.tree.map(along, *(_inputs_of_motion(tree) for tree in (eqx.filter(problem, eqx.is_array), wanted)))
    y, model = problem.y0, problem.equations.field.model
    start = jax.tree.map(lambda x, wanted: noise(x) if wanted else jnp.zeros_like(x), y, wanted.y0)
    if wanted.y0.q:
        _, q = jax.jvp(lambda displacement: model.integrate(y.q, displacement), (jnp.zeros_like(y.v),), (noise(y.v),))
        start = eqx.tree_at(lambda y: y.q, start, q)
    return Direction(found, start)


def partition_along(problem: Any, direction: Direction) -> tuple[Any, Callable[[Any], Any]]:
    """The arrays of a problem of which a direction has tangents, and a function from such arrays to the problem with
    them."""
    moving, fixed = moving_and_fixed(_inputs_of_motion(problem), direction.numbers)

    def problem_of(moving):
        equations, events = eqx.combine(moving, fixed)
        return dataclasses.replace(problem, equations=equations, events=events)

    return moving, problem_of


def _inputs_of_motion(problem):
    return problem.equations, problem.events


def has_resting_coordinate(model: Model, y0: State, y1: State, allowed: Tolerances) -> Bool[Array, ""]:
    """Tell whether a coordinate moved by a few tolerances at most in a step: it may rest in an equilibrium."""
    moved, faster = jnp.abs(model.difference(y0.q, y1.q)), jnp.abs(y1.v - y0.v)
    still = moved <= RESTING_TOLERANCES * (allowed.atol + allowed.rtol * jnp.max(jnp.abs(y0.q), initial=0))
    return jnp.any(still & (faster <= RESTING_TOLERANCES * (allowed.atol + allowed.rtol * jnp.abs(y0.v))))


def limited_by_stability(equations: diffrax.AbstractTerm, h: Scalar, y: State, error: State) -> Bool[Array, ""]:
    """Tell whether a step of length `h` is about as long as explicit methods can take it: by the rates at which forces
    change at its end along its error, in which the fastest motion is largest."""

    def forces(q, v):
        return equations.vf(h, eqx.tree_at(lambda y: (y.q, y.v), y, (q, v)), None).v

    def changed(dq, dv):
        return jnp.linalg.norm(jax.jvp(forces, (y.q, y.v), (dq, dv))[1])

    # Springs, which have a rate of √(k / m), and dampers.
    by_q, by_v = jax.vmap(changed)(*(jnp.stack(pair) for pair in ((error.q, 0 * error.q), (0 * error.v, error.v))))
    q, v = jnp.linalg.norm(error.q), jnp.linalg.norm(error.v)
    rates = jnp.sqrt(by_q / jnp.where(q > 0, q, 1)), by_v / jnp.where(v > 0, v, 1)
    return jnp.abs(h) * jnp.maximum(*rates) > STABLE_STEP
