"""One URDF file in the hands of other libraries.

Each function needs only its own library, none of them jdyn. The files are those of `jdyn.save_urdf`: a moving joint
between any two links, roots called `world` unless the base floats.
"""

import pathlib
import tempfile
import xml.etree.ElementTree as ET

import numpy as np

MOVING = ("revolute", "continuous", "prismatic")


def moving_joints(urdf):
    return [joint for joint in ET.parse(urdf).iterfind("joint") if joint.get("type") in MOVING]


def mujoco_model(urdf, gravity, floating=False):
    return mujoco_spec(urdf, gravity, floating).compile()


def mujoco_spec(urdf, gravity, floating=False):
    import mujoco

    spec = mujoco.MjSpec.from_file(urdf)
    if floating:
        spec.worldbody.first_body().add_freejoint()
    spec.option.gravity = gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    # Nothing may mend the inertias behind our back.
    spec.compiler.balanceinertia, spec.compiler.boundmass, spec.compiler.boundinertia = False, 0, 0
    return spec


def brax_system(urdf, gravity, floating=False):
    from brax.io import mjcf

    # Its check of the MuJoCo model looks for a geometry, and these links have none.
    return mjcf.load_model(mujoco_model(urdf, gravity, floating)).replace(mj_model=None)


def jaxsim_model(urdf, gravity, floating=False):
    from jaxsim import api

    text = sdf(urdf, floating)
    return api.model.JaxSimModel.build_from_model_description(text, is_urdf=False, gravity=-gravity[2])


def sdf(urdf, floating=False):
    """The same tree as an SDF, which JaxSim reads without Gazebo's tools, on a base that floats or is fixed."""
    robot = ET.parse(urdf)
    inertia = "<inertia><ixx>{}</ixx><ixy>{}</ixy><ixz>{}</ixz><iyy>{}</iyy><iyz>{}</iyz><izz>{}</izz></inertia>"
    inertial = "<inertial><pose>{}</pose><mass>{}</mass>" + inertia + "</inertial>"

    def about(link):
        body, moments = link.find("inertial"), link.find("inertial/inertia").attrib
        numbers = [moments[k] for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        return inertial.format(pose(body), body.find("mass").get("value"), *numbers)

    joints = {joint.find("child").get("link"): joint for joint in moving_joints(urdf)}
    parts = [] if floating else ['<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>']
    if not floating:
        parts.append(f'<link name="base">{inertial.format("0 0 0 0 0 0", 1, 1, 0, 0, 1, 0, 1)}</link>')
    for link in robot.iterfind("link[inertial]"):
        name, joint = link.get("name"), joints.get(link.get("name"))
        if joint is None:
            parts.append(f'<link name="{name}">{about(link)}</link>')
            continue
        parent, label = joint.find("parent").get("link").replace("world", "base"), joint.get("name")
        parts += [
            f'<joint name="{label}" type="{joint.get("type")}"><parent>{parent}</parent><child>{name}</child>'
            f'<pose relative_to="{parent}">{pose(joint)}</pose><axis><xyz>{joint.find("axis").get("xyz")}</xyz></axis>'
            f'</joint><link name="{name}"><pose relative_to="{label}">0 0 0 0 0 0</pose>{about(link)}</link>',
        ]
    return f'<sdf version="1.10"><model name="robot">{"".join(parts)}</model></sdf>'


def pose(element):
    return " ".join(element.find("origin").get(k) for k in ("xyz", "rpy"))


def frax_robot(urdf, floating=False):
    from frax.core.robot import Robot

    # It wants an inertia of the world too.
    none = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(pathlib.Path(urdf).read_text().replace('<link name="world" />', f'<link name="world">{none}</link>'))
        file.flush()
        return Robot(file.name, floating_base="quaternion" if floating else None)


def adam_robot(urdf, gravity, dtype):
    from adam.jax import KinDynComputations

    names = [joint.get("name") for joint in moving_joints(urdf)]
    return KinDynComputations(urdf, names, dtype=dtype, gravity=np.concatenate([gravity, np.zeros(3)]))
