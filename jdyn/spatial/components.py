"""Spatial algebra on scalars.

Every entry of a vector or a matrix is a separate array. Batches then need only elementwise operations, which XLA
vectorises over the lanes: several times as fast as products of many small matrices.

Vectors are tuples of 3; motions and forces tuples of 6, angular part first; 3×3 matrices tuples of 9, by rows;
symmetric matrices tuples of their lower triangle, by rows: 6 numbers, or 21. An entry that is known to be zero, like
most entries of a joint's axis, may be the Python number 0 and then costs nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

# An array, or the Python number 0.
Number = Any
Vector = tuple[Number, ...]

_AXES = range(3)


def _zero(x: Number) -> bool:
    return isinstance(x, int) and x == 0


def numbers(x: Array) -> Vector:
    """The entries of a vector."""
    # The transpose of a split is a concatenation; that of indexing every entry would be a sum of padded arrays.
    return tuple(entry[0] for entry in jax.lax.split(x, (1,) * len(x)))


def times(x: Number, y: Number) -> Number:
    """x y."""
    return 0 if _zero(x) or _zero(y) else x * y


def plus(x: Number, y: Number) -> Number:
    """x + y."""
    if _zero(x):
        return y
    return x if _zero(y) else x + y


def minus(x: Number, y: Number) -> Number:
    """x - y."""
    if _zero(y):
        return x
    return -y if _zero(x) else x - y


def add(x: Vector, y: Vector) -> Vector:
    return tuple(map(plus, x, y))


def subtract(x: Vector, y: Vector) -> Vector:
    return tuple(map(minus, x, y))


def scale(factor: Number, x: Vector) -> Vector:
    return tuple(times(factor, y) for y in x)


def dot(x: Sequence[Number], y: Sequence[Number]) -> Number:
    """Σ x_i y_i."""
    total: Number = 0
    for product in map(times, x, y):
        total = plus(total, product)
    return total


def cross(x: Vector, y: Vector) -> Vector:
    """x × y."""
    return tuple(minus(times(x[i], y[j]), times(x[j], y[i])) for i, j in ((1, 2), (2, 0), (0, 1)))


def product(A: Vector, B: Vector) -> Vector:
    """A B of 3×3 matrices."""
    return tuple(dot(A[3 * i : 3 * i + 3], B[j::3]) for i in _AXES for j in _AXES)


def transposed(A: Vector) -> Vector:
    return tuple(A[3 * j + i] for i in _AXES for j in _AXES)


def rotate(R: Vector, x: Vector) -> Vector:
    """R x."""
    return tuple(dot(R[3 * i : 3 * i + 3], x) for i in _AXES)


def rotate_back(R: Vector, x: Vector) -> Vector:
    """Rᵀ x."""
    return tuple(dot(R[i::3], x) for i in _AXES)


def lower(i: int, j: int) -> int:
    """Position of entry (i, j) of a symmetric matrix in its lower triangle."""
    i, j = max(i, j), min(i, j)
    return i * (i + 1) // 2 + j


def symmetric_product(A: Vector, x: Vector) -> Vector:
    """A x for a symmetric A of any size."""
    size = range(len(x))
    return tuple(dot([A[lower(i, j)] for j in size], x) for i in size)


def downdated(A: Vector, x: Vector, y: Vector) -> Vector:
    """A - x yᵀ for a symmetric A, if x yᵀ is symmetric as well."""
    size = range(len(x))
    return tuple(minus(A[lower(i, j)], times(x[i], y[j])) for i in size for j in range(i + 1))


def full(A: Vector) -> Vector:
    """All entries of a symmetric 3×3 matrix."""
    return tuple(A[lower(i, j)] for i in _AXES for j in _AXES)


def triangle_of(A: Vector) -> Vector:
    """The lower triangle of a symmetric 3×3 matrix."""
    return A[0], A[3], A[4], A[6], A[7], A[8]


def rotate_symmetric(R: Vector, A: Vector) -> Vector:
    """R A Rᵀ of a symmetric 3×3 matrix."""
    RA = product(R, full(A))
    return tuple(dot(RA[3 * i : 3 * i + 3], R[3 * j : 3 * j + 3]) for i in _AXES for j in range(i + 1))


def cross_columns(x: Vector, A: Vector) -> Vector:
    """[x]ₓ A: the cross product with every column of a 3×3 matrix."""
    return transposed(sum((cross(x, A[j::3]) for j in _AXES), ()))


def cross_matrix(x: Vector) -> Vector:
    """[x]ₓ."""
    return 0, minus(0, x[2]), x[1], x[2], 0, minus(0, x[0]), minus(0, x[1]), x[0], 0


def cross_motion(v: Vector, m: Vector) -> Vector:
    """v × m of motions."""
    return *cross(v[:3], m[:3]), *add(cross(v[:3], m[3:]), cross(v[3:], m[:3]))


def cross_force(v: Vector, f: Vector) -> Vector:
    """v ×* f of a motion and a force."""
    return *add(cross(v[:3], f[:3]), cross(v[3:], f[3:])), *cross(v[:3], f[3:])


class Inertia(NamedTuple):
    """Inertia of a rigid body, like `jdyn.spatial.SpatialInertia`: mass, first moment, rotational inertia.

    `rotational` has the entries of a lower triangle.
    """

    mass: Number
    first_moment: Vector
    rotational: Vector

    def momentum(self, v: Vector) -> Vector:
        """I v."""
        w, u, h = v[:3], v[3:], self.first_moment
        return (
            *add(symmetric_product(self.rotational, w), cross(h, u)),
            *subtract(scale(self.mass, u), cross(h, w)),
        )

    def force(self, v: Vector, a: Vector) -> Vector:
        """I a + v ×* I v: force on a body that moves with velocity v and acceleration a."""
        return add(self.momentum(a), cross_force(v, self.momentum(v)))

    def to_parent(self, X: "Pose") -> "Inertia":
        """The same inertia in the parent frame of `X`, about the parent's origin."""
        (R, p), m = X, self.mass
        h = rotate(R, self.first_moment)
        # -P H - H P - m P P, with P = [p]ₓ and H = [h]ₓ, where h is still about the body's origin.
        ph, pp = dot(p, h), dot(p, p)
        pairs = [(i, j) for i in _AXES for j in range(i + 1)]
        shift = tuple(
            (2 * ph + m * pp if i == j else 0) - p[i] * h[j] - h[i] * p[j] - m * p[i] * p[j] for i, j in pairs
        )
        return Inertia(m, add(h, scale(m, p)), add(rotate_symmetric(R, self.rotational), shift))

    def added_to(self, I: Vector) -> Vector:
        """I + self for a symmetric 6×6 matrix I."""
        m, (x, y, z), J = self.mass, self.first_moment, self.rotational
        coupling = 0, z, minus(0, y), minus(0, z), 0, x, y, minus(0, x), 0
        rows = (*J, *coupling[:3], m, *coupling[3:6], 0, m, *coupling[6:], 0, 0, m)
        return add(I, rows)


