"""Least times to contact, which are certain: by bounds on speeds and accelerations, without a search."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Scalar

from jdyn.array import Structure, shaped
from jdyn.contact.broad_phase import gaps
from jdyn.contact.colliders import GROUND, Colliders, by_kinds, colliders
from jdyn.contact.nearing import Ball, Extent, NearingWithin, about, earliest, ends, extent
from jdyn.contact.points import placed, placed_pairs
from jdyn.dynamics.paths import paths_between
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.geometry import Separation, separation
from jdyn.geometry.bounds import Bounds, bounds
from jdyn.model import WORLD, Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import Transform


def earliest_contact(
    distance: Float[ArrayLike, "*pairs"],
    speed: Float[ArrayLike, "*pairs"],
    acceleration: Float[ArrayLike, "*pairs"] = 0.0,
) -> Float[Array, "*pairs"]:
    """Least time in which shapes can touch that come nearer at a speed now, and never accelerate by more than a bound.

    It is exact where they do accelerate by as much, all the way. All arguments are broadcast, and derivatives are those
    of the formula.

    >>> print(jdyn.contact.earliest_contact(1.0, jnp.array([2.0, 0.0, -1.0]), jnp.array([0.0, 2.0, 4.0])))
    [0.5 1.  1. ]

    Args:
        distance: Of the shapes [m].
        speed: Largest speed at which points of one come nearer to the other one now, along the shortest way between
            them [m/s]; negative where all leave.
        acceleration: Bound on how fast that speed grows, from now on [m/s²]; not negative.

    Returns:
        Times [s]: zero where shapes touch or overlap, infinite where nothing closes the distance.

    Source: Mirtich, Impulse-based dynamic simulation of rigid body systems, 1996, section 2.3.
    """
    return _earliest_contact(distance, speed, acceleration)


class EarliestContacts(Structure):
    """Least times in which pairs of collision shapes can touch.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> found = jdyn.contact.earliest_contacts(model, jnp.array([1.1]), jnp.array([-2.0]), 1.0)
    >>> print(found.names, found.distance.round(3), found.time.round(3))
    (('ground', 'ball'),) [1.] [0.5]

    Attributes:
        names: The two shapes of each pair.
        distance: Between them [m].
        time: Least time [s]: zero where they touch or overlap, infinite where they cannot touch within the window.
    """

    names: tuple[tuple[str, str], ...] = eqx.field(static=True)
    distance: Float[Array, " pairs"]
    time: Float[Array, " pairs"]


def earliest_contacts(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    window: ArrayLike,
    accelerations: ArrayLike = 0.0,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> EarliestContacts:
    """Least times in which shapes of a model can touch, from one look at them.

    They are certain, for any motion within the bound on accelerations, whatever turns on the way: before its time, no
    pair touches. For shapes that move along the shortest way between them without turning times are exact; else they
    are too early, and a look at that time finds later ones. So a coordinator of many objects sorts pairs by time, lets
    everything move until the first, and looks at that pair again. Boxes about all that shapes may sweep within the
    window tell which pairs cannot touch, see `may_touch`. Works in batches; derivatives are not meant to be used.

    >>> builder = jdyn.Builder("bullet and wall")
    >>> builder.add_link("bullet", jdyn.Prismatic((1, 0, 0)), mass=0.01)
    >>> builder.add_shape("bullet", "sphere", 0.01, role="collision")
    >>> builder.add_shape("world", "box", (1e-3, 1, 1), placement=(2, 0, 0), role="collision", name="wall")
    >>> model = builder.build()
    >>> found = jdyn.contact.earliest_contacts(model, jnp.zeros(1), jnp.array([1000.0]), 1.0)
    >>> print(found.names, (1000 * found.time).round(3))
    (('bullet', 'wall'),) [1.989]
    >>> print(jdyn.contact.earliest_contacts(model, jnp.zeros(1), jnp.array([1000.0]), 1e-3).time)
    [inf]

    Args:
        model: The mechanism.
        q: Configuration.
        v: Velocity [rad/s or m/s].
        window: How long to look [s].
        accelerations: Largest size of the acceleration of each coordinate within the window [rad/s² or m/s²], a scalar
            or shape (nv,). Zero holds for constant velocities of the coordinates alone.
        pairs: Names of two collision shapes for each pair to look at; all that may touch if left out.

    Raises:
        ValueError: as `time_of_contact`.

    Source: Mirtich 1996, section 2.3; Ruspini, Lee, Khatib, section 5.1, for boxes. The bounds are those of
    `NearingWithin`.
    """
    found = asked_pairs(model, pairs, "earliest_contacts")
    distance, time = _earliest_contacts(model, found, q, v, window, accelerations)
    return EarliestContacts(found.names, distance, time)


def may_touch(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    window: ArrayLike,
    accelerations: ArrayLike = 0.0,
) -> Bool[Array, " pairs"]:
    """Tell which pairs of collision shapes may touch within a time, by boxes about all that shapes may sweep: those
    whose boxes do not meet cannot. No distance is computed, which makes it cheap for many shapes.

    >>> builder = jdyn.Builder("balls")
    >>> for name in ("left", "right"):
    ...     builder.add_link(name, jdyn.Prismatic((1, 0, 0)), mass=1.0, inertia=0.1)
    ...     builder.add_shape(name, "sphere", 0.1, role="collision")
    >>> q, v = jnp.array([0.0, 1.0]), jnp.array([1.0, -1.0])
    >>> print(jdyn.contact.may_touch(builder.build(), q, v, 0.3), jdyn.contact.may_touch(builder.build(), q, v, 0.5))
    [False] [ True]

    Args:
        model, q, v, window, accelerations: As for `earliest_contacts`.

    Returns:
        Pairs in the order of `jdyn.contact.collision_pairs`. Pairs with a height field may always touch, and those with
        a plane that moves.

    Raises:
        ValueError: if the model has no collision shapes, or a size disagrees with it.
    """
    return _may_touch(model, colliders(model), q, v, window, accelerations)


class SweptBoxes(Structure):
    """Boxes about all that collision shapes may sweep in a time, along the axes of the world.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> boxes = jdyn.contact.swept_boxes(model, jnp.array([1.1]), jnp.array([-2.0]), 0.5)
    >>> print(boxes.names, boxes.lower[:, 2].round(3) + 0.0)
    ('ball', 'ground') [  0. -inf]

    Attributes:
        names: Of the shapes.
        lower, upper: Least and greatest coordinates [m]; infinite for planes and height fields.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    lower: Float[Array, "shapes 3"]
    upper: Float[Array, "shapes 3"]


