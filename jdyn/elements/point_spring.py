"""A spring and a damper between two points."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN
from jdyn.elements.element import ForceElement, Implicit
from jdyn.geometry.directions import length_and_unit
from jdyn.model import Name, Units


class PointSpring(ForceElement):
    """A spring and a damper on the line between points of two frames: they pull with k (l − l₀) + c dl/dt at the
    distance l.

    Where the points meet, a spring with a rest length has no direction, and neither has a damper: there is no force
    then, unless the rest length is zero, with which a spring is linear in space.

    >>> model = jdyn.load("double_pendulum")
    >>> springs = {"stiffness": 200.0, "damping": 20.0, "rest_length": 0.5}
    >>> spring = jdyn.elements.PointSpring("tip", "world", point_b=[0, 0, 1], **springs)
    >>> motion = jdyn.simulate(model, jnp.ones(2), jnp.zeros(2), 1.0, elements=[spring])
    >>> bool(motion.success)
    True

    Attributes:
        frame_a, frame_b: Names of bodies or frames, or `"world"`.
        stiffness: k [N/m].
        damping: c [N s/m].
        rest_length: l₀ [m].
        point_a, point_b: Points in either frame [m].
    """

    units: ClassVar[Units] = {
        "stiffness": "N/m", "damping": "N s/m", "rest_length": "m", "point_a": "m", "point_b": "m",
    }  # fmt: skip

    implicit: Implicit = eqx.field(static=True, default="coupled", kw_only=True)

    frame_a: Name = eqx.field(static=True)
    frame_b: Name = eqx.field(static=True)
    stiffness: Scalar = eqx.field(converter=as_numbers)
    damping: Scalar = eqx.field(default=0.0, converter=as_numbers)
    rest_length: Scalar = eqx.field(default=0.0, converter=as_numbers)
    point_a: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)
    point_b: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        way, direction, _ = self._stretched(kinematics)
        # Of a rest length of zero, this is smooth where the points meet.
        spring = self.stiffness * (way - self.rest_length * direction)
        return self._pulled(kinematics, spring + self.damping * (direction @ self._rate(kinematics)) * direction)

    def slopes(self, t: Scalar, kinematics: Kinematics, memory: Any) -> tuple[Array, Array]:
        if self.implicit != "coupled":
            return super().slopes(t, kinematics, memory)
        way, direction, length = self._stretched(kinematics)
        along = jnp.outer(direction, direction)
        # What is stretched resists turning, too; what is compressed gives way, which no step is to be stable in.
        share = jnp.where(length > 0, self.rest_length / jnp.where(length > 0, length, 1), 0)
        across = jnp.maximum(1 - share, 0) * (jnp.eye(3, dtype=way.dtype) - along)
        J = -jax.vmap(lambda pull: kinematics.generalized(self._pulled(kinematics, pull)))(jnp.eye(3, dtype=way.dtype))
        return J.T @ (self.stiffness * (along + across)) @ J, J.T @ (self.damping * along) @ J

    def energy(self, kinematics: Kinematics, memory: Any) -> Scalar:
        """½ k (l − l₀)²."""
        *_, length = self._stretched(kinematics)
        return 0.5 * self.stiffness * (length - self.rest_length) ** 2

    def _stretched(self, kinematics: Kinematics) -> tuple[Array, Array, Scalar]:
        """From the first point to the second: the way, its direction, zero where there is none, and its length."""
        way = kinematics.position(self.frame_b, self.point_b) - kinematics.position(self.frame_a, self.point_a)
        length, direction = length_and_unit(way)
        return way, direction, length

    def _rate(self, kinematics: Kinematics) -> Array:
        start, end = kinematics.velocity(self.frame_a, self.point_a), kinematics.velocity(self.frame_b, self.point_b)
        return (end - start)[3:]

    def _pulled(self, kinematics: Kinematics, pull: Array) -> Array:
        """A force on the first point, and its opposite on the second one."""
        on_a = kinematics.push(self.frame_a, pull, point=self.point_a)
        return on_a + kinematics.push(self.frame_b, -pull, point=self.point_b)
