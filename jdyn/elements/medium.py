"""Resistance of a medium to whole bodies."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN, Vector
from jdyn.elements.element import ForceElement
from jdyn.model import Locked, Model, Name, OtherRoot, Units
from jdyn.model.inertial import central_inertia
from jdyn.spatial import Transform


class Medium(ForceElement):
    """Drag and viscosity of a medium, as boxes of the same inertia as the bodies feel it.

    With the sides b of a box, its velocity u and spin ω in the medium, in its axes and at its centre,

        f_x = −½ ρ b_y b_z |u_x| u_x − 3 π d η u_x,
        n_x = −(1/64) ρ b_x (b_y⁴ + b_z⁴) |ω_x| ω_x − π d³ η ω_x,

    with the mean side d.

    >>> model = jdyn.load("pendulum")
    >>> honey = jdyn.elements.Medium.of(model, density=1400.0, viscosity=10.0)
    >>> print(honey.boxes.round(2), honey.generalized(model, 0.0, jnp.zeros(1), jnp.array([2.0])).round(2))
    [[0.99 0.1  0.1 ]] [-66.14]

    Source: MuJoCo's documentation, chapter Computation, section Inertia model.

    Attributes:
        bodies: Names of bodies.
        poses: Of the boxes in these, at their centres.
        boxes: Lengths of their sides [m].
        density: ρ [kg/m³].
        viscosity: η [Pa s].
        wind: Velocity of the medium in the world [m/s].
    """

    units: ClassVar[Units] = {"boxes": "m", "density": "N s^2/m^4", "viscosity": "Pa s", "wind": "m/s"}

    bodies: tuple[Name, ...] = eqx.field(static=True)
    poses: Transform
    boxes: Float[Array, "n 3"] = eqx.field(converter=as_numbers)
    density: Scalar = eqx.field(default=0.0, converter=as_numbers)
    viscosity: Scalar = eqx.field(default=0.0, converter=as_numbers)
    wind: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)

    @classmethod
    def of(cls, model: Model, density: ArrayLike = 0.0, viscosity: ArrayLike = 0.0, wind: Vector = ORIGIN) -> "Medium":
        """A medium about all bodies of a model, whose numbers must be known."""
        bodies, poses, principal = principal_axes(model)
        masses = np.asarray(model.inertias.mass, float)[bodies]
        boxes = np.stack([box_of(mass, moments) for mass, moments in zip(masses, principal, strict=True)])
        names = tuple(model.body_names[body] for body in bodies)
        return cls(names, poses, jnp.asarray(boxes, model.dtype), density, viscosity, wind)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        numbers = np.array([kinematics.model.topology.body(name) for name in self.bodies])
        axes, velocities = kinematics.poses.rotation[numbers], kinematics.velocities[numbers]
        on_boxes = jax.vmap(self._on_box, (0, 0, 0, 0))(self.poses, self.boxes, axes, velocities)
        return jnp.zeros_like(kinematics.velocities).at[numbers].add(on_boxes)

    def without_locked(self, locked: Locked) -> "Medium | None":
        """The same about the bodies that move."""
        return locked.on_bodies_in_motion(self, "boxes")

    def with_other_root(self, change: OtherRoot) -> "Medium":
        """The same about the same bodies."""
        return change.on_bodies(self)

    def _on_box(self, pose: Transform, box: Array, axes: Array, velocity: Array) -> Float[Array, "6"]:
        """Force on a body by its box."""
        motion = pose.motion_to_child(velocity)
        spin, through = motion[:3], motion[3:] - pose.rotation.T @ (axes.T @ self.wind)
        others, fourth = jnp.prod(box) / box, box**4
        d = jnp.mean(box)
        force = -0.5 * self.density * others * jnp.abs(through) * through - 3 * np.pi * d * self.viscosity * through
        turning = self.density / 64 * box * (jnp.sum(fourth) - fourth) * jnp.abs(spin) * spin
        return pose.force_to_parent(jnp.concatenate([-turning - np.pi * d**3 * self.viscosity * spin, force]))


def principal_axes(model: Model) -> tuple[list[int], Transform, np.ndarray]:
    """The massive bodies of a model, poses of their principal axes at their centres of mass, and moments of inertia
    about these [kg m²]."""
    massive = [body for body in range(model.nb) if model.inertias.mass[body] > 0]
    found = [_principal(jax.tree.map(lambda x, k=k: x[k], model.inertias)) for k in massive]
    poses = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(each, model.dtype) for each in x]), *(X for X, _ in found))
    return massive, poses, np.stack([moments for _, moments in found])


def _principal(inertia) -> tuple[Transform, np.ndarray]:
    """Pose of a body's principal axes and the moments of inertia about these."""
    mass, first_moment, rotational = (np.asarray(x, float) for x in jax.tree.leaves(inertia))
    com, moments = central_inertia(float(mass), first_moment, rotational)
    principal, axes = np.linalg.eigh(moments)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return Transform(axes, com), principal  # type: ignore[arg-type]


def box_of(mass: float, principal: np.ndarray) -> np.ndarray:
    """Sides of the box with principal moments of inertia [m]."""
    return np.sqrt(np.maximum(np.sum(principal) - 2 * principal, 1e-15) * 6 / mass)
