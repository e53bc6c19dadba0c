"""Systems made of systems, with all that acts on them."""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from jdyn.actuators import Actuator, Actuators
from jdyn.array import with_fields
from jdyn.contact import Contact
from jdyn.control.controller import DynamicController, with_memory
from jdyn.control.part_controller import OnCoordinates
from jdyn.model import Free, Model, attach, free_joints, renamed, with_frame
from jdyn.model import merge as merge_models
from jdyn.simulation.lock import lock
from jdyn.simulation.system import System
from jdyn.spatial import Transform
from jdyn.terminal.messages import short


@overload
def merge(
    parts: Mapping[str, Model],
    placements: Mapping[str, Transform | ArrayLike] | None = None,
    *,
    gravity: ArrayLike | None = None,
    name: str | None = None,
) -> Model: ...


@overload
def merge(
    parts: Mapping[str, System] | Mapping[str, Model | System],
    placements: Mapping[str, Transform | ArrayLike] | None = None,
    *,
    gravity: ArrayLike | None = None,
    name: str | None = None,
) -> System: ...


def merge(parts, placements=None, *, gravity=None, name=None):
    """One model of several, or one system of several, none of which is fixed to another.

    Names become `part/name`. Coordinates of the parts follow one another, `q` as well as `v`. Every number of the parts
    is one of the whole, and may be traced: derivatives and batches pass through.

    >>> pair = jdyn.merge({"left": jdyn.load("pendulum"), "right": jdyn.load("pendulum")}, {"right": (1.0, 0.0, 0.0)})
    >>> print(pair.nv, pair.joint_names, pair.placements.translation[1])
    2 ('left/joint1', 'right/joint1') [1. 0. 0.]
    >>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=10.0)
    >>> encoder = jdyn.sensors.JointPosition("angle", "joint1")
    >>> arm = jdyn.System(jdyn.load("pendulum"), actuators=[servo], sensors=[encoder])
    >>> cell = jdyn.merge({"left": arm, "right": arm, "ball": jdyn.load("ball")})
    >>> state, seen = cell.step(cell.state(), action=[0.5, -0.5], dt=0.01)
    >>> print(list(seen.sensors), cell.model.nv)
    ['left/angle', 'right/angle'] 8

    Systems bring all that they have. The world of each is a frame of the whole, `part/world`; directions in axes of the
    world, such as that of a wind, stay in those of the whole. A configuration that all systems have, such as `"home"`,
    is one of the whole; others are `part/home`, with the rest of the whole as it starts. What the whole has once,
    `contact`, `joint_limits` and `method`, is that of the parts that have it: shapes of the others touch as well.

    Args:
        parts: Models or systems by name. The whole is a model if all of them are.
        placements: Pose of each part's world in the world, a `Transform` or a translation [m]; parts that are left out
            stay where they are. Coordinates of a free body count from there.
        gravity: Acceleration of free fall in the world frame [m/s²]; that of the parts if left out.
        name: Name of the whole; the names of the parts, joined by `+`, if left out.

    Raises:
        ValueError: if there is no part, a name is empty, a placement belongs to no part or has a wrong shape, parts
            fall differently, or as traced values say, and `gravity` is left out, parts disagree about what the whole
            has once, or a controller gives forces where another part has actuators.
    """
    models = {part: _model_of(each) for part, each in parts.items()}
    model = merge_models(models, placements, gravity=gravity, name=name)
    if all(isinstance(each, Model) for each in parts.values()):
        return model
    placed, nq, nv = [], 0, 0
    for part, each in parts.items():
        own = models[part]
        q, v = range(nq, nq + own.nq), range(nv, nv + own.nv)
        placed.append(_Placed(_system_of(each), part, f"{part}/", q, v))
        nq, nv = q.stop, v.stop
    return _together(model, placed)


@overload
def append(
    whole: Model, other: Model, link: str, placement: Transform | ArrayLike = (0, 0, 0), *, name: str | None = None
) -> Model: ...


@overload
def append(
    whole: System,
    other: Model | System,
    link: str,
    placement: Transform | ArrayLike = (0, 0, 0),
    *,
    name: str | None = None,
) -> System: ...


def append(whole, other, link, placement=(0, 0, 0), *, name=None):
    """A copy of a model or a system that carries another one, such as a tool or an arm, fixed on one of its links.

    What `other` has in its world is fixed to the link. Bodies of `other` that move freely are what is fixed there: they
    become part of the link, which takes their inertia. Of a robot that stands on the ground, the inertia of what is
    fixed to the ground is not known: load it with `floating_base=True` to count it. Coordinates of `other` come last.

    >>> arm, tool = jdyn.load("double_pendulum"), jdyn.load("ball")
    >>> holding = jdyn.append(arm, tool, "link2", (0.0, 0.0, -1.0))
    >>> print(holding.nv, holding.frame_names[-1], holding.inertias.mass)
    2 ball [1. 2.]

    Of systems it takes along what `jdyn.merge` does, and what `jdyn.lock` leaves of it where bodies moved freely. The
    world of `other` is then the frame `name/world`.

    Args:
        whole: What carries.
        other: What is carried; it falls as `whole` does, whatever its own gravity is.
        link: A body of `whole`, a frame, or `"world"`.
        placement: Pose of the world of `other` in the link's frame, a `Transform` or a translation [m].
        name: If given, names of `other` become `name/...`; systems need one.

    Raises:
        ValueError: if there is no such link, both have the same name, a placement has a wrong shape, or as for
            `jdyn.merge` and `jdyn.lock`.
    """
    if isinstance(other, System) and not isinstance(whole, System):
        raise ValueError("append: a model cannot carry a system; make the model one, jdyn.System(model)")
    if isinstance(other, System) and not name:
        raise ValueError("append: a system that is appended needs a name; give name=...")
    carried = _model_of(other)
    carrier = whole.model if isinstance(whole, System) else whole
    model, prefix = attach(carrier, carried, link, placement, name=name), f"{name}/" if name else ""
    held = {prefix + joint: Free().neutral(model.dtype) for joint in free_joints(carried)}
    if not isinstance(whole, System):
        return lock(model, held)
    nq, nv = carrier.nq, carrier.nv
    placed = [
        _Placed(whole, "the carrier", "", range(nq), range(nv)),
        _Placed(_system_of(other), name or carried.name, prefix, range(nq, model.nq), range(nv, model.nv)),
    ]
    return lock(_together(model, placed), held)


