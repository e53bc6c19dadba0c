"""Adhesion of a body to what it touches."""

import abc
from typing import ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure, with_fields
from jdyn.dynamics import Kinematics
from jdyn.model import Name, Units
from jdyn.transmissions.transmission import Transmission


class Surfaces(Structure):
    """Collision shapes of a model, as transmissions that `uses_shapes` see them."""

    @abc.abstractmethod
    def attraction(self, kinematics: Kinematics, link: str) -> Float[Array, "nb 6"]:
        """Forces on bodies, each in its frame and at its origin, that pull a link and what it touches together: one
        newton, spread evenly over the points of contact, along their normals."""


class NoSurfaces(Surfaces):
    """Surfaces of a system without contact."""

    def attraction(self, kinematics, link):
        return jnp.zeros_like(kinematics.velocities)


class Adhesion(Transmission):
    """Adhesion of a link to what it touches: suction cups, magnets, feet of a gecko.

    A force f along it pulls the link and what it touches together: f / n at each of n points of contact, along the
    normal. Where nothing is touched there is no force, and in a system without contact there is none at all. Its
    length is zero, its rate is the mean speed at which surfaces approach each other. This is MuJoCo's `<adhesion>`.

    It is for actuators of a `jdyn.System` with compliant or convex contact. The force jumps when a touch begins or
    ends, of which derivatives know nothing; what holds is pressed together, and keeps touching.

    >>> builder = jdyn.Builder("cup")
    >>> builder.add_link("cup", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("cup", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision", placement=jdyn.pose(rpy=(jnp.pi, 0, 0)))
    >>> under_ceiling = builder.build()
    >>> suction = jdyn.actuators.Motor(jdyn.transmissions.Adhesion("cup"), strength=50.0, command_range=(0.0, 1.0))
    >>> system = jdyn.System(under_ceiling, actuators=[suction], contact=jdyn.CompliantContact())
    >>> start = system.state(under_ceiling.neutral().at[2].set(-0.0999))
    >>> on, off = (system.but(controller=jdyn.control.Constant(jnp.array([x]))) for x in (1.0, 0.0))
    >>> print(*(jdyn.simulate(each, start, 0.5).q[-1, 2].round(1) for each in (on, off)))
    -0.1 -1.3

    Attributes:
        link: Name of the link whose collision shapes adhere.
        surfaces: What is touched; simulations find it.
    """

    uses_shapes: ClassVar[bool] = True
    units: ClassVar[Units] = {"length": "m"}

    link: Name = eqx.field(static=True)
    surfaces: Surfaces | None = None

    def length(self, kinematics: Kinematics) -> Scalar:
        return jnp.zeros((), kinematics.q.dtype)

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return kinematics.generalized(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"]:
        if self.surfaces is None:
            raise ValueError(f"Adhesion: {self.link!r} can be that of an actuator of a jdyn.System alone")
        # Raises an error if there is no such link.
        kinematics.pose(self.link)
        return self.surfaces.attraction(kinematics, self.link)

    def among(self, surfaces: Surfaces) -> Self:
        return with_fields(self, surfaces=surfaces)

    @property
    def label(self) -> str:
        return self.link
