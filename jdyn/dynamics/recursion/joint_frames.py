"""Bodies as single numbers, in frames whose z axes are those of their joints: for fast recursions.

Every degree of freedom of the `dof_tree` has its own frame, and turns about its z axis or slides along it. S is then a
coordinate axis, of which only nonzero entries are stored, and turning mixes two columns of a rotation. A joint of
several degrees of freedom is a chain without length and mass, which ends in the body.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.recursion.depth_first import DEPTH_FIRST
from jdyn.dynamics.recursion.order import LevelRun, Order, Packed
from jdyn.model import Joint, Model, take_rows
from jdyn.model.topology import dof_tree
from jdyn.spatial import SpatialInertia, Transform, cross_motion
from jdyn.spatial.components import Inertia, Number, Pose, Vector, add, scale, subtract
from jdyn.spatial.components import cross_motion as cross

# Rows of S where it is not zero.
_ROWS = {"turn": {2}, "slide": {5}, "screw": {2, 5}}


class AxialSubspace(eqx.Module):
    """A motion subspace of one column, about or along z.

    Attributes:
        rows: Where it is not zero.
        values: What it is there.
    """

    rows: tuple[int, ...] = eqx.field(static=True)
    values: tuple[Array, ...]

    @property
    def vector(self) -> Vector:
        """All six entries."""
        known = dict(zip(self.rows, self.values, strict=True))
        return tuple(known.get(row, 0) for row in range(6))

    def seen_from(self, pose: Pose) -> Vector:
        """All six entries in the frame that the pose refers to, as arrays, also those that are known to be zero."""
        return add((jnp.zeros_like(pose.p[0]),) * 6, pose.motion_to_parent(self.vector))


class Link(NamedTuple):
    """Constants of a degree of freedom and of its body, if its joint has no other; see `DegreeOfFreedom`."""

    placement: Pose
    S: AxialSubspace
    inertia: Inertia


class DegreeOfFreedom(eqx.Module):
    """A degree of freedom, and the body that it moves.

    Attributes:
        placement: Pose in the parent's frame where the coordinate is zero.
        coordinate: How far the body has turned or moved from there.
        S: Motion subspace.
        inertia: Of the body alone; zero within a chain that stands for a joint.
        R: Rotor inertia.
        turned: Cosine and sine of the angle, once `displaced`.
    """

    placement: Pose
    coordinate: Number
    S: AxialSubspace
    inertia: Inertia
    R: Number
    turned: tuple[Number, Number] | None = None

    def displaced(self) -> "DegreeOfFreedom":
        """The degree of freedom with cosine and sine, which are worth storing."""
        return dataclasses.replace(self, turned=self._turned()) if 2 in self.S.rows else self

    def _turned(self) -> tuple[Number, Number]:
        turn = self.S.vector[2]
        # Where all of them turn, these are functions of the configuration alone, which several models may share.
        angle = self.coordinate if self.S.rows == (2,) else jnp.where(turn == 0, 0, self.coordinate)
        return jnp.cos(angle), turn * jnp.sin(angle)

    @property
    def pose(self) -> Pose:
        """In the parent's frame. It is computed at every use: cosine and sine are what is worth storing."""
        R, p = self.placement
        values = self.S.vector
        if 2 in self.S.rows:
            cos, sin = self.turned or self._turned()
            # As in `rotation_about`, for an axis whose length is one up to rounding.
            along = 1 + (values[2] ** 2 - 1) * (1 - cos)
            R = sum(
                ((R[i] * cos + R[i + 1] * sin, R[i + 1] * cos - R[i] * sin, R[i + 2] * along) for i in (0, 3, 6)), ()
            )
        if 5 in self.S.rows:
            p = add(p, scale(values[5] * self.coordinate, self.placement.R[2::3]))
        return Pose(R, p)


