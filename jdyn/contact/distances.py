"""Distances between the shapes of a model."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders, by_kinds, colliders
from jdyn.contact.points import placed_pairs
from jdyn.dynamics import forward_kinematics
from jdyn.geometry import HeightField, Separation, field_separation, separation
from jdyn.model import WORLD, Model
from jdyn.model.model import compiled
from jdyn.spatial import Transform


class Distances(Structure):
    """Distance from the first to the second shape of pairs of collision shapes, in world axes.

    The points are on the surfaces of the two shapes, and b − a = distance · normal.

    >>> model = jdyn.with_ground(jdyn.load("quadruped"))
    >>> q, pairs = model.neutral().at[2].set(0.5), [("ground", "trunk"), ("ground", "fr_foot")]
    >>> print(jdyn.contact.distances(model, q, pairs).normal)
    [[0. 0. 1.]
     [0. 0. 1.]]

    Attributes:
        names: The two shapes of each pair.
        a, b: The points of the first and of the second shape that are nearest to each other, or deepest in each other
            [m].
        normal: Unit vectors from a to b where shapes are apart, from b to a where they overlap.
        distance: [m]; minus the least translation that parts them where they overlap.
    """

    names: tuple[tuple[str, str], ...] = eqx.field(static=True)
    a: Float[Array, "pairs 3"]
    b: Float[Array, "pairs 3"]
    normal: Float[Array, "pairs 3"]
    distance: Float[Array, " pairs"]


def collision_pairs(model: Model) -> tuple[tuple[str, str], ...]:
    """Names of the two shapes of each pair that may touch.

    Shapes of one body do not, nor do those of a body and the one that its joint is on, unless the joint is free or the
    shapes are the world's own; nor do those that the robot's file, `jdyn.Builder.exclude` or their bits keep apart.

    >>> jdyn.contact.collision_pairs(jdyn.with_ground(jdyn.load("hopper")))
    (('ground', 'foot'), ('ground', 'body'))

    Args:
        model: The mechanism.

    Raises:
        ValueError: if it has no collision shapes.
    """
    return colliders(model).names


def pairs_if_any(model: Model) -> tuple[tuple[str, str], ...]:
    """Pairs of `collision_pairs`, and none for a model without collision shapes."""
    return collision_pairs(model) if model.shapes is not None and model.shapes.rows("collision") else ()


def world_shapes(model: Model) -> list[str]:
    """Names of the world's shapes that something may touch."""
    entries = () if model.shapes is None else model.shapes.entries
    still = [entry.name for entry in entries if entry.role == "collision" and entry.body == WORLD]
    touched = {name for pair in collision_pairs(model) for name in pair} if still else set()
    return [name for name in still if name in touched]


def distances(model: Model, q: Float[Array, " nq"], pairs: Sequence[tuple[str, str]] | None = None) -> Distances:
    """Distances between collision shapes, and where they are nearest.

    Derivatives in both modes, with respect to q and to every number of the model, also to sizes and placements of
    shapes, are those of the true distance. It has none where two points are nearest at once, as between parallel faces:
    one of them counts there. The distance from a height field is that of its triangles, infinite beside it. Where other
    shapes than spheres overlap with it, their depth is the largest of those in columns of ground below one triangle.

    >>> builder = jdyn.Builder("two balls")
    >>> for name in ("left", "right"):
    ...     builder.add_link(name, jdyn.Prismatic((1, 0, 0)), mass=1.0, inertia=0.1)
    ...     builder.add_shape(name, "sphere", 0.1, role="collision")
    >>> model = builder.build()
    >>> q = jnp.array([0.0, 0.5])
    >>> print(jdyn.contact.distances(model, q).distance.round(3))
    [0.3]
    >>> print(jax.grad(lambda q: jdyn.contact.distances(model, q).distance[0])(q))
    [-1.  1.]

    Args:
        model: The mechanism.
        q: Configuration.
        pairs: Names of two collision shapes for each distance; if left out, all that may touch, in the order of
            `jdyn.contact.collision_pairs`.

    Raises:
        ValueError: if the model has no collision shapes, or none of that name, or `q` has a wrong shape.

    Source: Gilbert, Johnson and Keerthi 1988 for the distance; its derivative is that of Danskin's theorem.
    """
    found = colliders(model)
    asked = found.pairs if pairs is None else tuple(found.rows(pairs))
    names = tuple((found.entries[i].name, found.entries[j].name) for i, j in asked)
    apart = _distances(model, dataclasses.replace(found, pairs=asked), q)
    return Distances(names, apart.a, apart.b, apart.normal, apart.distance)


@compiled
def _distances(model: Model, found: Colliders, q: Float[Array, " nq"]) -> Separation:
    return distances_at(found, forward_kinematics(model, q), found.pairs)


def distances_at(found: Colliders, poses: Transform, asked: Sequence[tuple[int, int]]) -> Separation:
    """Distances of pairs of shapes, in world axes.

    Args:
        found: The shapes.
        poses: Poses of all bodies in the world.
        asked: Numbers of the two shapes of each pair.
    """
    rows = by_kinds(found.entries, asked)
    groups = placed_pairs(dataclasses.replace(found, pairs=rows, nearest=None), poses)
    parts = [jax.vmap(_apart)(*group.shapes) for group in groups]
    if not parts:
        none = jnp.zeros((0, 3), poses.translation.dtype)
        return Separation(none, none, none, none[:, 0])
    ordered = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    if rows == tuple(asked):
        return ordered
    places = np.array([rows.index(pair) if pair in rows else rows.index(pair[::-1]) for pair in asked], int)
    turned = np.array([pair not in rows for pair in asked], bool)
    there = jax.tree.map(lambda x: x[places], ordered)

    def chosen(x, y):
        return jnp.where(turned.reshape(-1, *[1] * (x.ndim - 1)), x, y)

    return jax.tree.map(chosen, there.flipped(), there)


def _apart(a: Any, X_a: Transform, b: Any, X_b: Transform) -> Separation:
    return field_separation(a, X_a, b, X_b) if isinstance(a, HeightField) else separation(a, X_a, b, X_b)
