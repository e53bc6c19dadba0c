"""The host-side builder: turns named links and joints into a checked `Model`.

Everything here is NumPy in float64; arrays become JAX arrays in the last step. One error reports all problems of a
robot, and one warning reports all warnings.
"""

import collections
import dataclasses
import os
import warnings
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jdyn.array import floating
from jdyn.model.inertial import (
    homogeneous,
    inertia_problems,
    negative_moment,
    pseudo_inertia,
    ten_parameters,
    triangle_violation,
)
from jdyn.model.joints import Joint
from jdyn.model.model import Limits, Model
from jdyn.model.shapes import (
    HULL_VERTICES,
    ROLES,
    SIZES,
    Shape,
    ShapeKind,
    ShapeRole,
    Shapes,
    Touching,
    alike,
    all_friction,
    condim_of,
)
from jdyn.model.topology import WORLD, Topology
from jdyn.model.values import DIRECTIONS, impossible, problem_with
from jdyn.spatial import SpatialInertia, Transform
from jdyn.terminal.messages import enumerated, listed, readable, unknown

# Speed at which smoothed Coulomb friction reaches tanh(1) = 76 % of its value [rad/s or m/s].
FRICTION_SPEED = 0.01


class ModelError(ValueError):
    """The robot description is not a valid mechanism; the message lists the first ten problems.

    >>> builder = jdyn.Builder("broken")
    >>> builder.add_link("rod", jdyn.Revolute((0, 0, 0)), mass=-1.0)
    >>> try:
    ...     builder.build()
    ... except jdyn.ModelError as error:
    ...     print(error)
    broken: 2 problems
      - link 'rod': mass is -1, expected a number that is not negative
      - joint 'rod': axis is zero, expected a direction
    """

    def __init__(self, message: str = ""):
        super().__init__(readable(message))


class ModelWarning(UserWarning):
    """Part of a robot description is ignored, or is legal but suspicious.

    >>> import warnings
    >>> builder = jdyn.Builder("cloud")
    >>> builder.warning("the colour of 'rod' is ignored")
    >>> builder.add_link("rod", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=np.eye(3))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = builder.build()
    >>> caught[0].category.__name__
    'ModelWarning'
    """

    def __init__(self, message: str = ""):
        super().__init__(readable(message))


@dataclasses.dataclass(frozen=True)
class Fixed:
    """Fixes a link to its parent: its inertia is lumped into the parent's, and the link becomes a frame.

    >>> builder = jdyn.Builder("arm")
    >>> builder.add_link("rod", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3) / 12)
    >>> builder.add_link("tool", jdyn.Fixed(), parent="rod", placement=(0, 0, -1), mass=0.2, inertia=1e-3)
    >>> model = builder.build()
    >>> model.body_names, model.frame_names
    (('rod',), ('tool',))
    """


@dataclasses.dataclass(frozen=True)
class Mimic:
    """The joint's coordinate is `ratio` times that of joint `leader`, plus `offset`.

    >>> builder = jdyn.Builder("gripper")
    >>> finger = {"mass": 0.1, "inertia": np.eye(3) / 1000}
    >>> builder.add_link("left", jdyn.Prismatic((0, 1, 0)), **finger)
    >>> builder.add_link("right", jdyn.Prismatic((0, 1, 0)), mimic=jdyn.Mimic("left", ratio=-1.0), **finger)
    >>> model = builder.build()
    >>> print(model.nv, model.expand(jnp.array([0.02])))
    1 [ 0.02 -0.02]
    """

    leader: str
    ratio: float = 1.0
    offset: float = 0.0


@dataclasses.dataclass
class _Link:
    """One declared link with the joint that carries it. Arrays are float64 NumPy."""

    name: str
    parent: str
    joint: Joint | Fixed
    joint_name: str
    pose: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    properties: dict[str, object]
    mimic: Mimic | None


@dataclasses.dataclass
class _Shape:
    """One declared shape. Arrays are float64 NumPy."""

    link: str
    kind: ShapeKind
    size: np.ndarray
    pose: np.ndarray
    role: ShapeRole
    path: str | None
    name: str | None
    color: tuple[float, ...] | None
    friction: np.ndarray
    contype: int
    conaffinity: int
    condim: int
    priority: int
    margin: np.ndarray
    heights: np.ndarray | None