class MovingBody(NamedTuple):
    """A degree of freedom that moves, and the body that it carries, in the body's frame.

    Attributes:
        place: The degree of freedom; recursions displace it.
        rate: Its velocity [rad/s or m/s].
        given: What a recursion is given of it: its acceleration [rad/s² or m/s²], or the force along it [N m or N].
        f: External force on the body [N m, N]; None if there is none.
    """

    place: DegreeOfFreedom
    rate: Number
    given: Number
    f: Vector | None

    def displaced(self) -> "MovingBody":
        return self._replace(place=self.place.displaced())

    def velocity(self, v: Vector) -> Vector:
        """From that of the parent."""
        return add(self.place.pose.motion_to_child(v), scale(self.rate, self.place.S.vector))

    def force(self, v: Vector, a: Vector) -> Vector:
        """Force of the motion besides the external force: I a + v ×* I v − f."""
        return less(self.place.inertia.force(v, a), self.f)


def across(S: Vector, rate: Number, acceleration: Number, v: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Velocity and acceleration after a joint, from those before it, in one frame: v + S q̇ and a + S q̈ + v × S q̇.

    Source: Featherstone 2008, table 5.1.
    """
    moved = scale(rate, S)
    v = add(v, moved)
    return v, add(a, add(scale(acceleration, S), cross(v, moved)))


def less(x: Vector, f: Vector | None) -> Vector:
    """x − f."""
    return x if f is None else subtract(x, f)


class _Degree(eqx.Module):
    """A degree of freedom in arrays: S as its entries about and along z."""

    placement: Transform
    coordinate: Array
    turn: Array
    slide: Array
    inertia: SpatialInertia
    R: Array


@functools.partial(jax.jit, static_argnums=1)
def degrees_of_freedom(model: Model, runs: tuple[LevelRun, ...], q: Float[Array, " nq_full"]) -> Packed:
    """All of them at the full configuration `q`, packed for traversal in `runs`."""
    tree = dof_tree(model.topology)
    if model.links is not None and runs is DEPTH_FIRST.schedule(tree):
        own = take_rows(q, tree_coordinates(model)), take_rows(model.armature, tree.degrees)
        rows = model.links, *(DEPTH_FIRST.pack(tree, x) for x in own)
        return tuple(
            DegreeOfFreedom(link.placement, coordinate, link.S, link.inertia, R)
            for link, coordinate, R in zip(*rows, strict=True)
        )
    by_kind = model.by_group("q", q)
    frames = model.map_joints(_frames, by_kind)
    # That of a free base is its own, since the last of its degrees of freedom slides along z.
    last = model.merge_groups("bodies", [E[:, -1] for E in frames])
    parents = jnp.concatenate([last, np.eye(3, dtype=last.dtype)[None]])[np.array(model.topology.parents)]
    bodies = model.by_group("bodies", (model.placements, parents, model.inertias))
    rows = model.joints, by_kind, frames, model.by_group("v", model.armature), bodies
    degrees = [
        jax.vmap(_degrees)(*row) if np.any(members >= 0) or not tree.nb else None
        for members, *row in zip(_members(model), *rows, strict=True)
    ]
    return tuple(_by_numbers(_rows(model, run), _of_run(model, run, degrees)) for run in runs)


def with_links(model: Model) -> Model:
    """The model with what recursions on one body after another would compute anew in every call, for a loop that
    changes neither placements nor joints nor inertias. Derivatives do not pass through it."""
    tree = dof_tree(model.topology)
    if model.links is not None or not (model.topology.single_dof_joints and tree.nb):
        return model
    degrees = degrees_of_freedom(model, DEPTH_FIRST.schedule(tree), model.expand(model.neutral()))
    links = tuple(Link(degree.placement, degree.S, degree.inertia) for degree in degrees)
    return dataclasses.replace(model, links=jax.lax.stop_gradient(links))


def moving_bodies(
    order: Order,
    model: Model,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    given: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> Packed:
    """A `MovingBody` of each degree of freedom, packed for traversal in `order`."""
    tree = dof_tree(model.topology)
    runs = order.schedule(tree)
    rows = degrees_of_freedom(model, runs, q), packed_entries(order, model, v), packed_entries(order, model, given)
    return tuple(map(MovingBody, *rows, aligned_vectors(model, runs, q, f_ext)))


def packed_entries(order: Order, model: Model, x: Float[Array, " nv_full"]) -> Packed:
    """Entries of full coordinates that belong to the tree, packed for traversal in `order`."""
    tree = dof_tree(model.topology)
    return order.pack(tree, take_rows(x, tree.degrees))


def aligned_vectors(
    model: Model, runs: tuple[LevelRun, ...], q: Float[Array, " nq_full"], x: Float[Array, "nb 6"] | None
) -> list[Vector | None]:
    """Spatial vectors of all bodies, from their own frames, packed for traversal; None run by run if there are none."""
    if x is None:
        return [None] * len(runs)
    aligned = model.map_joints(_aligned_vector, model.by_group("q", q), model.by_group("bodies", x))
    return [_numbers(_of_run(model, run, aligned)) for run in runs]


def drifts(
    model: Model, runs: tuple[LevelRun, ...], q: Float[Array, " nq_full"], v: Float[Array, " nv_full"]
) -> list[Vector | None]:
    """Velocities' share of the bias accelerations of degrees of freedom, v × S v each, run by run; None where no joint
    has several."""
    widths = np.array([kind.nv for kind in model.topology.kinds for _ in range(kind.nv)])
    widths = widths[dof_tree(model.topology).degrees]
    if max(widths, default=1) == 1:
        return [None] * len(runs)

    def drift(joint, q, v):
        moved = joint.subspace(q).T * v[:, None]
        before = jnp.cumsum(moved, axis=0) - moved
        # Members of a chain see each other move; degrees of freedom of a joint do not.
        return _aligned_vector(joint, q, joint.bias(q, v) - jnp.sum(jax.vmap(cross_motion)(before, moved), axis=0))

    by_kind = model.map_joints(drift, model.by_group("q", q), model.by_group("v", v))
    return [_numbers(_of_run(model, run, by_kind)) if np.any(widths[run.bodies] > 1) else None for run in runs]


def axes(model: Model, q: Float[Array, " nq_full"]) -> Float[Array, "nv_full 3 3"]:
    """Axes of all aligned frames, in the frames of their bodies."""
    return model.merge_groups("v", model.map_joints(_frames, model.by_group("q", q)))


def _frames(joint: Joint, q) -> Float[Array, "nv 3 3"]:
    """Axes of the aligned frames in the body's own: z is what each degree of freedom turns about or slides along."""
    turns, slides = jnp.split(joint.subspace(q).T, 2, axis=1)
    slide = np.array(joint.motions)[:, None] == "slide"
    return jax.vmap(_frame_along)(jnp.where(slide, slides, turns))


def _frame_along(z: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Axes x, y, z of a frame with z along the given vector.

    That is H diag(1, s, −s), with s the sign of z₃ and the reflection H = 1 − w wᵀ / w₃ that takes −e₃ to s z; w is
    s z + e₃ then (Duff et al. 2017).
    """
    sign = jnp.where(z[2] < 0, -1, 1).astype(z.dtype)
    w = sign * z / jnp.linalg.norm(z) + np.eye(3, dtype=z.dtype)[2]
    # Entry by entry: XLA computes beforehand what constants of one shape make, but not what broadcast ones do.
    i, j = np.divmod(np.arange(9), 3)
    H = (i == j).astype(z.dtype) - w[i] * w[j] / w[np.full(9, 2)]
    return jnp.where(j == 0, H, jnp.where(j == 1, sign * H, -sign * H)).reshape(3, 3)


def _degrees(joint: Joint, q, E, R, body) -> _Degree:
    """Degrees of freedom of one joint; its one coordinate turns or moves its frame, or all of them have."""
    placement, parent, inertia = body
    single = joint.nv == 1
    X = placement if single else placement @ joint.transform(q)
    before = jnp.concatenate([(X.rotation.T @ parent)[None], E[:-1]])
    S = joint.subspace(q).T
    return _Degree(
        Transform(jax.vmap(jnp.matmul)(before.mT, E), jnp.zeros_like(E[:, 0]).at[0].set(parent.T @ X.translation)),
        q if single else jnp.zeros_like(R),
        jnp.linalg.norm(S[:, :3], axis=1),
        jnp.sum(E[:, :, 2] * S[:, 3:], axis=1),
        _at_last(joint, inertia.to_parent(Transform(E[-1].T, jnp.zeros_like(E[-1, 0])))),
        R,
    )


def _aligned_vector(joint: Joint, q, x) -> Float[Array, "nv 6"]:
    E = _frames(joint, q)[-1]
    return _at_last(joint, jnp.concatenate([E.T @ x[:3], E.T @ x[3:]]))


def _at_last(joint: Joint, x):
    """Values of a body, for all degrees of freedom of its joint: zero but for the last."""
    return jax.tree.map(lambda x: jnp.zeros((joint.nv, *x.shape), x.dtype).at[-1].set(x), x)


def _rows(model: Model, run: LevelRun) -> tuple[int, ...]:
    """Rows in which S is not zero in a run; one where there is nothing."""
    motions = [motion for kind in model.topology.kinds for motion in kind.motions]
    degrees = dof_tree(model.topology).degrees
    return tuple(sorted(set().union(*(_ROWS[motions[degrees[row]]] for row in run.bodies.ravel())))) or (2,)


def _members(model: Model) -> list[np.ndarray]:
    """Places in the `dof_tree` of the degrees of freedom of each kind of joint; negative for those of free bases, which
    are none."""
    places = np.full(model.topology.v_offsets[-1], -1)
    degrees = dof_tree(model.topology).degrees
    places[degrees] = np.arange(len(degrees))
    return [places[np.ravel(group.v).astype(int)] for group in model.topology.groups]


def tree_coordinates(model: Model) -> np.ndarray:
    """Places in the full configuration of joints in the `dof_tree`, which have one coordinate each."""
    topology = model.topology
    return np.array([topology.q_offsets[body] for body in range(topology.nb) if body not in topology.bases], int)


def _of_run(model: Model, run: LevelRun, by_kind: list):
    """A run's entries, (levels, width, ...), of what the degrees of freedom of each kind of joint have.

    Kinds that have no part in the run are left out, since what varies in them would make constants of the others vary
    too.
    """
    present = [
        (members, parts)
        for members, parts in zip(_members(model), by_kind, strict=True)
        if np.isin(members, run.bodies).any() or not run.bodies.size
    ]
    order = np.concatenate([members for members, _ in present])
    place = {degree: row for row, degree in enumerate(order)}
    slots = np.vectorize(place.get, otypes=[int])(run.bodies)

    def merge(*parts):
        flat = [part.reshape(-1, *part.shape[2:]) for part in parts]
        return take_rows(jnp.concatenate(flat), slots)

    return jax.tree.map(merge, *(parts for _, parts in present))


def _by_numbers(rows: tuple[int, ...], degree: _Degree) -> DegreeOfFreedom:
    placement, own = degree.placement, degree.inertia
    return DegreeOfFreedom(
        Pose(_numbers(placement.rotation), _numbers(placement.translation)),
        degree.coordinate,
        AxialSubspace(rows, tuple({2: degree.turn, 5: degree.slide}[row] for row in rows)),
        Inertia(own.mass, _numbers(own.first_moment), _numbers(own.rotational)),
        degree.R,
    )


def _numbers(x: Float[Array, "levels width *shape"]) -> Vector:
    """The numbers of each slot's vector or matrix, apart."""
    return tuple(jnp.moveaxis(x.reshape(*x.shape[:2], math.prod(x.shape[2:])), -1, 0))
