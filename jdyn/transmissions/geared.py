"""Transmissions through gears: a joint, and a frame that is pushed."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import as_numbers, shaped, with_fields
from jdyn.dynamics import Kinematics
from jdyn.dynamics.kinematics import common_carrier
from jdyn.model import Ball, Factor, Free, JointName, Name, OtherRoot, Scaling, Units, times
from jdyn.spatial.components import numbers
from jdyn.spatial.quaternions import logarithm, rotate_back
from jdyn.spatial.rotation import matrix_to_quaternion, quaternion_log
from jdyn.transmissions.transmission import Transmission


class GearedJoint(Transmission):
    """A joint behind a gear: it turns `gear` times as far as the joint does, l = g q.

    A ball joint is turned about an axis of its child: `gear` is then a vector g, the length g · φ with the rotation
    vector φ, and the torque g f. A free joint is pushed by the wrench [n; f] in its body's axes; its length is zero.
    `in_parent` takes the axes of the parent for both.

    >>> elbow = jdyn.transmissions.GearedJoint("joint2", gear=50.0)
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([0.3, 0.1]), jnp.zeros(2))
    >>> print(elbow.length(arm), elbow.moments(arm))
    5.0 [ 0. 50.]

    Attributes:
        joint: Name of the joint.
        gear: g, a scalar, or shape (nv,) of a joint with several degrees of freedom.
        in_parent: Whether the gear of a ball or free joint is in the axes of its parent, which do not turn with it.
    """

    uses_bodies: ClassVar[bool] = False

    joint: JointName = eqx.field(static=True)
    gear: Float[Array, "*nv"] = eqx.field(default=1.0, converter=as_numbers)
    in_parent: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self):
        if not (isinstance(self.gear, Tracer) or np.any(np.asarray(self.gear))):
            raise ValueError(f"GearedJoint: a gear of zero moves nothing, got {self.gear} for joint {self.joint!r}")

    def length(self, kinematics: Kinematics) -> Scalar:
        gear, kind, q = self.gears(kinematics), self._kind(kinematics), self._coordinates(kinematics)
        if issubclass(kind, Free):
            return jnp.zeros((), q.dtype)
        if issubclass(kind, Ball):
            # A rotation vector is the same in the axes of child and parent.
            q = jnp.stack(logarithm(numbers(q)))
        return gear @ q

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        model, gear, kind = kinematics.model, self.gears(kinematics), self._kind(kinematics)
        joint = model.topology.v_slice(model.topology.joint(self.joint))
        if self.in_parent and issubclass(kind, Ball | Free):
            turn = numbers(self._coordinates(kinematics)[-4:])
            parts = [jnp.stack(rotate_back(turn, numbers(part))) for part in gear.reshape(-1, 3)]
            gear = jnp.concatenate(parts)
        return model.reduce_force(jnp.zeros(model.topology.v_offsets[-1], gear.dtype).at[joint].set(gear))

    def scaled(self, scaling: Scaling) -> Self:
        """The same gear; one of angles and lengths is in m where it moves lengths."""
        return with_fields(self, gear=self._geared(scaling)[1])

    def travel_factor(self, scaling: Scaling) -> Factor:
        """Factor of the length: that of the joint's coordinate; that of lengths for a gear of angles and lengths."""
        return self._geared(scaling)[0]

    def _geared(self, scaling: Scaling) -> tuple[Factor, Array]:
        """Factor of the length, and the gear of the scaled joint."""
        topology = scaling.model.topology
        motions = topology.kinds[topology.joint(self.joint)].motions
        return _scaled_gear(scaling, self.gear, [motion == "slide" for motion in motions])

    @property
    def label(self) -> str:
        return self.joint

    def gears(self, kinematics: Kinematics) -> Array:
        """The gear for each degree of freedom."""
        model = kinematics.model
        nv = model.topology.kinds[model.topology.joint(self.joint)].nv
        gear = shaped(f"gear of joint {self.joint!r}", self.gear, kinematics.q.dtype, (nv,), *[()] * (nv == 1))
        return jnp.broadcast_to(gear, (nv,))

    def _kind(self, kinematics: Kinematics) -> type:
        topology = kinematics.model.topology
        return topology.kinds[topology.joint(self.joint)]

    def _coordinates(self, kinematics: Kinematics) -> Array:
        topology = kinematics.model.topology
        return kinematics.model.expand(kinematics.q)[topology.q_slice(topology.joint(self.joint))]


