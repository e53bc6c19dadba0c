"""Forward dynamics in float32 by other JAX libraries, each in a process of its own.

    python benchmarks/stiffness_peers.py NAME URDF STATES OUT

STATES is an npz file of gravity (3,), q, v and tau (samples, n) of a fixed-base chain of hinges; OUT is written with
the accelerations a (samples, n). `run` does this from another process. No peer needs jdyn beside it: see peers.txt.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree as ET

import numpy as np

SECONDS = 300


class PeerError(Exception):
    """A peer that is not installed, failed or took too long: why, in one line."""


def mjx(urdf, gravity, q, v, tau):
    import jax
    from mujoco import mjx

    model = mjx.put_model(mujoco_model(urdf, gravity))
    rest = mjx.make_data(model)

    def one(q, v, tau):
        return mjx.forward(model, rest.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc_smooth

    return jax.jit(jax.vmap(one))(q, v, tau)


def brax(urdf, gravity, q, v, tau):
    import jax
    from brax.generalized import dynamics, pipeline
    from brax.io import mjcf

    # Its check of the MuJoCo model looks for a geometry, and these links have none.
    system = mjcf.load_model(mujoco_model(urdf, gravity)).replace(mj_model=None)

    def one(q, v, tau):
        state = pipeline.init(system, q, v)
        return state.mass_mx_inv @ dynamics.forward(system, state, tau)

    return jax.jit(jax.vmap(one))(q, v, tau)


def mujoco_model(urdf, gravity):
    import mujoco

    spec = mujoco.MjSpec.from_file(urdf)
    spec.option.gravity = gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    # Nothing may mend the inertias behind our back.
    spec.compiler.balanceinertia, spec.compiler.boundmass, spec.compiler.boundinertia = False, 0, 0
    return spec.compile()


def jaxsim(urdf, gravity, q, v, tau):
    import jax
    from jaxsim import api

    model = api.model.JaxSimModel.build_from_model_description(sdf(urdf), is_urdf=False, gravity=-gravity[2])

    def one(q, v, tau):
        data = api.data.JaxSimModelData.build(model, joint_positions=q, joint_velocities=v)
        return api.model.forward_dynamics_aba(model, data, joint_forces=tau)[1]

    return jax.jit(jax.vmap(one))(q, v, tau)


def sdf(urdf):
    """The same chain as an SDF, which JaxSim reads without Gazebo's tools, on a base that is fixed to the world."""
    robot = ET.parse(urdf)
    inertia = "<inertia><ixx>{}</ixx><ixy>{}</ixy><ixz>{}</ixz><iyy>{}</iyy><iyz>{}</iyz><izz>{}</izz></inertia>"
    inertial = "<inertial><pose>{}</pose><mass>{}</mass>" + inertia + "</inertial>"
    parts = [
        '<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>',
        f'<link name="base">{inertial.format("0 0 0 0 0 0", 1, 1, 0, 0, 1, 0, 1)}</link>',
    ]
    for joint, link in zip(robot.iterfind("joint[@type='continuous']"), robot.iterfind("link[inertial]"), strict=True):
        name, parent = joint.get("name"), joint.find("parent").get("link").replace("world", "base")
        body, moments = link.find("inertial"), link.find("inertial/inertia").attrib
        numbers = [moments[k] for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        about = inertial.format(pose(body), body.find("mass").get("value"), *numbers)
        parts += [
            f'<joint name="{name}" type="continuous"><parent>{parent}</parent><child>{link.get("name")}</child>'
            f'<pose relative_to="{parent}">{pose(joint)}</pose><axis><xyz>{joint.find("axis").get("xyz")}</xyz></axis>'
            f'</joint><link name="{link.get("name")}"><pose relative_to="{name}">0 0 0 0 0 0</pose>{about}</link>',
        ]
    return f'<sdf version="1.10"><model name="chain">{"".join(parts)}</model></sdf>'


def pose(element):
    return " ".join(element.find("origin").get(k) for k in ("xyz", "rpy"))


def frax(urdf, gravity, q, v, tau):
    import jax
    from frax.core.robot import Robot

    # It wants an inertia of the world too.
    none = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(pathlib.Path(urdf).read_text().replace('<link name="world" />', f'<link name="world">{none}</link>'))
        file.flush()
        robot = Robot(file.name)
    lift = np.concatenate([-gravity, np.zeros(3, np.float32)])

    # Its forward_dynamics, line by line, but for the 9.81 m/s² written there.
    def one(q, v, tau):
        bias = robot.rnea(q, v, None, lift, None)
        return jax.scipy.linalg.solve(robot.mass_matrix(q), tau - bias, assume_a="pos")

    return jax.jit(jax.vmap(one))(q, v, tau)


def adam(urdf, gravity, q, v, tau):
    import jax
    import jax.numpy as jnp
    from adam.jax import KinDynComputations

    names = [joint.get("name") for joint in ET.parse(urdf).iterfind("joint[@type='continuous']")]
    robot = KinDynComputations(urdf, names, dtype=jnp.float32, gravity=np.concatenate([gravity, np.zeros(3)]))
    base, rest = jnp.eye(4), jnp.zeros(6)

    # Its articulated-body algorithm lets the base float; the mass matrix is what it has for a fixed one.
    def one(q, v, tau):
        bias = robot.bias_force(base, q, rest, v)[6:]
        return jax.scipy.linalg.solve(robot.mass_matrix(base, q)[6:, 6:], tau - bias, assume_a="pos")

    return jax.jit(jax.vmap(one))(q, v, tau)


PEERS = {"MJX": mjx, "Brax": brax, "frax": frax, "adam": adam, "jaxsim ABA": jaxsim}


def run(python, name, urdf, gravity, q, v, tau):
    """Accelerations (samples, n) that the peer `name` of the interpreter `python` finds; PeerError where none."""
    # JaxSim chooses float64 unless told; products in reduced precision, as on a GPU, would hide what is compared.
    environment = {**os.environ, "JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        states, out = (pathlib.Path(folder, file) for file in ("states.npz", "accelerations.npz"))
        np.savez(states, **{k: np.float32(x) for k, x in {"gravity": gravity, "q": q, "v": v, "tau": tau}.items()})
        # -E: PYTHONPATH belongs to this interpreter, not to the peer's.
        command = [python, "-E", __file__, name, urdf, states, out]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerError(f"{type(error).__name__}: {error}") from error
        if done.returncode:
            raise PeerError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
        return np.load(out)["a"].astype(float)


def main():
    name, urdf, states, out = sys.argv[1:]
    given = np.load(states)
    try:
        a = np.asarray(PEERS[name](urdf, *(given[k] for k in ("gravity", "q", "v", "tau"))))
    except Exception as error:
        traceback.print_exc()
        # The last line, which `run` reads, says it all.
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
    if a.dtype != np.float32:
        raise TypeError(f"{name} computed in {a.dtype}, not in float32")
    np.savez(out, a=a)


if __name__ == "__main__":
    main()
