"""Other JAX libraries, each called as its own documentation has it, none of them beside jdyn."""

import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import peer_models
from benchmarks.cases import Functions

GRAVITY = np.array([0.0, 0.0, -9.81])


def frax(urdf, floating, dtype):
    robot = peer_models.frax_robot(urdf, floating)
    up = jnp.array([0, 0, 9.81, 0, 0, 0], dtype)
    base = 6 if floating else 0
    return Functions(
        base="world" if floating else "fixed",
        joints=list(robot.joint_names[base:]),
        forward=lambda q, v, tau: robot.forward_dynamics(q, v, tau, None),
        inverse=lambda q, v, a: robot.rnea(q, v, a, up, None),
        mass=robot.mass_matrix,
        integrate=lambda q, dv: robot.integrate(q, dv, 1.0),
    )


def jaxsim(urdf, floating, dtype):
    from jaxsim import VelRepr, api

    model = peer_models.jaxsim_model(urdf, GRAVITY, floating)
    base = 6 if floating else 0

    def data(q, v):
        free = {}
        if floating:
            free = {"base_position": q[:3], "base_quaternion": q[3:7]}
            free |= {"base_linear_velocity": v[:3], "base_angular_velocity": v[3:6]}
        return api.data.JaxSimModelData.build(
            model,
            joint_positions=q[base + 1 :] if floating else q,
            joint_velocities=v[base:],
            velocity_representation=VelRepr.Body,
            **free,
        )

    def whole(base_and_joints):
        return jnp.concatenate(base_and_joints) if floating else base_and_joints[1]

    def forward(q, v, tau):
        # A force on the base acts on its link; the other links are left alone.
        on_links = {}
        if floating:
            on_links = {"link_forces": jnp.zeros((model.number_of_links(), 6), q.dtype).at[0].set(tau[:6])}
        return whole(api.model.forward_dynamics_aba(model, data(q, v), joint_forces=tau[base:], **on_links))

    def inverse(q, v, a):
        on_base = {"base_acceleration": a[:6]} if floating else {}
        return whole(api.model.inverse_dynamics(model, data(q, v), joint_accelerations=a[base:], **on_base))

    def mass(q):
        M = api.model.free_floating_mass_matrix(model, data(q, jnp.zeros(base + model.dofs(), q.dtype)))
        return M if floating else M[6:, 6:]

    return Functions(
        base="body" if floating else "fixed",
        joints=list(model.joint_names()),
        forward=forward,
        inverse=inverse,
        mass=mass,
        integrate=in_body if floating else jnp.add,
    )


def adam(urdf, floating, dtype):
    from adam import Representations

    robot = peer_models.adam_robot(urdf, GRAVITY, dtype)
    robot.set_frame_velocity_representation(Representations.BODY_FIXED_REPRESENTATION)
    base = 6 if floating else 0

    def split(q, v):
        if not floating:
            return jnp.eye(4, dtype=dtype), q, jnp.zeros(6, dtype), v
        R = rotation(q[3:7])
        last = jnp.array([[0, 0, 0, 1]], dtype)
        return jnp.concatenate([jnp.concatenate([R, q[:3, None]], axis=1), last]), q[7:], v[:6], v[6:]

    def mass(q):
        H, s, *_ = split(q, jnp.zeros(base + robot.NDoF, dtype))
        return robot.mass_matrix(H, s)[6 - base :, 6 - base :]

    def bias(q, v):
        H, s, v_base, ds = split(q, v)
        return robot.bias_force(H, s, v_base, ds).ravel()[6 - base :]

    root = ET.parse(urdf).find("link").get("name")

    # Its articulated-body algorithm lets the base float; the mass matrix is what it has for a fixed one.
    def forward(q, v, tau):
        if not floating:
            return jax.scipy.linalg.solve(mass(q), tau - bias(q, v), assume_a="pos")
        H, s, v_base, ds = split(q, v)
        return robot.aba(H, s, v_base, ds, tau[6:], {root: tau[:6]})

    return Functions(
        base="body" if floating else "fixed",
        joints=[str(joint.get("name")) for joint in peer_models.moving_joints(urdf)],
        forward=forward,
        inverse=lambda q, v, a: mass(q) @ a + bias(q, v),
        mass=mass,
        integrate=in_body if floating else jnp.add,
    )


def mjx(urdf, floating, dtype):
    from mujoco import mjx

    host = peer_models.mujoco_model(urdf, GRAVITY, floating)
    model = mjx.put_model(host)
    rest = mjx.make_data(model)

    def mass(q):
        data = mjx.com_pos(model, mjx.kinematics(model, rest.replace(qpos=q)))
        return mjx.full_m(model, mjx.crb(model, data))

    return Functions(
        base="world" if floating else "fixed",
        joints=mujoco_joints(host, floating),
        forward=lambda q, v, tau: mjx.forward(model, rest.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc_smooth,
        inverse=lambda q, v, a: mjx.inverse(model, rest.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse,
        mass=mass,
        integrate=in_world if floating else jnp.add,
    )


def brax(urdf, floating, dtype):
    from brax.generalized import dynamics, pipeline

    host = peer_models.mujoco_model(urdf, GRAVITY, floating)
    system = peer_models.brax_system(urdf, GRAVITY, floating)

    def forward(q, v, tau):
        state = pipeline.init(system, q, v)
        return state.mass_mx_inv @ dynamics.forward(system, state, tau)

    def inverse(q, v, a):
        state = pipeline.init(system, q, v)
        return state.mass_mx @ a - dynamics.forward(system, state, jnp.zeros_like(v))

    return Functions(
        base="world" if floating else "fixed",
        joints=mujoco_joints(host, floating),
        forward=forward,
        inverse=inverse,
        mass=lambda q: pipeline.init(system, q, jnp.zeros(system.qd_size(), dtype)).mass_mx,
        integrate=in_world if floating else jnp.add,
    )


def mujoco_joints(model, floating):
    return [model.joint(i).name for i in range(1 if floating else 0, model.njnt)]


def rotation(q):
    w, x, y, z = q
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return jnp.stack([jnp.stack(row) for row in rows])


def in_body(q, dv):
    """Where a floating base and the joints go with [v; ω] in the body's axes for unit time."""
    return _moved(q, rotation(q[3:7]) @ dv[:3], dv)


def in_world(q, dv):
    """The same, where v is in the world's axes."""
    return _moved(q, dv[:3], dv)


def _moved(q, forwards, dv):
    w, x, y, z = q[3:7]
    half = dv[3:6] / 2
    squared = half @ half
    moves = squared > 0
    angle = jnp.sqrt(jnp.where(moves, squared, 1.0))
    c = jnp.where(moves, jnp.cos(angle), 1.0)
    a, b, d = half * jnp.where(moves, jnp.sin(angle) / angle, 1.0)
    turned = jnp.stack(
        [
            w * c - x * a - y * b - z * d,
            w * a + x * c + y * d - z * b,
            w * b - x * d + y * c + z * a,
            w * d + x * b - y * a + z * c,
        ]
    )
    return jnp.concatenate([q[:3] + forwards, turned, q[7:] + dv[6:]])


LIBRARIES = {"frax": frax, "jaxsim": jaxsim, "adam": adam, "mjx": mjx, "brax": brax}