def swept_boxes(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    window: ArrayLike,
    accelerations: ArrayLike = 0.0,
) -> SweptBoxes:
    """Boxes about all that each collision shape may sweep within a time, for sure: a coordinator of several mechanisms
    compares those of one with those of others, and couples what may meet.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> boxes = jdyn.contact.swept_boxes(builder.build(), jnp.zeros(1), jnp.array([2.0]), 0.5)
    >>> print(boxes.lower, boxes.upper)
    [[-0.1 -0.1 -0.1]] [[1.1 0.1 0.1]]

    Args:
        model, q, v, window, accelerations: As for `earliest_contacts`; a finite window.

    Raises:
        ValueError: if the model has no collision shapes, or a size disagrees with it.

    Source: Cloutier 1995, section 6.2; Mirtich 1996, section 2.3.
    """
    found = colliders(model)
    boxes = _swept_boxes(model, found, q, v, window, accelerations)
    return SweptBoxes(tuple(entry.name for entry in found.entries), boxes.lower, boxes.upper)


def asked_pairs(model: Model, pairs: Sequence[tuple[str, str]] | None, asked_by: str) -> Colliders:
    """Collision shapes with the pairs that are asked for, or all.

    Raises:
        ValueError: if there are no such shapes, or one is a height field: from afar it has no distance.
    """
    found = colliders(model)
    if pairs is not None:
        found = dataclasses.replace(found, pairs=by_kinds(found.entries, found.rows(pairs)))
    for number in sorted({number for pair in found.pairs for number in pair}):
        if found.entries[number].kind == "height field":
            raise ValueError(
                f"{asked_by}: {found.entries[number].name!r} is a height field, which has no distance from afar; "
                "name other pairs"
            )
    return found


def distances_and_extents(found: Colliders, poses: Transform) -> tuple[Separation, Extent]:
    """Distances of all pairs, and how large their shapes are."""
    parts = [(jax.vmap(_apart)(*g.shapes), jax.vmap(extent)(*g.shapes)) for g in placed_pairs(found, poses)]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _apart(*shapes):
    # How deep shapes are that overlap is not asked for.
    return separation(*shapes, everywhere=False)


