"""Solid ellipsoids with the inertia of bodies: what a mass and its distribution look like."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

from jdyn.model import Model
from jdyn.spatial import symmetric


class Ellipsoids(NamedTuple):
    """Solid ellipsoids of uniform density, one a body, in the bodies' frames.

    Attributes:
        centers: Centres of mass [m].
        axes: Orientations of the principal axes, quaternions wxyz.
        radii: Lengths of the semi-axes [m]; zero for bodies without mass, and along axes in which no ellipsoid has such
            an inertia because it violates the triangle inequality.
    """

    centers: Float[np.ndarray, "nb 3"]
    axes: Float[np.ndarray, "nb 4"]
    radii: Float[np.ndarray, "nb 3"]


def inertia_ellipsoids(model: Model) -> Ellipsoids:
    """The solid ellipsoid of uniform density with the mass, centre of mass and inertia of each body.

    The second moments of the mass about its centre are Σ = ½ tr(I) 1 - I = ∫ r rᵀ dm. Those of an ellipsoid with the
    semi-axes a are m a² / 5.

    Args:
        model: The mechanism.
    """
    inertias = model.inertias
    mass, first = np.asarray(inertias.mass, float), np.asarray(inertias.first_moment, float)
    divisor = np.where(mass > 0, mass, 1)[:, None]
    center = first / divisor
    # About the centre of mass: I + m c×c×, whose second term is m (c cᵀ - cᵀc 1).
    rotational = np.asarray(jax.vmap(symmetric)(inertias.rotational), float)
    about_center = rotational + mass[:, None, None] * (
        center[:, :, None] * center[:, None] - np.sum(center**2, axis=1)[:, None, None] * np.eye(3)
    )
    moments = 0.5 * np.trace(about_center, axis1=1, axis2=2)[:, None, None] * np.eye(3) - about_center
    squares, axes = np.linalg.eigh(moments)
    # Eigenvectors may be a reflection.
    axes[:, :, 2] *= np.linalg.det(axes)[:, None]
    radii = np.where(mass[:, None] > 0, np.sqrt(5 * np.maximum(squares, 0) / divisor), 0)
    return Ellipsoids(center, np.roll(Rotation.from_matrix(axes).as_quat(), 1, axis=1), radii)
