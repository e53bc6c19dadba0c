"""Configurations as numbers of sliders."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.spatial import quaternion_exp, quaternion_log

# Reach of a coordinate without a limit, to each side [rad or m].
REACH = {"turn": float(np.pi), "screw": float(np.pi), "slide": 1.0}
UNITS = {"turn": "rad", "screw": "rad", "slide": "m"}


class Coordinate(NamedTuple):
    """One slider.

    Attributes:
        name: Joint, with a number where it has several degrees of freedom.
        unit: rad or m.
        lower, upper: Range [rad or m].
    """

    name: str
    unit: str
    lower: float
    upper: float


def coordinates(model: Model) -> list[Coordinate]:
    """A slider for each degree of freedom, in the order of velocities.

    Ranges are the limits, also those of joints that follow; where there is none, ±π rad or ±1 m. Rotations of ball and
    free joints are rotation vectors.

    Args:
        model: The mechanism.
    """
    topology = model.topology
    motions = [motion for kind in topology.kinds for motion in kind.motions]
    own = [motions[i] for i in topology.independent_v]
    start = model.neutral()
    here = np.asarray(to_sliders(model, start))
    lower, upper = (here + np.asarray(room) for room in model.room(start))
    return [
        Coordinate(name, UNITS[motion], *_finite(float(low), float(high), REACH[motion]))
        for name, motion, low, high in zip(topology.v_names, own, lower, upper, strict=True)
    ]


def _finite(lower, upper, reach):
    """A joint with a limit on one side moves as far from it as a joint without limits moves in all."""
    if np.isfinite(lower) and not np.isfinite(upper):
        return lower, lower + 2 * reach
    if np.isfinite(upper) and not np.isfinite(lower):
        return upper - 2 * reach, upper
    return (lower, upper) if np.isfinite(lower) else (-reach, reach)


@compiled
def to_sliders(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Numbers of the sliders for a configuration: coordinates themselves, and rotation vectors of quaternions."""

    def numbers(joint, q):
        return q if joint.nq == joint.nv else jnp.concatenate([quaternion_log(q[-4:]), q[:-4]])

    full = model.merge_groups("v", model.map_joints(numbers, model.by_group("q", model.expand(model.normalize(q)))))
    return full[np.array(model.topology.independent_v, int)]


@compiled
def from_sliders(model: Model, u: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """The configuration of the sliders' numbers."""

    def configuration(joint, u):
        return u if joint.nq == joint.nv else jnp.concatenate([u[3:], quaternion_exp(u[:3])])

    full = model.merge_groups("q", model.map_joints(configuration, model.by_group("v", model.expand_velocity(u))))
    # Followers are left out: where they are follows from the rest.
    return full[np.array(model.topology.independent_q, int)]