_PER_VELOCITY = {
    "damping": 0.0,
    "friction": 0.0,
    "friction_speed": FRICTION_SPEED,
    "stiffness": 0.0,
    "armature": 0.0,
    "velocity": np.inf,
    "effort": np.inf,
}
_PER_CONFIGURATION = {"lower": -np.inf, "upper": np.inf, "rest": None}
# How many numbers of a size may not be zero, where that is not all of them.
_NOT_ZERO = {"plane": 0, "capsule": 1}


def pose(xyz: ArrayLike = (0, 0, 0), rpy: ArrayLike = (0, 0, 0)) -> Transform:
    """A pose from a translation [m] and fixed-axis roll, pitch, yaw [rad], as URDF writes them.

    The arrays are NumPy arrays in float64, for use with `Builder`.

    >>> print(jdyn.pose(xyz=(0.1, 0.0, 0.3), rpy=(0, 0, np.pi / 2)).rotation.round(3) + 0.0)
    [[ 0. -1.  0.]
     [ 1.  0.  0.]
     [ 0.  0.  1.]]
    """
    roll, pitch, yaw = np.asarray(rpy, dtype=float)
    cx, sx, cy, sy, cz, sz = (f(a) for a in (roll, pitch, yaw) for f in (np.cos, np.sin))
    Rx = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    Ry = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    Rz = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return Transform(Rz @ Ry @ Rx, np.array(xyz, dtype=float))  # type: ignore[arg-type]


