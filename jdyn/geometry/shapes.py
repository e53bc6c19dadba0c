"""Shapes in frames of their own; every number is a leaf."""

import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure

_CORNERS = np.array(list(itertools.product((-1, 1), repeat=3)))


class HalfSpace(Structure):
    """z ≤ 0."""


class Sphere(Structure):
    """A ball about the origin.

    Attributes:
        radius: [m].
    """

    radius: Scalar


class Capsule(Structure):
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


class Box(Structure):
    """A box about the origin, along the axes.

    Attributes:
        sides: Lengths of the sides [m].
    """

    sides: Float[Array, "3"]

    @property
    def corners(self) -> Float[Array, "8 3"]:
        return jnp.asarray(_CORNERS, self.sides.dtype) * self.sides[None] / 2
