"""Shapes of a model, as transmissions that adhere see them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.contact.colliders import Colliders
from jdyn.contact.points import contact_points
from jdyn.dynamics import Kinematics
from jdyn.transmissions import Surfaces


class ModelSurfaces(Surfaces):
    """The collision shapes of a model.

    Attributes:
        colliders: The shapes.
    """

    colliders: Colliders

    def attraction(self, kinematics: Kinematics, link: str) -> Float[Array, "nb 6"]:
        own = [entry.link == link for entry in self.colliders.entries]
        pairs = tuple(pair for pair in self.colliders.pairs if own[pair[0]] or own[pair[1]])
        poses, shapes = kinematics.poses, dataclasses.replace(self.colliders, pairs=pairs)
        found, belong = contact_points(shapes, poses)
        touch = found.exists & (found.distance < 0)
        touch = touch.astype(found.distance.dtype)
        share = touch / jnp.maximum(jnp.sum(touch), 1)
        # On the first shape, since normals lead to the second one.
        force = share[:, None] * found.normal
        origin, position = poses.translation[0], (found.a + found.b) / 2
        wrenches = jnp.concatenate([jnp.cross(position - origin[None], force), force], axis=1)
        bodies = np.arange(len(poses.translation))[:, None]
        first, second = (np.array(shapes.bodies(side), int)[belong.of_points] for side in (0, 1))
        signs = (bodies == first).astype(int) - (bodies == second)
        torque, force = jnp.split(jnp.asarray(signs, share.dtype) @ wrenches, 2, axis=1)
        torque = torque - jnp.cross(poses.translation - origin[None], force)
        in_bodies = (jax.vmap(lambda R, x: R.T @ x)(poses.rotation, x) for x in (torque, force))
        return jnp.concatenate(list(in_bodies), axis=1)
