"""Where the shapes of a model may touch."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.contact.colliders import Colliders
from jdyn.contact.placed_pairs import placed_pairs
from jdyn.geometry import Separation, contact_patch
from jdyn.spatial import Transform


def middles(found: Separation, elsewhere: Float[Array, "3"]) -> tuple[Float[Array, "points 3"], Bool[Array, " points"]]:
    """Where points act, in the middle between the two surfaces; those without a point get a place elsewhere. And
    whether rows have one.

    Rows that are NaN, where too many pairs are near, count as points, so that they spread to forces.
    """
    exists = found.distance != jnp.inf
    return jnp.where(exists[:, None], (found.a + found.b) / 2, elsewhere[None]), exists


def deepest(found: Separation) -> Scalar:
    """The largest depth of a point [m]; zero where nothing touches."""
    return jnp.max(-found.distance, initial=0)


def contact_points(colliders: Colliders, poses: Transform) -> tuple[Separation, Int[Any, " points"]]:
    """The points of all pairs, in world axes, and the pair that each belongs to.

    Args:
        colliders: The shapes.
        poses: Poses of all bodies in the world.

    Returns:
        A fixed number of rows for each pair, and the number of its pair for each row. With `colliders.nearest`, only
        the nearest pairs of each two sorts of shapes have rows, and their numbers are traced; if the boxes of more
        pairs than these overlap, all their distances are NaN.
    """
    parts, numbers = [], []
    for group in placed_pairs(colliders, poses):
        part = jax.vmap(contact_patch)(*group.shapes)
        numbers.append(group.numbers.repeat(part.distance.shape[1]))
        if group.missed is not False:
            part = dataclasses.replace(part, distance=jnp.where(group.missed, jnp.nan, part.distance))
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part))
    if not parts:
        none = jnp.zeros((0, 3), poses.translation.dtype)
        return Separation(none, none, none, none[:, 0], none[:, 0]), np.zeros(0, int)
    known = all(isinstance(each, np.ndarray) for each in numbers)
    every = np.concatenate(numbers) if known else jnp.concatenate([jnp.asarray(each, jnp.int32) for each in numbers])
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts), every
