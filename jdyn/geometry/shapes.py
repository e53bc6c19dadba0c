"""Shapes in frames of their own; every number is a leaf."""

import itertools
from abc import abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit, unit
from jdyn.geometry.ellipsoids import foot

_CORNERS = np.array(list(itertools.product((-1, 1), repeat=3)))


class Solid(Structure):
    """Base of shapes that know the nearest point of their surface in closed form.

    Those that are bounded also have `core_nearest`, the point of the core that is nearest to a point outside.
    """

    @abstractmethod
    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """The point of the surface that is nearest to a point outside or inside, and the unit normal there, outwards.

        Where several are nearest, as from the centre of a sphere, it is one of them.

        Args:
            point: In the frame of the shape [m].
        """

    def signed_distance(self, point: Float[Array, "3"]) -> Float[Array, ""]:
        """Distance of a point from the surface [m]; below zero inside.

        >>> from jdyn.geometry import Box
        >>> print(Box(jnp.array([2.0, 2.0, 4.0])).signed_distance(jnp.array([0.0, 0.25, 0.0])))
        -0.75

        It has derivatives with respect to the point and the sizes, also on the surface; where several points of the
        surface are nearest they are those of one of them.

        Args:
            point: In the frame of the shape [m].
        """
        foot, normal = self.surface(point)
        return dot(normal, point - foot)


class HalfSpace(Solid):
    """z ≤ 0."""

    units: ClassVar = {}

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        return point.at[2].set(0), jnp.array([0, 0, 1], point.dtype)


class Plane(HalfSpace):
    """The half-space z ≤ 0, of whose surface rays see a rectangle about the origin.

    Attributes:
        sides: Lengths along x and y [m], 0 where it has no end.
    """

    units: ClassVar = {"sides": "m"}

    sides: Float[Array, "2"]


class Convex(Structure):
    """Base of bounded convex shapes: all points within a radius of a core, which is convex and has no smaller radius.

    The radius is zero for those whose core is the shape.
    """

    @property
    def rounding(self) -> Scalar:
        """Radius about the core [m]."""
        return jnp.zeros((), jax.tree.leaves(self)[0].dtype)

    @property
    @abstractmethod
    def thickness(self) -> Scalar:
        """Two parallel planes with the shape between them are no nearer to each other [m]."""

    @abstractmethod
    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of the core that is farthest in a direction [m]; one of them where there are several."""

    def support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of the shape that is farthest in a direction [m]; one of them where there are several.

        Args:
            direction: In the frame of the shape, of any length.
        """
        return self.core_support(direction) + self.rounding * unit(direction)

    def reach(self, direction: Float[Array, "3"]) -> Scalar:
        """Support of the shape in a direction [m], a unit vector in its frame."""
        return dot(self.core_support(direction), direction) + self.rounding


class Sphere(Convex, Solid):
    """A ball about the origin.

    Attributes:
        radius: [m].
    """

    units: ClassVar = {"radius": "m"}

    radius: Scalar

    @property
    def rounding(self) -> Scalar:
        return self.radius

    @property
    def thickness(self) -> Scalar:
        return 2 * self.radius

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.zeros_like(direction)

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.zeros_like(point)

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        normal = _unit_or(point, 2)
        return self.radius * normal, normal


class Capsule(Convex, Solid):
    """All points within a radius of a segment of the z axis, whose middle is the origin.

    Attributes:
        radius: [m].
        length: Of the segment [m].
    """

    units: ClassVar = {"radius": "m", "length": "m"}

    radius: Scalar
    length: Scalar

    @property
    def ends(self) -> Float[Array, "2 3"]:
        """Ends of the segment."""
        half = self.length / 2
        return jnp.zeros((2, 3), half.dtype).at[:, 2].set(jnp.stack([-half, half]))

    @property
    def rounding(self) -> Scalar:
        return self.radius

    @property
    def thickness(self) -> Scalar:
        return 2 * self.radius

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return _along_z(direction, self.length)

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        half = self.length / 2
        return jnp.zeros_like(point).at[2].set(jnp.clip(point[2], -half, half))

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        middle = self.core_nearest(point)
        normal = _unit_or(point - middle, 0)
        return middle + self.radius * normal, normal


class Box(Convex, Solid):
    """A box about the origin, along the axes.

    Attributes:
        sides: Lengths of the sides [m].
    """

    units: ClassVar = {"sides": "m"}

    sides: Float[Array, "3"]

    @property
    def corners(self) -> Float[Array, "8 3"]:
        return jnp.asarray(_CORNERS, self.sides.dtype) * self.sides[None] / 2

    @property
    def thickness(self) -> Scalar:
        return jnp.min(self.sides)

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.where(direction < 0, -self.sides, self.sides) / 2

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        return jnp.clip(point, -self.sides / 2, self.sides / 2)

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        beyond = jnp.abs(point) - self.sides / 2
        near = jnp.arange(3) == jnp.argmax(beyond)
        inside = jnp.max(beyond) <= 0
        sign = jnp.where(point < 0, -1, 1)
        normal = jnp.where(inside, jnp.where(near, 1, 0), unit(jnp.maximum(beyond, 0))) * sign
        onto = jnp.where(near & inside, sign * self.sides / 2, point)
        return jnp.where(inside, onto, self.core_nearest(point)), normal


class Cylinder(Convex, Solid):
    """A solid cylinder about the z axis, whose middle is the origin.

    Attributes:
        radius: [m].
        length: Along the axis [m].
    """

    units: ClassVar = {"radius": "m", "length": "m"}

    radius: Scalar
    length: Scalar

    @property
    def thickness(self) -> Scalar:
        return jnp.minimum(2 * self.radius, self.length)

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        rim = self.radius * unit(direction[:2])
        return _along_z(direction, self.length).at[:2].set(rim)

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        half = self.length / 2
        distance, outwards = length_and_unit(point[:2])
        across = jnp.where(distance > self.radius, self.radius * outwards, point[:2])
        return jnp.append(across, jnp.clip(point[2], -half, half))

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        # As for a rectangle in the half plane through the axis and the point.
        distance, _ = length_and_unit(point[:2])
        outwards = _unit_or(point[:2], 0)
        across, along = Box(2 * jnp.stack([self.radius, self.length / 2, self.radius])), jnp.stack([distance, point[2]])
        foot, normal = across.surface(jnp.append(along, 0))
        return jnp.append(foot[0] * outwards, foot[1]), jnp.append(normal[0] * outwards, normal[1])


class Ellipsoid(Convex, Solid):
    """A solid ellipsoid about the origin, along the axes.

    Attributes:
        radii: Half of its length along each axis [m].
    """

    units: ClassVar = {"radii": "m"}

    radii: Float[Array, "3"]

    @property
    def thickness(self) -> Scalar:
        return 2 * jnp.min(self.radii)

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return self.radii * unit(self.radii * direction)

    def core_nearest(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        return foot(self.radii, point)

    def surface(self, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        near = foot(self.radii, point)
        return near, unit(near / self.radii**2)


def _along_z(direction: Float[Array, "3"], length: Scalar) -> Float[Array, "3"]:
    """The end of a segment of the z axis that is farther in a direction."""
    half = length / 2
    return jnp.zeros_like(direction).at[2].set(jnp.where(direction[2] < 0, -half, half))


def _unit_or(vector: Float[Array, " n"], axis: int) -> Float[Array, " n"]:
    """A vector over its length, or an axis if it is zero."""
    return jnp.where(jnp.any(vector != 0), unit(vector), (jnp.arange(len(vector)) == axis).astype(vector.dtype))
