"""Sensors of MuJoCo files.

Each becomes the class of `jdyn.sensors` whose values are MuJoCo's. A `cutoff` clips them, as in MuJoCo; `noise` is
information for users there, and so is left out. Sensors with a history have their `delay` and `interval`, and a memory
that is long enough for these; before the first value arrives, they show the start where MuJoCo shows zero. Potential
energy lacks that of bodies which are fixed to the world, a constant. Sensors of force and torque also feel tendons,
thrusters, the medium and carried weight, which push bodies here and coordinates there.
"""

from collections.abc import Iterator
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from jdyn.geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere
from jdyn.io.mjcf_actuators import is_read
from jdyn.io.mjcf_names import Names
from jdyn.io.mjcf_sensor_kinds import (
    CUTTING,
    OF_ACTUATORS,
    OF_FRAMES,
    OF_JOINTS,
    OF_SHAPES,
    OF_SUBTREES,
    OF_TENDONS,
    RANGES,
    SENSOR_CLASSES,
    TOUCHED,
    WHOLE,
)
from jdyn.io.mjcf_tendons import transmission_of
from jdyn.io.mjcf_translation import Translation
from jdyn.model import WORLD, Model
from jdyn.sensors import Imperfect, Limb, Sampled, Sensor
from jdyn.spatial import SpatialInertia, Transform

# By their numbers in MuJoCo; it has cubic ones as well.
_INTERPOLATIONS: dict[int, Literal["hold", "linear"]] = {0: "hold", 1: "linear"}
# Names of elements that differ from those in MuJoCo's structures.
_ELEMENTS: dict[str, str] = {
    "geomdist": "distance", "geomnormal": "normal", "geomfromto": "fromto", "jointactfrc": "jointactuatorfrc",
}  # fmt: skip


def sensor_names(t: Translation) -> list[str]:
    """Names of all sensors that MuJoCo was given; those without one are called after their kind."""
    names = Names()
    given = [t.mujoco.mj_id2name(t.m, t.mujoco.mjtObj.mjOBJ_SENSOR, i) for i in range(t.m.nsensor)]
    claimed = {i: names.claim(name) for i, name in enumerate(given) if name}
    return [claimed[i] if i in claimed else names.claim(_kind(t, i)) for i in range(t.m.nsensor)]


def untranslated_sensors(t: Translation) -> list[str]:
    """Names of the sensors that have no class here: of cameras, and on what is not read."""
    return [name for i, name in enumerate(sensor_names(t)) if not _is_known(t, i)]


def sensors(t: Translation, model: Model) -> tuple[Sensor, ...]:
    """All other sensors, in the order of the file.

    Args:
        t: The file.
        model: What `load_mjcf` makes of it, with any base.

    Source: MuJoCo's documentation, XML reference, sensor; `engine_sensor.c` in its source.
    """
    return tuple(_sensor(t, model, i, name) for i, name in enumerate(sensor_names(t)) if _is_known(t, i))


def _kind(t: Translation, sensor: int) -> str:
    kind: str = t.mujoco.mjtSensor(int(t.m.sensor_type[sensor])).name.removeprefix("mjSENS_").lower()
    return _ELEMENTS.get(kind, kind)


def _is_known(t: Translation, sensor: int) -> bool:
    m = t.m
    ends = (m.sensor_objtype[sensor], m.sensor_objid[sensor]), (m.sensor_reftype[sensor], m.sensor_refid[sensor])
    kind, number = _kind(t, sensor), int(m.sensor_objid[sensor])
    if _is_late(t, sensor) and (m.sensor_history[sensor, 1] not in _INTERPOLATIONS or m.sensor_interval[sensor, 1]):
        return False
    if kind in OF_ACTUATORS:
        return is_read(t, number)
    if kind in RANGES and not _is_plain_range(t, sensor):
        return False
    if kind in OF_SHAPES:
        return all(_geoms(t, *end) and set(_geoms(t, *end)) <= set(t.collision_rows) for end in ends)
    if kind in TOUCHED:
        return set(_touched(t, number)) <= set(t.collision_rows)
    if kind == "jointactuatorfrc" and t.follows(number):
        return False
    return kind in SENSOR_CLASSES and not any(_turns(t, int(kind), int(number)) for kind, number in ends)


def _is_late(t: Translation, sensor: int) -> bool:
    """Tell whether a sensor has a delay or a rate of its own, for which it needs a history."""
    m = t.m
    return bool(m.sensor_history[sensor, 0] and (m.sensor_delay[sensor] or m.sensor_interval[sensor, 0]))