class Builder:
    """Declare links in any order, then `build`.

    >>> builder = jdyn.Builder("pendulum")
    >>> builder.add_link("rod", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3) / 12)
    >>> builder.build().nv
    1

    Args:
        name: Name of the robot.
        gravity: Acceleration of free fall in the world frame [m/s²].
        source: Origin of the description, for messages; the robot's name if left out.
        hull_vertices: How many vertices the hulls have at most as which meshes touch: more are nearer to the mesh, and
            slower.
    """

    def __init__(
        self,
        name: str,
        *,
        gravity: ArrayLike = (0, 0, -9.81),
        source: str | None = None,
        hull_vertices: int = HULL_VERTICES,
    ):
        self.name = name
        self.source = source or name
        self.gravity = np.array(gravity, dtype=float)
        self.hull_vertices = hull_vertices
        self._links: list[_Link] = []
        self._frames: list[tuple[str, str, np.ndarray]] = []
        self._shapes: list[_Shape] = []
        self._excluded: list[tuple[str, str]] = []
        self._included: list[tuple[str, str]] = []
        self._stated: list[tuple[tuple[str, str], np.ndarray]] = []
        self._problems: list[str] = []
        self._warnings: list[str] = []

    def add_link(
        self,
        name: str,
        joint: Joint | Fixed,
        *,
        parent: str = "world",
        placement: Transform | ArrayLike = (0, 0, 0),
        mass: float = 0.0,
        com: ArrayLike = (0, 0, 0),
        inertia: ArrayLike = 0.0,
        joint_name: str | None = None,
        mimic: Mimic | None = None,
        **properties,
    ) -> None:
        """Declare a link and the joint that carries it.

        Args:
            name: Name of the link.
            joint: `jdyn.Revolute(axis)`, ..., or `jdyn.Fixed()`. Axes are scaled to unit length.
            parent: Name of the parent link; `"world"` is the fixed world unless a link has that name.
            placement: Pose of the joint frame in the parent's frame, a `Transform` or a translation [m].
            mass: Mass [kg].
            com: Centre of mass in the link's frame [m].
            inertia: Rotational inertia about the centre of mass in the link's axes [kg m²]: a 3×3 matrix or the
                three diagonal entries.
            joint_name: Name of the joint; the link's name if left out.
            mimic: Couples this joint to another one; both must have one degree of freedom.
            **properties: `damping, friction, friction_speed, stiffness, armature, velocity, effort` for each
                velocity coordinate, `lower, upper, rest` for each configuration coordinate; scalars apply to all, and a
                scalar `upper` of a ball joint is the largest angle of its rotation.
        """
        unknown = sorted(set(properties) - set(_PER_VELOCITY) - set(_PER_CONFIGURATION))
        if unknown:
            raise TypeError(f"add_link() got unknown properties {', '.join(unknown)}")
        com, inertia = np.array(com, dtype=float), np.asarray(inertia, dtype=float)
        if com.shape != (3,) or inertia.shape not in ((), (3,), (3, 3)):
            raise ValueError(
                f"link {name!r}: expected com of shape (3,) and inertia of shape (3, 3) or (3,), "
                f"got {com.shape} and {inertia.shape}"
            )
        inertia = inertia if inertia.ndim == 2 else np.diag(np.broadcast_to(inertia, (3,)))
        link = _Link(
            name, parent, joint, joint_name or name, _matrix(placement), float(mass),
            com, inertia, properties, mimic,
        )  # fmt: skip
        self._links.append(link)

    def add_frame(self, name: str, link: str, placement: Transform | ArrayLike = (0, 0, 0)) -> None:
        """Declare a frame fixed to a link (or to `"world"`); `placement` is its pose in the link's frame."""
        self._frames.append((name, link, _matrix(placement)))

    def add_shape(
        self,
        link: str,
        kind: ShapeKind,
        size: ArrayLike = (1, 1, 1),
        *,
        placement: Transform | ArrayLike = (0, 0, 0),
        role: ShapeRole | None = None,
        path: str | os.PathLike | None = None,
        name: str | None = None,
        color: Sequence[float] | None = None,
        touching: Touching | None = None,
        heights: ArrayLike | None = None,
    ) -> None:
        """Give a link a shape, to draw it and to let it touch others.

        ```
        builder.add_shape("rod", "capsule", (0.02, 1.0), placement=(0, 0, -0.5), color=(0.8, 0.3, 0.1))
        builder.add_shape("hand", "mesh", path="meshes/hand.stl", role="visual")
        builder.add_shape("world", "height field", (10, 10), heights=0.1 * np.random.default_rng(0).random((20, 20)))
        ```

        Args:
            link: Name of the link, of a frame fixed to one, or `"world"`.
            kind: `"box"`, `"sphere"`, `"capsule"`, `"cylinder"`, `"ellipsoid"`, `"plane"`, `"mesh"` or
                `"height field"`.
            size: The lengths of a box's sides; the radius of a sphere; the radius and the length of a cylinder, or of a
                capsule without its caps, along z; the radii of an ellipsoid; the lengths of a plane's sides, 0 where it
                has no end, or of a height field [m]; the scales of a mesh.
            placement: Pose of its middle in the link's frame, a `Transform` or a translation [m].
            role: `"visual"` or `"collision"`; both if left out.
            path: File of a mesh.
            name: Its name; the link's, with a number if that is taken, if left out.
            color: Red, green and blue, and opacity if wanted, from 0 to 1.
            touching: Its friction and margin, and which others it touches; as `Touching()` if left out.
            heights: Of a height field, over the rectangle about its origin: a row for each y, a column for each x, both
                increasing [m].

        Raises:
            ValueError: if a size, a friction, a margin or heights are no numbers. `build` says what else is wrong.
        """
        path = None if path is None else os.fspath(path)
        color = None if color is None else tuple(map(float, color))
        where = f"link {link!r}: shape" if name is None else f"link {link!r}: shape {name!r}"
        touching = Touching() if touching is None else touching
        sizes, friction = _numbers(f"{where}: size", size), _numbers(f"{where}: friction", touching.friction)
        margin = _numbers(f"{where}: margin", touching.margin)
        condim = condim_of(friction) if touching.condim is None else touching.condim
        sizes, friction = np.atleast_1d(sizes), all_friction(friction)
        heights = None if heights is None else _numbers(f"{where}: heights", heights)
        for each in ROLES if role is None else (role,):
            shape = _Shape(
                link, kind, sizes, _matrix(placement), each, path, name, color,
                friction, touching.contype, touching.conaffinity, condim, touching.priority, margin, heights,
            )  # fmt: skip
            self._shapes.append(shape)

    def exclude(self, link_a: str, link_b: str) -> None:
        """Keep the shapes of two links, and of frames on them, from touching each other.

        Shapes of one body, and of a body and the one that its joint is on, never touch as it is, unless the joint is
        free; what belongs to `"world"` itself may touch everything else.
        """
        self._excluded.append((link_a, link_b))

    def include(self, shape_a: str, shape_b: str, *, friction: ArrayLike | None = None) -> None:
        """Let two collision shapes, by their names, touch whatever else says that they do not.

        Args:
            shape_a, shape_b: The shapes.
            friction: Coefficient of sliding friction of this pair [1]; or those of sliding [1], torsional [m] and
                rolling friction [m]; or five, with two of sliding and two of rolling friction along the two tangents
                of MuJoCo's contact frames, see `jdyn.guide.contact`. As the two shapes have it if left out.

        Raises:
            ValueError: if the friction is no number. `build` says what else is wrong.
        """
        self._included.append((shape_a, shape_b))
        if friction is not None:
            numbers = _numbers(f"pair {shape_a!r}, {shape_b!r}: friction", friction)
            self._stated.append(((shape_a, shape_b), all_friction(numbers)))

    def problem(self, message: str) -> None:
        """Record a problem, once; `build` reports all problems in one error."""
        if message not in self._problems:
            self._problems.append(message)

    def warning(self, message: str) -> None:
        """Record something ignored or suspicious, once; `build` reports all of it in one warning."""
        if message not in self._warnings:
            self._warnings.append(message)

    def build(self, *, dtype=None) -> Model:
        """Check everything and make the model.

        Args:
            dtype: Floating type of the leaves; JAX's default if left out.

        Raises:
            ModelError: naming the source and the first ten problems found.

        Warns:
            ModelWarning: once, naming everything that is ignored or suspicious.
        """
        self._check_names()
        self._check_tree()
        for link in self._links:
            self._check_link(link)
        self._check_mimics()
        for shape in self._shapes:
            self._check_shape(shape)
        self._check_pairs()
        self._raise_problems()
        bodies = [link for link in self._parents_first() if not isinstance(link.joint, Fixed)]
        model = self._assemble(bodies, dtype)
        # What was finite may be too large for the type of the leaves.
        for message in impossible(model):
            self.problem(f"in {model.dtype}, {message}")
        self._raise_problems()
        self._warn_massless(bodies)
        if self._warnings:
            warnings.warn(self._listed("warning", self._warnings), ModelWarning, stacklevel=3)
        return model

    # Checks.

    def _raise_problems(self):
        if self._problems:
            raise ModelError(self._listed("problem", self._problems))

    def _listed(self, what: str, messages: list[str]) -> str:
        return listed(self.source, what, messages)

    def _names(self) -> list[str]:
        """Names of all links and frames."""
        return [*(link.name for link in self._links), *(name for name, _, _ in self._frames)]

    def _check_names(self):
        for what, names in (
            ("link or frame", self._names()),
            ("joint", [link.joint_name for link in self._links]),
        ):
            for name, count in collections.Counter(names).items():
                if count > 1:
                    self.problem(f"{what} name {name!r} is used {count} times")
            if any(not name for name in names):
                self.problem(f"a {what} has an empty name")
        if not (isinstance(self.hull_vertices, int) and self.hull_vertices >= 4):
            self.problem(f"hull_vertices is {self.hull_vertices!r}, expected a whole number of at least 4")
        if not np.all(np.isfinite(self.gravity)) or self.gravity.shape != (3,):
            self.problem(f"gravity is {self.gravity}, expected three finite numbers")

    def _check_tree(self):
        parents = {link.name: link.parent for link in self._links}
        for link in self._links:
            if link.parent not in parents and link.parent != "world":
                self.problem(f"joint {link.joint_name!r}: parent link {link.parent!r} does not exist")
        for name, link, _ in self._frames:
            if link not in parents and link != "world":
                self.problem(f"frame {name!r}: link {link!r} does not exist")
        walked: set[str] = set()
        for start in parents:
            path: dict[str, None] = {}
            name = start
            while name in parents and name not in path and name not in walked:
                path[name] = None
                name = parents[name]
            if name in path:
                cycle = [*path][[*path].index(name) :]
                self.problem(f"links form a cycle: {enumerated([*reversed([*cycle, name])], ' -> ')}")
            walked.update(path)

    def _check_link(self, link: _Link):
        where = f"joint {link.joint_name!r}"
        self._check_inertia(link)
        if not np.all(np.isfinite(link.pose)):
            self.problem(f"{where}: placement must be finite numbers")
        elif not _is_rotation(link.pose[:3, :3]):
            self.problem(f"{where}: placement is not a rotation and a translation")
        if isinstance(link.joint, Fixed):
            return
        for field in dataclasses.fields(link.joint):
            self._check_geometry(where, field.name, np.asarray(getattr(link.joint, field.name), dtype=float))
        self._check_independent(where, link.joint)
        self._check_properties(where, link)

    def _check_inertia(self, link: _Link):
        """Check mass, centre of mass and rotational inertia.

        A negative moment is an error on a moving link, where it would make the mass matrix indefinite, and a warning
        on a link that is lumped into another. A violated triangle inequality is impossible for a rigid body, but only
        a warning, because many published robots violate it.
        """
        where = f"link {link.name!r}"
        problems = inertia_problems(link.mass, link.com, link.inertia)
        for text in problems:
            self.problem(f"{where}: {text}")
        if problems:
            return
        negative = negative_moment(link.mass, link.inertia)
        if negative and not isinstance(link.joint, Fixed):
            self.problem(f"{where}: {negative}")
        elif suspicious := negative or triangle_violation(link.mass, link.inertia):
            self.warning(f"{where}: {suspicious}; kept as given")

    def _check_geometry(self, where, field, value):
        expected = (3,) if field in DIRECTIONS else ()
        if value.shape != expected:
            self.problem(f"{where}: {field} has shape {value.shape}, expected {expected}")
        elif message := problem_with(field, value):
            self.problem(f"{where}: {message}")

    def _check_independent(self, where, joint):
        """Check that the two directions of a joint are not parallel."""
        directions = [field.name for field in dataclasses.fields(joint) if field.name in DIRECTIONS]
        if len(directions) < 2:
            return
        first, second = (np.asarray(getattr(joint, name), dtype=float) for name in directions)
        if first.shape == second.shape == (3,):
            sine = np.linalg.norm(np.cross(first, second))
            if sine <= 1e-6 * np.linalg.norm(first) * np.linalg.norm(second):
                self.problem(f"{where}: {' and '.join(directions)} are parallel, expected two different directions")

    def _check_properties(self, where, link):
        for key, value in link.properties.items():
            width = link.joint.nq if key in _PER_CONFIGURATION else link.joint.nv
            array = np.asarray(value, dtype=float)
            if array.shape not in ((), (width,)):
                self.problem(f"{where}: {key} has shape {array.shape}, expected a number or {width} of them")
            elif message := problem_with(key, value):
                self.problem(f"{where}: {message}")
        if link.joint.nq != link.joint.nv and "rest" in link.properties:
            rest = np.asarray(link.properties["rest"], dtype=float)
            if rest.shape != (link.joint.nq,) or np.linalg.norm(rest[-4:]) < 1e-10:
                self.problem(f"{where}: rest is {link.properties['rest']}, expected a configuration with a quaternion")
        lower, upper = link.properties.get("lower", -np.inf), link.properties.get("upper", np.inf)
        if np.any(np.asarray(lower) > np.asarray(upper)):
            self.problem(
                f"{where}: lower limit {lower} is above the upper limit {upper}; swap them, or leave out both where "
                "there is no end"
            )

    def _check_mimics(self):
        joints = {link.joint_name: link for link in self._links}
        for link in self._links:
            if link.mimic is None:
                continue
            where, leader = f"joint {link.joint_name!r}", joints.get(link.mimic.leader)
            if leader is None:
                self.problem(f"{where}: mimics joint {link.mimic.leader!r}, which does not exist")
            elif any(getattr(x.joint, "nq", 0) != 1 for x in (link, leader)):
                self.problem(f"{where}: mimics {leader.joint_name!r}; both need exactly one degree of freedom")
            if not np.all(np.isfinite([link.mimic.ratio, link.mimic.offset])):
                self.problem(f"{where}: mimic ratio and offset must be finite numbers")
            seen, name = [], link.joint_name
            while name in joints and (mimic := joints[name].mimic) is not None and name not in seen:
                seen.append(name)
                name = mimic.leader
            if name == link.joint_name and seen:
                self.problem(f"{where}: mimic joints form a cycle: {enumerated([*seen, name], ' -> ')}")

    def _check_shape(self, shape: "_Shape"):
        named = "" if shape.name is None else f" {shape.name!r}"
        where = f"link {shape.link!r}: shape{named}"
        names = self._names()
        if shape.link != "world" and shape.link not in names:
            self.problem(f"{where}: {unknown('link or frame', shape.link, names)}")
        if shape.role not in ROLES:
            self.problem(f"{where}: role is {shape.role!r}, expected {' or '.join(map(repr, ROLES))}")
        if shape.kind not in SIZES:
            self.problem(f"{where}: kind is {shape.kind!r}, expected one of {', '.join(SIZES)}")
            return
        count, meaning = SIZES[shape.kind]
        of_kind = f"{'an' if shape.kind[0] in 'aeiou' else 'a'} {shape.kind}"
        if shape.size.shape != (count,):
            expected = f"a number, {meaning}" if count == 1 else f"{count} numbers, {meaning}"
            self.problem(f"{where}: the size of {of_kind} has shape {shape.size.shape}, expected {expected}")
        elif not np.all(np.isfinite(shape.size)) or (shape.kind != "mesh" and np.any(shape.size < 0)):
            self.problem(f"{where}: the size of {of_kind} is {shape.size}, expected finite numbers from 0")
        elif shape.role == "collision" and np.any(shape.size[: _NOT_ZERO.get(shape.kind, count)] == 0):
            self.warning(f"{where}: the size of {of_kind} that may touch is {shape.size}, which encloses nothing")
        if shape.path is not None and shape.kind != "mesh":
            self.problem(f"{where}: {of_kind} has no file, got {shape.path!r}")
        heights = shape.heights
        if shape.kind != "height field":
            if heights is not None:
                self.problem(f"{where}: {of_kind} has no heights, got some of shape {heights.shape}")
        elif heights is None or heights.ndim != 2 or min(heights.shape) < 2:
            got = "none" if heights is None else f"some of shape {heights.shape}"
            self.problem(f"{where}: expected finite heights in two rows and two columns or more, got {got}")
        elif not np.all(np.isfinite(heights)):
            row, column = np.argwhere(~np.isfinite(heights))[0]
            got = f"{heights[row, column]} in row {row} and column {column}"
            self.problem(f"{where}: expected finite heights, got {got}")
        if not np.all(np.isfinite(shape.pose)) or not _is_rotation(shape.pose[:3, :3]):
            self.problem(f"{where}: placement is not a rotation and a translation")
        if shape.color is not None and not (len(shape.color) in (3, 4) and all(0 <= c <= 1 for c in shape.color)):
            self.problem(f"{where}: color is {shape.color}, expected three or four numbers from 0 to 1")
        friction = shape.friction
        if friction.shape != (3,) or not np.all(np.isfinite(friction)) or np.any(friction < 0):
            self.problem(f"{where}: friction is {friction}, expected a number or three, finite and not negative")
        if shape.margin.shape or not (np.isfinite(shape.margin) and shape.margin >= 0):
            self.problem(f"{where}: margin is {shape.margin}, expected a number, finite and not negative")
        for key in ("contype", "conaffinity"):
            if not 0 <= getattr(shape, key) < 2**32:
                self.problem(f"{where}: {key} is {getattr(shape, key)}, expected bits, from 0 to 2**32 - 1")

        if shape.condim not in (1, 3, 4, 6):
            self.problem(f"{where}: condim is {shape.condim}, expected 1, 3, 4 or 6")

    def _check_pairs(self):
        shapes = [
            name
            for shape, name in zip(self._shapes, _unique_names(self._shapes), strict=True)
            if shape.role == "collision"
        ]
        for what, pairs, names in (
            ("link or frame", self._excluded, ["world", *self._names()]),
            ("collision shape", self._included, shapes),
        ):
            for name in dict.fromkeys(name for pair in pairs for name in pair if name not in names):
                self.problem(f"pairs that may touch: {unknown(what, name, names)}")
        for (a, b), friction in self._stated:
            if friction.shape not in ((3,), (5,)) or not np.all(np.isfinite(friction)) or np.any(friction < 0):
                self.problem(
                    f"pair {a!r}, {b!r}: friction is {friction}, expected one, three or five numbers, finite and not "
                    "negative"
                )

    # Assembly.

    def _parents_first(self) -> list[_Link]:
        """All links, parents first; otherwise in the order of declaration."""
        links = {link.name: link for link in self._links}
        found: dict[str, _Link] = {}
        for link in self._links:
            path = []
            while link is not None and link.name not in found:
                path.append(link)
                link = links.get(link.parent)
            found.update((x.name, x) for x in reversed(path))
        return list(found.values())

    def _carriers(self) -> dict[str, tuple[str, np.ndarray]]:
        """For each link, the moving link (or the world) that it is fixed to, and its pose in that link's frame."""
        carriers = {"world": ("world", np.eye(4))}
        for link in self._parents_first():
            if isinstance(link.joint, Fixed):
                carrier, T = carriers[link.parent]
                carriers[link.name] = carrier, T @ link.pose
            else:
                carriers[link.name] = link.name, np.eye(4)
        return carriers

    def _assemble(self, bodies: list[_Link], dtype) -> Model:
        index, carriers = {link.name: i for i, link in enumerate(bodies)}, self._carriers()
        inertias = [np.zeros((4, 4)) for _ in bodies]
        for link in self._links:
            carrier, T = carriers[link.name]
            if carrier in index:
                J = pseudo_inertia(link.mass, link.com, link.inertia)
                inertias[index[carrier]] += T @ J @ T.T

        def placed(link, T):
            carrier, pose = carriers[link]
            return carrier, pose @ T

        carried = [placed(link.parent, link.pose) for link in bodies]
        frames = [(link.name, link.name, np.eye(4)) for link in self._links if isinstance(link.joint, Fixed)]
        frames = [(name, *placed(link, T)) for name, link, T in (*frames, *self._frames)]
        mimics = [self._resolved_mimic(link) for link in bodies if link.mimic is not None]
        joints = {link.joint_name: i for i, link in enumerate(bodies)}
        topology = Topology(
            name=self.name,
            body_names=tuple(link.name for link in bodies),
            joint_names=tuple(link.joint_name for link in bodies),
            parents=tuple(index.get(carrier, WORLD) for carrier, _ in carried),
            kinds=tuple(type(link.joint) for link in bodies),  # type: ignore[misc]
            frame_names=tuple(name for name, _, _ in frames),
            frame_bodies=tuple(index.get(carrier, WORLD) for _, carrier, _ in frames),
            mimics=tuple((joints[follower], joints[leader]) for follower, leader, _, _ in mimics),
        )

        # Convert dtypes in NumPy: JAX would compile one program for each shape.
        kind = floating(dtype)

        def as_jax(x):
            with np.errstate(over="ignore"):
                return jax.device_put(np.asarray(x, dtype=float).astype(kind))

        columns = {key: as_jax(_stacked(bodies, key)) for key in (*_PER_VELOCITY, *_PER_CONFIGURATION)}
        parameters = [ten_parameters(J) for J in inertias]
        return Model(
            topology=topology,
            placements=_transforms([T for _, T in carried], as_jax),
            joints=tuple(_stacked_joints(bodies, group, as_jax) for group in topology.groups),
            inertias=SpatialInertia(
                as_jax([mass for mass, _, _ in parameters]),
                as_jax(np.reshape([moments for _, moments, _ in parameters], (-1, 3))),
                as_jax(np.reshape([rotational for _, _, rotational in parameters], (-1, 6))),
            ),
            limits=Limits(*(columns.pop(key) for key in ("lower", "upper", "velocity", "effort"))),
            mimic_ratio=as_jax([ratio for _, _, ratio, _ in mimics]),
            mimic_offset=as_jax([offset for _, _, _, offset in mimics]),
            frames=_transforms([T for _, _, T in frames], as_jax),
            gravity=as_jax(self.gravity),
            shapes=self._placed_shapes(index, placed, as_jax) if self._shapes else None,
            **columns,
        )

    def _placed_shapes(self, index, placed, as_jax) -> Shapes:
        entries, sizes, poses = [], np.zeros((len(self._shapes), 3)), []
        friction = [shape.friction for shape in self._shapes]
        frames = {name: (link, T) for name, link, T in self._frames}
        for row, (shape, name) in enumerate(zip(self._shapes, _unique_names(self._shapes), strict=True)):
            link, T = frames.get(shape.link, (shape.link, np.eye(4)))
            carrier, pose = placed(link, T @ shape.pose)
            color = None if shape.color is None else (*shape.color, 1.0)[:4]
            body = index.get(carrier, WORLD)
            touch = shape.contype, shape.conaffinity, shape.condim, self.hull_vertices, shape.priority
            entries.append(Shape(shape.kind, shape.role, body, shape.link, name, shape.path, color, *touch))  # type: ignore[arg-type]
            sizes[row, : len(shape.size)] = shape.size
            poses.append(pose)
        heights = tuple(as_jax(shape.heights) for shape in self._shapes if shape.heights is not None)
        margins = np.array([shape.margin if shape.role == "collision" else 0.0 for shape in self._shapes])
        return Shapes(
            tuple(entries), as_jax(sizes), _transforms(poses, as_jax), as_jax(friction), heights,
            self._excluded_links(frames), tuple(self._included), tuple(pair for pair, _ in self._stated),
            as_jax(alike([friction for _, friction in self._stated])) if self._stated else None,
            as_jax(margins) if np.any(margins) else None,
        )  # fmt: skip

    def _excluded_links(self, frames: dict) -> tuple[tuple[str, str], ...]:
        """Pairs of the links and frames that carry collision shapes."""

        shaped: dict[str, list[str]] = {}
        for name in dict.fromkeys(shape.link for shape in self._shapes if shape.role == "collision"):
            for link in dict.fromkeys((name, frames.get(name, (name,))[0])):
                shaped.setdefault(link, []).append(name)
        pairs = ((a, b) for one, other in self._excluded for a in shaped.get(one, ()) for b in shaped.get(other, ()))
        return tuple(dict.fromkeys(pairs))

    def _resolved_mimic(self, link: _Link) -> tuple[str, str, float, float]:
        """(follower, leader, ratio, offset); a chain of mimics is resolved to its first leader."""
        joints = {x.joint_name: x for x in self._links}
        leader, ratio, offset = link.joint_name, 1.0, 0.0
        while (mimic := joints[leader].mimic) is not None:
            ratio, offset, leader = ratio * mimic.ratio, offset + ratio * mimic.offset, mimic.leader
        return link.joint_name, leader, ratio, offset

    def _warn_massless(self, bodies: list[_Link]):
        carriers = self._carriers()
        heavy = {carriers[link.name][0] for link in self._links if link.mass > 0}
        for link in reversed(bodies):
            if link.name in heavy:
                heavy.add(carriers[link.parent][0])
        driving = {self._resolved_mimic(x)[1] for x in bodies if x.mimic is not None and x.name in heavy}
        bare = [
            x.name
            for x in bodies
            if x.mimic is None
            and x.name not in heavy
            and x.joint_name not in driving
            and not np.all(np.asarray(x.properties.get("armature", 0)) > 0)
        ]
        if bare:
            self.warning(
                f"no mass on or beyond {enumerated(bare)}; the mass matrix is singular and forward dynamics is not "
                "finite. Add mass or armature, or fix the joints"
            )


