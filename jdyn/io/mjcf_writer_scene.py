"""All that acts on a model, in MJCF: actuators, tendons, equalities, sensors, keyframes, carried weight."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from jdyn.actuators import (
    Actuator,
    AffineActuator,
    Damper,
    Integrator,
    Lag,
    Motor,
    Muscle,
    MuscleActivation,
    PositionServo,
    VelocityServo,
)
from jdyn.elements import CarriedWeight, ForceElement, Medium, TendonSpring
from jdyn.elements.medium import box_of
from jdyn.io.mjcf_constraints import Locked
from jdyn.io.mjcf_document import MjcfDocument, inertial_of, pose_words, principal, words
from jdyn.io.mjcf_sensor_kinds import (
    CUTTING,
    MOUNTED,
    OF_ACTUATORS,
    OF_FRAMES,
    OF_JOINTS,
    OF_SHAPES,
    OF_SUBTREES,
    OF_TENDONS,
    WHOLE,
)
from jdyn.io.scene import Scene
from jdyn.model import Ball, Connect, Constraint, Free, Gear, Hinge, JointSum, PrescribedJoint, Weld, pose
from jdyn.model.build import FRICTION_SPEED
from jdyn.model.frames import carrier_of
from jdyn.sensors import FrameAxis, Imperfect, Sensor
from jdyn.terminal.messages import short
from jdyn.transmissions import (
    Adhesion,
    FixedTendon,
    Geared,
    GearedFrame,
    GearedJoint,
    PathPoint,
    Pulley,
    SpatialTendon,
    Transmission,
    WrappedSphere,
)
from jdyn.transmissions.spatial_tendon import Wrapped


def add_scene(document: MjcfDocument, scene: Scene) -> None:
    """Add all of a scene but its model to a document, and note what that cannot have."""
    writer = _Writer(document, scene)
    for constraint in scene.constraints:
        writer.constraint(constraint)
    for element in scene.elements:
        writer.element(element)
    for actuator in scene.actuators:
        writer.actuator(actuator)
    for sensor in scene.sensors:
        writer.sensor(sensor)
    for name, q in scene.configurations.items():
        writer.configuration(name, q)


class _Writer:
    """Adds parts of a scene to a document."""

    def __init__(self, document: MjcfDocument, scene: Scene):
        self._document, self._model, self._lost = document, document.model, document.lost
        self._tendons: list[tuple[Transmission, str]] = []
        self._springs: dict[str, ET.Element] = {}
        self._actuators = {actuator.name or actuator.transmission.label for actuator in scene.actuators}
        self._written: set[str] = set()

    # Lengths.

    def _tendon(self, transmission: Transmission) -> str | None:
        """Name of a tendon; None if MJCF has none of that kind."""
        for known, name in self._tendons:
            if _same(known, transmission):
                return name
        section, name = self._document.section("tendon"), f"tendon{len(self._tendons)}"
        if isinstance(transmission, FixedTendon) and not transmission.offset:
            element = ET.SubElement(section, "fixed", name=name)
            each = np.broadcast_to(transmission.coefficients, (len(transmission.joints),))
            for joint, coefficient in zip(transmission.joints, each, strict=True):
                ET.SubElement(element, "joint", joint=joint, coef=words(coefficient))
        elif isinstance(transmission, SpatialTendon):
            element = ET.SubElement(section, "spatial", name=name)
            for part in transmission.path:
                self._add_part(element, part)
        else:
            return None
        self._tendons.append((transmission, name))
        self._springs[name] = element
        return name

    def _add_part(self, tendon: ET.Element, part: PathPoint | Wrapped | Pulley):
        """Add a part of its path to a tendon."""
        if isinstance(part, Pulley):
            ET.SubElement(tendon, "pulley", divisor=words(part.divisor))
        elif isinstance(part, PathPoint):
            ET.SubElement(tendon, "site", site=self._site(part))
        else:
            body: Any = part
            element, X = self._document.carrier(body.frame, body.pose)
            name = self._document.geom_names.claim(f"wrapped{len(self._tendons)}")
            # The length of a cylinder does not matter to tendons.
            kind = "sphere" if isinstance(part, WrappedSphere) else "cylinder"
            size = [body.radius] if kind == "sphere" else [body.radius, body.radius]
            geom = ET.SubElement(element, "geom", name=name, type=kind, size=words(size), group="3")
            geom.attrib.update(pose_words(X), contype="0", conaffinity="0")
            around = ET.SubElement(tendon, "geom", geom=name)
            if body.inside:
                around.set("sidesite", self._document.site(body.frame, body.pose))
            elif body.side is not None:
                around.set("sidesite", self._site(body.side))

    def _site(self, point: PathPoint) -> str:
        return self._document.site(point.frame, pose(point.point))

    def _acts_on(self, transmission: Transmission) -> dict[str, str] | None:
        """Attributes of an actuator for its transmission; None if MJCF has none of that kind."""
        if isinstance(transmission, GearedJoint):
            body = self._model.topology.joint(transmission.joint)
            kind, names = self._model.topology.kinds[body], self._document.joints[body]
            if kind is Free or len(names) != 1:
                return None
            joint = "jointinparent" if transmission.in_parent else "joint"
            return {joint: names[0], "gear": words(transmission.gear)}
        if isinstance(transmission, GearedFrame):
            about = {"site": self._document.site(transmission.frame), "gear": words(np.roll(transmission.gear, 3))}
            if transmission.reference is not None:
                about["refsite"] = self._document.site(transmission.reference)
            return about
        if isinstance(transmission, Adhesion):
            return {"body": transmission.link} if self._is_whole(transmission.link) else None
        gear = 1.0
        if isinstance(transmission, Geared):
            transmission, gear = transmission.transmission, transmission.gear
        tendon = self._tendon(transmission)
        return None if tendon is None else {"tendon": tendon, "gear": words(gear)}

    def _is_whole(self, link: str) -> bool:
        """Tell whether the shapes of a link are all those of its body."""
        topology, shapes = self._model.topology, self._model.shapes
        if link not in topology.body_names:
            return False
        body = topology.body(link)
        return all(entry.link == link for entry in (() if shapes is None else shapes.entries) if entry.body == body)

    # Actuators.

    def actuator(self, actuator: Actuator) -> None:
        """Add an actuator."""
        name = actuator.name or actuator.transmission.label
        law, dynamics = _law(actuator), _dynamics(actuator)
        target = None if law is None or dynamics is None else self._acts_on(actuator.transmission)
        if law is None or dynamics is None or target is None:
            self._lost.add("actuators", f"{short(name)} ({type(actuator).__name__})")
            return
        limits = {"ctrlrange": actuator.command_range, "forcerange": actuator.force_range}
        ranges = {key: words(value) for key, value in limits.items() if value is not None}
        element = ET.SubElement(self._document.section("actuator"), "general", name=name)
        element.attrib.update(target | law | dynamics | ranges)
        self._written.add(name)
        activation = getattr(actuator, "activation", None)
        if activation is not None and activation.initial != 0:
            self._lost.add("initial states", short(name))

    # Equalities.

    def constraint(self, constraint: Constraint) -> None:
        """Add a constraint, which is soft in MuJoCo."""
        section, document = self._document.section("equality"), self._document
        if isinstance(constraint, Connect):
            self._connect(constraint.frame_a, constraint.point_a, constraint.frame_b, constraint.point_b)
        elif isinstance(constraint, Hinge):
            # Two points on the axis of either frame, of which the second says one thing twice.
            axes = [np.asarray(x) / np.linalg.norm(x) for x in (constraint.axis_a, constraint.axis_b)]
            for along in (0.0, 1.0):
                a, b = constraint.point_a + along * axes[0], constraint.point_b + along * axes[1]
                self._connect(constraint.frame_a, a, constraint.frame_b, b)
        elif isinstance(constraint, Weld):
            sites = document.site(constraint.frame_a, constraint.pose), document.site(constraint.frame_b)
            ET.SubElement(section, "weld", site1=sites[0], site2=sites[1])
        elif isinstance(constraint, Gear) and len(constraint.coefficients) <= 5:
            coefficients = np.pad(constraint.coefficients, (0, 5 - len(constraint.coefficients)))
            joints = {"joint1": constraint.follower, "joint2": constraint.leader}
            ET.SubElement(section, "joint", joints, polycoef=words(coefficients))
        elif isinstance(constraint, PrescribedJoint) and isinstance(constraint.position, Locked):
            position = [constraint.position.position, 0, 0, 0, 0]
            ET.SubElement(section, "joint", joint1=constraint.joint, polycoef=words(position))
        elif isinstance(constraint, JointSum):
            tendon = self._tendon(FixedTendon(constraint.joints, constraint.weights))
            # A deviation from the length where all coordinates are zero.
            ET.SubElement(section, "tendon", tendon1=str(tendon), polycoef=words([constraint.total, 0, 0, 0, 0]))
        else:
            of = (*constraint.frames, *constraint.joints)
            self._lost.add("constraints", f"{type(constraint).__name__} of {' and '.join(map(short, of))}")

    def _connect(self, frame_a: str, point_a: Any, frame_b: str, point_b: Any):
        ends = [self._document.site(frame, pose(point)) for frame, point in ((frame_a, point_a), (frame_b, point_b))]
        ET.SubElement(self._document.section("equality"), "connect", site1=ends[0], site2=ends[1])

    # Force elements.

    def element(self, element: ForceElement) -> None:
        """Add a force element."""
        if isinstance(element, TendonSpring) and self._spring(element):
            return
        if isinstance(element, CarriedWeight) and self._carried(element):
            return
        if isinstance(element, Medium) and self._medium(element):
            return
        self._lost.add("force elements", type(element).__name__)

    def _spring(self, element: TendonSpring) -> bool:
        name = self._tendon(element.transmission)
        tendon = None if name is None else self._springs[name]
        if tendon is None or tendon.get("stiffness") or tendon.get("damping"):
            return False
        stiffness, damping = (
            np.append(linear, powers if np.any(powers) else [])
            for linear, powers in (
                (element.stiffness, element.stiffness_powers), (element.damping, element.damping_powers)
            )
        )  # fmt: skip
        if np.any(stiffness):
            tendon.attrib.update(stiffness=words(stiffness), springlength=words(element.rest_range))
        if np.any(damping):
            tendon.set("damping", words(damping))
        if element.friction:
            tendon.set("frictionloss", words(element.friction))
            if element.friction_speed != FRICTION_SPEED:
                self._lost.add("friction_speed", "tendons")
        if element.stop_stiffness and np.any(np.isfinite(element.range)):
            tendon.set("range", words(element.range))
            self._lost.add("stiffness of stops", "tendons")
        return True

    def _carried(self, element: CarriedWeight) -> bool:
        """Add weight that is carried at the centre of mass of whole bodies."""
        model, shares = self._model, {}
        for name, mass, point in zip(element.bodies, element.masses, element.points, strict=True):
            body = model.topology.body_names.index(name)
            whole, first = model.inertias.mass[body], model.inertias.first_moment[body]
            if name in shares or not whole or not np.allclose(first, whole * point, rtol=0, atol=1e-12 * whole):
                return False
            shares[name] = mass / whole
        for name, share in shares.items():
            self._document.body(name).set("gravcomp", words(share))
        return True

    def _medium(self, element: Medium) -> bool:
        """Set the medium, if it acts on the boxes that MuJoCo makes of all bodies."""
        model, option = self._model, self._document.option
        massive = {name for body, name in enumerate(model.body_names) if model.inertias.mass[body]}
        if self._document.light or sorted(element.bodies) != sorted(massive) or option.get("density"):
            return False
        for number, name in enumerate(element.bodies):
            mass, com, moments = inertial_of(model, model.body_names.index(name))
            along, axes = principal(moments)
            R, sides = np.asarray(element.poses.rotation[number]), np.asarray(element.boxes[number])
            same = np.allclose((R * sides) @ R.T, (axes * box_of(mass, along)) @ axes.T, rtol=0, atol=1e-9)
            if not (same and np.allclose(element.poses.translation[number], com, rtol=0, atol=1e-9)):
                return False
        numbers = {"density": element.density, "viscosity": element.viscosity, "wind": element.wind}
        option.attrib.update({key: words(value) for key, value in numbers.items()})
        return True

    # Sensors.

    def sensor(self, sensor: Sensor) -> None:
        """Add a sensor."""
        inner, cutoff = sensor, None
        if isinstance(sensor, Imperfect) and sensor.cutoff is not None:
            inner, cutoff = sensor.sensor, sensor.cutoff
            if sensor.drift is not None:
                self._lost.add("drift", f"sensor {short(sensor.name)}")
            if any(x is not None for x in (sensor.noise, sensor.bias, sensor.quantum)):
                self._lost.add("noise, bias and steps", f"sensor {short(sensor.name)}")
        found = self._read_by(inner)
        if found is None:
            self._lost.add("sensors", f"{short(sensor.name)} ({type(inner).__name__})")
            return
        kind, about = found
        element = ET.SubElement(self._document.section("sensor"), kind, name=sensor.name)
        element.attrib.update(about)
        if cutoff is not None:
            element.set("cutoff", words(cutoff))

    def _read_by(self, sensor: Any) -> tuple[str, dict[str, str]] | None:
        """The element and attributes of a sensor; None if there is none."""
        topology, kind = self._model.topology, type(sensor)
        if kind in OF_JOINTS.values():
            body = topology.joint(sensor.joint)
            is_ball = topology.kinds[body] is Ball
            names = [key for key, found in OF_JOINTS.items() if found is kind and key.startswith("ball") == is_ball]
            if len(self._document.joints[body]) != 1 or topology.kinds[body] is Free or not names:
                return None
            return names[0], {"joint": self._document.joints[body][0]}
        if kind in WHOLE.values():
            return _key(WHOLE, kind), {}
        if kind in OF_ACTUATORS.values():
            return (
                (_key(OF_ACTUATORS, kind), {"actuator": sensor.actuator}) if sensor.actuator in self._written else None
            )
        if kind in OF_TENDONS.values():
            tendon = self._tendon(sensor.transmission)
            return None if tendon is None else (_key(OF_TENDONS, kind), {"tendon": tendon})
        if kind in OF_SUBTREES.values():
            limb = sensor.limb
            is_body = limb.is_whole and limb.frame in topology.body_names
            return (_key(OF_SUBTREES, kind), {"body": limb.frame}) if is_body else None
        if kind in OF_SHAPES.values():
            ends = [*sensor.first, *sensor.second]
            known = len(sensor.first) == len(sensor.second) == 1 and np.isfinite(sensor.cutoff)
            about = {"geom1": ends[0], "geom2": ends[-1], "cutoff": words(sensor.cutoff)}
            return (_key(OF_SHAPES, kind), about) if known and self._document.have_geoms(ends) else None
        if kind in CUTTING.values():
            limb, (carrier, _) = sensor.limb, carrier_of(self._model, sensor.frame, pose())
            if carrier < 0 or not (limb is None or limb.is_whole):
                return None
            return _key(CUTTING, kind), {"site": self._document.site(sensor.frame, sensor.pose)}
        if kind in MOUNTED.values():
            if hasattr(sensor, "field") and not self._set_field(sensor.field):
                return None
            return _key(MOUNTED, kind), {"site": self._document.site(sensor.frame, sensor.pose)}
        if kind in OF_FRAMES.values():
            return self._of_frame(sensor)
        return None

    def _of_frame(self, sensor: Any) -> tuple[str, dict[str, str]] | None:
        key = f"frame{sensor.axis}axis" if type(sensor) is FrameAxis else _key(OF_FRAMES, type(sensor))
        if not getattr(sensor, "from_free_fall", True):
            return None
        about = {"objtype": "site", "objname": self._document.site(sensor.frame, sensor.pose)}
        if sensor.reference is not None:
            reference = self._document.site(sensor.reference, sensor.reference_pose)
            about |= {"reftype": "site", "refname": reference}
        return key, about

    def _set_field(self, field: np.ndarray) -> bool:
        """Set the magnetic field; False if another sensor has another one."""
        option = self._document.option
        if option.get("magnetic", words(field)) != words(field):
            return False
        option.set("magnetic", words(field))
        return True

    # Configurations.

    def configuration(self, name: str, q: Any) -> None:
        """Add a keyframe."""
        model = self._model
        full = np.asarray(model.expand(q), float)
        topology = model.topology
        places = {joint: full[topology.q_slice(body)] for body, joint in enumerate(topology.joint_names)}
        if name == "qpos0" and not any(
            np.any(places[joint])
            for joint, kind in zip(topology.joint_names, topology.kinds, strict=True)
            if kind is not Free and kind is not Ball
        ):
            balls = [places[j] for j, kind in zip(topology.joint_names, topology.kinds, strict=True) if kind is Ball]
            if all(np.array_equal(ball, [1, 0, 0, 0]) for ball in balls):
                # The pose of the file.
                return
        order = self._document.order()
        ET.SubElement(
            self._document.section("keyframe"), "key", name=name,
            qpos=words(np.concatenate([np.zeros(0), *(places[joint] for joint in order)])),
        )  # fmt: skip


def _key(table: dict[str, Any], kind: type) -> str:
    return next(key for key, found in table.items() if found is kind)


def _same(a: Any, b: Any) -> bool:
    """Tell whether two transmissions are the same, number for number."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | float | int):
        return bool(np.array_equal(a, b))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    if hasattr(a, "__dict__"):
        return all(_same(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))
    return a == b


