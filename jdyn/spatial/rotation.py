"""Rotations: matrices, unit quaternions (wxyz) and rotation vectors.

Every map is smooth where the mathematics is: coefficients such as sin(x)/x switch to their power series near
zero, and both branches of each `where` stay finite, so that no derivative of any order becomes NaN at rest.
Quaternions are read homogeneously: `q` and `s q` stand for one rotation, which is what an integrator's drift
off the unit sphere needs.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Below this squared angle the series with its seven terms is exact to rounding (the first term left out is
# under 1e-16 of the sum); above it the closed forms lose less than two digits' worth of ulps to cancellation.
_SERIES_BELOW = 0.25

_SINC = (1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800)
_ONE_MINUS_COS = (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600, 1 / 87178291200)
_ANGLE_MINUS_SIN = (1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800, 1 / 1307674368000)
_HALF_COTANGENT = (
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
)


def _even(x, series, closed):
    """An even function of the angle, given its square `x`: the series near zero, `closed(angle)` elsewhere."""
    near = x < _SERIES_BELOW
    angle = jnp.sqrt(jnp.where(near, 1.0, x))
    return jnp.where(near, jnp.polyval(jnp.asarray(series[::-1], x.dtype), x), closed(angle))


def sinc(x):
    """sin(a)/a for a² = `x`."""
    return _even(x, _SINC, lambda a: jnp.sin(a) / a)


def _one_minus_cos(x):
    return _even(x, _ONE_MINUS_COS, lambda a: (1 - jnp.cos(a)) / a**2)


def _angle_minus_sin(x):
    return _even(x, _ANGLE_MINUS_SIN, lambda a: (a - jnp.sin(a)) / a**3)


def _half_cotangent(x):
    return _even(x, _HALF_COTANGENT, lambda a: (1 - 0.5 * a / jnp.tan(0.5 * a)) / a**2)


def skew(x: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The matrix [x]ₓ with [x]ₓ y = x × y."""
    zero = jnp.zeros_like(x[0])
    return jnp.stack([zero, -x[2], x[1], x[2], zero, -x[0], -x[1], x[0], zero]).reshape(3, 3)


def rotation_about(axis: Float[Array, "3"], angle: Float[Array, ""]) -> Float[Array, "3 3"]:
    """Rotation matrix by `angle` [rad] about the unit vector `axis` (Rodrigues' formula)."""
    half = jnp.sin(0.5 * angle)
    return (
        jnp.cos(angle) * jnp.eye(3, dtype=axis.dtype)
        + jnp.sin(angle) * skew(axis)
        + 2 * half**2 * jnp.outer(axis, axis)
    )


def quaternion_multiply(a: Float[Array, "4"], b: Float[Array, "4"]) -> Float[Array, "4"]:
    """Hamilton product: the rotation `b` followed, in the fixed frame, by `a`."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return jnp.concatenate([w[None], a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])])


def quaternion_conjugate(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The inverse rotation (of a unit quaternion)."""
    return jnp.concatenate([q[:1], -q[1:]])


def quaternion_normalize(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The unit quaternion along `q`."""
    return q / jnp.sqrt(q @ q)


# Entries of half of R - 1, by rows.
_HALF = (
    "-yy-zz", "+xy-wz", "+xz+wy",
    "+xy+wz", "-xx-zz", "+yz-wx",
    "+xz-wy", "+yz+wx", "-xx-yy",
)  # fmt: skip


def _by_products(entry: str) -> np.ndarray:
    """How often an entry has each product of two components."""
    table = np.zeros((4, 4))
    for sign, *pair in entry[:3], entry[3:]:
        table[*("wxyz".index(name) for name in pair)] = {"+": 1, "-": -1}[sign]
    return table.ravel()


_HALF_BY_PRODUCTS = np.stack([_by_products(entry) for entry in _HALF])


def quaternion_to_matrix(q: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """Rotation matrix of `q`, which need not be a unit quaternion."""
    # One product with a table takes a third of the time to compile that nine entries would.
    half = jnp.matmul(jnp.asarray(_HALF_BY_PRODUCTS, q.dtype), jnp.outer(q, q).ravel(), precision="highest")
    return jnp.eye(3, dtype=q.dtype) + 2 / (q @ q) * half.reshape(3, 3)


def matrix_to_quaternion(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit quaternion of a rotation matrix: the longest row of 4 q qᵀ, which is smooth wherever it is the longest."""
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
    return row / jnp.sqrt(row @ row)


def quaternion_exp(phi: Float[Array, "3"]) -> Float[Array, "4"]:
    """Unit quaternion of the rotation vector `phi` [rad]."""
    x = 0.25 * (phi @ phi)
    cos_half = 1 - x * _one_minus_cos(x)
    return jnp.concatenate([cos_half[None], 0.5 * sinc(x) * phi])


def quaternion_log(q: Float[Array, "4"]) -> Float[Array, "3"]:
    """Rotation vector [rad], of length at most π, of the quaternion `q`."""
    q = jnp.where(q[0] < 0, -q, q)
    w, u = q[0], q[1:]
    x = u @ u
    # atan(t)/t by its series for t = |u|/w below 1e-2 (terms to t⁸), by atan2 elsewhere.
    near = x < 1e-4 * w * w
    w_near = jnp.where(near, w, 1.0)
    t2 = jnp.where(near, x, 0.0) / w_near**2
    series = (1 - t2 / 3 + t2**2 / 5 - t2**3 / 7 + t2**4 / 9) / w_near
    norm = jnp.sqrt(jnp.where(near, 1.0, x))
    return 2 * jnp.where(near, series, jnp.arctan2(norm, w) / norm) * u


def left_jacobian(phi: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    """J y, with J of d(exp φ) exp(−φ) = [J dφ]ₓ; the translation of exp [φ; ρ] is J ρ (Barfoot 2017, eq. 7.37)."""
    x, turned = phi @ phi, jnp.cross(phi, y)
    return y + _one_minus_cos(x) * turned + _angle_minus_sin(x) * jnp.cross(phi, turned)


def left_jacobian_inverse(phi: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    """J⁻¹ y; the transpose of J⁻¹ is the inverse of the right Jacobian (Barfoot 2017, eq. 7.40)."""
    x, turned = phi @ phi, jnp.cross(phi, y)
    return y - 0.5 * turned + _half_cotangent(x) * jnp.cross(phi, turned)
