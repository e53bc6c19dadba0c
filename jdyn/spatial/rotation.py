"""Rotations: matrices, unit quaternions (wxyz) and rotation vectors, as arrays.

Most functions wrap `jdyn.spatial.quaternions`; the properties stated there hold here, too.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array.dot import short_dot
from jdyn.execution.at_once import at_once
from jdyn.spatial import quaternions
from jdyn.spatial.components import numbers


def skew(x: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The matrix [x]ₓ with [x]ₓ y = x × y."""
    zero = jnp.zeros_like(x[0])
    return jnp.stack([zero, -x[2], x[1], x[2], zero, -x[0], -x[1], x[0], zero]).reshape(3, 3)


def rotation_about(axis: Float[Array, "3"], angle: Float[Array, ""]) -> Float[Array, "3 3"]:
    """Rotation matrix by `angle` [rad] about the unit vector `axis` (Rodrigues' formula)."""
    # Else XLA computes them for every entry.
    cosine, sine, half = at_once((jnp.cos(angle), jnp.sin(angle), jnp.sin(0.5 * angle)))
    return cosine * np.eye(3, dtype=axis.dtype) + sine * skew(axis) + 2 * half**2 * jnp.outer(axis, axis)


def quaternion_multiply(a: Float[Array, "4"], b: Float[Array, "4"]) -> Float[Array, "4"]:
    """Hamilton product: the rotation `b` followed, in the fixed frame, by `a`."""
    return jnp.stack(quaternions.multiply(numbers(a), numbers(b)))


def quaternion_conjugate(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The inverse rotation (of a unit quaternion)."""
    return jnp.stack(quaternions.conjugate(numbers(q)))


def quaternion_normalize(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The unit quaternion along `q`."""
    return q / jnp.sqrt(short_dot(q, q))


# Entries of half of R - 1, by rows.
_HALF = (
    "-yy-zz", "+xy-wz", "+xz+wy",
    "+xy+wz", "-xx-zz", "+yz-wx",
    "+xz-wy", "+yz+wx", "-xx-yy",
)  # fmt: skip


def _by_products(entry: str) -> np.ndarray:
    """Coefficients of all products of two components in an entry."""
    table = np.zeros((4, 4))
    for sign, *pair in entry[:3], entry[3:]:
        table[*("wxyz".index(name) for name in pair)] = {"+": 1, "-": -1}[sign]
    return table.ravel()


_HALF_BY_PRODUCTS = np.stack([_by_products(entry) for entry in _HALF])


def quaternion_to_matrix(q: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """Rotation matrix of `q`, which need not be a unit quaternion."""
    # One product with a table compiles in a third of the time that nine entries take.
    half = jnp.matmul(jnp.asarray(_HALF_BY_PRODUCTS, q.dtype), jnp.outer(q, q).ravel(), precision="highest")
    return 2 / short_dot(q, q) * half.reshape(3, 3) + np.eye(3, dtype=q.dtype)


def matrix_to_quaternion(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit quaternion of a rotation matrix: the longest row of 4 q qᵀ, scaled. Smooth while the same row is longest."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    outer = jnp.stack(
        [
            1 + xx + yy + zz, zy - yz, xz - zx, yx - xy,
            zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx,
            xz - zx, xy + yx, 1 - xx + yy - zz, yz + zy,
            yx - xy, xz + zx, yz + zy, 1 - xx - yy + zz,
        ]
    ).reshape(4, 4)  # fmt: skip
    row = outer[jnp.argmax(jnp.diagonal(outer))]
    return row / jnp.sqrt(short_dot(row, row))


def quaternion_exp(phi: Float[Array, "3"]) -> Float[Array, "4"]:
    """Unit quaternion of the rotation vector `phi` [rad]."""
    return jnp.stack(quaternions.exponential(numbers(phi)))


def quaternion_log(q: Float[Array, "4"]) -> Float[Array, "3"]:
    """Rotation vector [rad], of length at most π, of the quaternion `q`."""
    return jnp.stack(quaternions.logarithm(numbers(q)))


def left_jacobian(phi: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    """J y, with J of d(exp φ) exp(−φ) = [J dφ]ₓ; the translation of exp [φ; ρ] is J ρ (Barfoot 2017, eq. 7.37)."""
    return jnp.stack(quaternions.left_jacobian(numbers(phi), numbers(y)))


def left_jacobian_inverse(phi: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    """J⁻¹ y; the transpose of J⁻¹ is the inverse of the right Jacobian (Barfoot 2017, eq. 7.40)."""
    return jnp.stack(quaternions.left_jacobian_inverse(numbers(phi), numbers(y)))