def _model_of(part: Model | System) -> Model:
    """The model of a part, in which the world of a system has a name."""
    if not isinstance(part, System):
        return part
    names = (*part.model.body_names, *part.model.frame_names)
    return part.model if "world" in names else with_frame(part.model, "world", "world")


def _system_of(part: Model | System) -> System:
    return part if isinstance(part, System) else System(part)


class _Placed(NamedTuple):
    """A system that becomes part of another one.

    Attributes:
        system: The system.
        label: How messages call it.
        prefix: Start of its names in the whole.
        q, v: Places of its coordinates in the whole.
    """

    system: System
    label: str
    prefix: str
    q: range
    v: range

    def rename(self, part: Any) -> Any:
        return renamed(part, lambda name: self.prefix + name)

    def coordinates(self, configuration: str) -> Float[Array, " nq"]:
        """Its coordinates in a configuration; as it starts, if it has none of that name."""
        system = self.system
        start = system.configurations.get("qpos0", system.model.neutral())
        return jnp.asarray(system.configurations.get(configuration, start))


def _together(model: Model, parts: Sequence[_Placed]) -> System:
    """A system of this model with all that acts on the parts, and all that they have."""

    def of_all(what: str) -> list:
        return [each for part in parts for each in part.rename(getattr(part.system, what))]

    return System(
        model,
        controller=_controller(model, parts),
        actuators=[each for part in parts for each in part.rename(_named(part.system.actuators))],
        contact=_contact(parts),
        elements=of_all("elements"),
        constraints=of_all("constraints"),
        joint_limits=_common("joint_limits", parts, [part.system.joint_limits for part in parts]),
        method=_common("method", parts, [part.system.method for part in parts]),
        sensors=of_all("sensors"),
        configurations=_configurations(model, parts),
    ).astype(model.dtype)


def _named(actuators: Sequence[Actuator]) -> tuple[Actuator, ...]:
    """Actuators that keep the names that others know them by, whatever these follow from."""
    names = Actuators(tuple(actuators)).names
    return tuple(with_fields(each, name=name) for each, name in zip(actuators, names, strict=True))


def _contact(parts: Sequence[_Placed]) -> Contact | None:
    """Contact of the whole: one law, with the materials of all parts."""
    each = [part.rename(part.system.contact) for part in parts]
    materials = {}
    for i, contact in enumerate(each):
        if hasattr(contact, "materials"):
            materials |= contact.materials
            each[i] = with_fields(contact, materials={})
    chosen = _common("contact", parts, each)
    return with_fields(chosen, materials=materials) if materials else chosen


def _common(what: str, parts: Sequence[_Placed], each: Sequence[Any]) -> Any:
    """The part that the whole has once: that of the systems that have it."""
    having = [(part.label, own) for part, own in zip(parts, each, strict=True) if own is not None]
    if not having:
        return None
    (first, chosen), *others = having
    for label, other in others:
        if other is chosen:
            continue
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((chosen, other))):
            raise ValueError(
                f"{what}: that of {first!r} or of {label!r} is traced, so that they cannot be compared; give both the "
                "same object"
            )
        if not eqx.tree_equal(chosen, other):
            raise ValueError(f"{what}: {first!r} has {short(chosen)}, {label!r} has {short(other)}; give both the same")
    return chosen


def _controller(model: Model, parts: Sequence[_Placed]) -> DynamicController | None:
    counts = [len(Actuators(part.system.actuators).command_names) for part in parts]
    count = sum(counts)
    controllers, first = [], 0
    for part, own in zip(parts, counts, strict=True):
        if (controller := part.system.controller) is not None:
            if count and not own:
                raise ValueError(
                    f"the controller of {part.label!r} gives generalized forces, but other parts have actuators, whose "
                    "controllers give commands; give it actuators, such as a jdyn.actuators.Motor for each joint"
                )
            out = tuple(range(first, first + own)) if count else tuple(part.v)
            controllers.append(
                OnCoordinates(with_memory(controller), tuple(part.q), tuple(part.v), out, count or model.nv)
            )
        first += own
    return functools.reduce(operator.add, controllers) if controllers else None


def _configurations(model: Model, parts: Sequence[_Placed]) -> dict[str, Float[Array, " nq"]]:
    having = [part.system.configurations for part in parts if part.system.configurations]
    shared = [name for name in (having[0] if having else ()) if all(name in each for each in having)]
    if any("qpos0" in each for each in having):
        shared = ["qpos0", *(name for name in shared if name != "qpos0")]

    def whole(names: Sequence[str]) -> Float[Array, " nq"]:
        each = [part.coordinates(name) for part, name in zip(parts, names, strict=True)]
        return jnp.concatenate(each).astype(model.dtype)

    found = {name: whole([name] * len(parts)) for name in shared}
    for part in parts:
        for name in part.system.configurations:
            if part.prefix + name not in found:
                found[part.prefix + name] = whole([name if each is part else "qpos0" for each in parts])
    return found
