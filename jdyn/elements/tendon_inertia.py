"""Inertia along tendons."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import LU, SMALL, as_numbers, solution
from jdyn.dynamics import Kinematics
from jdyn.elements.element import ForceElement
from jdyn.model import Scaling, Units
from jdyn.transmissions import Transmission


class TendonInertia(ForceElement):
    """Inertia that moves as a tendon's length does, such as that of the winch which pulls it: ½ m l̇² of kinetic energy.

    Simulations add it to the mechanism's inertia: M + m J Jᵀ, with the moment arms J, also where the tendon couples
    branches, which MuJoCo leaves out. Functions of a model alone, such as `jdyn.forward_dynamics`, do not know it, and
    `force` is zero.

    >>> model, path = jdyn.load("pendulum"), [("world", [0.0, 0.0, -1.5]), ("tip", [0.0, 0.0, 0.0])]
    >>> rope = jdyn.transmissions.SpatialTendon([jdyn.transmissions.PathPoint(*at) for at in path])
    >>> alone, winch = jdyn.System(model), jdyn.elements.TendonInertia(rope, 2.0)
    >>> start = alone.state(jnp.array([1.5]), jnp.zeros(1))
    >>> for system in (alone, alone.but(elements=[winch])):
    ...     print(jdyn.simulate(system, start, 0.1).v[-1].round(2))
    [-1.46]
    [-0.27]

    Attributes:
        transmission: The tendon, such as a `jdyn.transmissions.SpatialTendon`.
        inertia: m [kg], or [kg m²] of a length in rad.
    """

    adds_inertia: ClassVar[bool] = True
    units: ClassVar[Units] = {"inertia": "kg m^2/x^2"}

    transmission: Transmission
    inertia: Scalar = eqx.field(converter=as_numbers)

    def scaled(self, scaling: Scaling) -> Self:
        """The same along a scaled tendon."""
        return scaling.along(self.transmission.travel_factor(scaling)).numbers(self)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, " nv"]:
        return jnp.zeros_like(kinematics.v)

    def along(self, kinematics: Kinematics) -> tuple[Float[Array, " nv"], Scalar]:
        return self.transmission.moments(kinematics), self.inertia

    def energy(self, kinematics: Kinematics, memory: Any) -> Scalar:
        """Kinetic energy, ½ m l̇²."""
        return 0.5 * self.inertia * (self.transmission.moments(kinematics) @ kinematics.v) ** 2


class AddedInertia(eqx.Module):
    """Inertia along lengths in one state: what the equations of motion have beside M and its forces.

    Attributes:
        moments: Moment arms of each length, J.
        inertias: m of each.
        rates: J̇ v, the accelerations of the lengths where v is constant.
    """

    moments: Float[Array, "lengths nv"]
    inertias: Float[Array, " lengths"]
    rates: Float[Array, " lengths"]

    @property
    def matrix(self) -> Float[Array, "nv nv"]:
        """Jᵀ m J."""
        return self.moments.T @ (self.inertias[:, None] * self.moments)

    @property
    def bias(self) -> Float[Array, " nv"]:
        """Jᵀ m J̇ v."""
        return self.moments.T @ (self.inertias * self.rates)

    def pulls(
        self, responses: Float[Array, "lengths nv"], accelerations: Float[Array, " lengths"]
    ) -> Float[Array, " lengths"]:
        """Forces y along the lengths, y = m l̈, with which inertia resists.

        Args:
            responses: M⁻¹ Jᵀ, transposed: accelerations by unit forces.
            accelerations: Those that lengths would have without inertia.
        """
        # l̈ is what it would be, less J M⁻¹ Jᵀ y.
        left = jnp.eye(len(self.inertias), dtype=responses.dtype) + self.inertias[:, None] * (
            self.moments @ responses.T
        )
        right = (self.inertias * accelerations)[:, None]
        return (solution(left, right) if len(left) <= SMALL else LU.solve(LU.factor(left), right))[:, 0]
