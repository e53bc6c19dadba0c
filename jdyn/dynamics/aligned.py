"""Bodies in frames whose z axis is that of their joint, number by number, for recursions that are to be fast.

A joint of one degree of freedom then turns about z or slides along it: S is a coordinate axis, of which nothing is
stored, and turning mixes two columns of a rotation. Joints of several degrees of freedom keep their body's own frame.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import joint_kinematics, padded
from jdyn.dynamics.traverse import Packed, Run, pack_coordinates, schedule
from jdyn.model import Continuous, Helical, Joint, Model, Prismatic, Revolute, taken
from jdyn.spatial import symmetric, unique
from jdyn.spatial.components import Inertia, Pose, Vector, add, rotate_back, scale

# Rows of S where it is not zero, of joints that turn about their axis (2) or slide along it (5).
_ROWS: dict[type[Joint], set[int]] = {Revolute: {2}, Continuous: {2}, Prismatic: {5}, Helical: {2, 5}}


class Column(eqx.Module):
    """A column of S.

    Attributes:
        rows: Where it is not zero.
        values: What it is there.
    """

    rows: tuple[int, ...] = eqx.field(static=True)
    values: tuple[Array, ...]

    @property
    def vector(self) -> Vector:
        """All six numbers."""
        known = dict(zip(self.rows, self.values, strict=True))
        return tuple(known.get(row, 0) for row in range(6))


class AlignedBody(eqx.Module):
    """A body and its joint.

    Attributes:
        pose: In the parent's frame.
        S: Columns of the motion subspace, a degree of freedom each.
        inertia: Of the body alone.
        R: Rotor inertias of the joint.
    """

    pose: Pose
    S: tuple[Column, ...]
    inertia: Inertia
    R: Vector

    def joint_motion(self, rates: Vector) -> Vector:
        """S v."""
        motion: Vector = (0,) * 6
        for column, rate in zip(self.S, rates, strict=True):
            motion = add(motion, scale(rate, column.vector))
        return motion


def aligned_bodies(model: Model, q: Float[Array, " nq_full"]) -> Packed:
    """An `AlignedBody` of every body at the full configuration `q`, packed for traversal.

    Joints are padded to the widest one of their run: columns beyond a joint's own are zero, with a rotor inertia of
    one, so that they never move.
    """
    E, topology = _frames(model), model.topology
    E_parent = jnp.concatenate([E, jnp.eye(3, dtype=E.dtype)[None]])[np.array(topology.parents)].mT
    placements = E_parent @ model.placements.rotation @ E, (E_parent @ model.placements.translation[..., None])[..., 0]
    inertias = _aligned_inertias(model, E)
    rotors = pack_coordinates(topology, model.armature, fill=1)
    joints = () if all(run.nv == 1 for run in schedule(topology)) else _joints(model, E, E_parent, q)
    bodies = []
    for run, rotor in zip(schedule(topology), rotors, strict=True):
        placed = Pose(*(_numbers(taken(x, run.bodies), run.bodies) for x in placements))
        pose, S = _screws(model, run, placed, q) if run.nv == 1 else _of_run(run, *joints)
        inertia = jax.tree.map(lambda x, run=run: taken(x, run.bodies), inertias)
        bodies.append(AlignedBody(pose, S, inertia, _numbers(rotor, run.bodies)))
    return tuple(bodies)


def aligned_vectors(model: Model, x: Float[Array, "nb 6"]) -> Packed:
    """Spatial vectors of all bodies, from their own frames, packed for traversal."""
    E, packed = _frames(model), []
    for run in schedule(model.topology):
        rotation, vector = (_numbers(taken(x, run.bodies), run.bodies) for x in (E, x))
        packed.append((*rotate_back(rotation, vector[:3]), *rotate_back(rotation, vector[3:])))
    return tuple(packed)


def drifts(model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]) -> list[Vector | None]:
    """Apparent rates of S times the joints' velocities, run by run; None where all joints have a constant S."""
    runs = schedule(model.topology)
    if all(run.nv == 1 for run in runs):
        return [None] * len(runs)
    # In the bodies' own frames, which are the aligned ones where S is not constant.
    biases = model.map_joints(lambda joint, q, v: joint.bias(q, v), model.by_group("q", q), model.by_group("v", v))
    drift = model.merge_groups("bodies", biases)
    return [None if run.nv == 1 else _numbers(taken(drift, run.bodies), run.bodies) for run in runs]