def _turns(t: Translation, kind: int, number: int) -> bool:
    """Tell whether an object is a camera that follows what it sees."""
    fixed = t.mujoco.mjtCamLight.mjCAMLIGHT_FIXED
    return number >= 0 and kind == t.mujoco.mjtObj.mjOBJ_CAMERA and int(t.m.cam_mode[number]) != fixed


def _is_plain_range(t: Translation, sensor: int) -> bool:
    """Tell whether a rangefinder reports the distance along one ray, and all that it may see has a collision shape."""
    m, only_distance = t.m, 1 << int(t.mujoco.mjtRayDataField.mjRAYDATA_DIST)
    is_site = int(m.sensor_objtype[sensor]) == t.mujoco.mjtObj.mjOBJ_SITE
    seen = _visible(t, int(m.sensor_objid[sensor])) if is_site else []
    return is_site and int(m.sensor_intprm[sensor, 0]) == only_distance and set(seen) <= set(t.collision_rows)


def _visible(t: Translation, site: int) -> list[int]:
    """Geoms that a ray from a site meets: those of other bodies that are not fully transparent."""
    m = t.m
    opacity = np.where(m.geom_matid >= 0, m.mat_rgba[m.geom_matid, 3] if m.nmat else 1, m.geom_rgba[:, 3])
    return np.flatnonzero((opacity > 0) & (m.geom_bodyid != m.site_bodyid[site])).tolist()


def _touched(t: Translation, site: int) -> list[int]:
    """Geoms of a site's body that may touch others."""
    may = np.any(t.pairs.touching, axis=1)
    return np.flatnonzero(may & (t.m.geom_bodyid == t.m.site_bodyid[site])).tolist()


def _zone(t: Translation, site: int) -> Any:
    """The shape of a site."""
    size, kinds = t.m.site_size[site], t.mujoco.mjtGeom
    match int(t.m.site_type[site]):
        case kinds.mjGEOM_SPHERE:
            return Sphere(jnp.asarray(size[0], float))
        case kinds.mjGEOM_CAPSULE:
            return Capsule(*jnp.asarray(size[:2] * (1, 2), float))
        case kinds.mjGEOM_CYLINDER:
            return Cylinder(*jnp.asarray(size[:2] * (1, 2), float))
        case kinds.mjGEOM_ELLIPSOID:
            return Ellipsoid(jnp.asarray(size, float))
        case _:
            return Box(jnp.asarray(2 * size, float))


def _geoms(t: Translation, kind: int, number: int) -> list[int]:
    """Geoms of one end of a distance: one, or all of a body."""
    if int(kind) == t.mujoco.mjtObj.mjOBJ_GEOM:
        return [int(number)]
    return np.flatnonzero(t.m.geom_bodyid == number).tolist()


def _shape_names(t: Translation, model: Model, geoms: list[int]) -> tuple[str, ...]:
    """Names of the collision shapes of geoms."""
    return tuple(model.shapes.entries[t.collision_rows[geom]].name for geom in geoms) if model.shapes else ()


def _sensor(t: Translation, model: Model, sensor: int, name: str) -> Sensor:
    m, kind, number = t.m, _kind(t, sensor), int(t.m.sensor_objid[sensor])
    fields = dict[str, Any]()
    if kind in OF_JOINTS:
        fields["joint"] = t.joints[number]
    elif kind in OF_SUBTREES:
        fields["limb"] = _limb(t, model, number)
    elif kind in OF_ACTUATORS:
        fields["actuator"] = t.name("actuator", number)
    elif kind in OF_TENDONS:
        fields["transmission"] = transmission_of(t, number)
    elif kind in OF_SHAPES:
        ends = (m.sensor_objtype[sensor], number), (m.sensor_reftype[sensor], m.sensor_refid[sensor])
        fields["first"], fields["second"] = (_shape_names(t, model, _geoms(t, *end)) for end in ends)
        fields["cutoff"] = m.sensor_cutoff[sensor]
    elif kind not in WHOLE:
        fields["frame"], fields["pose"] = _frame(t, int(m.sensor_objtype[sensor]), number)
    if kind in CUTTING:
        fields["limb"] = _limb(t, model, int(m.site_bodyid[number]))
    if kind in OF_FRAMES and m.sensor_refid[sensor] >= 0:
        reference = _frame(t, int(m.sensor_reftype[sensor]), int(m.sensor_refid[sensor]))
        fields["reference"], fields["reference_pose"] = reference
    if kind in ("framexaxis", "frameyaxis", "framezaxis"):
        fields["axis"] = kind.removeprefix("frame")[0]
    if kind == "framelinacc":
        fields["from_free_fall"] = True
    if kind == "magnetometer":
        fields["field"] = np.array(m.opt.magnetic)
    if kind in TOUCHED:
        fields["shapes"], fields["zone"] = _shape_names(t, model, _touched(t, number)), _zone(t, number)
    if kind in RANGES:
        fields["shapes"], fields["missed"] = _shape_names(t, model, _visible(t, number)), -1.0
    read = SENSOR_CLASSES[kind](name, **fields)
    clipped = m.sensor_cutoff[sensor] and kind not in ("normal", "fromto")
    read = Imperfect(read, cutoff=m.sensor_cutoff[sensor]) if clipped else read
    return _late(t, sensor, read) if _is_late(t, sensor) else read


