"""The numbers of a model by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from jdyn.array import shaped
from jdyn.model.model import Model, checked
from jdyn.model.shapes import counted
from jdyn.model.values import PER_JOINT, require
from jdyn.spatial import skew, symmetric
from jdyn.terminal.messages import known, short, unknown

OF_BODY = ("mass", "com", "inertia")
OF_LIMITS = ("velocity", "effort")
# Of a joint, with a number for each coordinate, for all of which a scalar counts.
BY_COORDINATE = (*PER_JOINT, *OF_LIMITS, "rest", "lower", "upper")
UNITS = {
    "gravity": "m/s²", "mass": "kg", "com": "m", "inertia": "kg m²", "damping": "N m s/rad or N s/m",
    "friction": "N m or N", "friction_speed": "rad/s or m/s", "stiffness": "N m/rad or N/m",
    "armature": "kg m² or kg", "velocity": "rad/s or m/s", "effort": "N m or N", "rest": "rad or m",
    "lower": "rad or m", "upper": "rad or m", "translation": "m", "pitch": "m/rad", "size": "m", "heights": "m",
    "margin": "m",
}  # fmt: skip
FORMS = "'gravity', 'body:NAME.mass', 'joint:NAME.damping', 'frame:NAME.translation' or 'collision:NAME.size'"


def parameters(model: Model) -> dict[str, Array]:
    """Numbers of a model, by the names that `vary` takes; `jdyn.parameters` describes them."""
    checked(model)
    topology, found = model.topology, {"gravity": model.gravity}
    for body, name in enumerate(topology.body_names):
        mass, first = model.inertias.mass[body], model.inertias.first_moment[body]
        c = skew(com := first / jnp.where(mass == 0, 1, mass))
        values = mass, com, symmetric(model.inertias.rotational[body]) - mass * (c @ c.T)
        found |= {f"body:{name}.{what}": value for what, value in zip(OF_BODY, values, strict=True)}
    for body, name in enumerate(topology.joint_names):
        values = joint_numbers(model, body) | {"translation": model.placements.translation[body]}
        values |= joint_geometry(model, body)
        found |= {f"joint:{name}.{what}": value for what, value in values.items()}
    for frame, name in enumerate(topology.frame_names):
        found[f"frame:{name}.translation"] = model.frames.translation[frame]
    coefficients = 0 if _only_slides(model) else slice(None)
    for name, row in _collisions(model).items():
        shapes: Any = model.shapes
        found[f"collision:{name}.{_size_of(model, row)}"] = shapes.size(row)
        found[f"collision:{name}.translation"] = shapes.placements.translation[row]
        found[f"collision:{name}.friction"] = shapes.friction[row, coefficients]
        if shapes.margins is not None:
            found[f"collision:{name}.margin"] = shapes.margins[row]
        if shapes.entries[row].kind == "height field":
            found[f"collision:{name}.heights"] = shapes.heights_of(row)
    return found


def _collisions(model) -> dict[str, int]:
    """Rows of collision shapes by their names."""
    return {} if model.shapes is None else {model.shapes.entries[i].name: i for i in model.shapes.rows("collision")}


def _only_slides(model) -> bool:
    """Tell whether no collision shape has a `condim` with which torsional and rolling friction count."""
    return not counted([model.shapes.entries[row].condim for row in _collisions(model).values()])[:, 1:].any()


def _size_of(model, row) -> str:
    """Name of the size of a shape."""
    return "scale" if model.shapes.entries[row].kind == "mesh" else "size"


def units_of(name: str) -> str:
    """Unit of a number by its name; empty for directions, and for friction of shapes, whose coefficients have
    several."""
    if name.startswith("collision:") and name.endswith(".friction"):
        return ""
    return UNITS.get(name.rpartition(".")[2], "")


def joint_numbers(model: Model, body: int) -> dict[str, Array]:
    """Numbers of a body's joint that models have for each of its coordinates."""
    q, v = model.topology.q_slice(body), model.topology.v_slice(body)
    values = {what: getattr(model, what)[v] for what in PER_JOINT}
    values |= {what: getattr(model.limits, what)[v] for what in OF_LIMITS}
    return values | {"rest": model.rest[q], "lower": model.limits.lower[q], "upper": model.limits.upper[q]}


def joint_geometry(model: Model, body: int) -> dict[str, Any]:
    """Geometry of a body's joint itself: its `axis`, or `normal` and `x`, and so on."""
    number, row = model.topology.place_of_joint(body)
    joints = model.joints[number]
    return {field.name: getattr(joints, field.name)[row] for field in dataclasses.fields(joints)}


