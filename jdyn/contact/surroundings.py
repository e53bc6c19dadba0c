"""Rays against all shapes of a model, and the shapes as sensors see them."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders, colliders
from jdyn.contact.distances import distances_at
from jdyn.contact.points import placed
from jdyn.dynamics import forward_kinematics
from jdyn.geometry import Plane, RayHit, Separation, ray_hit
from jdyn.geometry.directions import unit
from jdyn.model import WORLD, Model, checked
from jdyn.model.model import compiled
from jdyn.sensors.surroundings import RayHits, Surroundings
from jdyn.spatial import Transform
from jdyn.terminal.messages import unknown


def ray_cast(
    model: Model,
    q: Float[Array, " nq"],
    origins: Float[Array, "*rays 3"],
    directions: Float[Array, "*rays 3"],
    *,
    left_out: Sequence[str] = (),
) -> RayHits:
    """The first collision shape that each ray meets, and where.

    A ray that starts within a shape meets its surface on the way out. Planes are met from above alone, and within their
    sides where these are not zero; meshes are their convex hulls; height fields have triangles, and walls below their
    border. Derivatives in both modes, with respect to rays, q and every number of the model, are those of the face that
    a ray meets, and zero where it meets nothing.

    >>> builder = jdyn.Builder("post")
    >>> builder.add_link("post", jdyn.Prismatic((1, 0, 0)), mass=1.0, inertia=0.1)
    >>> builder.add_shape("post", "cylinder", (0.1, 2.0), role="collision")
    >>> model = builder.build()
    >>> origins, along_x = jnp.array([[-1.0, 0.0, 0.0], [-1.0, 0.2, 0.0]]), jnp.array([1.0, 0.0, 0.0])
    >>> print(jdyn.contact.ray_cast(model, jnp.array([0.5]), origins, along_x).distance.round(3))
    [1.4 inf]
    >>> print(jax.grad(lambda q: jdyn.contact.ray_cast(model, q, origins[0], along_x).distance)(jnp.array([0.5])))
    [1.]

    Args:
        model: The mechanism.
        q: Configuration.
        origins: In world axes [m].
        directions: In world axes, of any length; axes before the last are broadcast with those of `origins`.
        left_out: Names of bodies, or of frames fixed to them, whose shapes rays pass through; `"world"` for those of
            the world.

    Returns:
        Distances in metres, also for directions of another length than one.

    Raises:
        ValueError: if the model has no collision shapes, no body or frame is called as one that is left out, or a shape
            disagrees.

    Source: Kay and Kajiya 1986 for intersections of slabs.
    """
    (q,) = checked(model, q=q)
    origins, directions = jnp.asarray(origins), jnp.asarray(directions)
    for name, given in (("origins", origins), ("directions", directions)):
        if given.shape[-1:] != (3,):
            raise ValueError(f"{name}: expected shape (..., 3), got {given.shape}")
    try:
        shape = np.broadcast_shapes(origins.shape, directions.shape)
    except ValueError:
        raise ValueError(
            f"origins and directions: expected shapes that can be broadcast, got {origins.shape} and {directions.shape}"
        ) from None
    found = colliders(model)
    seen = _seen(model, found, (left_out,) if isinstance(left_out, str) else left_out)
    rays = (jnp.broadcast_to(x, shape).reshape(-1, 3) for x in (origins, directions))
    hits = _cast(model, _Seen(found, seen), q, *rays)
    return jax.tree.map(lambda x: x.reshape(*shape[:-1], *x.shape[1:]), hits)


class ModelSurroundings(Surroundings):
    """The collision shapes of a model.

    Attributes:
        colliders: The shapes.
    """

    colliders: Colliders

    def numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.colliders.row(name) for name in names)

    def apart_from(self, body: int) -> tuple[int, ...]:
        return tuple(row for row, entry in enumerate(self.colliders.entries) if body == WORLD or entry.body != body)

    def cast(
        self,
        poses: Transform,
        origins: Float[Array, "rays 3"],
        directions: Float[Array, "rays 3"],
        seen: tuple[int, ...],
    ) -> RayHits:
        return _hits(self.colliders, poses, origins, directions, seen)

    def between(self, poses: Transform, pairs: Sequence[tuple[int, int]]) -> Separation:
        return distances_at(self.colliders, poses, pairs)


def _seen(model: Model, found: Colliders, left_out: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the shapes that are not left out."""
    topology = model.topology
    names = ["world", *topology.body_names, *topology.frame_names]
    for name in left_out:
        if name not in names:
            raise ValueError(f"left_out: {unknown('body or frame', name, names)}")

    def stays(entry):
        body = "world" if entry.body == WORLD else topology.body_names[entry.body]
        return entry.link not in left_out and body not in left_out

    return tuple(row for row, entry in enumerate(found.entries) if stays(entry))


class _Seen(Structure):
    """The shapes of which rays see some.

    Attributes:
        colliders: All.
        numbers: Of those that are seen.
    """

    colliders: Colliders
    numbers: tuple[int, ...] = eqx.field(static=True)


@compiled
def _cast(
    model: Model,
    seen: _Seen,
    q: Float[Array, " nq"],
    origins: Float[Array, "rays 3"],
    directions: Float[Array, "rays 3"],
) -> RayHits:
    return _hits(seen.colliders, forward_kinematics(model, q), origins, directions, seen.numbers)


def _hits(
    found: Colliders,
    poses: Transform,
    origins: Float[Array, "rays 3"],
    directions: Float[Array, "rays 3"],
    seen: tuple[int, ...],
) -> RayHits:
    X, sorts, count = placed(found, poses), found.sorts, len(origins)
    forwards = jax.vmap(unit)(directions)
    # A row that no ray meets, for those that meet nothing.
    distances, normals = [jnp.full((count, 1), jnp.inf, origins.dtype)], [jnp.zeros((count, 1, 3), origins.dtype)]
    numbers = [-1]
    for sort in dict.fromkeys(sorts[row] for row in seen):
        rows = np.array([row for row in seen if sorts[row] == sort])
        of_kind = jax.tree.map(lambda x, rows=rows: x[rows], X)
        of_shapes = jax.vmap(_hit, (0, 0, None, None))
        hits = jax.vmap(of_shapes, (None, None, 0, 0))(_shapes(found, rows), of_kind, origins, forwards)
        distances.append(hits.distance)
        normals.append(hits.normal)
        numbers.extend(rows.tolist())
    distance, normal = jnp.concatenate(distances, axis=1), jnp.concatenate(normals, axis=1)
    first = jnp.argmin(distance, axis=1)
    distance, normal = distance[jnp.arange(count), first], normal[jnp.arange(count), first]
    met = distance != jnp.inf
    length = jnp.where(met, distance, 0)[:, None]
    point = jnp.where(met[:, None], origins + length * forwards, jnp.inf)
    names = tuple(entry.name for entry in found.entries)
    return RayHits(names, distance, jnp.array(numbers, jnp.int32)[first], point, normal)


def _shapes(found: Colliders, rows: np.ndarray):
    """Shapes of one sort, stacked; planes with their ends, which only rays see."""
    if found.entries[rows[0]].kind == "plane":
        return Plane(found.sizes[rows, :2])
    return found.shapes(rows)


def _hit(shape, X: Transform, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> RayHit:
    """In world axes."""
    hit = ray_hit(shape, X.point_to_child(origin), X.rotation.T @ direction)
    return RayHit(hit.distance, X.rotation @ hit.normal)
