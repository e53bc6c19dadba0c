"""Resistance of a fluid."""

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN
from jdyn.elements.element import ForceElement
from jdyn.geometry.directions import length_and_unit
from jdyn.model import Name, Units


class Drag(ForceElement):
    """Resistance of a fluid to a point of a frame, −(b + c |u|) u at the velocity u in the fluid, and to its turning,
    −(b_ω + c_ω |ω|) ω.

    >>> ball = jdyn.ROBOTS["chain"](1, floating_base=True)
    >>> air = jdyn.elements.Drag("link1", quadratic=0.5)
    >>> motion = jdyn.simulate(ball, ball.neutral(), jnp.zeros(6), 5.0, elements=[air])
    >>> print(motion.v[-1, 3:].round(2) + 0.0)  # √(m g / c)
    [ 0.    0.   -4.43]

    Attributes:
        frame: Name of a body or frame.
        linear: b [N s/m].
        quadratic: c [N s²/m²]: ½ ρ C A.
        turning: b_ω [N m s/rad].
        turning_quadratic: c_ω [N m s²/rad²].
        wind: Velocity of the fluid in the world [m/s].
        point: Point of the frame [m].
    """

    units: ClassVar[Units] = {
        "linear": "N s/m", "quadratic": "N s^2/m^2", "turning": "N m s", "turning_quadratic": "N m s^2", "wind": "m/s",
        "point": "m",
    }  # fmt: skip

    frame: Name = eqx.field(static=True)
    linear: Scalar = eqx.field(default=0.0, converter=as_numbers)
    quadratic: Scalar = eqx.field(default=0.0, converter=as_numbers)
    turning: Scalar = eqx.field(default=0.0, converter=as_numbers)
    turning_quadratic: Scalar = eqx.field(default=0.0, converter=as_numbers)
    wind: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)
    point: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        velocity = kinematics.velocity(self.frame, self.point)
        spin, through = velocity[:3], velocity[3:] - self.wind
        (speed, _), (rate, _) = length_and_unit(through), length_and_unit(spin)
        force = -(self.linear + self.quadratic * speed) * through
        torque = -(self.turning + self.turning_quadratic * rate) * spin
        return kinematics.push(self.frame, force, torque, self.point)
