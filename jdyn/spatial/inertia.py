"""Spatial inertia of a rigid body: ten numbers."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array.small_matrices import cholesky
from jdyn.array.structure import Structure
from jdyn.spatial.rotation import skew
from jdyn.spatial.transform import Transform
from jdyn.spatial.vector import Force6, Motion6, cross_force


def symmetric(x: Float[Array, "6"]) -> Float[Array, "3 3"]:
    """The symmetric matrix with entries `[xx, xy, yy, xz, yz, zz]`."""
    return x[jnp.array([0, 1, 3, 1, 2, 4, 3, 4, 5])].reshape(3, 3)


def unique(S: Float[Array, "3 3"]) -> Float[Array, "6"]:
    """The entries `[xx, xy, yy, xz, yz, zz]` of a symmetric matrix."""
    return jnp.stack([S[0, 0], S[0, 1], S[1, 1], S[0, 2], S[1, 2], S[2, 2]])


class SpatialInertia(Structure):
    """Inertia about the origin of its frame; inertias in the same frame add field by field.

    >>> inertia = jdyn.SpatialInertia.from_com(2.0, jnp.array([0.0, 0.0, 0.5]), 0.1 * jnp.eye(3))
    >>> print(inertia.first_moment, inertia.rotational.round(3))
    [0. 0. 1.] [0.6 0.  0.6 0.  0.  0.1]

    Attributes:
        mass: m [kg].
        first_moment: h = m c, with c the centre of mass [kg m].
        rotational: Rotational inertia about the frame's origin, `[xx, xy, yy, xz, yz, zz]` [kg m²].

    Rigid-body dynamics is linear in these ten parameters, which are used in this order.
    """

    mass: Float[Array, "*batch"]
    first_moment: Float[Array, "*batch 3"]
    rotational: Float[Array, "*batch 6"]

    @staticmethod
    def from_com(mass: Float[Array, ""], com: Float[Array, "3"], inertia: Float[Array, "3 3"]) -> "SpatialInertia":
        """From the mass [kg], centre of mass [m] and rotational inertia about that centre [kg m²]."""
        c = skew(com)
        return SpatialInertia(mass, mass * com, unique(inertia + mass * (c @ c.T)))

    def matrix(self) -> Float[Array, "6 6"]:
        """The 6×6 matrix [[Ī, [h]ₓ], [[h]ₓᵀ, m 1]] (Featherstone 2008, eq. 2.63)."""
        h = skew(self.first_moment)
        return jnp.block([[symmetric(self.rotational), h], [h.T, self.mass * np.eye(3, dtype=h.dtype)]])

    def square_root(self) -> Float[Array, "6 6"]:
        """A matrix B with BᵀB = I; zero mass and a singular inertia about the centre of mass are allowed."""
        massive = self.mass > 0
        c = skew(self.first_moment / jnp.where(massive, self.mass, 1))
        central = cholesky(symmetric(self.rotational) - self.mass * (c @ c.T), semidefinite=True)
        root = jnp.sqrt(jnp.where(massive, self.mass, 0))
        return jnp.block([[central.T, jnp.zeros_like(c)], [-root * c, root * np.eye(3, dtype=c.dtype)]])

    def momentum(self, v: Motion6) -> Force6:
        """I v: spatial momentum of a body that moves with velocity `v`; also the force for acceleration `v`."""
        w, u, h = v[:3], v[3:], self.first_moment
        return jnp.concatenate([symmetric(self.rotational) @ w + jnp.cross(h, u), self.mass * u - jnp.cross(h, w)])

    def force(self, v: Motion6, a: Motion6) -> Force6:
        """I a + v ×* I v: force on a body that moves with velocity `v` and acceleration `a`."""
        return self.momentum(a) + cross_force(v, self.momentum(v))

    def to_parent(self, X: Transform) -> "SpatialInertia":
        """The same inertia in the parent frame of `X`, about the parent's origin."""
        R, p, h = X.rotation, X.translation, X.rotation @ self.first_moment
        P, H = skew(p), skew(h)
        shift = P @ H.T + H @ P.T + self.mass * (P @ P.T)
        return SpatialInertia(self.mass, h + self.mass * p, unique(R @ symmetric(self.rotational) @ R.T + shift))

    def rate(self, v: Motion6) -> "SpatialInertia":
        """Rate of the inertia in its frame, relative to which the body moves with velocity `v`: v ×* I − I v ×."""
        h, H, V = self.first_moment, skew(self.first_moment), skew(v[3:])
        turning, shift = skew(v[:3]) @ symmetric(self.rotational), V @ H.T
        rotational = unique(turning + turning.T + shift + shift.T)
        return SpatialInertia(jnp.zeros_like(self.mass), jnp.cross(v[:3], h) + self.mass * v[3:], rotational)

    def __add__(self, other: "SpatialInertia") -> "SpatialInertia":
        return SpatialInertia(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.rotational + other.rotational,
        )
