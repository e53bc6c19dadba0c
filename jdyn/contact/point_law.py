"""Forces at a point where shapes touch."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.contact.laws import ContactLaw
from jdyn.contact.moving_points import MovingPoints

# [ω; v] or v alone, and [n; f] or f alone.
Rows = Float[Array, "points k"]
Vector = Float[Array, "3"]


class PointLaw(Structure):
    """Force at a point by its depth and its twist: a law along the normal, regularized Coulomb friction beside it.

    Attributes:
        law: Along the normal.
        slip_speed, spin_speed: Below which friction falls [m/s, rad/s].
        turning: Whether friction against turning or rolling may be other than zero. If not, twists [ω; v] and wrenches
            [n; f] are only v and f.
    """

    law: ContactLaw
    slip_speed: Scalar
    spin_speed: Scalar
    turning: bool = eqx.field(static=True)

    def twists(self, points: MovingPoints, v: Float[Array, " nv"]) -> Rows:
        """Twists of second bodies relative to first ones, as far as `turning` says."""
        twists = points.twists(v)
        return twists if self.turning else twists[:, 3:]

    def wrench(
        self, normal: Vector, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar, friction: Vector
    ) -> Float[Array, " k"]:
        """Torque and force on the second shape, by its twist relative to the first one."""
        parting, slip = _parting_and_slip(normal, twist)
        pressing = self.law.force(depth, -parting, stiffness, dissipation)
        sliding, spinning, rolling = friction * pressing
        force = pressing * normal - sliding * _bounded(slip, self.slip_speed)
        if not self.turning:
            return force
        turning = twist[:3]
        spin = dot(turning, normal) * normal
        torque = -spinning * _bounded(spin, self.spin_speed) - rolling * _bounded(turning - spin, self.spin_speed)
        return jnp.concatenate([torque, force])

    def friction(
        self, normal: Vector, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar, friction: Vector
    ) -> tuple[Vector, Scalar]:
        """Direction of friction, with the length that it has as a share of its largest one, and how it falls with slip
        across that direction [N s/m]."""
        parting, slip = _parting_and_slip(normal, twist)
        sliding = friction[0] * self.law.force(depth, -parting, stiffness, dissipation)
        return _bounded(slip, self.slip_speed), sliding / jnp.sqrt(dot(slip, slip) + self.slip_speed**2)


def _parting_and_slip(normal: Vector, twist: Array) -> tuple[Scalar, Vector]:
    """Speed at which surfaces part at a point, and the velocity at which they move past each other."""
    moving = twist[-3:]
    parting = dot(moving, normal)
    return parting, moving - parting * normal


def _bounded(x: Array, speed: Scalar) -> Array:
    """x / √(x² + s²): nearly a unit vector where x is large against s."""
    return x / jnp.sqrt(dot(x, x) + speed**2)
