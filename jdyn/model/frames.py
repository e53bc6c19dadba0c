"""More frames on a model."""

import dataclasses

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from jdyn.model.model import Model, as_pose, checked
from jdyn.model.topology import WORLD
from jdyn.spatial import Transform


def with_frame(model: Model, name: str, link: str, placement: Transform | ArrayLike = (0, 0, 0)) -> Model:
    """A copy of a model with one frame more, such as that of a tool.

    >>> arm = jdyn.with_frame(jdyn.load("double_pendulum"), "camera", "tip", (0.0, 0.0, 0.5))
    >>> print(jdyn.frame_pose(arm, jnp.zeros(2), "camera").translation)
    [ 0.   0.  -1.5]

    Args:
        model: The mechanism.
        name: Of the new frame.
        link: A body, a frame, or `"world"`.
        placement: Pose of the frame in that link, a `Transform` or a translation [m].

    Raises:
        ValueError: if a link has that name, no link has the other one, or a placement has a wrong shape.
    """
    checked(model)
    if name in (*model.body_names, *model.frame_names):
        raise ValueError(f"name: {model.name!r} has a link or frame called {name!r} already")
    carrier, pose = carrier_of(model, link, as_pose("placement", placement, model.dtype))
    topology = dataclasses.replace(
        model.topology,
        frame_names=(*model.topology.frame_names, name),
        frame_bodies=(*model.topology.frame_bodies, carrier),
    )
    frames = jax.tree.map(lambda all, one: jnp.concatenate([all, one[None]]), model.frames, pose)
    return dataclasses.replace(model, topology=topology, frames=frames)


def carrier_of(model: Model, link: str, pose: Transform) -> tuple[int, Transform]:
    """The body that carries a link, a body, a frame or the world, and the pose there of what has a pose in the link."""
    if link in model.frame_names:
        row = model.frame_names.index(link)
        return model.topology.frame_bodies[row], jax.tree.map(lambda x: x[row], model.frames) @ pose
    return (WORLD if link == "world" and link not in model.body_names else model.topology.body(link)), pose
