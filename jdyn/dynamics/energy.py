"""Kinetic and potential energy."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.centroidal import first_moment
from jdyn.dynamics.kinematics import joint_kinematics, poses, velocities
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import SpatialInertia, Transform


@compiled
def kinetic_energy(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """Kinetic energy ½ vᵀ M v, that of the rotors included [J].

    >>> print(jdyn.kinetic_energy(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([3.0])).round(3))
    1.5

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    q, v = checked(model, q=q, v=v)
    v = model.expand_velocity(v)
    return energy_of_motion(model, velocities(model, joint_kinematics(model, model.expand(q)), v), v)


def energy_of_motion(model: Model, moved: Float[Array, "nb 6"], v: Float[Array, " nv_full"]) -> Float[Array, ""]:
    """Kinetic energy by the velocities of all bodies, each in its own frame, and of all joints [J]."""
    momenta = jax.vmap(SpatialInertia.momentum)(model.inertias, moved)
    return 0.5 * (jnp.sum(moved * momenta) + jnp.sum(model.armature * v * v))


@compiled
def potential_energy(model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """Potential energy of gravity, zero at the world's origin, and of the joint springs, zero at rest [J].

    >>> print(jdyn.potential_energy(jdyn.load("pendulum"), jnp.zeros(1)).round(3))
    -4.905

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    (q,) = checked(model, q=q)
    q = model.expand(q)
    return energy_of_places(model, poses(model, joint_kinematics(model, q).X), q)


def energy_of_places(model: Model, X: Transform, q: Float[Array, " nq_full"]) -> Float[Array, ""]:
    """Potential energy by the world poses of all bodies and the coordinates of all joints [J]."""
    by_group = (model.by_group("q", model.rest), model.by_group("q", q))
    stretch = model.merge_groups("v", model.map_joints(lambda joint, rest, q: joint.stretch(rest, q), *by_group))
    return 0.5 * jnp.sum(model.stiffness * stretch**2) - model.gravity @ first_moment(model, X)
