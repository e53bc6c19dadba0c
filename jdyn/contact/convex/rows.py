"""How the coordinates of a model move points at which its shapes touch."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import JointKinematics, dof_motions, moved_by
from jdyn.model import WORLD, Model
from jdyn.spatial import Transform


def point_rows(
    model: Model,
    joints: JointKinematics,
    poses: Transform,
    points: Float[Array, "points 3"],
    a: Sequence[int] | np.ndarray,
    b: Sequence[int] | np.ndarray,
) -> Float[Array, "points 3 nv"]:
    """J, so that J v are velocities of points of bodies b relative to bodies a that pass the same places.

    Args:
        model: The mechanism.
        joints, poses: Its kinematics at one configuration.
        points: In the world [m].
        a, b: Bodies, or -1 for the world.
    """
    # Nothing moves the world, which comes last.
    moved = np.pad(moved_by(model).astype(int), [(0, 1), (0, 0)])
    places = [np.where(np.asarray(bodies) == WORLD, model.nb, bodies) for bodies in (a, b)]
    signs = moved[places[1]] - moved[places[0]]
    columns = dof_motions(model, joints, poses)
    at_points = columns[None, :, 3:] + jnp.cross(columns[None, :, :3], points[:, None])
    full = jnp.asarray(signs, points.dtype)[..., None] * at_points
    return jnp.moveaxis(jax.vmap(jax.vmap(model.reduce_force, in_axes=1, out_axes=1))(full), 1, 2)
