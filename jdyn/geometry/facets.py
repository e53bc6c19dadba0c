"""The part of a hull that is near another shape."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.geometry.directions import unit


class Facet(Structure):
    """The point, the line or the plane through some vertices of a hull.

    Attributes:
        points: [m].
        used: Above zero for those that count.
    """

    points: Float[Array, "3 3"]
    used: Float[Array, "3"]

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """Distance to the point, the line or the plane."""
        first = self.points[jnp.argmax(self.used)]
        sides = jnp.where((self.used > 0)[:, None], self.points - first[None], 0)
        squares = jnp.sum(sides**2, axis=1)
        along = unit(sides[jnp.argmax(squares)])
        across = sides - dot(sides, along)[:, None] * along[None]
        heights = jnp.sum(across**2, axis=1)
        widest = jnp.argmax(heights)
        # Vertices may be used twice, or lie on one line.
        flat = heights[widest] <= (64 * jnp.finfo(point.dtype).eps) ** 2 * jnp.max(squares)
        across = jnp.where(flat, 0, unit(jnp.where(flat, 0, across[widest])))
        way = point - first
        return first + along * dot(along, way) + across * dot(across, way)
