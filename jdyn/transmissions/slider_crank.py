"""A slider that a rod couples with what turns."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.model import Name, Units
from jdyn.transmissions.transmission import Transmission


class SliderCrank(Transmission):
    """A rod between a crank and a slider: how far along its axis the slider is.

    The rod, of length r, leads from the origin of the frame `crank` to the slider, a point on the z-axis of the frame
    `slider`, on the side of the lower z: l = p·z − √(r² − |p|² + (p·z)²), where p is the position of the crank in the
    frame of the slider. Rod and slider have no mass.

    Where the rod is at right angles with the axis, the root is zero: moment arms grow without limit on the way there.
    Beyond, where the crank is farther from the axis than the rod is long, the rod counts as one that gives way,
    l = p·z. Keep away from both; the force of an actuator through it jumps there.

    >>> piston = jdyn.transmissions.SliderCrank("tip", "world", rod=2.0)
    >>> crank = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([jnp.pi / 2]), jnp.zeros(1))
    >>> print(piston.length(crank).round(3), piston.moments(crank).round(3))
    -1.732 [1.]

    Attributes:
        crank: Name of a body or a frame.
        slider: Name of a body or a frame, or `"world"`.
        rod: r [m].

    Source: MuJoCo's `cranksite` and `slidersite`.
    """

    units: ClassVar[Units] = {"length": "m", "rod": "m"}

    crank: Name = eqx.field(static=True)
    slider: Name = eqx.field(static=True)
    rod: Scalar = eqx.field(converter=as_numbers)

    def length(self, kinematics: Kinematics) -> Scalar:
        return self._pull(kinematics)[0]

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return kinematics.generalized(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"]:
        _, force, torque = self._pull(kinematics)
        on_slider = kinematics.push(self.slider, force=-force, torque=torque)
        return kinematics.push(self.crank, force=force) + on_slider

    @property
    def label(self) -> str:
        return self.crank

    def _pull(self, kinematics: Kinematics) -> tuple[Scalar, Float[Array, "3"], Float[Array, "3"]]:
        """Length, its slope with the position of the crank, and with a turn of the slider's axes."""
        frame = kinematics.pose(self.slider)
        apart, axis = kinematics.position(self.crank) - frame.translation, frame.rotation[:, 2]
        along = apart @ axis
        square = self.rod.astype(along.dtype) ** 2 - apart @ apart + along**2
        reaches = square > 0
        root = jnp.sqrt(jnp.where(reaches, square, 1))
        length = along - jnp.where(reaches, root, 0)
        share = jnp.where(reaches, 1 - along / root, 1)
        force = share * axis + jnp.where(reaches, 1 / root, 0) * apart
        return length, force, share * jnp.cross(axis, apart)
