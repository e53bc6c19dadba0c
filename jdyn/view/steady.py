"""Pictures of one configuration after another, as from a camera on a tripod."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, UInt8

from jdyn.model import Model
from jdyn.view.camera import Camera
from jdyn.view.playback import poses_of
from jdyn.view.stage import Stage, staged

# Configurations that are to be in the picture.
_DRAWN = 16


class SteadyPictures:
    """Pictures of a mechanism that moves, of which nobody knows yet where to.

    Args:
        model: The mechanism.
        q: Configuration in which it starts [rad or m].
        camera: As for `jdyn.animate`. If left out, it follows a base that moves freely, or else sees all of the
            configurations within the limits of the joints.
        size: Width and height [pixels].
    """

    def __init__(self, model: Model, q: Float[ArrayLike, " nq"], camera: Camera | None, size: tuple[int, int]):
        bases, seen = model.topology.bases, jnp.asarray(q, model.dtype)[None]
        if camera is None and bases:
            camera = Camera(follow=model.body_names[bases[0]])
        elif camera is None:
            seen = jnp.concatenate([seen, _drawn(model)])
        self._model, self._follow = model, None if camera is None else camera.follow
        self._stage = staged(model, poses_of(model, seen[:, None]), camera, size, "visual", ())
        self._background = self._stage.backgrounds()(0) if self._follow is None else None

    def of(self, q: Float[ArrayLike, " nq"]) -> UInt8[np.ndarray, "h w 3"]:
        """A picture of one configuration."""
        stage = self._showing(jnp.asarray(q, self._model.dtype))
        return stage.picture(0, stage.backgrounds()(0) if self._background is None else self._background)

    def _showing(self, q: Array) -> Stage:
        poses = poses_of(self._model, q[None, None])
        shift = np.zeros((1, 3)) if self._follow is None else poses.points(self._model, self._follow)[0]
        return dataclasses.replace(self._stage, poses=poses, shift=shift)


def _drawn(model: Model) -> Float[Array, "k nq"]:
    return jax.vmap(model.random)(jax.random.split(jax.random.key(0), _DRAWN))