def _late(t: Translation, sensor: int, read: Sensor) -> Sensor:
    m, delay, period = t.m, float(t.m.sensor_delay[sensor]), float(t.m.sensor_interval[sensor, 0])
    # Steps may be half as long as those of the file.
    remembered = 2 * delay / max(period, m.opt.timestep)
    samples = int(np.clip(np.ceil(remembered) + 2, 16, 4096))
    how = _INTERPOLATIONS[int(m.sensor_history[sensor, 1])]
    return Sampled(read, delay, period or None, interpolation=how, samples=samples)


def _frame(t: Translation, kind: int, number: int) -> tuple[str, Transform | None]:
    """Frame of an object: a name, and the pose in it."""
    m, kinds = t.m, t.mujoco.mjtObj
    match kind:
        case kinds.mjOBJ_SITE:
            return t.sites[number], None
        case kinds.mjOBJ_XBODY:
            return t.bodies[number], None
        case kinds.mjOBJ_BODY:
            return t.bodies[number], t.pose(m.body_ipos[number], m.body_iquat[number])
        case kinds.mjOBJ_GEOM:
            return t.bodies[m.geom_bodyid[number]], t.pose(m.geom_pos[number], m.geom_quat[number])
        case _:
            return t.bodies[m.cam_bodyid[number]], t.pose(m.cam_pos[number], m.cam_quat[number])


def _limb(t: Translation, model: Model, body: int) -> Limb:
    """The limb of a MuJoCo body and all below it. A body without joints is a piece of the one that carries
    it."""
    if t.joint_count(body):
        return Limb(t.bodies[body])
    pieces = list(_fixed_to(t, body))
    inertias = [_inertia(t, each).to_parent(_in_carrier(t, each)) for each in pieces]
    joined = [child for child in range(1, t.m.nbody) if t.joint_count(child) and t.m.body_parentid[child] in pieces]
    links = [t.bodies[each] for each in pieces]
    shapes = () if model.shapes is None else model.shapes.entries
    return Limb(
        t.bodies[body],
        piece=sum(inertias[1:], start=inertias[0]),
        carried=tuple(_first_link(t, model, child) for child in joined),
        shapes=tuple(shape.name for shape in shapes if shape.role == "collision" and shape.link in links),
    )


def _fixed_to(t: Translation, body: int) -> Iterator[int]:
    """A body, and those that are fixed to it."""
    yield body
    for child in range(1, t.m.nbody):
        if t.m.body_parentid[child] == body and not t.joint_count(child):
            yield from _fixed_to(t, child)


def _in_carrier(t: Translation, body: int) -> Transform:
    """Pose of a body in the frame of the body of the model that carries it."""
    if body == 0:
        return t.pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    if t.joint_count(body):
        return t.pose(-t.last_anchor(body), np.array([1.0, 0.0, 0.0, 0.0]))
    return _in_carrier(t, int(t.m.body_parentid[body])) @ t.pose(t.m.body_pos[body], t.m.body_quat[body])


def _inertia(t: Translation, body: int) -> SpatialInertia:
    m = t.m
    R = np.asarray(t.pose(np.zeros(3), m.body_iquat[body]).rotation)
    mass, inertia = jnp.asarray(m.body_mass[body]), jnp.asarray(R @ np.diag(m.body_inertia[body]) @ R.T)
    return SpatialInertia.from_com(mass, jnp.asarray(m.body_ipos[body]), inertia)


def _first_link(t: Translation, model: Model, body: int) -> str:
    """Body of the model that the first joint of a MuJoCo body moves."""
    topology, name = model.topology, t.bodies[body]
    if name in topology.frame_names:
        link = topology.frame_bodies[topology.frame_names.index(name)]
    else:
        link = topology.body_names.index(name)
    for _ in range(t.joint_count(body) - 1):
        link = topology.parents[link]
    return model.body_names[link] if link != WORLD else name
