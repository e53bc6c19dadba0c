"""Tendons that add up joints."""

from typing import ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers, shaped, with_fields
from jdyn.dynamics import Kinematics
from jdyn.model import JointName, Locked, Scaling, Units, times
from jdyn.terminal.messages import unknown
from jdyn.transmissions.transmission import Transmission


class FixedTendon(Transmission):
    """A length that adds up coordinates of joints, l = Σ c q + l₀: a tendon on round pulleys, a differential.

    >>> tendon = jdyn.transmissions.FixedTendon(["joint1", "joint2"], [0.03, -0.02])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([1.0, 0.5]), jnp.zeros(2))
    >>> print(f"{tendon.length(arm):.2f}", tendon.moments(arm))
    0.02 [ 0.03 -0.02]

    Attributes:
        joints: Names of joints with one coordinate each; they may follow others.
        coefficients: c of each [m/rad, or 1 for joints that slide]; one number counts for all.
        offset: l₀ [m].

    Methods raise ValueError, if there is no such joint, a joint has more than one coordinate, or there is another
    number of coefficients.
    """

    uses_bodies: ClassVar[bool] = False
    units: ClassVar[Units] = {"length": "m", "offset": "m"}

    joints: tuple[JointName, ...] = eqx.field(static=True, converter=tuple)
    coefficients: Float[Array, "*joints"] = eqx.field(default=1.0, converter=as_numbers)
    offset: Scalar = eqx.field(default=0.0, converter=as_numbers)

    def length(self, kinematics: Kinematics) -> Scalar:
        model = kinematics.model
        places = [model.topology.q_offsets[body] for body in self._bodies(kinematics)]
        return self._each(kinematics) @ model.expand(kinematics.q)[jnp.array(places)] + self.offset

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        model, each = kinematics.model, self._each(kinematics)
        places = [model.topology.v_offsets[body] for body in self._bodies(kinematics)]
        return model.reduce_force(jnp.zeros(model.topology.v_offsets[-1], each.dtype).at[jnp.array(places)].add(each))

    @property
    def label(self) -> str:
        return "+".join(self.joints)

    def without_locked(self, locked: Locked) -> "FixedTendon | None":
        """The tendon along the joints that are left; None if there are none."""
        stay = [i for i, joint in enumerate(self.joints) if joint not in locked.joints]
        if len(stay) in (0, len(self.joints)):
            return self if stay else None
        each, offset = jnp.broadcast_to(self.coefficients, len(self.joints)), self.offset
        for c, joint in zip(each, self.joints, strict=True):
            if joint in locked.joints:
                offset = offset + c * locked.joints[joint][0]
        joints = tuple(self.joints[i] for i in stay)
        return with_fields(self, joints=joints, coefficients=each[np.array(stay)], offset=offset)

    def scaled(self, scaling: Scaling) -> Self:
        """The tendon of scaled joints."""
        one = jnp.ones((), scaling.model.dtype)
        each = [times(one, scaling.length) / times(one, scaling.joint(joint)) for joint in self.joints]
        coefficients = jnp.broadcast_to(self.coefficients, len(self.joints))
        return scaling.numbers(self, coefficients=times(coefficients, jnp.stack(each)))

    def _bodies(self, kinematics: Kinematics) -> list[int]:
        topology = kinematics.model.topology
        for name in self.joints:
            if name not in topology.joint_names:
                raise ValueError(unknown("joint", name, topology.joint_names))
            kind = topology.kinds[topology.joint(name)]
            if (kind.nq, kind.nv) != (1, 1):
                raise ValueError(f"joint {name!r}: a tendon needs joints with one coordinate, got a {kind.__name__}")
        return [topology.joint(name) for name in self.joints]

    def _each(self, kinematics: Kinematics) -> Float[Array, " joints"]:
        count = (len(self.joints),)
        return jnp.broadcast_to(shaped("coefficients", self.coefficients, kinematics.q.dtype, count, ()), count)
