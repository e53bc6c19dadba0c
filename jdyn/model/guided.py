"""Constraints one of whose frames moves as told."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Scalar

from jdyn.model.constraints import Constraint, Moving, Placed
from jdyn.model.names import Name
from jdyn.model.units import Units
from jdyn.spatial import Transform
from jdyn.terminal.messages import unknown


class Still(eqx.Module):
    """A motion of what stays where it is.

    Attributes:
        pose: Its pose.
    """

    units: ClassVar[Units] = {}

    pose: Transform

    def __call__(self, t: Scalar) -> Transform:
        return self.pose


class Guided(Constraint):
    """A constraint one of whose frames moves as told, by a hand or by another machine: the body that is welded to it
    follows, or what it holds by a point.

    >>> def around(t):
    ...     return jdyn.Transform(jnp.eye(3), jnp.stack([jnp.sin(t), 0 * t, -1.5 + 0 * t]))
    >>> held = [jdyn.constraints.Guided(jdyn.constraints.Connect("hand", "tip"), "hand", around)]
    >>> start = jdyn.assemble(jdyn.load("double_pendulum"), held, jnp.array([0.5, 0.5]))
    >>> print(jdyn.frame_pose(jdyn.load("double_pendulum"), start.q, "tip").translation.round(3) + 0.0)
    [ 0.   0.  -1.5]

    Attributes:
        constraint: The constraint.
        guide: Name of the frame in it that moves as told; no frame of the model needs to have this name.
        pose: `t -> Transform`, its pose in `base`, twice differentiable.
        carried: Names of frames in the constraint that the guide carries.
        places: Pose in the guide of each of these.
        base: Name of the body or frame in which `pose` tells the motion.
    """

    units: ClassVar[Units] = {"pose": "pose"}

    constraint: Constraint
    guide: Name = eqx.field(static=True)
    pose: Callable[[Scalar], Transform]
    carried: tuple[Name, ...] = eqx.field(static=True, default=())
    places: tuple[Transform, ...] = ()
    base: Name = eqx.field(static=True, default="world")

    @property
    def frames(self):
        return self.base, *(name for name in self.constraint.frames if name not in self._guided)

    @property
    def joints(self):
        return self.constraint.joints

    @property
    def _guided(self) -> tuple[str, ...]:
        return self.guide, *self.carried

    def residual(self, placed):
        return self.constraint.residual(self._placed(placed))

    def slip(self, placed, moving):
        base, told = placed.frames[0], moving.frames[0]
        X, rate = jax.jvp(self.pose, (placed.t,), (jnp.ones_like(placed.t),))
        turn = rate.rotation @ X.rotation.T
        turning = base.rotation @ jnp.stack([turn[2, 1], turn[0, 2], turn[1, 0]])
        arm = base.rotation @ X.translation + base.translation
        twist = told + jnp.concatenate([turning, base.rotation @ rate.translation + jnp.cross(arm, turning)])
        frames = self._all(moving.frames[1:], [twist] * len(self._guided))
        return self.constraint.slip(self._placed(placed), Moving(frames, moving.joints))

    def closed(self, placed):
        constraint = self.constraint.closed(self._placed(placed))
        pose = eqx.filter_closure_convert(self.pose, placed.t)
        return dataclasses.replace(self, constraint=constraint, pose=pose)

    def _placed(self, placed: Placed) -> Placed:
        """Frames of the constraint itself."""
        X = placed.frames[0] @ self.pose(placed.t)
        return Placed(placed.t, self._all(placed.frames[1:], [X, *(X @ place for place in self.places)]), placed.joints)

    def _all(self, others: Sequence[Any], guided: Sequence[Any]) -> tuple[Any, ...]:
        """Values of all frames of the constraint, by those of other frames and of guided ones."""
        values, rest = dict(zip(self._guided, guided, strict=True)), iter(others)
        return tuple(values[name] if name in values else next(rest) for name in self.constraint.frames)


def guide(
    constraints: Sequence[Constraint], paths: Mapping[str, Transform | Callable[[Scalar], Transform]]
) -> tuple[Constraint, ...]:
    """Constraints whose guides move in another way, such as mocap bodies of MuJoCo files.

    ```
    def around(t):
        return jdyn.Transform(jnp.eye(3), jnp.stack([0.3 * jnp.cos(t), 0.3 * jnp.sin(t), 0.5 + 0 * t]))

    system = jdyn.load_system("scene.xml")
    system = system.but(constraints=jdyn.constraints.guide(system.constraints, {"mocap": around}))
    ```

    Poses are numbers of the system: a program that takes the system may get another pose at every step.

    >>> still = jdyn.Transform(jnp.eye(3), jnp.array([0.0, 0.0, -1.5]))
    >>> held = [jdyn.constraints.Guided(jdyn.constraints.Connect("hand", "tip"), "hand", lambda t: still)]
    >>> (moved,) = jdyn.constraints.guide(held, {"hand": jdyn.Transform(jnp.eye(3), jnp.array([1.0, 0.0, 0.0]))})
    >>> print(moved.pose(0.0).translation)
    [1. 0. 0.]

    Args:
        constraints: Some of them `jdyn.constraints.Guided`.
        paths: Pose of a guide in its base by the guide's name: one where it stays, or `t -> Transform`, twice
            differentiable.

    Raises:
        ValueError: if no constraint has a guide of that name.
    """
    guides = {name for constraint in constraints for name in _guides_of(constraint)}
    for name in paths:
        if name not in guides:
            raise ValueError(unknown("guide", name, tuple(sorted(guides))))
    motions = {name: Still(path) if isinstance(path, Transform) else path for name, path in paths.items()}
    return tuple(_moved(constraint, motions) for constraint in constraints)


def _guides_of(constraint: Constraint) -> list[str]:
    return [constraint.guide, *_guides_of(constraint.constraint)] if isinstance(constraint, Guided) else []


def _moved(constraint: Constraint, motions: Mapping[str, Callable[[Scalar], Transform]]) -> Constraint:
    if not isinstance(constraint, Guided):
        return constraint
    pose = motions.get(constraint.guide, constraint.pose)
    return dataclasses.replace(constraint, constraint=_moved(constraint.constraint, motions), pose=pose)
