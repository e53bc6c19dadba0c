"""The protocol of transmissions: how the motion of a mechanism changes a length, and a force along it the motion."""

import abc
from typing import Any, ClassVar, Self

import equinox as eqx
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Kinematics
from jdyn.model import Factor, Scaling, unit_of


class Transmission(eqx.Module):
    """A length that depends on the configuration, with its moment arms: the turns of a geared joint, a tendon.

    A force f along a transmission does the work f dl, so that its generalized force is f times the moments.

    >>> class Drop(jdyn.transmissions.Transmission):  # how far below the origin a body is
    ...     def length(self, kinematics):
    ...         return -kinematics.position("tip")[2]
    ...
    ...     def moments(self, kinematics):
    ...         return kinematics.generalized(kinematics.push("tip", force=[0.0, 0.0, -1.0]))
    >>> hoist = jdyn.actuators.Motor(Drop())
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[hoist], controller=jdyn.control.Constant(jnp.ones(1)))
    >>> print(jdyn.simulate(system, system.state(jnp.array([jnp.pi / 2])), 0.01).tau[0])
    [-1.]

    An orientation has three such lengths, as a vector, and a row of moments and forces on bodies for each of them;
    actuators for it see vectors.

    Attributes:
        uses_bodies: Whether methods look at bodies and frames, not at `kinematics.q` alone.
        uses_shapes: Whether they look at what collision shapes touch, as they are `among` them.
        count: Number of its lengths; one where that is no vector.
    """

    uses_bodies: ClassVar[bool] = True
    uses_shapes: ClassVar[bool] = False
    count: ClassVar[int] = 1

    @abc.abstractmethod
    def length(self, kinematics: Kinematics) -> Scalar | Float[Array, " count"]:
        """Length in one state [m or rad]."""

    @abc.abstractmethod
    def moments(self, kinematics: Kinematics) -> Float[Array, "*count nv"]:
        """Slopes of the length along the axes of v, which are moment arms: its rate is `moments @ v`."""

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "*count nb 6"] | None:
        """Forces on bodies of a unit force along it, each in its frame and at its origin, as load cells feel them; None
        if it acts on joints alone, as here."""
        return None

    def among(self, surfaces: Any) -> Self:
        """The same among collision shapes, if it looks at them."""
        return self

    def travel_factor(self, scaling: Scaling) -> Factor:
        """Factor of its length, whose unit is `"length"` among the `units` of the class.

        Raises:
            ValueError: if there is none.
        """
        if (unit := unit_of(self, "length")) is None:
            raise scaling.refusal(self, 'has a length of unknown unit; give the class `units = {"length": "m"}`')
        return scaling.factor(unit)

    @property
    def label(self) -> str:
        """Name of what it acts on, by which an actuator without a name is called."""
        return ""
