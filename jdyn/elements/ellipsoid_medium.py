"""Forces of a medium on ellipsoids."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import as_numbers
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN, Vector
from jdyn.elements.element import ForceElement
from jdyn.elements.medium import principal_axes
from jdyn.geometry.directions import length_and_unit
from jdyn.model import Locked, Model, Name, OtherRoot, Units
from jdyn.spatial import Transform

Each = Float[Array, " *n"]


class EllipsoidMedium(ForceElement):
    """Drag, lift and viscosity of a medium, and the inertia of what flows around, as ellipsoids feel them.

    With the semiaxes r of an ellipsoid, its volume V, its velocity u and spin ω in the medium, in its axes and at its
    centre, the force is the sum of

        blunt and slender drag  −ρ (C_b A + C_s (A_max − A)) |u| u,
        Kutta's lift             C_K ρ A (û · n) (n × u) × u,
        Magnus' lift             C_M ρ V ω × u,
        viscosity               −6 π η r_mean u,
        added mass               ρ (m ∘ u) × ω,

    and the torque the sum of

        angular drag            −ρ |(C_a I + C_s (I_max − I)) ∘ ω| ω,
        viscosity               −8 π η r_mean³ ω,
        added mass               ρ (m ∘ u) × u + ρ (J ∘ ω) × ω.

    A is the area of the ellipsoid's shadow along u, and A_max the largest one; n is normal to the ellipse whose shadow
    that is; I_x = 8/15 π r_x max(r_y, r_z)⁴, with I_max the largest. Lift and added mass do no work in a still medium.

    Inertia of what flows around resists accelerations too, which MuJoCo leaves out, and so is left out here: a body
    begins to move as fast as without it.

    >>> model = jdyn.load("pendulum")
    >>> water = jdyn.elements.EllipsoidMedium.of(model, density=1000.0, viscosity=1e-3)
    >>> print(water.semiaxes.round(3), water.generalized(model, 0.0, jnp.zeros(1), jnp.array([2.0])).round(1))
    [[0.642 0.065 0.065]] [-143.]

    Source: MuJoCo's documentation, chapter Computation, section Ellipsoid model; Tuckerman, Inertia factors of
    ellipsoids for use in airship design, NACA report 210, 1925, for `of`.

    Attributes:
        bodies: Name of the body of each ellipsoid.
        poses: Of the ellipsoids in these, at their centres.
        semiaxes: r [m].
        added_volumes: m: added mass along each axis over density [m³].
        added_moments: J: added moments of inertia over density [m⁵].
        density: ρ [kg/m³].
        viscosity: η [Pa s].
        wind: Velocity of the medium in the world [m/s].
        blunt_drag: C_b, of each ellipsoid or of all.
        slender_drag: C_s.
        angular_drag: C_a.
        kutta_lift: C_K.
        magnus_lift: C_M.
    """

    units: ClassVar[Units] = {
        "semiaxes": "m", "added_volumes": "m^3", "added_moments": "m^5", "density": "N s^2/m^4", "viscosity": "Pa s",
        "wind": "m/s", "blunt_drag": "", "slender_drag": "", "angular_drag": "", "kutta_lift": "", "magnus_lift": "",
    }  # fmt: skip

    bodies: tuple[Name, ...] = eqx.field(static=True)
    poses: Transform
    semiaxes: Float[Array, "n 3"] = eqx.field(converter=as_numbers)
    added_volumes: Float[Array, "n 3"] = eqx.field(converter=as_numbers)
    added_moments: Float[Array, "n 3"] = eqx.field(converter=as_numbers)
    density: Scalar = eqx.field(default=0.0, converter=as_numbers)
    viscosity: Scalar = eqx.field(default=0.0, converter=as_numbers)
    wind: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)
    blunt_drag: Each = eqx.field(default=0.5, converter=as_numbers)
    slender_drag: Each = eqx.field(default=0.25, converter=as_numbers)
    angular_drag: Each = eqx.field(default=1.5, converter=as_numbers)
    kutta_lift: Each = eqx.field(default=1.0, converter=as_numbers)
    magnus_lift: Each = eqx.field(default=1.0, converter=as_numbers)

    @classmethod
    def of(cls, model: Model, density: ArrayLike = 0.0, viscosity: ArrayLike = 0.0, wind: Vector = ORIGIN) -> Self:
        """A medium about all bodies of a model, whose numbers must be known, as ellipsoids of the same inertia."""
        bodies, poses, principal = principal_axes(model)
        masses = np.asarray(model.inertias.mass, float)[bodies][:, None]
        # A body without extent along an axis gets a little.
        squares = (np.sum(principal, axis=1, keepdims=True) - 2 * principal) * 5 / (2 * masses)
        semiaxes = np.sqrt(np.maximum(squares, 1e-6 * np.max(squares, axis=1, keepdims=True)))
        volumes, moments = added_inertia(semiaxes)
        sizes = jnp.asarray(np.stack([semiaxes, volumes, moments]), model.dtype)
        names = tuple(model.body_names[body] for body in bodies)
        return cls(names, poses, sizes[0], sizes[1], sizes[2], density, viscosity, wind)

    def without_locked(self, locked: Locked) -> Self | None:
        """The same about the bodies that move."""
        sizes = "semiaxes", "added_volumes", "added_moments"
        coefficients = "blunt_drag", "slender_drag", "angular_drag", "kutta_lift", "magnus_lift"
        return locked.on_bodies_in_motion(self, *sizes, *coefficients)

    def with_other_root(self, change: OtherRoot) -> Self:
        """The same about the same bodies."""
        return change.on_bodies(self)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        numbers = np.array([kinematics.model.topology.body(name) for name in self.bodies])
        axes, velocities = kinematics.poses.rotation[numbers], kinematics.velocities[numbers]
        coefficients = self.blunt_drag, self.slender_drag, self.angular_drag, self.kutta_lift, self.magnus_lift
        each = jnp.stack([jnp.broadcast_to(x, numbers.shape) for x in coefficients], axis=1)
        sizes = jnp.stack([self.semiaxes, self.added_volumes, self.added_moments], axis=1)
        forces = jax.vmap(self._on_ellipsoid)(self.poses, sizes, each, axes, velocities)
        return jnp.zeros_like(kinematics.velocities).at[numbers].add(forces)

    def _on_ellipsoid(self, pose: Transform, sizes: Array, coefficients: Array, axes: Array, velocity: Array) -> Array:
        """Force on a body by one of its ellipsoids."""
        r, volumes, moments = sizes
        blunt, slender, angular, kutta, magnus = coefficients
        motion = pose.motion_to_child(velocity)
        spin, u = motion[:3], motion[3:] - pose.rotation.T @ (axes.T @ self.wind)
        speed, direction = length_and_unit(u)
        # At rest any direction will do.
        direction = jnp.where(speed > 0, direction, jnp.array([1.0, 0.0, 0.0], u.dtype))
        _, r_mid, r_max = jnp.sort(r)
        to_normal, normal = length_and_unit(direction / r**2)
        shadow = np.pi * jnp.prod(r) * to_normal / length_and_unit(direction / r)[0]
        facing = direction @ normal
        drag = self.density * (blunt * shadow + slender * (np.pi * r_max * r_mid - shadow)) * speed
        lift = kutta * shadow * speed**2 * facing * (facing * direction - normal)
        lift = lift + magnus * 4 / 3 * np.pi * jnp.prod(r) * jnp.cross(spin, u)
        swept = 8 / 15 * np.pi * r * jnp.maximum(jnp.roll(r, -1), jnp.roll(r, 1)) ** 4
        most = 8 / 15 * np.pi * r_mid * r_max**4
        turning, _ = length_and_unit((angular * swept + slender * (most - swept)) * spin)
        radius, momentum = jnp.mean(r), volumes * u
        force = self.density * (lift + jnp.cross(momentum, spin)) - (drag + 6 * np.pi * self.viscosity * radius) * u
        torque = self.density * (jnp.cross(momentum, u) + jnp.cross(moments * spin, spin) - turning * spin)
        torque = torque - 8 * np.pi * self.viscosity * radius**3 * spin
        return pose.force_to_parent(jnp.concatenate([torque, force]))


def added_inertia(semiaxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Added mass and added moments of inertia of ellipsoids along their axes, over the density of what flows around
    them [m³, m⁵].

    Source: Tuckerman 1925; the integrals are those of Carlson, R_D.
    """
    squares = semiaxes**2
    after, before = np.roll(squares, -1, axis=-1), np.roll(squares, 1, axis=-1)
    product = np.prod(semiaxes, axis=-1, keepdims=True)
    kappa = 2 / 3 * product * scipy.special.elliprd(after, before, squares)
    volume = 4 / 3 * np.pi * product
    apart, change = after - before, np.roll(kappa, 1, axis=-1) - np.roll(kappa, -1, axis=-1)
    # Where two semiaxes are equal nothing moves with a turn about the third one.
    round_there = np.abs(apart) <= 1e-9 * (after + before)
    below = 2 * apart - (after + before) * change
    moments = volume / 5 * apart**2 * change / np.where(round_there, 1, below)
    return volume * kappa / (2 - kappa), np.where(round_there, 0, moments)
