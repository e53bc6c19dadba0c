"""Rotors of motors: bodies that follow a joint through a gear, and react on the body that carries them."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from jdyn.array import Structure, shaped
from jdyn.model.build import Builder
from jdyn.model.edit import attach
from jdyn.model.joints import Continuous
from jdyn.model.model import Model, checked
from jdyn.model.values import require
from jdyn.spatial import SpatialInertia
from jdyn.terminal.messages import unknown


class Rotor(Structure):
    """A rotor that a body carries and a joint turns through a gear.

    >>> rotor = jdyn.Rotor("link1", "joint2", axis=(0.0, 1.0, 0.0), inertia=1e-4, ratio=100.0)
    >>> print(rotor.ratio**2 * rotor.inertia)  # the armature that the joint feels
    1.0

    Attributes:
        body: Name of the body that carries it.
        joint: Name of the joint, which has one degree of freedom.
        axis: Direction of the shaft in the body's frame; scaled to unit length.
        inertia: Moment of inertia about the shaft [kg m²], positive.
        ratio: Speed of the rotor relative to the body that carries it, over that of the joint [1, or rad/m].
    """

    body: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    axis: Float[Array, "3"] | ArrayLike
    inertia: Float[Array, ""] | float
    ratio: Float[Array, ""] | float


def with_rotors(model: Model, rotors: Mapping[str, Rotor]) -> Model:
    """A copy of a model whose motors have rotors.

    The inertia of the body that carries a rotor includes it as if it were locked, as robot files have it. A rotor adds
    to what its joint has to move, as `armature` of the size ratio² × inertia would. Unlike armature, it also turns with
    the body that carries it, reacts on it when its speed changes, and is a gyroscope. It becomes a body of the model
    with a joint that follows, so that all methods, simulations, contact and derivatives know it.

    >>> arm = jdyn.load("double_pendulum")
    >>> rotor = jdyn.Rotor("link1", "joint2", axis=(0.0, 1.0, 0.0), inertia=1e-4, ratio=100.0)
    >>> driven = jdyn.with_rotors(arm, {"motor2": rotor})
    >>> q, zero, tau = jnp.array([0.5, 0.0]), jnp.zeros(2), jnp.array([0.0, 1.0])
    >>> print(driven.nv, jdyn.forward_dynamics(driven, q, zero, tau).round(3))
    2 [-3.972  1.439]

    Args:
        model: The mechanism.
        rotors: Rotors by the name that each has as a body and as a joint.

    Raises:
        ValueError: if there is no such body or joint, a joint has more than one degree of freedom, a name is taken, or
            a number has a wrong shape or cannot be.

    Source: Vereshchagin 1974, section 1, equations (1.1) and (1.2).
    """
    checked(model)
    for name, rotor in rotors.items():
        model = _with_rotor(model, name, rotor)
    return model


def _with_rotor(model: Model, name: str, rotor: Rotor) -> Model:
    topology, dtype, where = model.topology, model.dtype, f"rotors: {name!r}"
    for what, there, names in (("body", rotor.body, topology.body_names), ("joint", rotor.joint, topology.joint_names)):
        if there not in names:
            raise ValueError(f"{where}: {unknown(what, there, list(names))}")
    if name in (*topology.body_names, *topology.frame_names, *topology.joint_names):
        raise ValueError(f"{where}: {model.name!r} has a link, frame or joint of this name; give the rotor another one")
    carrier, leader = topology.body(rotor.body), topology.joint(rotor.joint)
    if topology.kinds[leader].nv != 1:
        raise ValueError(
            f"{where}: joint {rotor.joint!r} is {topology.kinds[leader].__name__}, with {topology.kinds[leader].nv} "
            "degrees of freedom; a motor turns a joint that has one"
        )
    for what, value in (("axis", rotor.axis), ("ratio", rotor.ratio)):
        require(where, what, value)
    if not isinstance(rotor.inertia, Tracer) and not np.all(np.asarray(rotor.inertia) > 0):
        raise ValueError(f"{where}: inertia is {rotor.inertia}, expected a positive number")
    axis = shaped(f"{where}: axis", jnp.asarray(rotor.axis, dtype), dtype, (3,))
    axis = axis / jnp.linalg.norm(axis)
    inertia, ratio = (
        shaped(f"{where}: {what}", jnp.asarray(getattr(rotor, what), dtype), dtype, ()) for what in ("inertia", "ratio")
    )
    # What follows a joint that follows another one follows that.
    ratio, offset = ratio * jnp.ones(1, dtype), jnp.zeros(1, dtype)
    for row, (follower, first) in enumerate(topology.mimics):
        if follower == leader:
            leader, offset, ratio = first, ratio * model.mimic_offset[row], ratio * model.mimic_ratio[row]
    about = inertia * axis[np.array([0, 0, 1, 0, 1, 2])] * axis[np.array([0, 1, 1, 2, 2, 2])]
    whole = attach(model, _alone(name, axis, about), rotor.body)
    locked = whole.inertias.rotational.at[carrier].add(-about)
    return dataclasses.replace(
        whole,
        topology=dataclasses.replace(whole.topology, mimics=(*topology.mimics, (model.nb, leader))),
        inertias=dataclasses.replace(whole.inertias, rotational=locked),
        mimic_ratio=jnp.concatenate([whole.mimic_ratio, ratio]),
        mimic_offset=jnp.concatenate([whole.mimic_offset, offset]),
    )


def _alone(name: str, axis: Float[Array, "3"], about: Float[Array, "6"]) -> Model:
    """A model of the rotor alone: it has inertia about its shaft, and nothing else."""
    builder = Builder(name)
    # Numbers of Python, which the builder takes within `jit`, too.
    joint = Continuous((0, 0, 1))  # type: ignore[arg-type]
    builder.add_link(name, joint, joint_name=name, mass=1.0, inertia=np.ones(3))
    alone = builder.build(dtype=axis.dtype)
    zero = jnp.zeros(1, axis.dtype)
    return dataclasses.replace(
        alone,
        joints=(Continuous(axis[None]),),
        inertias=SpatialInertia(zero, jnp.zeros((1, 3), axis.dtype), about[None]),
    )
