"""Many transmissions in one state."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array.dot import dot
from jdyn.dynamics import Coordinates, Kinematics
from jdyn.model import Model
from jdyn.transmissions.geared import GearedJoint
from jdyn.transmissions.transmission import Transmission


class Travels(NamedTuple):
    """Lengths of transmissions, their rates, and moment arms, a row for each of them; some have several.

    Attributes:
        lengths: l [m or rad].
        velocities: dl/dt [m/s or rad/s].
        moments: ∂l/∂q along the axes of v.
    """

    lengths: Float[Array, " n"]
    velocities: Float[Array, " n"]
    moments: Float[Array, "n nv"]

    @classmethod
    def at(cls, transmissions: Sequence[Transmission], model: Model, q: Array, v: Array) -> "Travels":
        """Travels in the state `(q, v)` of a model, with one look at its bodies, if any transmission looks at them."""
        kinematics: Any = Coordinates(model, q, v)
        if any(each.uses_bodies for each in transmissions):
            kinematics = Kinematics.of(model, q, v)
        topology = model.topology
        screws = [
            i for i, each in enumerate(transmissions)
            if isinstance(each, GearedJoint) and topology.kinds[topology.joint(each.joint)].nq == 1
        ]  # fmt: skip
        others = [i for i in range(len(transmissions)) if i not in screws]
        parts = [_of_screws([transmissions[i] for i in screws], kinematics)] if screws else []
        parts += [
            (jnp.atleast_1d(each.length(kinematics)), jnp.atleast_2d(each.moments(kinematics)))
            for each in map(transmissions.__getitem__, others)
        ]
        rows = rows_of([each.count for each in transmissions])
        places = np.arange(sum(len(part) for part, _ in parts))
        order = np.argsort(np.concatenate([np.atleast_1d(places[rows[i]]) for i in [*screws, *others]]))
        lengths, moments = (jnp.concatenate(each)[order] for each in zip(*parts, strict=True))
        return cls(lengths, dot(moments, v), moments)

    def generalized(self, forces: Float[Array, " n"]) -> Float[Array, " nv"]:
        """Generalized forces of forces along the transmissions [N m or N]."""
        return dot(forces, self.moments)


def rows_of(counts: Sequence[int]) -> list[int | slice]:
    """Row of each transmission in `Travels`, or rows of one with several lengths, by how many each has."""
    ends = np.cumsum(counts).tolist()
    return [end - 1 if count == 1 else slice(end - count, end) for end, count in zip(ends, counts, strict=True)]


def forces_on_bodies(
    transmissions: Sequence[Transmission], kinematics: Kinematics, forces: Float[Array, " n"]
) -> Float[Array, "nb 6"]:
    """Forces on bodies of forces along transmissions, each in its frame and at its origin, without those that act on
    joints alone."""
    total = jnp.zeros_like(kinematics.velocities)
    for transmission, row in zip(transmissions, rows_of([each.count for each in transmissions]), strict=True):
        force = forces[row]
        if (pushed := transmission.on_bodies(kinematics)) is not None:
            total = total + (force * pushed if transmission.count == 1 else jnp.tensordot(force, pushed, 1))
    return total


def _of_screws(joints: Sequence[Any], kinematics: Kinematics) -> tuple[Array, Array]:
    """Lengths and moments of joints with one coordinate, by one look at all coordinates: a scene has dozens."""
    model, topology = kinematics.model, kinematics.model.topology
    bodies = [topology.joint(each.joint) for each in joints]
    gears = jnp.stack([each.gears(kinematics)[0] for each in joints])
    lengths = gears * model.expand(kinematics.q)[np.array([topology.q_offsets[body] for body in bodies])]
    unit = np.eye(topology.v_offsets[-1])[[topology.v_offsets[body] for body in bodies]]
    return lengths, jax.vmap(model.reduce_force)(gears[:, None] * jnp.asarray(unit, gears.dtype))