@compiled
def _earliest_contact(distance, speed, acceleration):
    return earliest(*jnp.broadcast_arrays(distance, speed, acceleration))


@compiled
def _earliest_contacts(model, found, q, v, window, accelerations):
    q, v, window, accelerations = _arguments(model, q, v, window, accelerations)
    if not found.pairs:
        return jnp.zeros(0, v.dtype), jnp.zeros(0, v.dtype)
    motion = RelativeMotion.at(model, found.paths(model), q)
    apart, sizes = distances_and_extents(found, motion.poses)
    nearing = NearingWithin.of(motion, ends(found), v, accelerations, sizes.ball, apart.normal)
    time = nearing.time(apart.distance)
    near = _may_touch(model, found, q, v, window, accelerations) | (apart.distance <= 0)
    return apart.distance, jnp.where(near & (time <= window), time, jnp.inf)


@compiled
def _may_touch(model, found, q, v, window, accelerations):
    q, v, window, accelerations = _arguments(model, q, v, window, accelerations)
    if not found.pairs:
        return jnp.zeros(0, bool)
    known = jnp.isfinite(window)
    boxes, X = _swept(model, found, q, v, jnp.where(known, window, 0), accelerations)
    rows = np.array(found.pairs)
    # The first shape of a pair may be ground, the second one not.
    (first, second), planes = (jax.tree.map(lambda x, row=row: x[row], boxes) for row in rows.T), _taken(X, rows[:, 0])
    of_first = [found.entries[row] for row in rows[:, 0]]
    still = np.array([entry.kind == "plane" and entry.body == WORLD for entry in of_first])
    normal = planes.rotation[..., 2]
    lowest = jnp.where(normal > 0, second.lower, second.upper) - planes.translation
    below = jnp.sum(normal * lowest, axis=-1) <= 0
    return jnp.where(still, below, gaps(first, second) <= 0) | ~known


@compiled
def _swept_boxes(model, found, q, v, window, accelerations):
    return _swept(model, found, *_arguments(model, q, v, window, accelerations))[0]


def _swept(
    model: Model,
    found: Colliders,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    window: Scalar,
    accelerations: Float[Array, " nv"],
) -> tuple[Bounds, Transform]:
    """Boxes along the axes of the world about all that shapes may sweep, infinite for ground, and poses of shapes."""
    # As the world sees them.
    bodies = [entry.body for entry in found.entries]
    by_world = [WORLD] * len(bodies), bodies
    motion = RelativeMotion.at(model, paths_between(model, *by_world), q)
    X, none = placed(found, motion.poses), jnp.zeros((len(bodies), 3), q.dtype)
    boxes, ball = Bounds(none - jnp.inf, none + jnp.inf), Ball(none, none[:, 0])
    for sort in dict.fromkeys(found.sorts):
        rows = np.flatnonzero([other == sort for other in found.sorts])
        if found.entries[rows[0]].kind in GROUND:
            continue
        of_sort = jax.vmap(lambda shape, X: (bounds(shape, X), about(shape, X)))(found.shapes(rows), _taken(X, rows))
        boxes, ball = jax.tree.map(lambda x, new, rows=rows: x.at[rows].set(new), (boxes, ball), of_sort)
    moved = NearingWithin.of(motion, by_world, v, accelerations, ball, none)
    farthest, beside = moved.moved(window)
    w, u = jnp.split(motion.twists(v), 2, axis=1)
    drift = window * (u + jnp.cross(w, ball.centre - motion.origin[None]))
    beside = beside + window * jnp.linalg.norm(w, axis=1) * ball.radius
    lower = jnp.maximum(jnp.minimum(drift, 0) - beside[:, None], -farthest[:, None])
    upper = jnp.minimum(jnp.maximum(drift, 0) + beside[:, None], farthest[:, None])
    return Bounds(boxes.lower + lower, boxes.upper + upper), X


def _taken(x, rows):
    return jax.tree.map(lambda x: x[rows], x)


def _arguments(model, q, v, window, accelerations):
    q, v = checked(model, q=q, v=v)
    accelerations = shaped("accelerations", accelerations, v.dtype, (), v.shape, owner=model.name)
    return q, v, jnp.asarray(window, v.dtype), jnp.broadcast_to(accelerations, v.shape)
