"""Solid ellipsoids with the inertia of bodies: what a mass and its distribution look like."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.model.compiled import compiled_once
from jdyn.spatial import matrix_to_quaternion, skew, symmetric


class Ellipsoids(NamedTuple):
    """Solid ellipsoids of uniform density, one a body, in the bodies' frames.

    Attributes:
        centers: Centres of mass [m].
        axes: Orientations of the principal axes, quaternions wxyz.
        radii: Lengths of the semi-axes [m]; zero for bodies without mass, and along axes in which no ellipsoid has such
            an inertia because it violates the triangle inequality.
    """

    centers: Float[Array, "nb 3"]
    axes: Float[Array, "nb 4"]
    radii: Float[Array, "nb 3"]


def inertia_ellipsoids(model: Model) -> Ellipsoids:
    """The solid ellipsoid of uniform density with the mass, centre of mass and inertia of each body.

    The second moments of the mass about its centre are Σ = ½ tr(I) 1 - I = ∫ r rᵀ dm. Those of an ellipsoid with the
    semi-axes a are m a² / 5.

    Args:
        model: The mechanism.
    """
    return _ellipsoids(model.inertias)


@compiled_once
def _ellipsoids(inertias):
    def ellipsoid(inertia):
        mass = jnp.where(inertia.mass > 0, inertia.mass, 1)
        center = inertia.first_moment / mass
        c = skew(center)
        rotational = symmetric(inertia.rotational) + inertia.mass * (c @ c)
        moments = 0.5 * jnp.trace(rotational) * jnp.eye(3, dtype=rotational.dtype) - rotational
        squares, axes = jnp.linalg.eigh(moments)
        # Eigenvectors may be a reflection.
        axes = axes.at[:, 2].multiply(jnp.linalg.det(axes))
        radii = jnp.where(inertia.mass > 0, jnp.sqrt(5 * jnp.maximum(squares, 0) / mass), 0)
        return Ellipsoids(center, matrix_to_quaternion(axes), radii)

    return jax.vmap(ellipsoid)(inertias)
