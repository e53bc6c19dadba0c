"""Poses of everything that is drawn in a configuration."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics import center_of_mass, forward_kinematics
from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.spatial import Transform, matrix_to_quaternion


class Posed(NamedTuple):
    """Places in the world.

    Attributes:
        positions: Origins of the bodies [m].
        rotations: Their orientations, quaternions wxyz.
        axes: Unit vectors along the axes of the degrees of freedom, those of followers too, in the order of full
            velocities; an axis passes through the origin of its body.
        center_of_mass: Of the whole mechanism [m].
    """

    positions: Float[Array, "nb 3"]
    rotations: Float[Array, "nb 4"]
    axes: Float[Array, "nv_full 3"]
    center_of_mass: Float[Array, " 3"]


@compiled
def posed(model: Model, q: Float[Array, " nq"]) -> Posed:
    """Places of bodies, joint axes and the centre of mass.

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
    """
    poses = forward_kinematics(model, q)
    axes = model.merge_groups(
        "v",
        model.map_joints(
            _axes, model.by_group("bodies", poses.rotation), model.by_group("q", model.expand(model.normalize(q)))
        ),
    )
    return Posed(*_places(poses), axes, center_of_mass(model, q))


@compiled
def posed_lanes(model: Model, q: Float[Array, "lanes nq"]) -> tuple[Array, Array]:
    """Origins [m] and orientations (quaternions wxyz) of the bodies in several configurations, lanes first."""
    return jax.vmap(lambda q: _places(forward_kinematics(model, q)))(q)


def _places(poses: Transform) -> tuple[Array, Array]:
    return poses.translation, jax.vmap(matrix_to_quaternion)(poses.rotation)


def _axes(joint, rotation, q):
    """Axes of one joint: turns and screws about the angular part of the motion subspace, slides along the linear
    one."""
    subspace = joint.subspace(q)
    turning = jnp.array([motion != "slide" for motion in joint.motions])
    return (rotation @ jnp.where(turning, subspace[:3], subspace[3:])).T
