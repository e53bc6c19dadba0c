"""Transmissions through gears: a joint, and a frame that is pushed."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import as_numbers, shaped
from jdyn.dynamics import Kinematics
from jdyn.model import Ball, Free, JointName, Name
from jdyn.spatial.components import numbers
from jdyn.spatial.quaternions import logarithm
from jdyn.transmissions.transmission import Transmission


class GearedJoint(Transmission):
    """A joint behind a gear: it turns `gear` times as far as the joint does, l = g q.

    A ball joint is turned about an axis of its child: `gear` is then a vector g, the length g · φ with the rotation
    vector φ, and the torque g f. A free joint is pushed by the wrench [n; f] in its body's axes; its length is zero.

    >>> elbow = jdyn.transmissions.GearedJoint("joint2", gear=50.0)
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([0.3, 0.1]), jnp.zeros(2))
    >>> print(elbow.length(arm), elbow.moments(arm))
    5.0 [ 0. 50.]

    Attributes:
        joint: Name of the joint.
        gear: g, a scalar, or shape (nv,) of a joint with several degrees of freedom.
    """

    uses_bodies: ClassVar[bool] = False

    joint: JointName = eqx.field(static=True)
    gear: Float[Array, "*nv"] = eqx.field(default=1.0, converter=as_numbers)

    def __check_init__(self):
        if not (isinstance(self.gear, Tracer) or np.any(np.asarray(self.gear))):
            raise ValueError(f"GearedJoint: a gear of zero moves nothing, got {self.gear} for joint {self.joint!r}")

    def length(self, kinematics: Kinematics) -> Scalar:
        model, gear = kinematics.model, self.gears(kinematics)
        topology, body = model.topology, model.topology.joint(self.joint)
        q = model.expand(kinematics.q)[topology.q_slice(body)]
        if issubclass(topology.kinds[body], Free):
            return jnp.zeros((), q.dtype)
        if issubclass(topology.kinds[body], Ball):
            q = jnp.stack(logarithm(numbers(q)))
        return gear @ q

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        model, gear = kinematics.model, self.gears(kinematics)
        joint = model.topology.v_slice(model.topology.joint(self.joint))
        return model.reduce_force(jnp.zeros(model.topology.v_offsets[-1], gear.dtype).at[joint].set(gear))

    @property
    def label(self) -> str:
        return self.joint

    def gears(self, kinematics: Kinematics) -> Array:
        """The gear for each degree of freedom."""
        model = kinematics.model
        nv = model.topology.kinds[model.topology.joint(self.joint)].nv
        gear = shaped(f"gear of joint {self.joint!r}", self.gear, kinematics.q.dtype, (nv,), *[()] * (nv == 1))
        return jnp.broadcast_to(gear, (nv,))


class GearedFrame(Transmission):
    """A frame that is pushed by a wrench which turns with it: a thruster, a propeller. The length is zero.

    >>> rotor = jdyn.transmissions.GearedFrame("tip", [0.0, 0.0, 0.05, 0.0, 0.0, 1.0])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([0.0]), jnp.zeros(1))
    >>> print(rotor.moments(arm).shape)
    (1,)

    Attributes:
        frame: Name of a body or a frame.
        gear: Wrench of a unit force, [n; f] in the frame's axes and at its origin.
    """

    frame: Name = eqx.field(static=True)
    gear: Float[Array, "6"] = eqx.field(converter=as_numbers)

    def length(self, kinematics: Kinematics) -> Scalar:
        return jnp.zeros((), kinematics.q.dtype)

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return kinematics.generalized(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"]:
        axes = kinematics.pose(self.frame).rotation
        gear = shaped(f"gear of frame {self.frame!r}", self.gear, kinematics.q.dtype, (6,))
        return kinematics.push(self.frame, force=axes @ gear[3:], torque=axes @ gear[:3])

    @property
    def label(self) -> str:
        return self.frame


class Geared(Transmission):
    """Another transmission behind a gear, such as a tendon on a drum: `gear` times its length.

    >>> fast = jdyn.transmissions.Geared(jdyn.transmissions.GearedJoint("joint2", gear=5.0), gear=10.0)
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([0.3, 0.1]), jnp.zeros(2))
    >>> print(fast.length(arm))
    5.0

    Attributes:
        transmission: The other one.
        gear: How often its length.
    """

    transmission: Transmission
    gear: Scalar = eqx.field(converter=as_numbers)

    def length(self, kinematics: Kinematics) -> Scalar:
        return self.gear * self.transmission.length(kinematics)

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return self.gear * self.transmission.moments(kinematics)

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"] | None:
        pushed = self.transmission.on_bodies(kinematics)
        return None if pushed is None else self.gear * pushed

    @property
    def label(self) -> str:
        return self.transmission.label


def as_transmission(x: Transmission | str | ArrayLike) -> Transmission:
    """A transmission; a name is that of a joint."""
    if isinstance(x, str):
        return GearedJoint(x)
    if not isinstance(x, Transmission):
        raise ValueError(f"transmission: expected the name of a joint, or one such as GearedJoint, got {x!r}")
    return x
