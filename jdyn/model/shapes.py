"""The shapes of a mechanism, for drawing and collision; dynamics does not carry them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import Structure
from jdyn.spatial import Transform

ShapeKind = Literal["box", "sphere", "capsule", "cylinder", "ellipsoid", "plane", "mesh", "height field"]
ShapeRole = Literal["visual", "collision"]
ROLES: tuple[ShapeRole, ...] = get_args(ShapeRole)

# Of the hull of a mesh. Distances between hulls take time by their vertices, in penetration by the square of these.
HULL_VERTICES = 64

# Numbers in the size of each kind, and what they are.
SIZES: dict[ShapeKind, tuple[int, str]] = {
    "box": (3, "the lengths of its sides"),
    "sphere": (1, "its radius"),
    "capsule": (2, "its radius and its length without caps"),
    "cylinder": (2, "its radius and its length"),
    "ellipsoid": (3, "its three radii"),
    "plane": (2, "the lengths of its sides, 0 where it has no end"),
    "mesh": (3, "its scales along x, y and z"),
    "height field": (2, "the lengths of its sides"),
}


def all_friction(friction):
    """Coefficients of sliding [1], torsional [m] and rolling friction [m]: a number is that of sliding alone.

    Args:
        friction: An array of NumPy or JAX, with one number or three.
    """
    return friction * np.eye(3, dtype=friction.dtype)[0] if friction.shape == () else friction


def by_direction(friction):
    """Coefficients of sliding, torsional and rolling friction, as five with two of sliding and of rolling friction."""
    return friction if friction.shape[-1] == 5 else friction[..., np.array([0, 0, 1, 2, 2])]


def alike(tables):
    """Coefficients of friction with as many numbers a row in all: three, or five if any has five."""
    return [by_direction(x) for x in tables] if any(x.shape[-1] == 5 for x in tables) else tables


def condim_of(friction) -> int:
    """The `condim` of a shape by its friction: 3 for one number, 6 for three."""
    return 3 if friction.shape == () else 6


def counted(condim) -> np.ndarray:
    """Which coefficients count by a `condim`, or each of several: of sliding, torsional and rolling friction."""
    return np.asarray(condim)[..., None] >= np.array([3, 4, 6])


class Touching(NamedTuple):
    """Description of how a shape touches others, for `Builder.add_shape`.

    >>> builder = jdyn.Builder("wheel")
    >>> builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1e-2)
    >>> builder.add_shape("wheel", "sphere", 0.2, role="collision", touching=jdyn.contact.Touching(friction=0.5))
    >>> print(builder.build().shapes.friction)
    [[0.5 0.  0. ]]

    Attributes:
        friction: Coefficient of sliding friction [1]; or those of sliding [1], torsional [m] and rolling friction [m].
        contype, conaffinity: Bits; two shapes may touch where one's `contype` and the other's `conaffinity` share a
            bit.
        condim: How many components of force a contact has, the larger number of the two shapes: 1 without friction, 3
            with sliding, 4 with torsional, 6 with rolling friction too. If left out: 3 for one coefficient of friction,
            6 for three.
        priority: Of two shapes the one of higher priority alone says how large friction and `condim` are.
        margin: How far from its surface others already touch it [m]; the margins of two shapes add up, as in MuJoCo.
            Distances, rays and pictures are those of surfaces.
    """

    friction: ArrayLike = 1.0
    contype: int = 1
    conaffinity: int = 1
    condim: int | None = None
    priority: int = 0
    margin: float = 0.0


# A tuple, because JAX hashes the entries in every call of a function that is compiled for a model with shapes.
class Shape(NamedTuple):
    """Kind and names of a shape, besides its numbers.

    >>> builder = jdyn.Builder("wheel")
    >>> builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1e-2)
    >>> builder.add_shape("wheel", "cylinder", (0.2, 0.05), role="collision")
    >>> shape = builder.build().shapes.entries[0]
    >>> shape.kind, shape.role, shape.link
    ('cylinder', 'collision', 'wheel')

    Attributes:
        kind: `"box"`, `"sphere"`, `"capsule"`, `"cylinder"`, `"ellipsoid"`, `"plane"`, `"mesh"` or
            `"height field"`.
        role: `"visual"` or `"collision"`.
        body: The body that carries it; -1 is the world.
        link: The link that the description gives it to: a body, a frame fixed to one, or `"world"`.
        name: Its name, which no other shape of this role has.
        path: Mesh file, or None. From MJCF: the absolute path. From URDF: the absolute path, the `package://` name as
            written if that package was not found, or None if the file is outside the named folders.
        color: Red, green, blue and opacity from 0 to 1, or None if the description states none.
        contype, conaffinity: Bits, as in MuJoCo: two shapes may touch where one's `contype` and the other's
            `conaffinity` share a bit.
        condim: How many components of force a contact has, as in MuJoCo, the larger number of the two shapes: 1 without
            friction, 3 with sliding, 4 with torsional, 6 with rolling friction too. Programs leave out what no pair
            has, whatever the numbers of `Shapes.friction` are.
        hull_vertices: How many vertices the hull has at most as which a mesh touches.
        priority: As in MuJoCo: of two shapes the one of higher priority alone says how large friction and `condim` are.
    """

    kind: ShapeKind
    role: ShapeRole
    body: int
    link: str
    name: str
    path: str | None = None
    color: tuple[float, float, float, float] | None = None
    contype: int = 1
    conaffinity: int = 1
    condim: int = 3
    hull_vertices: int = HULL_VERTICES
    priority: int = 0


class Shapes(Structure):
    """The shapes of a mechanism: numbers, which can be batched and differentiated, and what they belong to.

    The frame of a shape is in its middle; the axis of a capsule or a cylinder is z. A plane is the surface z = 0 of the
    half-space z ≤ 0, a height field that of what is below its heights.

    >>> builder = jdyn.Builder("wheel")
    >>> builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1e-2)
    >>> builder.add_shape("wheel", "cylinder", (0.2, 0.05), role="collision")
    >>> print(builder.build().shapes.sizes)
    [[0.2  0.05 0.  ]]

    Attributes:
        entries: What each shape is.
        sizes: A row a shape [m]. A box: its sides. A sphere: its radius. A capsule or a cylinder: its radius and its
            length, a capsule's without caps. An ellipsoid: its radii. A plane: its sides, 0 where it has no end. A
            mesh: its scales [1] of the file's coordinates. A height field: its sides. Other entries are zero.
        placements: The pose of each shape in the frame of the body that carries it. A frame of the body that moves
            leaves it in place.
        friction: A row a shape: its coefficients of sliding [1], torsional [m] and rolling friction [m]. They count as
            far as the `condim` of the two shapes says.
        heights: Of each height field, one after the other: a row for each y, a column for each x, both increasing [m].
        excluded: Pairs of links whose shapes never touch.
        included: Pairs of names of collision shapes that may touch whatever else says that they do not.
        stated: Pairs of names of collision shapes whose friction does not follow from that of the two.
        stated_friction: A row for each of these: its coefficients, all of which count; None without such pairs. Rows of
            five have two of sliding friction, that of torsional friction, and two of rolling friction, along the two
            tangents of a point of contact.
        margins: How far from the surface of each shape others already touch it [m]; None if no shape has a margin.
    """

    entries: tuple[Shape, ...] = eqx.field(static=True)
    sizes: Float[Array, "n 3"]
    placements: Transform
    friction: Float[Array, "n 3"]
    heights: tuple[Float[Array, "rows columns"], ...] = ()
    excluded: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    included: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    stated: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    stated_friction: Float[Array, "k 3"] | Float[Array, "k 5"] | None = None
    margins: Float[Array, " n"] | None = None

    def __len__(self) -> int:
        return len(self.entries)

    def rows(self, role: ShapeRole) -> tuple[int, ...]:
        """Places of the shapes of a role."""
        return tuple(row for row, entry in enumerate(self.entries) if entry.role == role)

    def heights_of(self, row: int) -> Float[Array, "rows columns"]:
        """The heights of a height field."""
        return self.heights[sum(entry.kind == "height field" for entry in self.entries[:row])]

    def size(self, row: int) -> Float[Array, " k"]:
        """The size of a shape, without the zeros that fill up its row."""
        return self.sizes[..., row, : SIZES[self.entries[row].kind][0]]


def joined(tables: Sequence[Shapes]) -> Shapes:
    """The shapes of several tables in one, in their order."""

    def stacked(*x: Array) -> Array:
        return jnp.concatenate(x)

    stated = alike([x.stated_friction for x in tables if x.stated_friction is not None])
    margins = [jnp.zeros_like(x.friction[:, 0]) if x.margins is None else x.margins for x in tables]
    return Shapes(
        entries=sum((x.entries for x in tables), ()),
        sizes=stacked(*(x.sizes for x in tables)),
        placements=jax.tree.map(stacked, *(x.placements for x in tables)),
        friction=stacked(*(x.friction for x in tables)),
        heights=sum((x.heights for x in tables), ()),
        excluded=sum((x.excluded for x in tables), ()),
        included=sum((x.included for x in tables), ()),
        stated=sum((x.stated for x in tables), ()),
        stated_friction=stacked(*stated) if stated else None,
        margins=None if all(x.margins is None for x in tables) else stacked(*margins),
    )
