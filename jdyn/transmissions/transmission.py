"""The protocol of transmissions: how the motion of a mechanism changes a length, and a force along it the motion."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Kinematics


class Transmission(eqx.Module):
    """A length that depends on the configuration, with its moments: the turns of a geared joint, a tendon, a point.

    A force f along a transmission does the work f dl, so that its generalized force is f times the moments.
    """

    @abc.abstractmethod
    def length(self, kinematics: Kinematics) -> Scalar:
        """Length in one state [m or rad]."""

    @abc.abstractmethod
    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        """Slopes of the length along the axes of v, which are moment arms: its rate is `moments @ v`."""
