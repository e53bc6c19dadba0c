"""Derivatives of a loss by autodiff and by finite differences, side by side."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jdyn.tuning.finite_differences import Difference, central_difference, step_lengths
from jdyn.tuning.parameters import named_leaves

# Relative difference of two derivatives that does not matter for tuning.
AGREEMENT = {"float64": 1e-3, "float32": 1e-2}
COARSE = 0.1

# Autodiff is called wrong only if it is off by this many times the error of the differences.
SAFETY = 3.0

# Noise of more roundings than this is not rounding; a derivative of more than this multiple of the slope is steep.
ROUGH, STEEP = 1e4, 10.0

# Smaller differences may come from a tolerance.
SLIGHTLY = 0.1

Verdict = Literal["agrees", "disagrees", "cannot tell", "not finite"]


@dataclasses.dataclass(frozen=True)
class Derivative:
    """A derivative of the loss along a unit direction within one leaf, by two means.

    Attributes:
        leaf: Path of the leaf.
        direction: Index of the coordinate; empty for a leaf that is a number, ` ~1`, ` ~2`, ... for random directions.
        autodiff: The derivative by automatic differentiation.
        differences: The derivative by finite differences.
        error: Error estimate of `differences`.
        verdict: Whether `differences` confirm `autodiff`.
        note: The reason, if they do not.
    """

    leaf: str
    direction: str
    autodiff: float
    differences: float
    error: float
    verdict: Verdict
    note: str


class Direction(NamedTuple):
    """A direction in the space of parameters.

    Attributes:
        leaf: Number of the leaf.
        name: Its path.
        label: Name of the direction within the leaf.
        move: Change of its numbers, each by its own size, or zero.
    """

    leaf: int
    name: str
    label: str
    move: Float[np.ndarray, "..."]


def directions_in(tuned: PyTree[Array], count: int, seed: int) -> Iterator[Direction]:
    """Along every coordinate of leaves with at most `count` numbers, else `count` random ones that move all numbers."""
    random = np.random.default_rng(seed)
    for leaf, (name, numbers) in enumerate(named_leaves(tuned)):
        scale = sizes(np.asarray(numbers, float))
        coordinates = [tuple(index) for index in np.argwhere(scale)]
        if len(coordinates) <= count:
            for index in coordinates:
                label = f"[{', '.join(map(str, index))}]" if index else ""
                yield Direction(leaf, name, label, _only(scale, index))
            continue
        for number in range(1, count + 1):
            yield Direction(leaf, name, f" ~{number}", scale * random.choice([-1.0, 1.0], scale.shape))


def _only(scale, index):
    move = np.zeros_like(scale)
    move[index] = scale[index]
    return move


def sizes(numbers: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The size of each number, rounded to a power of two. Numbers that are tiny beside the others get their size;
    infinite ones, such as limits, are not moved."""
    finite = np.isfinite(numbers)
    size = np.abs(np.where(finite, numbers, 0.0))
    typical = np.sqrt(np.sum(size**2) / max(np.sum(finite), 1)) or 1.0
    return finite * 2.0 ** np.round(np.log2(np.where(size > 1e-3 * typical, size, typical)))


def compared(
    values_along: Callable[[PyTree[Array], Float[Array, " steps"]], Float[Array, " steps"]],
    tuned: PyTree[Array],
    gradient: PyTree[Array],
    rtol: float | None,
    direction: Direction,
) -> Derivative:
    """A derivative by both means.

    Args:
        values_along: Values of the loss at `tuned + step * move`, for a PyTree `move` and steps.
        tuned: The parameters.
        gradient: The gradient by autodiff.
        rtol: Relative difference that counts as agreement; that of the loss' type if None.
        direction: The direction.
    """
    leaves, structure = jax.tree.flatten(tuned)
    moves = [jnp.zeros_like(leaf) for leaf in leaves]
    moves[direction.leaf] = jnp.asarray(direction.move, leaves[direction.leaf].dtype)
    steps = step_lengths(leaves[direction.leaf].dtype)
    both_ways = jnp.asarray(np.concatenate([[0.0], steps, -steps]))
    values = values_along(jax.tree.unflatten(structure, moves), both_ways)
    slopes = np.asarray(jax.tree.leaves(gradient)[direction.leaf], float)
    rtol = AGREEMENT.get(values.dtype.name, COARSE) if rtol is None else rtol
    derivative = confirmed(steps, np.asarray(values, float), values.dtype, slopes, direction.move, rtol)
    return dataclasses.replace(derivative, leaf=direction.name, direction=direction.label)


