"""A gradient along one random direction, against differences of the loss: cheap enough for every tuning."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jdyn.tuning.comparison import Derivative, confirmed, sizes
from jdyn.tuning.finite_differences import step_lengths

# Relative difference that says that a gradient is wrong. Smaller ones may come from the tolerances of a simulation.
GROSS = 0.1

# Lengths of steps, of those that `gradient_health` takes.
LENGTHS = 4


def disagreement(
    losses: Callable[[PyTree[Array]], Float[np.ndarray, "*starts"]],
    free: PyTree[Array],
    loss: Float[np.ndarray, "*starts"],
    gradient: PyTree[Array],
    starts: int | None,
    seed: int,
) -> list[str]:
    """Describe how the gradient disagrees with differences, for each start where it does.

    It takes eight losses. All parameters move at once, each by its own size, so that it says nothing about a wrong
    derivative of a parameter on which the loss hardly depends.

    Args:
        losses: Of free coordinates.
        free: The coordinates; with a leading axis if there are `starts`.
        loss: There.
        gradient: There.
        starts: Their number; None for one without that axis.
        seed: Of the direction.
    """
    random = np.random.default_rng(seed)
    move = jax.tree.map(lambda x: _move(random, np.asarray(x), starts), free)
    lengths = _few_lengths(free)
    both_ways = np.concatenate([lengths, -lengths])
    moved = [losses(jax.tree.map(lambda x, dx, h=h: x + jnp.asarray(h * dx, x.dtype), free, move)) for h in both_ways]
    values = np.stack([loss, *moved]).reshape(1 + len(both_ways), -1)
    found = []
    for start in range(starts or 1):
        slopes, moves = (_flat(tree, start, starts) for tree in (gradient, move))
        derivative = confirmed(lengths, values[:, start], np.asarray(loss).dtype, slopes, moves, GROSS)
        if derivative.verdict == "disagrees":
            found.append(_words(derivative, start, starts))
    return found


def _move(random, numbers, starts):
    if starts is None:
        return sizes(numbers.astype(float)) * random.choice([-1.0, 1.0], numbers.shape)
    return np.stack([_move(random, row, None) for row in numbers])


def _few_lengths(free):
    dtype = min((leaf.dtype for leaf in jax.tree.leaves(free)), key=lambda dtype: jnp.finfo(dtype).bits)
    lengths = step_lengths(dtype)
    return lengths[:: len(lengths) // LENGTHS][:LENGTHS]


def _flat(tree, start, starts):
    leaves = (np.asarray(leaf, float) for leaf in jax.tree.leaves(tree))
    return np.concatenate([np.ravel(leaf if starts is None else leaf[start]) for leaf in leaves])


def _words(derivative: Derivative, start, starts):
    where = "" if starts is None else f" of start {start}"
    return (
        f"the gradient{where} disagrees with differences along a random direction, {derivative.autodiff:.4g} against "
        f"{derivative.differences:.4g} ± {derivative.error:.0e}. jdyn.gradient_health says which parameter it is; "
        "check=False does without"
    )
