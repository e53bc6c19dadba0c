"""Joint kinds and the meaning of their coordinates.

A joint moves the frame of its child body relative to the joint frame, which is fixed in the parent. Each kind defines
the pose of the child (`transform`), the velocities it allows (`subspace`, in the child frame), and steps and
differences in its configuration space (`integrate`, `difference`). An instance holds the geometry of one joint; a
model stacks all joints of a kind in one instance and maps over it.
"""

import abc
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from jdyn.array import Structure
from jdyn.spatial import (
    Motion6,
    Transform,
    cross_motion,
    quaternion_normalize,
    quaternion_to_matrix,
    rotation_about,
)
from jdyn.spatial.components import Vector, add, dot, numbers, scale, subtract, times
from jdyn.spatial.quaternions import (
    conjugate,
    exponential,
    left_jacobian,
    left_jacobian_inverse,
    logarithm,
    multiply,
    rotate,
    rotate_back,
)

Q = Float[Array, " nq"]
V = Float[Array, " nv"]


class Joint(Structure):
    """One joint between a parent and a child body.

    `v` is the joint's velocity, `dv` a tangent vector (a velocity times a time), both of size `nv`.

    >>> [kind.__name__ for kind in jdyn.load("cartpole").topology.kinds]
    ['Prismatic', 'Continuous']
    >>> issubclass(jdyn.Prismatic, jdyn.Joint)
    True
    """

    nq: ClassVar[int]
    nv: ClassVar[int]
    # How each degree of freedom moves the child: "turn" about an axis through its origin, "slide" along an axis, or
    # "screw" (both). If there is only one, its axis is fixed in both frames.
    motions: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def transform(self, q: Q) -> Transform:
        """Pose of the child frame in the joint frame."""

    @abc.abstractmethod
    def subspace(self, q: Q) -> Float[Array, "6 nv"]:
        """Motion subspace S: the child's velocity relative to the parent is S v, in the child frame."""

    def bias(self, q: Q, v: V) -> Motion6:
        """S̊ v: the apparent rate of S in the child frame times `v`. Zero by default, which holds for a constant S."""
        return jnp.zeros(6, v.dtype)

    @abc.abstractmethod
    def neutral(self, dtype) -> Q:
        """The configuration in which the child frame coincides with the joint frame."""

    @abc.abstractmethod
    def random(self, key: PRNGKeyArray, lower: Q, upper: Q) -> Q:
        """A configuration drawn uniformly within the limits; without limits, within ±π rad (revolute) or ±1 (others).

        Rotations of ball and free joints are uniformly distributed, those of ball joints up to their largest angle.
        """

    @abc.abstractmethod
    def rate(self, q: Q, v: V) -> Q:
        """dq/dt."""

    @abc.abstractmethod
    def integrate(self, q: Q, dv: V) -> Q:
        """The configuration reached from `q` by moving with constant velocity `dv` for unit time."""

    @abc.abstractmethod
    def difference(self, q0: Q, q1: Q) -> V:
        """The tangent vector with `integrate(q0, difference(q0, q1)) = q1`."""

    @abc.abstractmethod
    def normalize(self, q: Q) -> Q:
        """`q` with its quaternion scaled to unit length."""

    @abc.abstractmethod
    def to_chart(self, q: Q) -> V:
        """Local coordinates u of `q` in the chart centred at `q`: `q` itself where it is flat. For rotations u is the
        rotation vector from the centre, which is zero here."""

    @abc.abstractmethod
    def from_chart(self, centre: Q, u: V, longest: float) -> Q:
        """The configuration with coordinates u in the chart centred at `centre`; NaN for a rotation vector longer than
        `longest` [rad]."""

    @abc.abstractmethod
    def chart_rate(self, q: Q, u: V, v: V) -> V:
        """du/dt at the configuration `q` with coordinates u."""

    def chart_axes(self, centre: Q, v: V) -> V:
        """du/dt of a motion through the centre of the chart with velocity v."""
        return v

    def body_axes(self, centre: Q, rate: V) -> V:
        """v of a motion through the centre of the chart with this du/dt."""
        return rate

    @abc.abstractmethod
    def stretch(self, rest: Q, q: Q) -> V:
        """Deflection e of the joint's spring, which has the energy ½ Σ k e²."""

    @abc.abstractmethod
    def spring_force(self, rest: Q, q: Q, stiffness: V) -> V:
        """Generalized force of the joint's spring: minus the gradient of its energy with respect to `dv`."""


