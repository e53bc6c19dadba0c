"""Where the shapes of a model may touch."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from jdyn.contact.colliders import KINDS, Colliders
from jdyn.geometry import PATCHES, Separation
from jdyn.spatial import Transform


def contact_points(colliders: Colliders, poses: Transform) -> tuple[Separation, Int[np.ndarray, " points"]]:
    """The points of all pairs, in world axes, and the pair that each belongs to.

    Args:
        colliders: The shapes.
        poses: Poses of all bodies in the world.

    Returns:
        A fixed number of rows for each pair, and the number of its pair for each row.
    """
    world = Transform.identity(poses.rotation.dtype)
    bodies = jax.tree.map(lambda x, last: jnp.concatenate([x, last[None]]), poses, world)
    carriers = np.array([entry.body for entry in colliders.entries], int)
    X = jax.vmap(Transform.__matmul__)(jax.tree.map(lambda x: x[carriers], bodies), colliders.placements)
    parts, numbers, first = [], [], 0
    for kinds, group in itertools.groupby(colliders.pairs, lambda pair: tuple(colliders.entries[i].kind for i in pair)):
        a, b = np.array(list(group)).T
        makers = [KINDS[kind] for kind in kinds]
        part = jax.vmap(lambda *args, makers=makers: _patch(makers, *args))(
            colliders.sizes[a], jax.tree.map(lambda x, a=a: x[a], X),
            colliders.sizes[b], jax.tree.map(lambda x, b=b: x[b], X),
        )  # fmt: skip
        numbers.append(np.repeat(np.arange(first, first + len(a)), part.distance.shape[1]))
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part))
        first += len(a)
    if not parts:
        none = jnp.zeros((0, 3), X.translation.dtype)
        return Separation(none, none, none, none[:, 0], none[:, 0]), np.zeros(0, int)
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts), np.concatenate(numbers)


def _patch(makers, size_a, X_a, size_b, X_b) -> Separation:
    a, b = makers[0](size_a), makers[1](size_b)
    return PATCHES[type(a), type(b)](a, X_a, b, X_b)
