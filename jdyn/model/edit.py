"""Models made of models: several put together, one fixed on another, joints locked.

What is connected how follows from the topologies, on the host; numbers are moved by JAX, so that they may be traced.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from jdyn.array import shaped
from jdyn.execution.compiled import precise, widest
from jdyn.model.frames import carrier_of
from jdyn.model.joints import Free, Joint
from jdyn.model.model import Executor, Limits, Model, as_pose, checked, take_rows
from jdyn.model.shapes import ROLES, Shape, Shapes, joined
from jdyn.model.topology import WORLD, Topology
from jdyn.model.values import PER_JOINT, require
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated, unknown


def merge(
    models: Mapping[str, Model],
    placements: Mapping[str, Transform | ArrayLike] | None = None,
    *,
    gravity: ArrayLike | None = None,
    name: str | None = None,
) -> Model:
    """One model of several, none of which is fixed to another: the model of `jdyn.merge`, which says more.

    Args:
        models: The parts by name.
        placements: Pose of each part's world in the world, a `Transform` or a translation [m].
        gravity: Acceleration of free fall in the world frame [m/s²]; that of the parts if left out.
        name: Name of the whole; the names of the parts, joined by `+`, if left out.

    Raises:
        ValueError: as `jdyn.merge`.
    """
    if not models:
        raise ValueError("models: expected one or more by name, got none")
    if not all(isinstance(part, str) and part for part in models):
        raise ValueError(f"models: expected names of one letter or more, got {list(models)}")
    for model in models.values():
        checked(model)
    placements = dict(placements or {})
    for part in placements:
        if part not in models:
            raise ValueError(f"placements: {unknown('part', part, list(models))}")
    dtype = widest(list(models.values()))
    poses = {part: as_pose(f"placement of {part!r}", placement, dtype) for part, placement in placements.items()}
    parts = [_Part(model.astype(dtype), f"{part}/", placement=poses.get(part)) for part, model in models.items()]
    fall = _common_gravity({part: model.gravity for part, model in models.items()}, gravity)
    return _together(name or "+".join(models), parts, jnp.asarray(fall, dtype))


def attach(
    model: Model,
    other: Model,
    link: str,
    placement: Transform | ArrayLike = (0, 0, 0),
    *,
    name: str | None = None,
) -> Model:
    """A copy of a model that carries another one on one of its links, as `jdyn.append` makes it, which locks joints of
    bodies that move freely as well.

    Args:
        model: What carries.
        other: What is carried.
        link: A body of `model`, a frame, or `"world"`.
        placement: Pose of the world of `other` in the link's frame, a `Transform` or a translation [m].
        name: If given, names of `other` become `name/...`.

    Raises:
        ValueError: as `jdyn.append`.
    """
    checked(model)
    checked(other)
    dtype = widest((model, other))
    model, other = model.astype(dtype), other.astype(dtype)
    carrier, pose = carrier_of(model, link, as_pose("placement", placement, dtype))
    prefix = f"{name}/" if name else ""
    for (what, names), (_, others) in zip(_names(model).items(), _names(other).items(), strict=True):
        if both := names & {prefix + each for each in others}:
            raise ValueError(
                f"append: both models have a {what} called {enumerated(sorted(both))}; give the appended one a `name`"
            )
    return _together(model.name, [_Part(model), _Part(other, prefix, carrier, link, pose)], model.gravity)


def free_joints(model: Model) -> list[str]:
    """Joints of the bodies that move freely, which `append` fixes."""
    topology = model.topology
    bodies = zip(topology.joint_names, topology.kinds, topology.parents, strict=True)
    return [joint for joint, kind, parent in bodies if kind is Free and parent == WORLD]


def lock(model: Model, joints: Mapping[str, ArrayLike]) -> Model:
    """A copy of a model of which some joints are fixed, at given values: the model of `jdyn.lock`, which says more.

    Args:
        model: The mechanism.
        joints: Coordinates by name of the joint [rad or m]: a number, or one for each coordinate.

    Raises:
        ValueError: as `jdyn.lock`.
    """
    return locked_at(model, locked_values(model, joints))


def locked_at(model: Model, values: dict[int, Float[Array, " coordinates"]]) -> Model:
    """The model of `lock`, by `locked_values`."""
    return _locked(model, tuple(sorted(values)), values) if values else model


def locked_values(model: Model, joints: Mapping[str, ArrayLike]) -> dict[int, Float[Array, " coordinates"]]:
    """Coordinates of joints that are fixed, and of those that follow them, by number of the body that each moves.

    Raises:
        ValueError: as `jdyn.lock`.
    """
    checked(model)
    topology, values = model.topology, {}
    for joint, value in joints.items():
        body = topology.joint(joint)
        for follower, leader in topology.mimics:
            if follower == body:
                raise ValueError(
                    f"joint {joint!r} follows {topology.joint_names[leader]!r}: lock that, and it is locked as well"
                )
        require(f"joint {joint!r}", "value", value)
        count = topology.kinds[body].nq
        shapes = ((), (1,)) if count == 1 else ((count,),)
        values[body] = jnp.reshape(
            shaped(f"joint {joint!r}", jnp.asarray(value, model.dtype), model.dtype, *shapes), count
        )
    for (follower, leader), ratio, offset in zip(topology.mimics, model.mimic_ratio, model.mimic_offset, strict=True):
        if leader in values:
            values[follower] = ratio * values[leader] + offset
    return values


def _names(model: Model) -> dict[str, set[str]]:
    shapes = () if model.shapes is None else model.shapes.entries
    return {
        "link or frame": {*model.body_names, *model.frame_names},
        "joint": {*model.joint_names},
        **{f"{role} shape": {entry.name for entry in shapes if entry.role == role} for role in ROLES},
    }


def _common_gravity(gravities: Mapping[str, Array], given: ArrayLike | None):
    if given is not None:
        require("", "gravity", given)
        return shaped("gravity", jnp.asarray(given), next(iter(gravities.values())).dtype, (3,))
    (first, gravity), *others = gravities.items()
    for part, other in others:
        if other is gravity:
            continue
        if isinstance(gravity, Tracer) or isinstance(other, Tracer):
            raise ValueError(
                f"gravity: that of {first!r} or of {part!r} is traced, so that they cannot be compared; give `gravity`"
            )
        if not np.array_equal(gravity, other):
            raise ValueError(f"gravity: {first!r} has {gravity}, {part!r} has {other}; give the `gravity` of the whole")
    return gravity


# Several models side by side.


class _Part(NamedTuple):
    """A model that becomes part of another one.

    Attributes:
        model: The model.
        prefix: Start of all its names in the whole.
        carrier: Body of the whole that its world is fixed to.
        link: Link that shapes of its world then belong to.
        placement: Pose of its world there; None where that is the identity.
    """

    model: Model
    prefix: str = ""
    carrier: int = WORLD
    link: str = "world"
    placement: Transform | None = None

    def renamed(self, link: str) -> str:
        """The name that one of its links has in the whole."""
        own = (*self.model.body_names, *self.model.frame_names)
        return self.link if link == "world" and link not in own else self.prefix + link


def _together(name: str, parts: Sequence[_Part], gravity: Float[Array, "3"]) -> Model:
    firsts = list(itertools.accumulate((part.model.nb for part in parts), initial=0))
    topology = _topology(name, parts, firsts)
    model = _joined(topology, [part.model for part in parts], [part.placement for part in parts], gravity)
    if model.shapes is None:
        return model
    return dataclasses.replace(model, shapes=_renamed(model.shapes, topology, parts, firsts))


def _topology(name: str, parts: Sequence[_Part], firsts: Sequence[int]) -> Topology:
    names: dict[str, tuple] = dict.fromkeys(("body_names", "joint_names", "kinds", "frame_names"), ())
    bodies: dict[str, tuple] = dict.fromkeys(("parents", "frame_bodies"), ())
    mimics = []
    for part, first in zip(parts, firsts, strict=False):
        own = part.model.topology
        for key in names:
            names[key] += tuple(part.prefix + x if isinstance(x, str) else x for x in getattr(own, key))
        for key in bodies:
            bodies[key] += tuple(part.carrier if body == WORLD else first + body for body in getattr(own, key))
        mimics += [(first + follower, first + leader) for follower, leader in own.mimics]
    return Topology(name=name, mimics=tuple(mimics), **names, **bodies)


# In one program: otherwise each of some fifty operations would be one.
@functools.partial(jax.jit, static_argnums=0)
@precise
def _joined(topology: Topology, models: list[Model], placements: list[Transform | None], gravity) -> Model:
    """The model of this topology, whose shapes are still called as in the parts."""

    def stacked(values):
        return jax.tree.map(lambda *x: jnp.concatenate(x), *values)

    def moved(poses, bodies):
        return stacked(map(_in_carrier, poses, bodies, placements))

    def of_kind(kind):
        groups = (group for model in models for group in zip(model.topology.groups, model.joints, strict=True))
        return stacked([joints for group, joints in groups if group.kind is kind])

    drawn = [
        dataclasses.replace(x, placements=_in_carrier(x.placements, [entry.body for entry in x.entries], placement))
        for x, placement in zip((model.shapes for model in models), placements, strict=True)
        if x is not None
    ]
    keys = "inertias", "limits", "mimic_ratio", "mimic_offset", "rest", *PER_JOINT
    executors: set[Executor] = {model.executor for model in models}
    return Model(
        topology=topology,
        placements=moved([model.placements for model in models], [model.topology.parents for model in models]),
        joints=tuple(of_kind(group.kind) if group.bodies else group.kind() for group in topology.groups),
        frames=moved([model.frames for model in models], [model.topology.frame_bodies for model in models]),
        gravity=gravity,
        shapes=joined(drawn) if drawn else None,
        executor=executors.pop() if len(executors) == 1 else "auto",
        **{key: stacked([getattr(model, key) for model in models]) for key in keys},
    )


def _in_carrier(poses: Transform, bodies: Sequence[int], placement: Transform | None) -> Transform:
    """Poses in bodies of a part, of which those in its world are moved to what carries that."""
    rows = np.flatnonzero(np.array(bodies, int) == WORLD)
    if placement is None or not len(rows):
        return poses
    moved = jax.vmap(placement.__matmul__)(jax.tree.map(lambda x: x[rows], poses))
    return jax.tree.map(lambda x, moved: x.at[rows].set(moved), poses, moved)


def _renamed(shapes: Shapes, topology: Topology, parts: Sequence[_Part], firsts: Sequence[int]) -> Shapes:
    """The shapes by the names and bodies that they have in the whole."""
    entries, excluded, included, stated = [], [], [], []
    for part, first in zip(parts, firsts, strict=False):
        own = part.model.shapes
        if own is None:
            continue
        entries.append([
            entry._replace(
                body=part.carrier if entry.body == WORLD else first + entry.body,
                link=part.renamed(entry.link),
                name=part.prefix + entry.name,
            )
            for entry in own.entries
        ])  # fmt: skip
        excluded += [(part.renamed(a), part.renamed(b)) for a, b in own.excluded]
        included += [(part.prefix + a, part.prefix + b) for a, b in own.included]
        stated += [(part.prefix + a, part.prefix + b) for a, b in own.stated]
    strangers = itertools.permutations(entries, 2)
    pairs = (pair for one, other in strangers for pair in itertools.product(one, other))
    included += [(a.name, b.name) for a, b in pairs if _stands_beside(a, b, topology)]
    return dataclasses.replace(
        shapes,
        entries=tuple(itertools.chain(*entries)),
        excluded=tuple(excluded),
        included=tuple(included),
        stated=tuple(stated),
    )


def _stands_beside(a: Shape, b: Shape, topology: Topology) -> bool:
    """Tell whether `a` is fixed to the world and `b` to a body on the world, which would be taken for relatives though
    they belong to different parts, and may touch."""
    if not a.role == b.role == "collision" or a.body != WORLD or a.link == "world" or b.body == WORLD:
        return False
    bits = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
    return bits != 0 and topology.parents[b.body] == WORLD and topology.kinds[b.body] is not Free


# Fixed joints.


@functools.partial(jax.jit, static_argnums=1)
@precise
def _locked(model: Model, locked: tuple[int, ...], values: dict[int, Array]) -> Model:
    """The model without the joints of some bodies, whose `values` are given."""
    topology = model.topology
    carriers = carriers_of(model, values)

    def moved(poses: Transform, bodies: Sequence[int]) -> list[tuple[int, Transform]]:
        """Carriers of what has poses in bodies, and its poses there."""
        rows = ((body, row_of(poses, row)) for row, body in enumerate(bodies))
        return [(WORLD, X) if body == WORLD else _fixed(carriers[body], X) for body, X in rows]

    kept = [body for body in range(topology.nb) if body not in locked]
    number = {WORLD: WORLD, **{body: i for i, body in enumerate(kept)}}
    inertias = model.inertias
    for body in locked:
        carrier, X = carriers[body]
        if carrier != WORLD:
            own = row_of(model.inertias, body).to_parent(X)
            inertias = jax.tree.map(lambda x, own, at=carrier: x.at[at].add(own), inertias, own)
    hung = [moved(model.placements, topology.parents)[body] for body in kept]
    frames = [*moved(model.frames, topology.frame_bodies), *(carriers[body] for body in locked)]
    mimics = [row for row, (follower, _) in enumerate(topology.mimics) if follower not in locked]
    smaller = Topology(
        name=topology.name,
        body_names=tuple(topology.body_names[body] for body in kept),
        joint_names=tuple(topology.joint_names[body] for body in kept),
        parents=tuple(number[carrier] for carrier, _ in hung),
        kinds=tuple(topology.kinds[body] for body in kept),
        frame_names=(*topology.frame_names, *(topology.body_names[body] for body in locked)),
        frame_bodies=tuple(number[carrier] for carrier, _ in frames),
        mimics=tuple((number[a], number[b]) for a, b in (topology.mimics[row] for row in mimics)),
    )
    in_q, in_v = (
        np.array([k for body in kept for k in range(offsets[body], offsets[body + 1])], int)
        for offsets in (topology.q_offsets, topology.v_offsets)
    )
    ends, rates = ((x, in_q) for x in ("lower", "upper")), ((x, in_v) for x in ("velocity", "effort"))
    shapes = model.shapes
    if shapes is not None:
        placed = moved(shapes.placements, [entry.body for entry in shapes.entries])
        entries = zip(shapes.entries, placed, strict=True)
        shapes = dataclasses.replace(
            shapes,
            entries=tuple(entry._replace(body=number[carrier]) for entry, (carrier, _) in entries),
            placements=_stacked(placed, model.dtype),
        )
    return dataclasses.replace(
        model,
        topology=smaller,
        placements=_stacked(hung, model.dtype),
        joints=tuple(stack_of(model, group.kind, [kept[b] for b in group.bodies]) for group in smaller.groups),
        inertias=jax.tree.map(lambda x: take_rows(x, np.array(kept, int)), inertias),
        limits=Limits(**{key: take_rows(getattr(model.limits, key), places) for key, places in (*ends, *rates)}),
        mimic_ratio=take_rows(model.mimic_ratio, np.array(mimics, int)),
        mimic_offset=take_rows(model.mimic_offset, np.array(mimics, int)),
        frames=_stacked(frames, model.dtype),
        shapes=shapes,
        links=None,
        rest=take_rows(model.rest, in_q),
        **{key: take_rows(getattr(model, key), in_v) for key in PER_JOINT},
    )


def carriers_of(model: Model, values: dict[int, Array]) -> list[tuple[int, Transform | None]]:
    """For each body the one that it moves with, once joints are fixed, and its pose there; None for itself."""
    topology, carriers = model.topology, []
    for body, parent in enumerate(topology.parents):
        if body not in values:
            carriers.append((body, None))
            continue
        number, row = topology.place_of_joint(body)
        joint = row_of(model.joints[number], row)
        X = row_of(model.placements, body) @ joint.transform(joint.normalize(values[body]))
        carriers.append((WORLD, X) if parent == WORLD else _fixed(carriers[parent], X))
    return carriers


def _fixed(carrier: tuple[int, Transform | None], X: Transform) -> tuple[int, Transform]:
    """The carrier of what has the pose X in a body that moves with it, and the pose there."""
    body, pose = carrier
    return body, X if pose is None else pose @ X


def _stacked(poses: Sequence[tuple[int, Transform]], dtype) -> Transform:
    """Poses of what has carriers, in one table."""
    if not poses:
        return Transform(jnp.zeros((0, 3, 3), dtype), jnp.zeros((0, 3), dtype))
    return jax.tree.map(lambda *x: jnp.stack(x), *(X for _, X in poses))


def stack_of(model: Model, kind: type[Joint], bodies: Sequence[int]) -> Joint:
    """The joints of some bodies, all of one kind."""
    if not bodies:
        return kind()
    places = [model.topology.place_of_joint(body) for body in bodies]
    return row_of(model.joints[places[0][0]], np.array([row for _, row in places]))


def row_of(x, row: int | np.ndarray):
    """Rows of every array."""
    return jax.tree.map(lambda x: x[row], x)