def _law(actuator: Actuator) -> dict[str, str] | None:
    """Gain and bias of an actuator; None if MJCF has none of that kind."""
    match actuator:
        case Motor():
            return _affine([actuator.strength], [])
        case PositionServo(period=None):
            return _affine([actuator.kp], [0, -actuator.kp, -actuator.kd])
        case VelocityServo():
            return _affine([actuator.kd], [0, 0, -actuator.kd])
        case Damper():
            return _affine([0, 0, -actuator.strength], [])
        case AffineActuator():
            return _affine(actuator.gains, actuator.biases)
        case Muscle():
            numbers = [
                *actuator.operating_range, actuator.peak_force, 1.0, actuator.shortest, actuator.longest,
                actuator.fastest, actuator.passive, actuator.eccentric,
            ]  # fmt: skip
            prm = words(numbers)
            return {
                "gaintype": "muscle", "biastype": "muscle", "gainprm": prm, "biasprm": prm,
                "lengthrange": words(actuator.length_range),
            }  # fmt: skip
        case _:
            return None


def _affine(gains: Any, biases: Any) -> dict[str, str]:
    kind = "affine" if np.any(np.asarray(gains)[1:]) else "fixed"
    found = {"gaintype": kind, "gainprm": words(np.asarray(gains) if kind == "affine" else np.asarray(gains)[:1])}
    return found | ({"biastype": "affine", "biasprm": words(biases)} if np.any(biases) else {"biastype": "none"})


def _dynamics(actuator: Actuator) -> dict[str, str] | None:
    """The state of an actuator; None if MJCF has none of that kind."""
    activation = getattr(actuator, "activation", None)
    match activation:
        case None:
            return {"dyntype": "none"}
        case Integrator():
            found = {"dyntype": "integrator"}
        case Lag():
            found = {"dyntype": "filter", "dynprm": words(activation.time_constant)}
        case MuscleActivation():
            found = {
                "dyntype": "muscle",
                "dynprm": words([activation.rise, activation.fall, activation.smoothing]),
            }
        case _:
            return None
    return found if activation.range is None else found | {"actrange": words(activation.range)}