class FlatJoint(Joint):
    """A joint whose configuration space is flat: v = dq/dt. A subclass defines `nq`, `nv`, `motions`, `transform` and
    `subspace`, and `bias` if S depends on q."""

    def neutral(self, dtype):
        return jnp.zeros(self.nq, dtype)

    def random(self, key, lower, upper):
        reach = jnp.pi if isinstance(self, _TurningJoint) else 1.0
        # A joint with a limit on one side moves as far from it as a joint without limits moves in all.
        start = jnp.where(jnp.isfinite(upper), upper - 2 * reach, -reach)
        start = jnp.where(jnp.isfinite(lower), lower, start)
        end = jnp.where(jnp.isfinite(upper), upper, start + 2 * reach)
        return start + jax.random.uniform(key, (self.nq,), lower.dtype) * (end - start)

    def rate(self, q, v):
        return v

    def integrate(self, q, dv):
        return q + dv

    def difference(self, q0, q1):
        return q1 - q0

    def normalize(self, q):
        return q

    def to_chart(self, q):
        return q

    def from_chart(self, centre, u, longest):
        return u

    def chart_rate(self, q, u, v):
        return v

    def stretch(self, rest, q):
        return q - rest

    def spring_force(self, rest, q, stiffness):
        return stiffness * (rest - q)