def _numbers(what: str, x: ArrayLike) -> np.ndarray:
    """An array of numbers.

    Raises:
        ValueError: if it is none.
    """
    try:
        return np.asarray(x, float)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers, got {x!r}") from None


def _matrix(placement) -> np.ndarray:
    """4×4 matrix of a `Transform`, or of a translation."""
    if isinstance(placement, Transform):
        return homogeneous(np.asarray(placement.rotation, float), np.asarray(placement.translation, float))
    return homogeneous(np.eye(3), np.asarray(placement, float))


def _is_rotation(R: np.ndarray) -> bool:
    return bool(np.max(np.abs(R @ R.T - np.eye(3))) <= 1e-6)


def _unique_names(shapes: list[_Shape]) -> list[str]:
    """Their names, or their links'; where a shape of the same role has that name already, with a number."""
    taken: set[tuple[str, str]] = set()
    counts: dict[tuple[str, str], int] = {}
    names = []
    for shape in shapes:
        wanted = shape.name or shape.link
        name, key = wanted, (shape.role, wanted)
        while (shape.role, name) in taken:
            counts[key] = counts.get(key, 1) + 1
            name = f"{wanted}_{counts[key]}"
        taken.add((shape.role, name))
        names.append(name)
    return names


def _transforms(matrices, as_jax) -> Transform:
    T = np.reshape(matrices, (-1, 4, 4))
    return Transform(as_jax(T[:, :3, :3]), as_jax(T[:, :3, 3]))


