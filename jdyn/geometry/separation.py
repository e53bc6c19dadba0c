"""Distance between two shapes, and where."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.spatial import Transform


class Separation(Structure):
    """The distance of shape b from shape a, and the points between which it is measured: b − a = distance · normal.

    Attributes:
        a, b: The points, on the surfaces of the two shapes [m].
        normal: Unit vector from a to b where they are apart; from b to a into the depth where they overlap.
        distance: Signed distance [m]; minus the depth where they overlap, infinite in rows without a point.
        weight: What part of the stiffness of one point each row of a contact patch has [1]: corners that come and go
            begin and end with none. None for the distance of two shapes.
    """

    a: Float[Array, "*points 3"]
    b: Float[Array, "*points 3"]
    normal: Float[Array, "*points 3"]
    distance: Float[Array, "*points"]
    weight: Float[Array, "*points"] = eqx.field(default=None)

    @property
    def exists(self) -> Bool[Array, "*points"]:
        """Which rows have a point. NaN counts as one, so that it spreads to forces."""
        return self.distance != jnp.inf

    def flipped(self) -> "Separation":
        """Separation of shape a from shape b."""
        return Separation(self.b, self.a, -self.normal, self.distance, self.weight)

    def to_parent(self, X: Transform) -> "Separation":
        """Rows in the frame in which theirs has pose X."""
        a, b = (jax.vmap(X.point_to_parent)(x) for x in (self.a, self.b))
        return Separation(a, b, dot(self.normal, X.rotation.T), self.distance, self.weight)
