"""The same mechanism in other sizes."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from jdyn.array import shaped
from jdyn.model.joints import Ball, Free, Helical, Joint
from jdyn.model.model import Limits, Model, checked
from jdyn.model.shapes import alike
from jdyn.model.topology import Topology
from jdyn.model.units import Factor, Scaling, times
from jdyn.model.values import DIRECTIONS
from jdyn.spatial import SpatialInertia, Transform
from jdyn.terminal.messages import enumerated


def scale(
    model: Model,
    *,
    length: ArrayLike = 1.0,
    mass: ArrayLike = 1.0,
    time: ArrayLike | None = None,
    similar: bool = True,
) -> Model:
    """A copy of a model with lengths, masses and times multiplied by factors: the model of `jdyn.scale`, which says
    more.

    Args:
        model: The mechanism.
        length: Factor of all lengths, positive; shapes and frames count.
        mass: Factor of all masses, positive.
        time: Factor of all times, positive; the square root of `length` if left out.
        similar: Whether numbers that have to do with time and forces change as well.

    Raises:
        ValueError: as `jdyn.scale`.
    """
    return scaled_model(scaling_of(model, length, mass, time, similar))


def scaling_of(model: Model, length: ArrayLike, mass: ArrayLike, time: ArrayLike | None, similar: bool) -> Scaling:
    """Factors of a model, checked as `jdyn.scale` says; 1.0 for what does not change."""
    checked(model)
    for joint in model.joints:
        kind, fields = type(joint), {field.name for field in dataclasses.fields(joint)}
        if strange := fields - {*DIRECTIONS, "pitch"}:
            raise ValueError(f"scale: {kind.__name__} joints have {enumerated(sorted(strange))}, of unknown units")
        if kind.nq != kind.nv and not issubclass(kind, (Ball, Free)):
            raise ValueError(f"scale: {kind.__name__} joints have coordinates of unknown units")
    if time is not None and not similar:
        raise ValueError("scale: without similar motions times stay what they are; leave out time, or similar=False")
    given = {"length": length, "mass": mass} | ({} if time is None else {"time": time})
    factors: dict[str, Factor] = {}
    for what, factor in given.items():
        if not isinstance(factor, Tracer) and not np.all((np.asarray(factor) > 0) & (np.asarray(factor) < np.inf)):
            raise ValueError(f"scale: {what} is {factor}, expected a positive number")
        same = isinstance(factor, float | int) and factor == 1
        factors[what] = 1.0 if same else shaped(what, jnp.asarray(factor, model.dtype), model.dtype, ())
    if time is None:
        fall = factors["length"]
        factors["time"] = 1.0 if isinstance(fall, float | int) or not similar else jnp.sqrt(fall)
    return Scaling(model, factors["length"], factors["mass"], factors["time"], similar, natural=time is None)


def scaled_model(scaling: Scaling) -> Model:
    """The model with other numbers."""
    model = scaling.model
    factors = (jnp.asarray(x, model.dtype) for x in (scaling.length, scaling.mass, scaling.time))
    return _scaled(model, *factors, scaling.similar, scaling.natural)


def coordinate_factors(scaling: Scaling) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Factors of the coordinates of a configuration, and of their units in velocities, without time."""
    model, topology = scaling.model, scaling.model.topology
    in_q, in_v = _units(topology, jnp.asarray(scaling.length, model.dtype))
    return in_q[np.array(topology.independent_q, int)], in_v[np.array(topology.independent_v, int)]


# In one program: otherwise each of some fifty operations would be one.
@functools.partial(jax.jit, static_argnums=(4, 5))
def _scaled(model: Model, length: Array, mass: Array, time: Array, similar: bool, natural: bool) -> Model:
    topology, limits, inertias, shapes = model.topology, model.limits, model.inertias, model.shapes
    gravity = model.gravity if natural else model.gravity * (length / time**2)

    def poses(X: Transform) -> Transform:
        return dataclasses.replace(X, translation=X.translation * length)

    def changed(x: Array, factor: Array) -> Array:
        """Numbers that have to do with time or forces."""
        return times(x, factor) if similar else x

    q_unit, unit = _units(topology, length)
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
        by_kind, stated = jnp.stack([jnp.ones_like(length), length, length])[None], shapes.stated_friction
        shapes = dataclasses.replace(
            shapes,
            sizes=shapes.sizes * length,
            placements=poses(shapes.placements),
            friction=shapes.friction * by_kind,
            heights=tuple(heights * length for heights in shapes.heights),
            margins=None if shapes.margins is None else shapes.margins * length,
            stated_friction=stated if stated is None else stated * alike([stated, by_kind])[1],
        )
    return dataclasses.replace(
        model,
        placements=poses(model.placements),
        joints=joints,
        inertias=SpatialInertia(
            inertias.mass * mass, inertias.first_moment * (mass * length), inertias.rotational * (mass * length**2)
        ),
        damping=changed(model.damping, force / speed),
        friction=changed(model.friction, force),
        friction_speed=changed(model.friction_speed, speed),
        stiffness=changed(model.stiffness, force / unit),
        rest=model.rest * q_unit,
        armature=model.armature * (mass * (length / unit) ** 2),
        limits=Limits(
            times(limits.lower, q_unit),
            times(limits.upper, q_unit),
            changed(limits.velocity, speed),
            changed(limits.effort, force),
        ),
        mimic_ratio=ratio,
        mimic_offset=offset,
        frames=poses(model.frames),
        gravity=gravity,
        shapes=shapes,
        links=None,
    )


def _units(topology: Topology, length: Array) -> tuple[Float[Array, " nq_full"], Float[Array, " nv_full"]]:
    """Factors of all coordinates of configurations and of velocities, without time: those of sliding are lengths."""
    slides = np.array([motion == "slide" for kind in topology.kinds for motion in kind.motions], bool)
    in_q = np.array([is_length for kind in topology.kinds for is_length in _lengths(kind)], bool)
    return jnp.where(in_q, length, 1), jnp.where(slides, length, 1)


def _lengths(kind: type[Joint]) -> list[bool]:
    """Which entries of a joint's configuration are lengths."""
    if issubclass(kind, Free):
        return [True] * 3 + [False] * 4
    return [False] * kind.nq if issubclass(kind, Ball) else [motion == "slide" for motion in kind.motions]
