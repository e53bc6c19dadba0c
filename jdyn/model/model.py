"""The model of a mechanism: a PyTree of all parameters that can be swept or differentiated."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from jdyn.array import Structure, floating, shaped, with_fields
from jdyn.execution.compiled import compiled as compiled_whole
from jdyn.execution.compiled import compiled_alone
from jdyn.model.joints import Joint
from jdyn.model.shapes import Shapes
from jdyn.model.topology import Topology
from jdyn.model.values import PER_JOINT, require, require_order
from jdyn.spatial import SpatialInertia, Transform, skew, symmetric
from jdyn.terminal.messages import one_of, short

P = ParamSpec("P")
R = TypeVar("R")
Executor = Literal["auto", "levels", "lanes"]


def _without_shapes(model: "Model") -> "Model":
    # Check now: tracing hides the type.
    checked(model)
    return model if model.shapes is None else model.without_shapes()


def _compiled_alone(method: Callable[P, R]) -> Callable[P, R]:
    return compiled_alone(method, {"self": _without_shapes})


class Limits(Structure):
    """Joint limits in full coordinates; infinite if there is no limit. Dynamics does not enforce them.

    Attributes:
        lower, upper: Range of the configuration [rad or m]. The first entry of `upper` of a ball joint is the largest
            angle of its rotation [rad]; its other entries, and those of free joints, limit nothing.
        velocity: Largest speed [rad/s or m/s].
        effort: Largest generalized force [N m or N].
    """

    lower: Float[Array, " nq_full"]
    upper: Float[Array, " nq_full"]
    velocity: Float[Array, " nv_full"]
    effort: Float[Array, " nv_full"]


class Model(Structure):
    """A mechanism. Build one with `jdyn.load`, `jdyn.Builder` or a bundled robot; models are immutable.

    Every array is a traced leaf; `topology` and `executor` are static, so two loads of one robot share one compiled
    program. Arrays with one entry a coordinate are in *full* coordinates, which count every joint; where
    joints follow others (`topology.mimics`), the model's own `q` and `v` leave the followers out:
    `q_full = G q + g0`, `v_full = G v`.

    >>> model = jdyn.load("double_pendulum")
    >>> print(model.nb, model.nq, model.nv, model.joint_names, model.gravity)
    2 2 2 ('joint1', 'joint2') [ 0.    0.   -9.81]
    >>> heavier = model.with_body("link2", mass=3.0)
    >>> print(heavier.inertias.mass)
    [1. 3.]

    Attributes:
        topology: Names and connections.
        placements: Pose of each joint frame in the parent body's frame.
        joints: Geometry of the joints, one stacked instance per kind, in the order of `topology.groups`.
        inertias: Spatial inertia of each body about its frame's origin.
        damping: Viscous damping [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N], smoothed to `friction * tanh(v / friction_speed)`.
        friction_speed: Speed at which smoothed friction reaches 76 % [rad/s or m/s].
        stiffness: Joint springs [N m/rad or N/m] about `rest`.
        rest: Configuration in which the joint springs are relaxed.
        armature: Rotor inertia seen through the gear [kg m² or kg], added to the diagonal of the mass matrix.
        limits: Joint limits.
        mimic_ratio, mimic_offset: q of each follower is ratio times q of its leader, plus offset.
        frames: Pose of each frame of `topology.frame_names` in its body.
        gravity: Acceleration of free fall in the world frame [m/s²].
        executor: How recursions over the tree run: `ABA`, inverse dynamics, mass matrix, and their derivatives.
            `dataclasses.replace(model, executor="lanes")` changes it. `"levels"` visits all bodies of one depth at
            once. `"lanes"` visits one body after another, on single numbers with lanes last. `"auto"` takes what was
            fastest: levels for a single configuration, lanes for batches on a processor, and one thread a lane for
            batches on an NVIDIA GPU.
        shapes: What it looks like and where it ends, for drawing and collision; None if it has no shapes. jdyn's
            functions of dynamics leave them out before they compile, so that robots share programs whatever they look
            like; `without_shapes` does so for your own.
        links: What recursions would compute anew from placements, joints and inertias in every call; None but within
            simulations, whose models do not change.

    Raises:
        ValueError: if `executor` is none of these.
    """

    topology: Topology = eqx.field(static=True)
    placements: Transform
    joints: tuple[Joint, ...]
    inertias: SpatialInertia
    damping: Float[Array, " nv_full"]
    friction: Float[Array, " nv_full"]
    friction_speed: Float[Array, " nv_full"]
    stiffness: Float[Array, " nv_full"]
    rest: Float[Array, " nq_full"]
    armature: Float[Array, " nv_full"]
    limits: Limits
    mimic_ratio: Float[Array, " nm"]
    mimic_offset: Float[Array, " nm"]
    frames: Transform
    gravity: Float[Array, "3"]
    shapes: Shapes | None = None
    links: Any = None
    executor: Executor = eqx.field(static=True, kw_only=True, default="auto")

    def __post_init__(self):
        one_of("executor", self.executor, get_args(Executor))

    # Sizes and names.

    @property
    def name(self) -> str:
        return self.topology.name

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return self.topology.nb

    @property
    def nq(self) -> int:
        """Size of a configuration."""
        return len(self.topology.independent_q)

    @property
    def nv(self) -> int:
        """Size of a velocity: degrees of freedom."""
        return len(self.topology.independent_v)

    @property
    def flat(self) -> bool:
        """Tell whether every coordinate is a single number, and none belongs to a quaternion."""
        return self.nq == self.nv

    @property
    def body_names(self) -> tuple[str, ...]:
        return self.topology.body_names

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.topology.joint_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        return self.topology.frame_names

    @property
    def dtype(self):
        return self.gravity.dtype

    def astype(self, dtype) -> "Model":
        """The same model with every leaf in `dtype`."""
        kind = floating(dtype)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), self)

    # Configurations.

    @_compiled_alone
    def neutral(self) -> Float[Array, " nq"]:
        """Zero for every joint coordinate, the identity for every quaternion."""
        return self._per_joint(lambda joint: joint.neutral(self.dtype), "q")

    @_compiled_alone
    def random(self, key: PRNGKeyArray) -> Float[Array, " nq"]:
        """A configuration drawn uniformly within the limits; without limits, within ±π rad (revolute) or ±1 (other)."""
        keys = jax.random.split(key, max(self.nb, 1))
        limits = self.limits
        return self._per_joint(
            lambda joint, key, lower, upper: joint.random(key, lower, upper),
            "q", self.by_group("bodies", keys), self.by_group("q", limits.lower), self.by_group("q", limits.upper),
        )  # fmt: skip

    @_compiled_alone
    def integrate(self, q: Float[Array, " nq"], dv: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The configuration reached from `q` by moving with constant velocity `dv` for unit time."""
        q, dv = checked(self, q=q, v=dv)
        q, dv = self._expand_difference(q), self.expand_velocity(dv)
        # In reverse mode, store only the start of each step, and compute the rest again.
        integrate = jax.checkpoint(lambda joint, q, dv: joint.integrate(q, dv), prevent_cse=False)
        return self._per_joint(integrate, "q", self.by_group("q", q), self.by_group("v", dv))

    @_compiled_alone
    def difference(self, q0: Float[Array, " nq"], q1: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """The tangent vector from `q0` to `q1`: `integrate(q0, difference(q0, q1)) = q1`."""
        (q0,), (q1,) = checked(self, q=q0), checked(self, q=q1)
        q0, q1 = self._expand_difference(q0), self._expand_difference(q1)
        return self._per_joint(
            lambda joint, q0, q1: joint.difference(q0, q1), "v", self.by_group("q", q0), self.by_group("q", q1)
        )

    @_compiled_alone
    def normalize(self, q: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """`q` with every quaternion scaled to unit length."""
        (q,) = checked(self, q=q)
        q = self._expand_difference(q)
        return self._per_joint(lambda joint, q: joint.normalize(q), "q", self.by_group("q", q))

    @_compiled_alone
    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """dq/dt of a motion through `q` with velocity `v`."""
        q, v = checked(self, q=q, v=v)
        q, v = self._expand_difference(q), self.expand_velocity(v)
        return self._per_joint(lambda joint, q, v: joint.rate(q, v), "q", self.by_group("q", q), self.by_group("v", v))

    @_compiled_alone
    def room(self, q: Float[Array, " nq"]) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Least and largest change of each coordinate that keep every joint within its limits, also those that follow.

        Infinite where nothing ends; a joint beyond its limit has a room without zero.
        """
        (q,) = checked(self, q=q)
        in_q, in_v = self.topology.ranged
        ratio = self.expand_velocity(jnp.ones(self.nv, q.dtype))[in_v]
        moved = ratio != 0
        here, unit = self.expand(q)[in_q], jnp.where(moved, ratio, 1)
        ends = jnp.stack([(end[in_q] - here) / unit for end in (self.limits.lower, self.limits.upper)])
        leaders = self.leading_coordinates[in_v]
        none = jnp.full(self.nv, jnp.inf, q.dtype)
        lower = (-none).at[leaders].max(jnp.where(moved, jnp.min(ends, axis=0), -jnp.inf))
        return lower, none.at[leaders].min(jnp.where(moved, jnp.max(ends, axis=0), jnp.inf))

    # Charts: local coordinates u of shape (nv,), which an integrator can add.

    def to_chart(self, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """Coordinates of `q` in the chart centred at `q`: `q` itself for flat coordinates, zero for rotations."""
        (q,) = checked(self, q=q)
        if self.flat:
            return q
        q = self._expand_difference(q)
        return self._per_joint(lambda joint, q: joint.to_chart(q), "v", self.by_group("q", q))

    def from_chart(
        self, centre: Float[Array, " nq"], u: Float[Array, " nv"], longest: float = math.inf
    ) -> Float[Array, " nq"]:
        """The configuration with coordinates u in the chart centred at `centre`; rotations are relative to `centre`.

        They are NaN where their vectors are longer than `longest` [rad].
        """
        centre, u = checked(self, q=centre, v=u)
        if self.flat:
            return u
        centre, u = self._expand_difference(centre), self.expand_velocity(u)
        return self._per_joint(
            lambda joint, q, u: joint.from_chart(q, u, longest), "q", self.by_group("q", centre), self.by_group("v", u)
        )

    def chart_rate(self, q: Float[Array, " nq"], u: Float[Array, " nv"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """du/dt of a motion through `q` with velocity `v`; u are the coordinates of `q`."""
        (q, v), (u,) = checked(self, q=q, v=v), checked(self, v=u)
        if self.flat:
            return v
        q, u, v = self._expand_difference(q), self.expand_velocity(u), self.expand_velocity(v)
        return self._per_joint(
            lambda joint, q, u, v: joint.chart_rate(q, u, v),
            "v", self.by_group("q", q), self.by_group("v", u), self.by_group("v", v),
        )  # fmt: skip

    def chart_axes(self, centre: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """du/dt of a motion through the centre of a chart with velocity `v`, which free joints have along the axes of
        their bodies."""
        return self._at_centre(lambda joint, centre, v: joint.chart_axes(centre, v), centre, v)

    def body_axes(self, centre: Float[Array, " nq"], rate: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Velocity of a motion through the centre of a chart with du/dt = `rate`."""
        return self._at_centre(lambda joint, centre, rate: joint.body_axes(centre, rate), centre, rate)

    def _at_centre(self, change, centre, x):
        centre, x = checked(self, q=centre, v=x)
        if self.flat:
            return x
        centre, x = self._expand_difference(centre), self.expand_velocity(x)
        return self._per_joint(change, "v", self.by_group("q", centre), self.by_group("v", x))

    # Full coordinates.

    def expand(self, q: Float[Array, " nq"]) -> Float[Array, " nq_full"]:
        """q_full = G q + g0: coordinates of all joints, including followers."""
        if not self.topology.mimics:
            return q
        followers = self._follower_coordinates(self.topology.q_offsets)
        full = self._expand_difference(q)
        return full.at[followers].set(self.mimic_ratio * full[followers] + self.mimic_offset, unique_indices=True)

    def expand_velocity(self, v: Float[Array, " nv"]) -> Float[Array, " nv_full"]:
        """v_full = G v."""
        if not self.topology.mimics:
            return v
        followers = self._follower_coordinates(self.topology.v_offsets)
        full = v[self.leading_coordinates]
        return full.at[followers].set(self.mimic_ratio * full[followers], unique_indices=True)

    def reduce_force(self, tau: Float[Array, " nv_full"]) -> Float[Array, " nv"]:
        """Gᵀ τ: generalized forces on the model's coordinates from the forces on all joints."""
        if not self.topology.mimics:
            return tau
        followers = self._follower_coordinates(self.topology.v_offsets)
        tau = tau.at[followers].set(self.mimic_ratio * tau[followers], unique_indices=True)
        return jnp.zeros(self.nv, tau.dtype).at[self.leading_coordinates].add(tau)

    @property
    def leading_coordinates(self) -> np.ndarray:
        """For each coordinate of all joints that of the model which moves it."""
        return self._sources(self.topology.v_offsets, self.topology.independent_v)

    def _expand_difference(self, q):
        """Followers get their leader's coordinate unchanged: enough if only independent entries are read back."""
        if not self.topology.mimics:
            return q
        return q[self._sources(self.topology.q_offsets, self.topology.independent_q)]

    def _follower_coordinates(self, offsets):
        return np.array([offsets[follower] for follower, _ in self.topology.mimics])

    def _sources(self, offsets, independent):
        leaders = {offsets[follower]: offsets[leader] for follower, leader in self.topology.mimics}
        place = {k: i for i, k in enumerate(independent)}
        return np.array([place[leaders.get(k, k)] for k in range(offsets[-1])], int)

    # Mapping over joints, kind by kind.

    def by_group(self, which: str, x: Any) -> list:
        """Split a PyTree of arrays by joint kind, one row per joint.

        `which` gives the meaning of the leading axis: `"bodies"`, or full coordinates `"q"` or `"v"`.
        """
        rows = [group.rows(which) for group in self.topology.groups]
        return [jax.tree.map(lambda leaf, row=row: take_rows(leaf, row), x) for row in rows]

    def map_joints(self, function: Callable, *by_group: list) -> list:
        """`function(joint, *row)` for every joint, kind by kind; each argument holds one stacked entry per kind."""
        return [
            jax.vmap(function, axis_size=len(group.bodies))(joints, *rows)
            for group, joints, *rows in zip(self.topology.groups, self.joints, *by_group, strict=True)
        ]

    def merge_groups(self, which: str, by_group: list) -> Any:
        """Inverse of `by_group`."""
        order = np.argsort(np.concatenate([np.ravel(group.rows(which)) for group in self.topology.groups]))

        def merge(*parts):
            flat = parts if which == "bodies" else [part.reshape(-1, *part.shape[2:]) for part in parts]
            return take_rows(jnp.concatenate(flat), order)

        return jax.tree.map(merge, *by_group)

    def _per_joint(self, function, which, *by_group):
        independent = getattr(self.topology, f"independent_{which}")
        full = self.merge_groups(which, self.map_joints(function, *by_group))
        return full if len(independent) == full.shape[0] else full[np.array(independent)]

    # Changed copies.

    def without_shapes(self) -> "Model":
        """A copy without shapes: functions that are compiled for it serve robots whatever they look like."""
        if self.shapes is None:
            return self
        # Every public function does this.
        return with_fields(self, shapes=None)

    def with_gravity(self, gravity) -> "Model":
        """A copy with another gravity [m/s²]."""
        gravity = shaped("gravity", gravity, self.dtype, (3,))
        require("", "gravity", gravity)
        return dataclasses.replace(self, gravity=gravity)

    def with_body(self, name: str, *, mass=None, com=None, inertia=None) -> "Model":
        """A copy with other inertial parameters of one body; omitted parameters keep their values.

        Args:
            name: Body.
            mass: Mass [kg].
            com: Centre of mass in the body frame [m], shape (3,).
            inertia: Rotational inertia about the centre of mass, in body axes [kg m²], shape (3, 3).

        Raises:
            ValueError: if there is no such body, a shape is wrong, or no body can have a value, such as a negative
                mass. Traced values are judged by `jdyn.simulate`, which ends with `jdyn.Result.bad_model`.
        """
        inertias = _with_inertia(self.inertias, self.topology.body(name), mass, com, inertia)
        for what, value in (("mass", mass), ("com", com), ("inertia", inertia)):
            if value is not None:
                require(f"body {name!r}", what, value)
        return dataclasses.replace(self, inertias=inertias, links=None)

    def with_joint(self, name: str, **changes: Any) -> "Model":
        """A copy with other parameters of one joint; omitted parameters keep their values.

        Args:
            name: Joint.
            **changes: Any of `damping, friction, friction_speed, stiffness, rest, armature`, the limits
                `lower, upper, velocity, effort`, `placement` (a `Transform` or a translation), and the joint's own
                geometry (`axis`, `pitch`, ...). Scalars apply to every coordinate of the joint, and a scalar `upper`
                of a ball joint is the largest angle of its rotation; axes are scaled to unit length.

        Raises:
            ValueError: if there is no such joint or parameter, a shape is wrong, or no joint can have a value, such as
                negative friction. Traced values are judged by `jdyn.simulate`, see `jdyn.Result.bad_model`.
        """
        body, model = self.topology.joint(name), self
        for parameter, value in changes.items():
            model = model._with_joint_parameter(name, body, parameter, value)
            for x in jax.tree.leaves(value) if isinstance(value, Transform) else [value]:
                require(f"joint {name!r}", parameter, x)
        if "lower" in changes or "upper" in changes:
            at = self.topology.q_slice(body)
            require_order(f"joint {name!r}", model.limits.lower[at], model.limits.upper[at])
        return model

    def _with_joint_parameter(self, name, body, parameter, value):
        topology = self.topology
        where = (topology.q_slice if parameter in ("rest", "lower", "upper") else topology.v_slice)(body)
        if parameter in (*PER_JOINT, "rest"):
            array = _set(getattr(self, parameter), where, value, parameter)
            return dataclasses.replace(self, **{parameter: array})
        if parameter in ("lower", "upper", "velocity", "effort"):
            array = _set(getattr(self.limits, parameter), where, value, parameter)
            return dataclasses.replace(self, limits=dataclasses.replace(self.limits, **{parameter: array}))
        if parameter == "placement":
            value = as_pose("placement", value, self.dtype)
            placements = jax.tree.map(lambda leaf, x: leaf.at[body].set(x), self.placements, value)
            return dataclasses.replace(self, placements=placements, links=None)
        number, row = topology.place_of_joint(body)
        joints = self.joints[number]
        geometry = [field.name for field in dataclasses.fields(joints)]
        if parameter not in geometry:
            raise ValueError(
                f"joint {name!r} ({topology.kinds[body].__name__}) has no parameter {short(parameter)}; it has "
                "damping, friction, friction_speed, stiffness, armature, rest, lower, upper, velocity, effort, "
                "placement" + "".join(f", {field}" for field in geometry)
            )
        if parameter in ("axis", "axis2"):
            value = shaped(parameter, value, self.dtype, (3,))
            value = value / jnp.linalg.norm(value)
        array = _set(getattr(joints, parameter), row, value, parameter)
        changed = dataclasses.replace(joints, **{parameter: array})
        joints = (*self.joints[:number], changed, *self.joints[number + 1 :])
        return dataclasses.replace(self, joints=joints, links=None)


@jax.jit
def _with_inertia(inertias, body, mass, com, inertia):
    """Jitted as a whole: otherwise each of some forty operations would be a program."""
    old = jax.tree.map(lambda leaf: leaf[body], inertias)
    dtype = old.mass.dtype
    old_com = old.first_moment / jnp.where(old.mass == 0, 1, old.mass)
    c = skew(old_com)
    mass = old.mass if mass is None else shaped("mass", mass, dtype, ())
    com = old_com if com is None else shaped("com", com, dtype, (3,))
    if inertia is None:
        inertia = symmetric(old.rotational) - old.mass * (c @ c.T)
    new = SpatialInertia.from_com(mass, com, shaped("inertia", inertia, dtype, (3, 3)))
    return jax.tree.map(lambda leaf, value: leaf.at[body].set(value), inertias, new)


def as_pose(what: str, placement: Transform | ArrayLike, dtype) -> Transform:
    """A `Transform`, or a translation [m], as a pose; `what` is its name in errors.

    Raises:
        ValueError: if it has a wrong shape.
    """
    if not isinstance(placement, Transform):
        return Transform(jnp.eye(3, dtype=dtype), shaped(what, jnp.asarray(placement, dtype), dtype, (3,)))
    return Transform(
        shaped(f"{what}.rotation", placement.rotation, dtype, (3, 3)),
        shaped(f"{what}.translation", placement.translation, dtype, (3,)),
    )


def _set(array, where, value, what):
    return array.at[where].set(shaped(what, value, array.dtype, (), array[where].shape))


def take_rows(x: Array, index: np.ndarray) -> Array:
    """`x[index]` along the first axis; if the index counts up by ones, a slice, which costs a batch nothing."""
    index = np.asarray(index)
    places = run_of(index.ravel())
    return x[places].reshape(*index.shape, *x.shape[1:]) if isinstance(places, slice) else x[index]


def run_of(index: np.ndarray) -> np.ndarray | slice:
    """The index; as a slice if it counts up by ones."""
    if len(index) and np.array_equal(index, np.arange(index[0], index[0] + len(index))):
        return slice(int(index[0]), int(index[0]) + len(index))
    return index


def dynamics_only(model: Any) -> Any:
    """A model without shapes, anything else as it is: converts fields of what is compiled, such as controllers."""
    return model.without_shapes() if isinstance(model, Model) else model


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, compiled as a whole, see `jdyn.execution.compiled`. The shapes of its argument `model` are left
    out."""
    return compiled_whole(function, {"model": _without_shapes})


def checked(model: Model, **arguments) -> list[Any]:
    """The arguments as floating arrays of the right shapes: `q`, `v`, `a`, `tau`, and `f_ext`, which may be None.

    Raises:
        ValueError: if `model` is not a model, or naming the argument, the expected shape and the one given.
    """
    if not isinstance(model, Model):
        given = f"an array of shape {jnp.shape(model)}" if eqx.is_array_like(model) else f"a {type(model).__name__}"
        raise ValueError(
            f"model: expected a jdyn.Model (see jdyn.load), got {given}; are the arguments in the right order?"
        )
    return [
        None if name == "f_ext" and x is None else _coordinates(model, name, _numbers(name, x))
        for name, x in arguments.items()
    ]


def _numbers(name, x):
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected an array of numbers, got {type(x).__name__}; are the arguments in the right order?"
        ) from error


def _coordinates(model, name, x):
    expected = {"q": (model.nq,), "f_ext": (model.nb, 6)}.get(name, (model.nv,))
    if x.shape != expected:
        hint = ""
        if x.ndim > len(expected):
            hint = "; functions take one configuration; use jax.vmap for a batch"
        elif x.shape in ((model.nq,), (model.nv,)):
            hint = f"; nq is {model.nq} and nv is {model.nv}: are the arguments in the right order?"
        raise ValueError(f"{name}: expected shape {expected} for {model.name!r}, got {x.shape}{hint}")
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(model.dtype)
