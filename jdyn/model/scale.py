"""The same mechanism in other sizes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array
from numpy.typing import ArrayLike

from jdyn.array import shaped
from jdyn.model.joints import Ball, Free, Helical, Joint
from jdyn.model.model import Limits, Model, checked
from jdyn.model.values import DIRECTIONS
from jdyn.spatial import SpatialInertia, Transform
from jdyn.terminal.messages import enumerated


def scale(model: Model, *, length: ArrayLike = 1.0, mass: ArrayLike = 1.0, time: ArrayLike | None = None) -> Model:
    """A copy of a model with lengths, masses and times multiplied by factors.

    Every number changes as its unit says: moments of inertia by mass × length², torques by mass × length² / time²,
    springs and dampers of turning joints by mass × length² / time² and mass × length² / time, of sliding ones by
    mass / time² and mass / time. The scaled model therefore moves as the model does, only larger and slower: if q(t) is
    a motion of one, q(t / time) is one of the other, with distances of sliding and free joints multiplied by `length`.
    Change numbers that are to be others with `jdyn.vary`.

    Density stays the same with `mass=length**3`. If `time` is left out, gravity stays the same.

    >>> rod = jdyn.load("pendulum")
    >>> large = jdyn.scale(rod, length=4.0, mass=2.0)
    >>> print(large.gravity, large.inertias.mass, jdyn.mass_matrix(large, jnp.zeros(1)) / jdyn.mass_matrix(rod, [0.0]))
    [ 0.    0.   -9.81] [2.] [[32.]]

    Args:
        model: The mechanism.
        length: Factor of all lengths, positive; shapes and frames count.
        mass: Factor of all masses, positive.
        time: Factor of all times, positive; the square root of `length` if left out. Gravity is multiplied by
            length / time².

    Raises:
        ValueError: if a factor is not positive or no scalar, or a joint of your own has geometry that jdyn does not
            know.
    """
    checked(model)
    for joint in model.joints:
        kind, fields = type(joint), {field.name for field in dataclasses.fields(joint)}
        if strange := fields - {*DIRECTIONS, "pitch"}:
            raise ValueError(f"scale: {kind.__name__} joints have {enumerated(sorted(strange))}, of unknown units")
        if kind.nq != kind.nv and not issubclass(kind, (Ball, Free)):
            raise ValueError(f"scale: {kind.__name__} joints have coordinates of unknown units")
    factors = {"length": length, "mass": mass} | ({} if time is None else {"time": time})
    for what, factor in factors.items():
        if not isinstance(factor, Tracer) and not np.all((np.asarray(factor) > 0) & (np.asarray(factor) < np.inf)):
            raise ValueError(f"scale: {what} is {factor}, expected a positive number")
    length, mass, *rest = (
        shaped(what, jnp.asarray(factor, model.dtype), model.dtype, ()) for what, factor in factors.items()
    )
    return _scaled(model, length, mass, *rest)


# In one program: otherwise each of some fifty operations would be one.
@jax.jit
def _scaled(model: Model, length: Array, mass: Array, time: Array | None = None) -> Model:
    topology, limits, inertias, shapes = model.topology, model.limits, model.inertias, model.shapes
    gravity = model.gravity if time is None else model.gravity * (length / time**2)
    time = jnp.sqrt(length) if time is None else time

    def poses(X: Transform) -> Transform:
        return dataclasses.replace(X, translation=X.translation * length)

    # Units of the coordinates: those of sliding are lengths, all others are none.
    slides = np.array([motion == "slide" for kind in topology.kinds for motion in kind.motions], bool)
    in_q = np.array([is_length for kind in topology.kinds for is_length in _lengths(kind)], bool)
    unit, q_unit = jnp.where(slides, length, 1), jnp.where(in_q, length, 1)
    energy = mass * (length / time) ** 2
    force, speed = energy / unit, unit / time
    ratio, offset = model.mimic_ratio, model.mimic_offset
    if topology.mimics:
        followers, leaders = np.array([[topology.v_offsets[body] for body in pair] for pair in topology.mimics]).T
        ratio, offset = ratio * unit[followers] / unit[leaders], offset * unit[followers]
    joints = tuple(
        dataclasses.replace(joint, pitch=joint.pitch * length) if isinstance(joint, Helical) else joint
        for joint in model.joints
    )
    if shapes is not None:
        # Sliding friction is a number; torsional and rolling friction are lengths.
        shapes = dataclasses.replace(
            shapes,
            sizes=shapes.sizes * length,
            placements=poses(shapes.placements),
            friction=shapes.friction * jnp.stack([jnp.ones_like(length), length, length])[None],
            heights=tuple(heights * length for heights in shapes.heights),
            margins=None if shapes.margins is None else shapes.margins * length,
        )
    return dataclasses.replace(
        model,
        placements=poses(model.placements),
        joints=joints,
        inertias=SpatialInertia(
            inertias.mass * mass, inertias.first_moment * (mass * length), inertias.rotational * (mass * length**2)
        ),
        damping=model.damping * (force / speed),
        friction=model.friction * force,
        friction_speed=model.friction_speed * speed,
        stiffness=model.stiffness * (force / unit),
        rest=model.rest * q_unit,
        armature=model.armature * (mass * (length / unit) ** 2),
        limits=Limits(limits.lower * q_unit, limits.upper * q_unit, limits.velocity * speed, limits.effort * force),
        mimic_ratio=ratio,
        mimic_offset=offset,
        frames=poses(model.frames),
        gravity=gravity,
        shapes=shapes,
        links=None,
    )


def _lengths(kind: type[Joint]) -> list[bool]:
    """Which entries of a joint's configuration are lengths."""
    if issubclass(kind, Free):
        return [True] * 3 + [False] * 4
    return [False] * kind.nq if issubclass(kind, Ball) else [motion == "slide" for motion in kind.motions]
