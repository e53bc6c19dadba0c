"""Orientations as transmissions: three lengths, the rotation vector, along which torques act."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics import Kinematics
from jdyn.model import Ball, JointName, Name, Units
from jdyn.spatial.rotation import matrix_to_quaternion, quaternion_log
from jdyn.transmissions.transmission import Transmission


class BallOrientation(Transmission):
    """Orientation of a ball joint: the rotation vector φ from its parent to its child, and torques about axes of the
    child. Rates are the angular velocity ω there, not dφ/dt.

    >>> builder = jdyn.Builder("top")
    >>> _ = builder.add_link("body", jdyn.Ball(), joint_name="ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    >>> turned = jnp.array([0.0, 1.0, 0.0, 0.0])  # by half a turn about x
    >>> top = jdyn.elements.Kinematics.of(builder.build(), turned, jnp.zeros(3))
    >>> print(jdyn.transmissions.BallOrientation("ball").length(top).round(3))
    [3.142 0.    0.   ]

    Attributes:
        joint: Name of a ball joint.

    Methods raise ValueError, if there is no such joint, or it is none.
    """

    uses_bodies: ClassVar[bool] = False
    count: ClassVar[int] = 3
    units: ClassVar[Units] = {"length": ""}

    joint: JointName = eqx.field(static=True)

    def length(self, kinematics: Kinematics) -> Float[Array, "3"]:
        body = self._body(kinematics)
        return quaternion_log(kinematics.model.expand(kinematics.q)[kinematics.model.topology.q_slice(body)])

    def moments(self, kinematics: Kinematics) -> Float[Array, "3 nv"]:
        model, body = kinematics.model, self._body(kinematics)
        full = jnp.zeros((3, model.topology.v_offsets[-1]), kinematics.q.dtype)
        return jax.vmap(model.reduce_force)(full.at[:, model.topology.v_slice(body)].set(jnp.eye(3, dtype=full.dtype)))

    @property
    def label(self) -> str:
        return self.joint

    def _body(self, kinematics: Kinematics) -> int:
        topology = kinematics.model.topology
        body = topology.joint(self.joint)
        if not issubclass(kind := topology.kinds[body], Ball):
            raise ValueError(f"BallOrientation: expected a ball joint, got {self.joint!r}, a {kind.__name__}")
        return body


class FrameOrientation(Transmission):
    """Orientation of a frame: the rotation vector φ from a reference to it, and torques about its axes, which the
    reference bears. Rates are the angular velocity ω in these axes, relative to the reference, not dφ/dt.

    >>> tip = jdyn.transmissions.FrameOrientation("tip")
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([0.3]), jnp.zeros(1))
    >>> print(tip.length(arm).round(3) + 0.0, tip.moments(arm).shape)
    [ 0.  -0.3  0. ] (3, 1)

    Attributes:
        frame: Name of a body or a frame.
        reference: Another one, or `"world"`.
    """

    count: ClassVar[int] = 3
    units: ClassVar[Units] = {"length": ""}

    frame: Name = eqx.field(static=True)
    reference: Name = eqx.field(static=True, default="world")

    def length(self, kinematics: Kinematics) -> Float[Array, "3"]:
        turned = kinematics.pose(self.reference).rotation.T @ kinematics.pose(self.frame).rotation
        return quaternion_log(matrix_to_quaternion(turned))

    def moments(self, kinematics: Kinematics) -> Float[Array, "3 nv"]:
        return jax.vmap(kinematics.generalized)(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "3 nb 6"]:
        axes = kinematics.pose(self.frame).rotation.T

        def turned(axis):
            return kinematics.push(self.frame, torque=axis) + kinematics.push(self.reference, torque=-axis)

        return jax.vmap(turned)(axes)

    @property
    def label(self) -> str:
        return self.frame