def _stacked(bodies: list[_Link], key: str) -> np.ndarray:
    """One property of all joints, in full coordinates."""

    def column(link):
        if key in _PER_VELOCITY:
            return np.broadcast_to(np.asarray(link.properties.get(key, _PER_VELOCITY[key]), float), link.joint.nv)
        default = _neutral(link.joint) if key == "rest" else _PER_CONFIGURATION[key]
        return np.broadcast_to(np.asarray(link.properties.get(key, default), float), link.joint.nq)

    return np.concatenate([np.zeros(0), *(column(link) for link in bodies)])


def _neutral(joint: Joint) -> np.ndarray:
    # Models may be built inside a traced function.
    with jax.ensure_compile_time_eval():
        return np.asarray(joint.neutral(jnp.float32), dtype=float)


def _stacked_joints(bodies: list[_Link], group, as_jax) -> Joint:
    members = [bodies[i].joint for i in group.bodies]
    fields = [field.name for field in dataclasses.fields(group.kind)]
    return group.kind(**{field: as_jax([_geometry(joint, field) for joint in members]) for field in fields})


def _geometry(joint: Joint, field: str) -> np.ndarray:
    """A geometric parameter of a joint; directions are normalized, a plane's x is made orthogonal to its normal."""
    value = np.asarray(getattr(joint, field), dtype=float)
    if field == "x":
        normal = _geometry(joint, "normal")
        value = value - (normal @ value) * normal
    return value / np.linalg.norm(value) if field in DIRECTIONS else value
