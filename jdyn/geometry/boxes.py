"""Which way two boxes that overlap leave each other first."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit
from jdyn.geometry.shapes import Box
from jdyn.spatial import Transform


def least_overlap_of_boxes(a: Box, b: Box, X: Transform) -> Float[Array, "3"]:
    """Find what `least_overlap` finds for two boxes, by a fifth of its program: one of fifteen directions, in the frame
    of a, where b has pose X.

    They are the normals of the faces of either box, and the normals to an edge of each.

    Source: Gottschalk, Lin, Manocha, OBBTree: a hierarchical structure for rapid interference detection, SIGGRAPH 1996.
    """
    axes = jnp.eye(3, dtype=a.sides.dtype)
    edges = jnp.cross(axes[:, None], X.rotation.T[None]).reshape(9, 3)
    sines, across = jax.vmap(length_and_unit)(edges)
    normals = jnp.concatenate([axes, X.rotation.T, across])
    towards_b = dot(normals, X.translation)
    reach = (dot(jnp.abs(normals), a.sides) + dot(jnp.abs(dot(normals, X.rotation)), b.sides)) / 2
    # Parallel edges have no normal, and rounding turns that of nearly parallel ones by its share of their sine. Where
    # it decides, faces do better than edges.
    rounding = 8 * jnp.finfo(reach.dtype).eps * reach[6:]
    later = jnp.where(sines > 0, rounding / jnp.where(sines > 0, sines, 1), jnp.inf)
    best = jnp.argmin(reach - jnp.abs(towards_b) + jnp.pad(later, (6, 0)))
    return jnp.where(towards_b[best] < 0, -normals[best], normals[best])
