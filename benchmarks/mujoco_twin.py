"""jdyn's models as MuJoCo files, with the shapes that may touch and PD controllers as actuators."""

import xml.etree.ElementTree as ET

import numpy as np

import jdyn
from jdyn.model import WORLD, Continuous, Free, Prismatic, Revolute

_JOINTS = {Free: "free", Revolute: "hinge", Continuous: "hinge", Prismatic: "slide"}


def mjcf(model: jdyn.Model, kp=None, kd=None) -> str:
    """The text of a file: bodies, joints with dampers and rotors, collision shapes, and an actuator a driven joint.

    Args:
        model: Its joints are free, revolute, continuous or prismatic, and have no springs or friction.
        kp, kd: Gains of PD controllers, shape (nv,); joints without a kp are not driven. Controls are the targets.

    Raises:
        ValueError: if it has other joints.
    """
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", balanceinertia="false")
    ET.SubElement(root, "option", gravity=_text(model.gravity))
    bodies = {WORLD: ET.SubElement(root, "worldbody")}
    for body, name in enumerate(model.body_names):
        parent = bodies[model.topology.parents[body]]
        bodies[body] = _body(parent, model, body, name)
    _add_shapes(bodies, model)
    if kp is not None:
        _add_actuators(ET.SubElement(root, "actuator"), model, np.asarray(kp), np.asarray(kd))
    return ET.tostring(root, encoding="unicode")


def _body(parent, model, body, name):
    kind = model.topology.kinds[body]
    if kind not in _JOINTS:
        raise ValueError(f"joint {model.joint_names[body]!r}: {kind.__name__} joints are not written")
    element = ET.SubElement(parent, "body", name=name, **_pose(model.placements, body))
    dofs = model.topology.v_slice(body)
    joint = {"name": model.joint_names[body], "type": _JOINTS[kind]}
    if kind is not Free:
        number = [group.kind for group in model.topology.groups].index(kind)
        row = model.topology.groups[number].bodies.index(body)
        joint["axis"] = _text(model.joints[number].axis[row])
        joint["damping"], joint["armature"] = _text(model.damping[dofs]), _text(model.armature[dofs])
    ET.SubElement(element, "joint", joint)
    mass, moment, rotational = (np.asarray(x[body]) for x in _inertia(model))
    com = moment / mass
    xx, xy, yy, xz, yz, zz = rotational
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - mass * (com @ com * np.eye(3) - np.outer(com, com))
    full = about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    ET.SubElement(element, "inertial", pos=_text(com), mass=_text(mass), fullinertia=_text(full))
    return element


def _inertia(model):
    return model.inertias.mass, model.inertias.first_moment, model.inertias.rotational


def _add_shapes(bodies, model):
    for row in () if model.shapes is None else model.shapes.rows("collision"):
        entry, size = model.shapes.entries[row], np.asarray(model.shapes.size(row))
        halves = {
            "box": size / 2,
            "sphere": size,
            "capsule": size * [1, 0.5] if len(size) == 2 else size,
            "plane": np.array([0, 0, 1.0]),
        }
        pose = _pose(model.shapes.placements, row)
        about = {"name": entry.name, "type": entry.kind, "size": _text(halves[entry.kind]), "mass": "0"}
        bits = {"contype": str(entry.contype), "conaffinity": str(entry.conaffinity)}
        ET.SubElement(bodies[entry.body], "geom", about | pose | bits, friction=_text(model.shapes.friction[row]))


def _add_actuators(parent, model, kp, kd):
    for body, name in enumerate(model.joint_names):
        dof = model.topology.v_slice(body).start
        if model.topology.kinds[body] is not Free and kp[dof] > 0:
            affine = {"gaintype": "fixed", "biastype": "affine", "gainprm": _text(kp[dof])}
            ET.SubElement(parent, "general", affine, joint=name, biasprm=_text([0, -kp[dof], -kd[dof]]))


def _pose(X, row):
    R = np.asarray(X.rotation[row])
    return {"pos": _text(X.translation[row]), "xyaxes": _text(np.concatenate([R[:, 0], R[:, 1]]))}


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))
