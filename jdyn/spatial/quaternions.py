"""Rotations by unit quaternions and rotation vectors, on scalars.

Quaternions are tuples (w, x, y, z), vectors tuples of 3, as in `jdyn.spatial.components`. `q` and `s q` represent the
same rotation, so an integrator may drift off the unit sphere. Every map is smooth wherever the mathematical function
is, and no derivative of any order becomes NaN at zero rotation.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.spatial.components import Number, Vector, add, cross, dot, numbers, scale

# Below this squared angle the series is exact up to rounding: the first omitted term is less than 1e-16 of the sum.
# Above it, the closed forms lose less than one digit to cancellation.
_SERIES_BELOW = 4.0
_TERMS = 14


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def stumpff(x: Float[Array, ""], count: int) -> Float[Array, " count"]:
    """Stumpff's functions c_k(x) = Σ_j (−x)ʲ / (k + 2j)! of a squared angle x = a²: cos a, sin a / a, (1 − cos a) / a²,
    (a − sin a) / a³, and so on (Stiefel and Scheifele 1971)."""
    series = np.array([[(-1) ** j / math.factorial(k + 2 * j) for k in range(count)] for j in range(_TERMS)])
    near = x < _SERIES_BELOW
    x_near, x_far = jnp.where(near, x, 0), jnp.where(near, _SERIES_BELOW, x)
    c = jnp.asarray(series[-1], x.dtype)
    for term in series[-2::-1]:
        c = c * x_near + jnp.asarray(term, x.dtype)
    angle = jnp.sqrt(x_far)
    pairs = [jnp.stack([jnp.cos(angle), jnp.sin(angle) / angle])]
    for k in range(0, count - 2, 2):
        first = jnp.asarray([1 / math.factorial(k), 1 / math.factorial(k + 1)], x.dtype)
        pairs.append((first - pairs[-1]) / x_far)
    return jnp.where(near, c, jnp.concatenate(pairs)[:count])


@stumpff.defjvp
def _stumpff_jvp(count, primals, tangents):
    # Derivatives of any order are Stumpff functions again, so the case distinction is never differentiated.
    (x,), (dx,) = primals, tangents
    c = stumpff(x, count + 2)
    k = jnp.arange(count, dtype=x.dtype)
    return c[:count], 0.5 * (k * c[2:] - c[1:-1]) * dx


def _of_half(phi: Vector) -> Vector:
    """The first four Stumpff functions at half the angle of φ; shared by all maps, so that they are computed once."""
    return numbers(stumpff(dot(phi, phi) / 4, 4))


def _parts(q: Vector) -> tuple[Number, Vector]:
    """Scalar and vector part."""
    return q[0], q[1:]


def multiply(a: Vector, b: Vector) -> Vector:
    """Hamilton product: the rotation `b` followed, in the fixed frame, by `a`."""
    (w, u), (s, t) = _parts(a), _parts(b)
    return w * s - dot(u, t), *add(add(scale(w, t), scale(s, u)), cross(u, t))


def conjugate(q: Vector) -> Vector:
    """The inverse rotation."""
    w, u = _parts(q)
    return w, *scale(-1.0, u)


def rotate(q: Vector, y: Vector) -> Vector:
    """R y, with the rotation matrix R of `q`."""
    w, u = _parts(q)
    turned = cross(u, y)
    return add(y, scale(2 / dot(q, q), add(scale(w, turned), cross(u, turned))))


def rotate_back(q: Vector, y: Vector) -> Vector:
    """Rᵀ y."""
    return rotate(conjugate(q), y)


def exponential(phi: Vector) -> Vector:
    """Unit quaternion of the rotation vector `phi` [rad]."""
    cos, sinc, *_ = _of_half(phi)
    return cos, *scale(sinc / 2, phi)


@jax.custom_jvp
def logarithm(q: Vector) -> Vector:
    """Rotation vector [rad], of length at most π, of the quaternion `q`."""
    w, u = _parts(scale(jnp.where(q[0] < 0, -1.0, 1.0).astype(q[0].dtype), q))
    x = dot(u, u)
    # The tangent of so small a half angle equals the angle; the rule below gives the derivatives.
    limits = jnp.finfo(jnp.result_type(x, float))
    near = x < limits.tiny / limits.eps
    norm = jnp.sqrt(jnp.where(near, 1.0, x))
    return scale(jnp.where(near, 2 / w, 2 * jnp.arctan2(norm, w) / norm), u)


@logarithm.defjvp
def _logarithm_jvp(primals, tangents):
    # q̇ = q ω / 2 with ω in the rotated frame, so φ̇ is the inverse of the right Jacobian times ω.
    (q,), (dq,) = primals, tangents
    phi = logarithm(q)
    _, turn = _parts(multiply(conjugate(q), dq))
    return phi, left_jacobian_inverse(scale(-1.0, phi), scale(2 / dot(q, q), turn))


def left_jacobian(phi: Vector, y: Vector) -> Vector:
    """J y, with J of d(exp φ) exp(−φ) = [J dφ]ₓ; the translation of exp [φ; ρ] is J ρ (Barfoot 2017, eq. 7.37)."""
    c = _of_half(phi)
    turned = cross(phi, y)
    return add(y, add(scale(c[1] ** 2 / 2, turned), scale((c[2] + c[0] * c[3]) / 4, cross(phi, turned))))


def left_jacobian_inverse(phi: Vector, y: Vector) -> Vector:
    """J⁻¹ y; the transpose of J⁻¹ is the inverse of the right Jacobian (Barfoot 2017, eq. 7.40)."""
    c = _of_half(phi)
    turned = cross(phi, y)
    return add(y, add(scale(-0.5, turned), scale((c[2] - c[3]) / (4 * c[1]), cross(phi, turned))))
