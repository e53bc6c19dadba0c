"""Energies, centre of mass and momentum."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    X = poses(model, joint_kinematics(model, q).X)
    by_group = (model.by_group("q", model.rest), model.by_group("q", q))
    stretch = model.merge_groups("v", model.map_joints(lambda joint, rest, q: joint.stretch(rest, q), *by_group))
    return 0.5 * jnp.sum(model.stiffness * stretch**2) - model.gravity @ _first_moment(model, X)


def _first_moment(model: Model, X: Transform) -> Float[Array, "3"]:
    """Σ m c in world axes about the world's origin."""
    I = model.inertias
    return jnp.sum(jax.vmap(lambda X, h, m: X.rotation @ h + m * X.translation)(X, I.first_moment, I.mass), axis=0)


@compiled
def center_of_mass(model: Model, q: Float[Array, " nq"]) -> Float[Array, "3"]:
    """Centre of mass of all bodies in the world frame [m]; NaN where none has mass.

    >>> print(jdyn.center_of_mass(jdyn.load("pendulum"), jnp.array([jnp.pi / 2])).round(3) + 0.0)
    [0.5 0.  0. ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    (q,) = checked(model, q=q)
    X = poses(model, joint_kinematics(model, model.expand(q)).X)
    return _first_moment(model, X) / jnp.sum(model.inertias.mass)


@compiled
def momentum(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
    """Spatial momentum [angular; linear] of all bodies about their centre of mass, in world axes [N m s, N s].

    >>> print(jdyn.momentum(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0])).round(3) + 0.0)
    [ 0.    -0.167  0.     1.     0.     0.   ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Orin, Goswami, Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 2013.
    """
    q, v = checked(model, q=q, v=v)
    joints = joint_kinematics(model, model.expand(q))
    X = poses(model, joints.X)
    center = _first_moment(model, X) / jnp.sum(model.inertias.mass)
    about_center = Transform(X.rotation, X.translation - center[None])
    momenta = jax.vmap(SpatialInertia.momentum)(model.inertias, velocities(model, joints, model.expand_velocity(v)))
    return jnp.sum(jax.vmap(Transform.force_to_parent)(about_center, momenta), axis=0)