def _frames(model) -> Float[Array, "nb 3 3"]:
    """E of each body: its aligned frame's axes in its own frame."""

    def frame(joint):
        return _frame_along(joint.axis) if type(joint) in _ROWS else jnp.eye(3, dtype=model.dtype)

    return model.merge_groups("bodies", model.map_joints(frame))


def _frame_along(z: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Axes x, y, z of a frame with z along the given vector (Duff et al. 2017)."""
    z = z / jnp.linalg.norm(z)
    sign = jnp.where(z[2] < 0, -1, 1).astype(z.dtype)
    a = -1 / (sign + z[2])
    b = z[0] * z[1] * a
    x = jnp.stack([1 + sign * z[0] * z[0] * a, sign * b, -sign * z[0]])
    y = jnp.stack([b, sign + z[1] * z[1] * a, -z[1]])
    return jnp.stack([x, y, z], axis=1)


def _aligned_inertias(model, E) -> Inertia:
    """Of all bodies, about the same origins."""
    own = model.inertias
    first = (E.mT @ own.first_moment[..., None])[..., 0]
    rotational = jax.vmap(lambda E, J: unique(E.T @ symmetric(J) @ E))(E, own.rotational)
    return Inertia(own.mass, tuple(jnp.moveaxis(first, -1, 0)), tuple(jnp.moveaxis(rotational, -1, 0)))


def _screws(model, run: Run, placed: Pose, q) -> tuple[Pose, tuple[Column]]:
    """Poses and subspaces of a run of joints with one degree of freedom."""
    topology = model.topology
    kinds = {topology.kinds[body] for body in run.bodies.ravel()}
    rows = tuple(sorted(set().union(*(_ROWS[kind] for kind in kinds))))
    nothing = (jnp.zeros((), model.dtype),) * 3
    screws = model.map_joints(lambda joint: _screw(joint) if type(joint) in _ROWS else nothing)
    turn, slide, length = (taken(x, run.bodies) for x in model.merge_groups("bodies", screws))
    x = taken(q, np.array(topology.q_offsets)[run.bodies])
    R, p = placed
    if 2 in rows:
        # As `rotation_about` has it, of an axis whose length is one but for rounding.
        cos, sin = jnp.cos(turn * x), length * jnp.sin(turn * x)
        along = 1 + (length**2 - 1) * (1 - cos)
        R = sum(((R[i] * cos + R[i + 1] * sin, R[i + 1] * cos - R[i] * sin, R[i + 2] * along) for i in (0, 3, 6)), ())
    if 5 in rows:
        p = add(p, scale(slide * length * x, placed.R[2::3]))
    values = {2: turn * length, 5: slide * length}
    return Pose(R, p), (Column(rows, tuple(values[row] for row in rows)),)


def _screw(joint):
    """Angle and displacement per unit of coordinate, and the length of the axis."""
    turn = jnp.asarray(not isinstance(joint, Prismatic), joint.axis.dtype)
    slide = joint.pitch if isinstance(joint, Helical) else 1 - turn
    return turn, slide, jnp.linalg.norm(joint.axis)


def _joints(model, E, E_parent, q) -> tuple[Array, Array, Array]:
    """Rotations (nb, 3, 3) and translations (nb, 3) of all bodies and the columns (nb, width, 6) of their joints."""
    joints = joint_kinematics(model, q)
    S = padded(model, [jnp.swapaxes(S, 1, 2) for S in joints.S])
    aligned = [(part @ E) for part in (S[..., :3], S[..., 3:])]
    translation = (E_parent @ joints.X.translation[..., None])[..., 0]
    return E_parent @ joints.X.rotation @ E, translation, jnp.concatenate(aligned, axis=-1)


def _of_run(run: Run, rotation, translation, S) -> tuple[Pose, tuple[Column, ...]]:
    """Poses and subspaces of a run out of those of all `_joints`."""
    columns = [_numbers(taken(S[:, k], run.bodies), run.bodies) for k in range(run.nv)]
    pose = Pose(*(_numbers(taken(x, run.bodies), run.bodies) for x in (rotation, translation)))
    return pose, tuple(Column(tuple(range(6)), column) for column in columns)


def _numbers(x: Array, slots: np.ndarray) -> Vector:
    """The numbers of each slot's vector or matrix, apart."""
    return tuple(jnp.moveaxis(x.reshape(*slots.shape, -1), -1, 0))
