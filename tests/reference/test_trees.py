"""Random trees of every joint kind against Pinocchio, whose models are built joint by joint from jdyn's leaves."""

import numpy as np
import pinocchio as pin

import jdyn


def pinocchio_tree(model: jdyn.Model) -> pin.Model:
    """Pinocchio's model of a tree, bodies added depth first (its algorithms are silently wrong otherwise)."""
    tree = pin.Model()
    tree.gravity.linear = np.array(model.gravity)
    ids = {-1: 0}
    stack = [body for body in range(model.nb) if model.topology.parents[body] < 0]
    while stack:
        body = stack.pop()
        stack += [child for child in range(model.nb) if model.topology.parents[child] == body]
        _add_body(tree, model, body, ids)
    return tree


def _add_body(tree, model, body, ids):
    placement = pin.SE3(np.array(model.placements.rotation[body]), np.array(model.placements.translation[body]))
    parent = ids[model.topology.parents[body]]
    ids[body] = tree.addJoint(parent, _pinocchio_joint(model, body), placement, model.joint_names[body])
    v = model.topology.v_slice(body)
    start = tree.joints[ids[body]].idx_v
    armature = tree.armature.copy()
    armature[start : start + v.stop - v.start] = np.asarray(model.armature[v])
    tree.armature = armature
    tree.appendBodyToJoint(ids[body], _pinocchio_inertia(model.inertias, body), pin.SE3.Identity())


def _pinocchio_inertia(inertias, body):
    m, h = float(inertias.mass[body]), np.array(inertias.first_moment[body])
    xx, xy, yy, xz, yz, zz = np.array(inertias.rotational[body])
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    c = h / m
    return pin.Inertia(m, c, about_origin - m * (c @ c * np.eye(3) - np.outer(c, c)))


def _pinocchio_joint(model, body):
    kind = model.topology.kinds[body]
    number = [group.kind for group in model.topology.groups].index(kind)
    row = model.topology.groups[number].bodies.index(body)
    geometry = {name: np.array(value[row]) for name, value in vars(model.joints[number]).items()}
    match kind:
        case jdyn.Revolute | jdyn.Continuous:
            return pin.JointModelRevoluteUnaligned(geometry["axis"])
        case jdyn.Prismatic:
            return pin.JointModelPrismaticUnaligned(geometry["axis"])
        case jdyn.Helical:
            return pin.JointModelHelicalUnaligned(geometry["axis"], float(geometry["pitch"]))
        case jdyn.Universal:
            return pin.JointModelUniversal(geometry["axis"], geometry["axis2"])
        case jdyn.Ball:
            return pin.JointModelSpherical()
        case jdyn.Planar:
            return pin.JointModelPlanar()
        case jdyn.Free:
            return pin.JointModelFreeFlyer()