class _ScrewJoint(FlatJoint):
    """One degree of freedom along a constant axis: S does not depend on q."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1


class _TurningJoint(_ScrewJoint):
    """Rotation about `axis` (unit, in the joint frame)."""

    motions: ClassVar[tuple[str, ...]] = ("turn",)
    axis: Float[Array, "*batch 3"]

    def transform(self, q):
        return Transform(rotation_about(self.axis, q[0]), jnp.zeros_like(self.axis))

    def subspace(self, q):
        return jnp.concatenate([self.axis, jnp.zeros_like(self.axis)])[:, None]


class Revolute(_TurningJoint):
    """Rotation about `axis` (unit, in the joint frame). q: angle [rad].

    >>> builder = jdyn.Builder("wheel")
    >>> builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), inertia=np.diag([0.1, 0.1, 0.2]), mass=1.0)
    >>> print(jdyn.mass_matrix(builder.build(), jnp.zeros(1)).round(3))
    [[0.2]]
    """


class Continuous(_TurningJoint):
    """A revolute joint that turns without limit. q: one angle [rad], not wrapped.

    >>> model = jdyn.random_tree(0, 1, kinds=(jdyn.Continuous,))
    >>> print(model.integrate(jnp.array([3.0]), jnp.array([1.0])))
    [4.]
    """


class Prismatic(_ScrewJoint):
    """Translation along `axis` (unit, in the joint frame). q: displacement [m].

    >>> builder = jdyn.Builder("slide")
    >>> builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=2.0)
    >>> print(jdyn.mass_matrix(builder.build(), jnp.zeros(1)))
    [[2.]]
    """

    motions: ClassVar[tuple[str, ...]] = ("slide",)
    axis: Float[Array, "*batch 3"]

    def transform(self, q):
        return Transform(jnp.array(np.eye(3), self.axis.dtype), q[0] * self.axis)

    def subspace(self, q):
        return jnp.concatenate([jnp.zeros_like(self.axis), self.axis])[:, None]


class Helical(_ScrewJoint):
    """Rotation about `axis` with `pitch` [m/rad] of translation along it. q: angle [rad].

    >>> screw = jdyn.Helical((0, 0, 1), 0.01)  # 1 cm per radian
    >>> builder = jdyn.Builder("nut")
    >>> builder.add_link("nut", screw, mass=0.1, inertia=np.eye(3) / 1000)
    >>> print(jdyn.forward_kinematics(builder.build(), jnp.array([2.0])).translation)
    [[0.   0.   0.02]]
    """

    motions: ClassVar[tuple[str, ...]] = ("screw",)
    axis: Float[Array, "*batch 3"]
    pitch: Float[Array, "*batch"]

    def transform(self, q):
        return Transform(rotation_about(self.axis, q[0]), self.pitch * q[0] * self.axis)

    def subspace(self, q):
        return jnp.concatenate([self.axis, self.pitch * self.axis])[:, None]


class Universal(FlatJoint):
    """Rotation about `axis`, fixed in the joint frame, then about `axis2`, fixed in the child. q: angles [rad].

    >>> model = jdyn.random_tree(0, 1, kinds=(jdyn.Universal,))
    >>> model.nq, model.nv
    (2, 2)
    """

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    motions: ClassVar[tuple[str, ...]] = ("turn", "turn")
    axis: Float[Array, "*batch 3"]
    axis2: Float[Array, "*batch 3"]

    def transform(self, q):
        R = rotation_about(self.axis, q[0]) @ rotation_about(self.axis2, q[1])
        return Transform(R, jnp.zeros_like(self.axis))

    def _first_axis(self, q):
        return rotation_about(self.axis2, q[1]).T @ self.axis

    def subspace(self, q):
        S = jnp.stack([self._first_axis(q), self.axis2], axis=1)
        return jnp.concatenate([S, jnp.zeros_like(S)])

    def bias(self, q, v):
        rate = jnp.cross(self._first_axis(q), self.axis2) * (v[0] * v[1])
        return jnp.concatenate([rate, jnp.zeros_like(rate)])


class Planar(FlatJoint):
    """Translation along `x` and y = `normal` × x, then rotation about `normal` (orthonormal, in the joint frame).

    q: [x, y, θ] [m, m, rad], v = dq/dt.

    >>> builder = jdyn.Builder("puck")
    >>> builder.add_link("puck", jdyn.Planar((0, 0, 1), (1, 0, 0)), mass=0.1, inertia=np.eye(3) / 1000)
    >>> print(jdyn.forward_kinematics(builder.build(), jnp.array([1.0, 2.0, 0.0])).translation)
    [[1. 2. 0.]]
    """

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    motions: ClassVar[tuple[str, ...]] = ("slide", "slide", "turn")
    normal: Float[Array, "*batch 3"]
    x: Float[Array, "*batch 3"]

    def _basis(self):
        return jnp.stack([self.x, jnp.cross(self.normal, self.x)], axis=1)

    def transform(self, q):
        return Transform(rotation_about(self.normal, q[2]), self._basis() @ q[:2])

    def subspace(self, q):
        linear = rotation_about(self.normal, q[2]).T @ self._basis()
        zero = jnp.zeros_like(self.normal)[:, None]
        return jnp.block([[jnp.zeros_like(linear), self.normal[:, None]], [linear, zero]])

    def bias(self, q, v):
        linear = rotation_about(self.normal, q[2]).T @ (self._basis() @ v[:2])
        return jnp.concatenate([jnp.zeros_like(linear), v[2] * jnp.cross(linear, self.normal)])


class Ball(Joint):
    """Free rotation. q: unit quaternion wxyz; v: angular velocity in the child frame [rad/s].

    >>> model = jdyn.random_tree(0, 1, kinds=(jdyn.Ball,))
    >>> print(model.nq, model.nv, model.neutral())
    4 3 [1. 0. 0. 0.]
    """

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    motions: ClassVar[tuple[str, ...]] = ("turn",) * 3

    def transform(self, q):
        return Transform(quaternion_to_matrix(q), jnp.zeros(3, q.dtype))

    def subspace(self, q):
        return jnp.array(np.eye(6, 3), q.dtype)

    def neutral(self, dtype):
        return jnp.zeros(4, dtype).at[0].set(1)

    def random(self, key, lower, upper):
        q = quaternion_normalize(jax.random.normal(key, (4,), lower.dtype))
        largest, phi = upper[0], jnp.stack(logarithm(numbers(q)))
        # Of uniform rotations, a share of (θ - sin θ) / π is turned by less than θ.
        angles = np.linspace(0, np.pi, 1000)
        angles, shares = (jnp.asarray(x, q.dtype) for x in (angles, np.cbrt((angles - np.sin(angles)) / np.pi)))
        angle = jnp.sqrt(phi @ phi)
        share = jnp.interp(angle, angles, shares) * jnp.interp(largest, angles, shares)
        nearer = self.integrate(self.neutral(q.dtype), phi * (jnp.interp(share, shares, angles) / angle))
        return jnp.where(largest < np.pi, nearer, q)

    def rate(self, q, v):
        return jnp.stack(_quaternion_rate(numbers(q), numbers(v)))

    def integrate(self, q, dv):
        return jnp.stack(multiply(numbers(q), exponential(numbers(dv))))

    def difference(self, q0, q1):
        return jnp.stack(logarithm(_turn(numbers(q0), numbers(q1))))

    def normalize(self, q):
        return quaternion_normalize(q)

    def to_chart(self, q):
        return jnp.zeros(3, q.dtype)

    def from_chart(self, centre, u, longest):
        # Scale it, so that rounding does not accumulate from step to step.
        q, phi = quaternion_normalize(self.integrate(centre, u)), numbers(u)
        return q if math.isinf(longest) else jnp.where(dot(phi, phi) > longest**2, jnp.nan, q)

    def chart_rate(self, q, u, v):
        return jnp.stack(_rotation_chart_rate(numbers(u), numbers(v)))

    def stretch(self, rest, q):
        return self.difference(rest, q)

    def spring_force(self, rest, q, stiffness):
        return jnp.stack(_torsion(logarithm(_turn(numbers(rest), numbers(q))), numbers(stiffness)))


class Free(Joint):
    """Six degrees of freedom. q: [x y z, w x y z]; v: the child's spatial velocity [ω; v] in its own frame.

    >>> model = jdyn.random_tree(0, 1, kinds=(jdyn.Free,))
    >>> print(model.neutral(), model.nv)
    [0. 0. 0. 1. 0. 0. 0.] 6
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    motions: ClassVar[tuple[str, ...]] = ("turn",) * 3 + ("slide",) * 3

    def transform(self, q):
        return Transform(quaternion_to_matrix(q[3:]), q[:3])

    def subspace(self, q):
        return jnp.array(np.eye(6), q.dtype)

    def neutral(self, dtype):
        return jnp.zeros(7, dtype).at[3].set(1)

    def random(self, key, lower, upper):
        where, how = jax.random.split(key)
        position = jax.random.uniform(where, (3,), lower.dtype, -1, 1)
        return jnp.concatenate([position, Ball().random(how, lower, jnp.full_like(upper, jnp.inf))])

    def rate(self, q, v):
        (_, how), (w, v) = _halves(q), _halves(v)
        return jnp.stack([*rotate(how, v), *_quaternion_rate(how, w)])

    def integrate(self, q, dv):
        (where, how), (phi, rho) = _halves(q), _halves(dv)
        step = rotate(how, left_jacobian(phi, rho))
        return jnp.stack([*add(where, step), *multiply(how, exponential(phi))])

    def difference(self, q0, q1):
        turn, step = _apart(_halves(q0), _halves(q1))
        phi = logarithm(turn)
        return jnp.stack([*phi, *left_jacobian_inverse(phi, step)])

    def normalize(self, q):
        return jnp.concatenate([q[:3], quaternion_normalize(q[3:])])

    # The chart is that of SO(3) x R3, not SE(3): flat positions are cheaper than screws and equally exact.

    def to_chart(self, q):
        return jnp.concatenate([Ball().to_chart(q[3:]), q[:3]])

    def from_chart(self, centre, u, longest):
        return jnp.concatenate([u[3:], Ball().from_chart(centre[3:], u[:3], longest)])

    def chart_rate(self, q, u, v):
        (_, how), (phi, _), (w, v) = _halves(q), _halves(u), _halves(v)
        return jnp.stack([*_rotation_chart_rate(phi, w), *rotate(how, v)])

    def chart_axes(self, centre, v):
        (_, how), (turning, moving) = _halves(centre), _halves(v)
        return jnp.stack([*turning, *rotate(how, moving)])

    def body_axes(self, centre, rate):
        (_, how), (turning, moving) = _halves(centre), _halves(rate)
        return jnp.stack([*turning, *rotate_back(how, moving)])

    def stretch(self, rest, q):
        turn, step = _apart(_halves(rest), _halves(q))
        return jnp.stack([*logarithm(turn), *step])

    def spring_force(self, rest, q, stiffness):
        (turn, step), (turning, pulling) = _apart(_halves(rest), _halves(q)), _halves(stiffness)
        pull = rotate_back(turn, tuple(map(times, pulling, step)))
        return jnp.stack([*_torsion(logarithm(turn), turning), *scale(-1.0, pull)])


