"""A given force on a frame."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers, shaped
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN
from jdyn.elements.element import ForceElement
from jdyn.model import Name, Units

Given = Float[Array, "3"] | Callable[[Scalar], Float[Array, "3"]]


def _given(x: Any) -> Any:
    return x if callable(x) else as_numbers(x)


class FrameForce(ForceElement):
    """A force at a point of a frame and a torque, constant or functions of time: a thruster, a gust, a push.

    Where a function jumps, tell `jdyn.simulate` the time among its `jump_times`.

    >>> rocket = jdyn.ROBOTS["chain"](1, floating_base=True)
    >>> engine = jdyn.elements.FrameForce("link1", lambda t: jnp.array([0.0, 0.0, 9.81 + t]), axes="frame")
    >>> motion = jdyn.simulate(rocket, rocket.neutral(), jnp.zeros(6), 2.0, elements=[engine])
    >>> print(motion.v[-1, 5].round(2))  # ∫ t dt, since the engine carries 1 kg
    2.0

    Attributes:
        frame: Name of a body or frame.
        thrust: Force [N], a vector or a function of time [s].
        torque: [N m], likewise.
        axes: Of both: those of the `"world"` or of the `"frame"`.
        point: Point of the frame [m].
    """

    units: ClassVar[Units] = {"thrust": "N", "torque": "N m", "point": "m"}

    frame: Name = eqx.field(static=True)
    thrust: Given = eqx.field(converter=_given)
    torque: Given = eqx.field(default=ORIGIN, converter=_given)
    axes: Literal["world", "frame"] = eqx.field(static=True, default="world")
    point: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)

    def __check_init__(self):
        if self.axes not in ("world", "frame"):
            raise ValueError(f"FrameForce.axes: expected 'world' or 'frame', got {self.axes!r}")

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        given, dtype = (self.thrust, self.torque), kinematics.q.dtype
        force, torque = (shaped("FrameForce", x(t) if callable(x) else x, dtype, (3,)) for x in given)
        if self.axes == "frame":
            axes = kinematics.pose(self.frame).rotation
            force, torque = axes @ force, axes @ torque
        return kinematics.push(self.frame, force, torque, self.point)

    def closed(self, t: Scalar, kinematics: Kinematics) -> "FrameForce":
        thrust, torque = (eqx.filter_closure_convert(x, t) if callable(x) else x for x in (self.thrust, self.torque))
        return dataclasses.replace(self, thrust=thrust, torque=torque)