def confirmed(
    steps: Float[np.ndarray, " rungs"],
    values: Float[np.ndarray, " evaluations"],
    dtype,
    slopes: Float[np.ndarray, "..."],
    move: Float[np.ndarray, "..."],
    rtol: float,
) -> Derivative:
    """The derivative by autodiff along a move, and what values of the loss say of it; without names.

    Args:
        steps: Lengths of steps in a constant ratio, longest first.
        values: Of the loss: here, ahead by `steps * move`, behind.
        dtype: In which they were computed.
        slopes: Gradient by autodiff.
        move: The change of the parameters for a step of 1, in the same shape.
        rtol: Relative difference that counts as agreement.
    """
    here, ahead, behind = np.split(np.asarray(values, float), [1, 1 + len(steps)])
    epsilon = float(jnp.finfo(dtype).eps)
    found = central_difference(steps, float(here[0]), ahead, behind, epsilon)
    # An infinite derivative with respect to a number that does not move does not count along this direction.
    moving, length = move != 0, float(np.linalg.norm(move))
    autodiff = float(np.sum(slopes[moving] * move[moving]))
    verdict, note = _verdict(autodiff, found, rtol, epsilon, length)
    return Derivative(
        leaf="",
        direction="",
        autodiff=autodiff / length,
        differences=found.derivative / length,
        error=found.error / length,
        verdict=verdict,
        note=note,
    )


def _verdict(autodiff: float, found: Difference, rtol, epsilon, length) -> tuple[Verdict, str]:
    """Tell whether the differences confirm autodiff. A derivative counts as zero if the loss keeps half of its digits
    while parameters change by their own size."""
    if not np.isfinite(autodiff):
        return "not finite", ""
    if np.isinf(found.error):
        return "cannot tell", "the loss is not finite close by"
    difference = abs(autodiff - found.derivative)
    bound = rtol * max(abs(autodiff), abs(found.derivative)) + np.sqrt(epsilon) * found.size
    if difference > bound + SAFETY * found.error and not _rough(autodiff, found, epsilon):
        return "disagrees", _suspicion(difference / max(abs(autodiff), abs(found.derivative)), autodiff)
    if max(difference, found.error) <= bound:
        return "agrees", "" if found.moved else "the loss does not depend on it"
    if found.jump:
        behind, ahead = (found.derivative + side * found.jump / 2 for side in (-1, 1))
        return "cannot tell", f"a kink, {behind / length:.4g} on one side and {ahead / length:.4g} on the other"
    return "cannot tell", f"the loss is rough by up to {found.noise:.0e}; chaos, or tolerances too loose?"


def _suspicion(share, autodiff):
    if autodiff == 0:
        return "autodiff sees no dependence; stop_gradient, a comparison or an integer on the way?"
    if share < SLIGHTLY:
        return f"by {share:.1%}; adaptive steps suit the motion, its derivative may need tighter tolerances"
    return ""


def _rough(autodiff, found: Difference, epsilon) -> bool:
    """Tell whether the loss is rough below the length of the steps and above rounding, so that autodiff may be right:
    all differences are noise, or autodiff is far steeper than long steps and no steeper than the shortest."""
    if found.noise < ROUGH * epsilon * found.size:
        return False
    steep = abs(autodiff) > STEEP * (abs(found.derivative) + found.error)
    return found.error > abs(found.derivative) or (steep and abs(autodiff) < SAFETY * found.steepest)
