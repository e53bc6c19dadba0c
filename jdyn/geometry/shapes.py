"""Shapes in frames of their own; every number is a leaf."""

import itertools
from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure
from jdyn.geometry.directions import unit

_CORNERS = np.array(list(itertools.product((-1, 1), repeat=3)))


class HalfSpace(Structure):
    """z ≤ 0."""

    def signed_distance(self, point: Float[Array, "3"]) -> Float[Array, ""]:
        """Of a point from the plane [m]."""
        return point[2]


class Convex(Structure):
    """Base of bounded convex shapes: all points within a radius of a core, which is convex and has no smaller radius.

    The radius is zero for those whose core is the shape.
    """

    @property
    def rounding(self) -> Scalar:
        """Radius about the core [m]."""
        return jnp.zeros((), jax.tree.leaves(self)[0].dtype)

    @abstractmethod
    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of the core that is farthest in a direction [m]; one of them where there are several."""

    def support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of the shape that is farthest in a direction [m]; one of them where there are several.

        Args:
            direction: In the frame of the shape, of any length.
        """
        return self.core_support(direction) + self.rounding * unit(direction)


class Sphere(Convex):
    """A ball about the origin.

    Attributes:
        radius: [m].
    """

    radius: Scalar

    @property
    def rounding(self) -> Scalar:
        return self.radius

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.zeros_like(direction)


class Capsule(Convex):
    """All points within a radius of a segment of the z axis, whose middle is the origin.

    Attributes:
        radius: [m].
        length: Of the segment [m].
    """

    radius: Scalar
    length: Scalar

    @property
    def ends(self) -> Float[Array, "2 3"]:
        """Of the segment."""
        half = self.length / 2
        return jnp.zeros((2, 3), half.dtype).at[:, 2].set(jnp.stack([-half, half]))

    @property
    def rounding(self) -> Scalar:
        return self.radius

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return _along_z(direction, self.length)


class Box(Convex):
    """A box about the origin, along the axes.

    Attributes:
        sides: Lengths of the sides [m].
    """

    sides: Float[Array, "3"]

    @property
    def corners(self) -> Float[Array, "8 3"]:
        return jnp.asarray(_CORNERS, self.sides.dtype) * self.sides[None] / 2

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.where(direction < 0, -self.sides, self.sides) / 2


class Cylinder(Convex):
    """A solid cylinder about the z axis, whose middle is the origin.

    Attributes:
        radius: [m].
        length: Along the axis [m].
    """

    radius: Scalar
    length: Scalar

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        rim = self.radius * unit(direction[:2])
        return _along_z(direction, self.length).at[:2].set(rim)


class Ellipsoid(Convex):
    """A solid ellipsoid about the origin, along the axes.

    Attributes:
        radii: Half of its length along each axis [m].
    """

    radii: Float[Array, "3"]

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return self.radii * unit(self.radii * direction)


def _along_z(direction: Float[Array, "3"], length: Scalar) -> Float[Array, "3"]:
    """The end of a segment of the z axis that is farther in a direction."""
    half = length / 2
    return jnp.zeros_like(direction).at[2].set(jnp.where(direction[2] < 0, -half, half))