class GearedFrame(Transmission):
    """A frame that is pushed by a wrench: a thruster, a propeller, which turns with it and has the length zero, or what
    pulls it to a reference, a frame in whose axes the wrench is.

    With a reference the length is g · [φ; p], by the rotation vector φ and the position p of the frame in its
    reference, which bears the opposite force and the opposite torque at its own origin. What these two forces turn is
    held by the last body that carries both frames, so that coordinates which move both do not feel them. The rate is
    g · [ω; v], likewise relative in those coordinates. This is MuJoCo's `refsite`; where the reference turns, or the
    frame turns far, the rate is not quite that of the length.

    >>> rotor = jdyn.transmissions.GearedFrame("tip", [0.0, 0.0, 0.05, 0.0, 0.0, 1.0])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([0.0]), jnp.zeros(1))
    >>> print(rotor.moments(arm).shape)
    (1,)

    Attributes:
        frame: Name of a body or a frame.
        gear: g, the wrench of a unit force, [n; f] at the frame's origin, in axes of the frame or of its reference.
        reference: Name of a body or a frame, or `"world"`; None for a wrench that turns with the frame.
    """

    frame: Name = eqx.field(static=True)
    gear: Float[Array, "6"] = eqx.field(converter=as_numbers)
    reference: Name | None = eqx.field(static=True, default=None)

    def length(self, kinematics: Kinematics) -> Scalar:
        if self.reference is None:
            return jnp.zeros((), kinematics.q.dtype)
        apart = kinematics.pose(self.reference).inverse() @ kinematics.pose(self.frame)
        turned = quaternion_log(matrix_to_quaternion(apart.rotation))
        return self._gear(kinematics) @ jnp.concatenate([turned, apart.translation])

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return kinematics.generalized(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"]:
        gear = self._gear(kinematics)
        axes = kinematics.pose(self.frame if self.reference is None else self.reference).rotation
        force, torque = axes @ gear[3:], axes @ gear[:3]
        pushed = kinematics.push(self.frame, force=force, torque=torque)
        if self.reference is None:
            return pushed
        pushed = pushed + kinematics.push(self.reference, force=-force, torque=-torque)
        carrier = kinematics.common_carrier(self.frame, self.reference)
        apart = kinematics.position(self.frame) - kinematics.position(self.reference)
        return pushed + kinematics.push(carrier, torque=-jnp.cross(apart, force))

    def with_other_root(self, change: OtherRoot) -> Self:
        """The same.

        Raises:
            ValueError: if another body would hold what the frame and its reference turn.
        """
        if self.reference is not None:
            holds, then = (common_carrier(model, self.frame, self.reference) for model in (change.before, change.after))
            if holds != then and (holds == "world" or change.places((holds,))[0] != (then,)):
                raise change.refusal(
                    self, f"of {self.frame!r} and {self.reference!r} would turn {then!r} in the place of {holds!r}"
                )
        return self

    def scaled(self, scaling: Scaling) -> Self:
        """The same wrench, with torques by unit forces in m where there are forces."""
        return with_fields(self, gear=_scaled_gear(scaling, self.gear, [False] * 3 + [True] * 3)[1])

    def travel_factor(self, scaling: Scaling) -> Factor:
        """Factor of the length: that of lengths, unless it is a mere torque."""
        return _scaled_gear(scaling, self.gear, [False] * 3 + [True] * 3)[0]

    @property
    def label(self) -> str:
        return self.frame

    def _gear(self, kinematics: Kinematics) -> Array:
        return shaped(f"gear of frame {self.frame!r}", self.gear, kinematics.q.dtype, (6,))


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

    units: ClassVar[Units] = {"gear": ""}

    transmission: Transmission
    gear: Scalar = eqx.field(converter=as_numbers)

    @property
    def count(self) -> int:
        return self.transmission.count

    @property
    def uses_shapes(self) -> bool:
        return self.transmission.uses_shapes

    def length(self, kinematics: Kinematics) -> Scalar | Float[Array, " count"]:
        return self.gear * self.transmission.length(kinematics)

    def moments(self, kinematics: Kinematics) -> Float[Array, "*count nv"]:
        return self.gear * self.transmission.moments(kinematics)

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "*count nb 6"] | None:
        pushed = self.transmission.on_bodies(kinematics)
        return None if pushed is None else self.gear * pushed

    def among(self, surfaces: Any) -> Self:
        return with_fields(self, transmission=self.transmission.among(surfaces))

    def travel_factor(self, scaling: Scaling) -> Factor:
        """Factor of the other one's length."""
        return self.transmission.travel_factor(scaling)

    @property
    def label(self) -> str:
        return self.transmission.label


def _scaled_gear(scaling: Scaling, gear: Array, slides: Sequence[bool]) -> tuple[Factor, Array]:
    """Factor of a length that adds up angles and lengths times gears, and the gears that it has then."""
    sliding = np.array(slides)
    if gear.shape != sliding.shape:
        # One number for all, or a shape that methods refuse.
        return (scaling.length if sliding.all() else 1.0), gear
    if isinstance(gear, Tracer):
        moves = bool(sliding.any())
    else:
        moves = bool(np.any(np.asarray(gear)[sliding]))
    if not moves:
        return 1.0, gear
    return scaling.length, jnp.where(sliding, gear, times(gear, scaling.length))


def as_transmission(x: Transmission | str | ArrayLike) -> Transmission:
    """A transmission; a name is that of a joint."""
    if isinstance(x, str):
        return GearedJoint(x)
    if not isinstance(x, Transmission):
        raise ValueError(f"transmission: expected the name of a joint, or one such as GearedJoint, got {x!r}")
    return x
