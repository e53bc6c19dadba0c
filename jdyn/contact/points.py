"""Where the shapes of a model may touch."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from jdyn.contact.colliders import Colliders
from jdyn.geometry import Separation, contact_patch
from jdyn.spatial import Transform


def contact_points(colliders: Colliders, poses: Transform) -> tuple[Separation, Int[np.ndarray, " points"]]:
    """The points of all pairs, in world axes, and the pair that each belongs to.

    Args:
        colliders: The shapes.
        poses: Poses of all bodies in the world.

    Returns:
        A fixed number of rows for each pair, and the number of its pair for each row.
    """
    parts, numbers = [], []
    for group, shapes in colliders.placed_pairs(poses):
        part = jax.vmap(contact_patch)(*shapes)
        numbers.append(group.first + np.repeat(np.arange(len(group.a)), part.distance.shape[1]))
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part))
    if not parts:
        none = jnp.zeros((0, 3), poses.translation.dtype)
        return Separation(none, none, none, none[:, 0], none[:, 0]), np.zeros(0, int)
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts), np.concatenate(numbers)