def _halves(x: Array) -> tuple[Vector, Vector]:
    """The first three entries, and the rest."""
    entries = numbers(x)
    return entries[:3], entries[3:]


def _quaternion_rate(q: Vector, w: Vector) -> Vector:
    return scale(0.5, multiply(q, (0, *w)))


def _turn(q0: Vector, q1: Vector) -> Vector:
    """The rotation from `q0` to `q1` as a quaternion, whose entries are the same in both frames."""
    return multiply(conjugate(q0), q1)


def _apart(q0: tuple[Vector, Vector], q1: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """The rotation (a quaternion) and the translation from pose `q0` to pose `q1`, in the frame of `q0`."""
    (where0, how0), (where1, how1) = q0, q1
    return _turn(how0, how1), rotate_back(how0, subtract(where1, where0))


def _rotation_chart_rate(u: Vector, w: Vector) -> Vector:
    # The inverse of the right Jacobian.
    return left_jacobian_inverse(scale(-1.0, u), w)


def _torsion(e: Vector, stiffness: Vector) -> Vector:
    """Moment of a spring that has turned by the rotation vector e."""
    return scale(-1.0, left_jacobian_inverse(e, tuple(map(times, stiffness, e))))


def motion_bias(joint: Joint, q: Q, v: V, velocity: Motion6) -> Motion6:
    """c in a_child = a_parent + S v̇ + c, given the child's velocity (Featherstone eq. 3.44)."""
    return joint.bias(q, v) + cross_motion(velocity, joint.subspace(q) @ v)
