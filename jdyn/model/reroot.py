"""The same mechanism with another root of a tree that moves freely.

A joint on the way from the old root to the new one moves its other side. Joints with one degree of freedom do so with
the opposite axis, and keep their coordinates.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from jdyn.execution.compiled import precise
from jdyn.model.edit import row_of, stack_of
from jdyn.model.joints import Continuous, Free, Helical, Joint, Prismatic, Revolute
from jdyn.model.model import Limits, Model, checked
from jdyn.model.topology import WORLD, Topology
from jdyn.model.values import PER_JOINT
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated

# Kinds whose inverse motion is one of the same kind, with the opposite axis.
_REVERSIBLE = (Revolute, Continuous, Prismatic, Helical)
# Numbers of a free joint along the axes of the old root, and the values with which they have no effect.
_FREE = {"damping": 0.0, "friction": 0.0, "stiffness": 0.0, "armature": 0.0, "velocity": np.inf, "effort": np.inf}


def reroot(model: Model, link: str) -> Model:
    """The same mechanism with another link as the root of its tree: the model of `jdyn.reroot`, which says more.

    Args:
        model: The mechanism.
        link: The new root: a body of a tree that moves freely, or a frame on one.

    Raises:
        ValueError: as `jdyn.reroot`.
    """
    checked(model)
    topology = model.topology
    frame = topology.frame_names.index(link) if link in topology.frame_names else None
    root = topology.body(link) if frame is None else topology.frame_bodies[frame]
    if root == WORLD:
        raise ValueError(f"reroot: {link!r} is fixed to the world; expected a link of a tree that moves freely")
    way = topology.supports[root]
    base = way[-1]
    if topology.kinds[base] is not Free:
        raise ValueError(
            f"reroot: {link!r} stands on the ground, by the {topology.kinds[base].__name__} joint "
            f"{topology.joint_names[base]!r}: only a tree with a free base can have another root, see `floating_base` "
            "of jdyn.load"
        )
    if frame is None and root == base:
        return model
    for body in way[:-1]:
        if topology.kinds[body] not in _REVERSIBLE:
            raise ValueError(
                f"reroot: joint {topology.joint_names[body]!r} on the way from {topology.body_names[base]!r} to "
                f"{link!r} is {topology.kinds[body].__name__}; only "
                f"{enumerated([kind.__name__ for kind in _REVERSIBLE])} joints can be reversed"
            )
    _check_base(model, base)
    plan = _planned(topology, way, frame)
    names = [*plan.topology.body_names, *plan.topology.frame_names]
    if taken := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"reroot: there is a link called {enumerated(taken)} already; rename it")
    return _rerooted(model, plan)


def _check_base(model: Model, base: int):
    """Refuse a free joint that does more than to leave its body free."""
    at, joint = model.topology.v_slice(base), model.topology.joint_names[base]
    for what, free in _FREE.items():
        values = getattr(model.limits if what in ("velocity", "effort") else model, what)
        if not isinstance(values, Tracer) and np.any((own := np.asarray(values)[at]) != free):
            raise ValueError(
                f"reroot: {what} of the free joint {joint!r} is {own}, expected {free:g}: it acts on the old root"
            )


class _Plan(NamedTuple):
    """The new topology, and what its parts were.

    Attributes:
        topology: The new one.
        bodies: Old number of each body.
        joints: Old number of each joint.
        way: Old numbers of the bodies from the new root to the old one.
        moved: Old numbers of the bodies whose frames move.
        frames: Old numbers of the frames that stay frames.
        root_frame: Old number of the frame that becomes that of the root; None if the root is a body.
    """

    topology: Topology
    bodies: tuple[int, ...]
    joints: tuple[int, ...]
    way: tuple[int, ...]
    moved: tuple[int, ...]
    frames: tuple[int, ...]
    root_frame: int | None


def _planned(old: Topology, way: tuple[int, ...], frame: int | None) -> _Plan:
    root, base = way[0], way[-1]
    carrier_of = dict(zip(way[1:], way[:-1], strict=True))
    # The joint that moved the new carrier of a body moves the body.
    joint_of = carrier_of | {root: base}
    bodies: list[int] = []
    for body in range(old.nb):
        bodies += way if body == base else () if body in way else (body,)
    joints = tuple(joint_of.get(body, body) for body in bodies)
    parents = (carrier_of.get(body, WORLD if body == root else old.parents[body]) for body in bodies)
    number = {WORLD: WORLD, **{body: i for i, body in enumerate(bodies)}}
    # A body that slides keeps its frame; the origin of one that turns has to be on the axis.
    moved = [body for body in way[1:] if old.kinds[joint_of[body]] is not Prismatic]
    names = {body: f"{old.body_names[body]}_at_{old.joint_names[joint_of[body]]}" for body in moved}
    if frame is not None:
        moved, names[root] = [root, *moved], old.frame_names[frame]
    frames = tuple(row for row in range(len(old.frame_names)) if row != frame)
    topology = Topology(
        name=old.name,
        body_names=tuple(names.get(body, old.body_names[body]) for body in bodies),
        joint_names=tuple(old.joint_names[joint] for joint in joints),
        parents=tuple(number[parent] for parent in parents),
        kinds=tuple(old.kinds[joint] for joint in joints),
        frame_names=(*(old.frame_names[row] for row in frames), *(old.body_names[body] for body in moved)),
        frame_bodies=(*(number[old.frame_bodies[row]] for row in frames), *(number[body] for body in moved)),
        mimics=tuple((joints.index(follower), joints.index(leader)) for follower, leader in old.mimics),
    )
    return _Plan(topology, tuple(bodies), joints, way, tuple(moved), frames, frame)


@functools.partial(jax.jit, static_argnums=1)
@precise
def _rerooted(model: Model, plan: _Plan) -> Model:
    old, new = model.topology, plan.topology
    # New frames of bodies in their old ones.
    moved = {}
    for body in plan.moved:
        joint = plan.joints[plan.bodies.index(body)]
        moved[body] = Transform(jnp.eye(3, dtype=model.dtype), model.placements.translation[joint])
    if plan.root_frame is not None:
        moved[plan.way[0]] = row_of(model.frames, plan.root_frame)

    def placed(poses: Transform, row: int, body: int) -> Transform:
        """One of the poses in a body, in the new frame of that."""
        X = row_of(poses, row)
        return moved[body].inverse() @ X if body in moved else X

    def hung(joint: int) -> Transform:
        """Pose of a joint in what carries it."""
        if joint not in plan.way[:-1]:
            return placed(model.placements, joint, old.parents[joint])
        X, moves = row_of(model.placements, joint).inverse(), old.parents[joint]
        X = X @ moved[moves] if moves in moved else X
        return moved[joint].inverse() @ X if joint in moved else X

    def stacked(poses: list[Transform], like: Transform) -> Transform:
        return jax.tree.map(lambda *x: jnp.stack(x), *poses) if poses else like

    frames = [placed(model.frames, row, old.frame_bodies[row]) for row in plan.frames]
    inertias = jax.tree.map(lambda x: x[np.array(plan.bodies, int)], model.inertias)
    for body, X in moved.items():
        own, at = row_of(model.inertias, body).to_parent(X.inverse()), plan.bodies.index(body)
        inertias = jax.tree.map(lambda x, own, at=at: x.at[at].set(own), inertias, own)
    shapes = model.shapes
    if shapes is not None:
        number = {WORLD: WORLD, **{body: i for i, body in enumerate(plan.bodies)}}
        poses = [placed(shapes.placements, row, entry.body) for row, entry in enumerate(shapes.entries)]
        shapes = dataclasses.replace(
            shapes,
            entries=tuple(entry._replace(body=number[entry.body]) for entry in shapes.entries),
            placements=stacked(poses, shapes.placements),
        )
    in_q, in_v = (
        np.array([k for joint in plan.joints for k in range(offsets[joint], offsets[joint + 1])], int)
        for offsets in (old.q_offsets, old.v_offsets)
    )
    limits, base = model.limits, new.v_slice(plan.bodies.index(plan.way[0]))
    rates = {what: _in_order(what, getattr(limits, what), in_v, base) for what in ("velocity", "effort")}
    return dataclasses.replace(
        model,
        topology=new,
        placements=stacked([hung(joint) for joint in plan.joints], model.placements),
        joints=tuple(_joints(model, plan, group.kind, group.bodies) for group in new.groups),
        inertias=inertias,
        limits=Limits(lower=limits.lower[in_q], upper=limits.upper[in_q], **rates),
        frames=stacked([*frames, *(moved[body].inverse() for body in plan.moved)], model.frames),
        shapes=shapes,
        links=None,
        rest=model.rest[in_q],
        **{what: _in_order(what, getattr(model, what), in_v, base) for what in PER_JOINT},
    )


def _joints(model: Model, plan: _Plan, kind: type[Joint], bodies: tuple[int, ...]) -> Joint:
    """The joints of some bodies, all of one kind, those on the way with the opposite axes in the new carriers."""
    joints = [plan.joints[body] for body in bodies]
    stack: Any = stack_of(model, kind, joints)
    for row, joint in enumerate(joints):
        if joint in plan.way[:-1]:
            R = model.placements.rotation[joint]
            stack = dataclasses.replace(stack, axis=stack.axis.at[row].set(-R @ stack.axis[row]))
    return stack


def _in_order(what: str, values: Array, order: np.ndarray, base: slice) -> Array:
    """Numbers of the degrees of freedom in their new order; NaN where the free joint would have an effect."""
    values = values[order]
    if what not in _FREE:
        return values
    return values.at[base].set(jnp.where(values[base] == _FREE[what], values[base], jnp.nan))