class Pose(NamedTuple):
    """Pose of a child frame in its parent, like `jdyn.spatial.Transform`: rotation R and translation p."""

    R: Vector
    p: Vector

    @staticmethod
    def identity(zero: Number) -> "Pose":
        """The pose of a frame in itself; `zero` gives the shape of each entry."""
        return Pose(tuple(zero + int(i % 4 == 0) for i in range(9)), (zero,) * 3)

    def __matmul__(self, other: "Pose") -> "Pose":
        return Pose(product(self.R, other.R), add(self.p, rotate(self.R, other.p)))

    def motion_to_parent(self, m: Vector) -> Vector:
        w = rotate(self.R, m[:3])
        return *w, *add(rotate(self.R, m[3:]), cross(self.p, w))

    def motion_to_child(self, m: Vector) -> Vector:
        w, u = m[:3], subtract(m[3:], cross(self.p, m[:3]))
        return *rotate_back(self.R, w), *rotate_back(self.R, u)

    def force_to_parent(self, f: Vector) -> Vector:
        linear = rotate(self.R, f[3:])
        return *add(rotate(self.R, f[:3]), cross(self.p, linear)), *linear

    def inertia_to_parent(self, I: Vector) -> Vector:
        """Xᵀ I X for a symmetric 6×6 matrix I = [A H; Hᵀ M].

        A rotation, then a shift by P = [p]ₓ: H' = H + P M and A' = A + P Hᵀ + H' Pᵀ.
        """
        R, p = self
        A, H, M = I[:6], tuple(I[lower(3 + j, i)] for i in _AXES for j in _AXES), (I[9], *I[13:15], *I[18:])
        A, M = rotate_symmetric(R, A), rotate_symmetric(R, M)
        H = product(product(R, H), transposed(R))
        shifted = add(H, cross_columns(p, full(M)))
        turned = add(cross_columns(p, transposed(H)), transposed(cross_columns(p, transposed(shifted))))
        A = add(A, triangle_of(turned))
        H = transposed(shifted)
        return *A, *H[:3], M[0], *H[3:6], *M[1:3], *H[6:], *M[3:]