def vary(model: Model, changes: Mapping[str, ArrayLike]) -> Model:
    """A copy of a model with other numbers, by name, as `jdyn.vary` describes it, with its errors."""
    checked(model)
    joints: dict[str, dict[str, ArrayLike]] = {}
    for name, value in changes.items():
        kind, of, what = _parsed(model, name)
        if kind == "joint" and what != "translation":
            # Together: a range may be moved beyond the old one.
            joints.setdefault(of, {})[what] = value
        else:
            model = _changed(model, name, kind, of, what, value)
    for of, values in joints.items():
        model = model.with_joint(of, **values)
    return model


def _parsed(model: Model, name: str) -> tuple[str, str, str]:
    """Owner of a number: the kind, its name, and which number it is."""
    if name == "gravity":
        return name, "", name
    kind, _, rest = name.partition(":")
    of, _, what = rest.rpartition(".")
    if kind not in ("body", "joint", "frame", "collision") or not of:
        raise ValueError(f"vary: expected a name such as {FORMS}, got {short(name)}")
    allowed = _allowed(model, kind, of)
    if what not in allowed:
        raise ValueError(f"vary: {kind} {of!r} has no {short(what)}; {known(what, allowed)}")
    return kind, of, what


def _changed(model: Model, name: str, kind: str, of: str, what: str, value: ArrayLike) -> Model:
    if kind == "gravity":
        return model.with_gravity(value)
    if kind == "body":
        return model.with_body(of, **{what: value})
    require(f"{kind} {of!r}", what, value)
    if kind == "collision":
        return _with_shape(model, name, _collisions(model)[of], what, value)
    return _moved(model, kind, of, shaped(name, value, model.dtype, (3,)))


def _allowed(model, kind, of):
    """Names of the numbers of a body, joint, frame or collision shape, which there has to be."""
    if kind == "body":
        model.topology.body(of)
        return OF_BODY
    if kind == "frame":
        if of not in model.frame_names:
            raise ValueError(unknown("frame", of, model.frame_names))
        return ("translation",)
    if kind == "collision":
        rows = _collisions(model)
        if of not in rows:
            raise ValueError(unknown("collision shape", of, tuple(rows)))
        heights = ("heights",) if model.shapes.entries[rows[of]].kind == "height field" else ()
        margin = () if model.shapes.margins is None else ("margin",)
        return ("translation", _size_of(model, rows[of]), "friction", *margin, *heights)
    body = model.topology.joint(of)
    return (*BY_COORDINATE, "translation", *joint_geometry(model, body))


def _with_shape(model, name, row, what, value):
    """With other numbers of a shape."""
    shapes = model.shapes
    if what == "friction":
        value = shaped(name, value, model.dtype, (), (3,))
        if value.ndim and _only_slides(model):
            raise ValueError(
                f"{name}: got three coefficients, but torsional and rolling friction are left out, since no shape has "
                "a condim of 4 or 6. Give the one of sliding friction; or build a shape with three, see "
                f"jdyn.Builder.add_shape; or give all to contact, materials={{{shapes.entries[row].name!r}: "
                "jdyn.contact.Material(friction=...)}"
            )
        friction = shapes.friction.at[(row, 0) if value.ndim == 0 else row].set(value)
        return dataclasses.replace(model, shapes=dataclasses.replace(shapes, friction=friction))
    if what == "margin":
        margins = shapes.margins.at[row].set(shaped(name, value, model.dtype, ()))
        return dataclasses.replace(model, shapes=dataclasses.replace(shapes, margins=margins))
    if what == "translation":
        translation = shapes.placements.translation.at[row].set(shaped(name, value, model.dtype, (3,)))
        placements = dataclasses.replace(shapes.placements, translation=translation)
        return dataclasses.replace(model, shapes=dataclasses.replace(shapes, placements=placements))
    if what == "heights":
        old = shapes.heights_of(row)
        heights = tuple(shaped(name, value, model.dtype, old.shape) if x is old else x for x in shapes.heights)
        return dataclasses.replace(model, shapes=dataclasses.replace(shapes, heights=heights))
    k = len(shapes.size(row))
    size = shaped(name, value, model.dtype, *([()] if k == 1 else []), (k,))
    return dataclasses.replace(model, shapes=dataclasses.replace(shapes, sizes=shapes.sizes.at[row, :k].set(size)))


def _moved(model, kind, of, translation):
    """With another place of a joint's or a frame's origin."""
    field, row = (
        ("placements", model.topology.joint(of)) if kind == "joint" else ("frames", model.frame_names.index(of))
    )
    poses = getattr(model, field)
    poses = dataclasses.replace(poses, translation=poses.translation.at[row].set(translation))
    return dataclasses.replace(model, **{field: poses}, links=None)
