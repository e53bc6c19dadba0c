# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   language_info:
#     name: python
# ---

# %% [markdown]
# # Coming from Pinocchio, MuJoCo or Brax
#
# The same robot in each, the same question in each, and an assertion that the answers are equal. A quadruped on a free
# base shows where conventions part. (`pip install pin example-robot-data mujoco`)

# %%
import pathlib
import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jdyn
from jdyn.interop import MujocoMap, PinocchioMap

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## Pinocchio
#
# | Pinocchio | jdyn |
# |---|---|
# | `model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())` | `model = jdyn.load(path, floating_base=True)` |
# | `data = model.createData()`, results are in it | functions return results |
# | `pin.aba(model, data, q, v, tau)` | `jdyn.forward_dynamics(model, q, v, tau)` |
# | `pin.rnea(model, data, q, v, a)` | `jdyn.inverse_dynamics(model, q, v, a)` |
# | `pin.crba(model, data, q)` | `jdyn.mass_matrix(model, q)` |
# | `pin.nonLinearEffects(...)`, `pin.computeGeneralizedGravity(...)` | `jdyn.bias_forces`, `jdyn.gravity_forces` |
# | `pin.computeABADerivatives(...)` | `jdyn.forward_dynamics_derivatives`, or `jax.jacfwd` |
# | `pin.integrate(model, q, dv)`, `pin.difference` | `model.integrate(q, dv)`, `model.difference` |
# | `pin.framesForwardKinematics(...)`, `data.oMf[id]` | `jdyn.frame_pose(model, q, name)` |
# | linear part first, quaternions xyzw, names sorted | angular part first, wxyz, order of the file |
# | `model.inertias[1].mass = 2` | `jdyn.vary(model, {"body:NAME.mass": 2.0})` |
#
# `PinocchioMap` converts, for whoever moves from one to the other in steps. More functions stand by name
# in the chapter on other programs of the guide.

# %%
robots = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
urdf = robots / "solo_description/robots/solo12.urdf"
with warnings.catch_warnings():
    warnings.simplefilter("ignore", jdyn.ModelWarning)
    model = jdyn.load(urdf, floating_base=True)
theirs = pin.buildModelFromUrdf(str(urdf), pin.JointModelFreeFlyer())
data, to = theirs.createData(), PinocchioMap(model, theirs)

keys = jax.random.split(jax.random.key(0), 3)
q = model.integrate(model.neutral(), jax.random.normal(keys[0], (model.nv,)))
v, tau = jax.random.normal(keys[1], (2, model.nv))
a = jdyn.forward_dynamics(model, q, v, tau)
expected = pin.aba(theirs, data, to.q_to_peer(q), to.v_to_peer(q, v), to.tau_to_peer(q, tau))
differences = {"Pinocchio: accelerations": (to.a_to_peer(q, v, a), expected)}

T = to.velocity_map(q)
upper = np.triu(pin.crba(theirs, data, to.q_to_peer(q)))
expected = T.T @ (upper + np.triu(upper, 1).T) @ T
differences["Pinocchio: mass matrix"] = jdyn.mass_matrix(model, q), expected
pin.framesForwardKinematics(theirs, data, to.q_to_peer(q))
foot = data.oMf[theirs.getFrameId("FL_FOOT")].translation
differences["Pinocchio: place of a foot"] = jdyn.frame_pose(model, q, "FL_FOOT").translation, foot

# %% [markdown]
# ## MuJoCo
#
# | MuJoCo | jdyn |
# |---|---|
# | `m = mujoco.MjModel.from_xml_path(path)` | `model = jdyn.load("robot.xml")` (MuJoCo compiles it) |
# | `d = mujoco.MjData(m)`, `d.qpos`, `d.qvel`, `d.ctrl` | `q`, `v`, `tau` as arguments |
# | `mujoco.mj_forward(m, d)`, `d.qacc` | `jdyn.forward_dynamics(model, q, v, tau)` |
# | `mujoco.mj_inverse(m, d)`, `d.qfrc_inverse` | `jdyn.inverse_dynamics(model, q, v, a)` |
# | `mujoco.mj_fullM(m, M, d.qM)`, `d.qfrc_bias` | `jdyn.mass_matrix`, `jdyn.bias_forces` |
# | `mujoco.mj_step(m, d)` in a loop, step in the file | `jdyn.simulate(model, q, v, t1)`, adaptive steps, compiled |
# | one `mujoco.mj_step(m, d)`, with `d.ctrl` | `state, info = system.step(state, tau, dt)` of a `jdyn.System` |
# | the whole of a file | `system = jdyn.load_system("scene.xml")`, `system.state("home")` |
# | `mujoco.mjd_transitionFD` | `system.linearize_step(state, tau, dt)`, `jax.grad` through `simulate` |
# | `mujoco.viewer.launch_passive`, `mujoco.Renderer` | `jdyn.view(motion)`, `jdyn.animate(motion)` |
# | `d.qvel` of a free joint: linear in world axes, then angular | angular, then linear, both in the body's axes |
# | spatial tendons, `d.xfrc_applied`, drag | `elements=[...]` of `jdyn.elements.PointSpring`, `.FrameForce`, `.Drag` |
# | equalities are soft | `jdyn.load_constraints(path)`, rigid |
# | contacts, in every `mj_step` | `simulate(..., contact=jdyn.CompliantContact())`, or `jdyn.ConvexContact()` |

# %%
text = """<mujoco><option><flag contact="disable"/></option><worldbody>
<body name="drone" pos="0 0 1"><freejoint name="base"/><geom type="box" size=".2 .2 .05" mass="1"/>
<body name="arm" pos="0 0 -.05"><joint name="shoulder" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03" mass=".3"/></body></body></worldbody></mujoco>"""
m = mujoco.MjModel.from_xml_string(text)
d, drone = mujoco.MjData(m), jdyn.load(text)
to = MujocoMap(drone, m)
q = drone.integrate(drone.neutral(), jax.random.normal(keys[2], (drone.nv,)))
v, tau = jax.random.normal(keys[0], (2, drone.nv))
d.qpos, d.qvel, d.qfrc_applied = to.q_to_peer(q), to.v_to_peer(q, v), to.tau_to_peer(q, tau)
mujoco.mj_forward(m, d)
differences["MuJoCo: accelerations"] = to.a_to_peer(q, v, jdyn.forward_dynamics(drone, q, v, tau)), d.qacc.copy()

# %% [markdown]
# A motion: MuJoCo's steps of fixed size come to jdyn's adaptive ones as they shrink.

# %%
motion = jdyn.simulate(drone, q, v, 0.5)
apart = {}
for step in (4e-3, 1e-3, 2.5e-4):
    m.opt.timestep = step
    mujoco.mj_resetData(m, d)
    d.qpos, d.qvel = to.q_to_peer(q), to.v_to_peer(q, v)
    for _ in range(round(0.5 / step)):
        mujoco.mj_step(m, d)
    apart[step] = float(np.max(np.abs(drone.difference(jnp.asarray(to.q_from_peer(d.qpos)), motion.q[-1]))))
print({f"{step * 1e3:g} ms": f"{gap:.1e}" for step, gap in apart.items()})

# %% [markdown]
# ## Brax
#
# Its names, as text: this notebook runs without Brax.
#
# | Brax | jdyn |
# |---|---|
# | `sys = brax.io.mjcf.load(path)` | `model = jdyn.load(path)` |
# | `state = pipeline.init(sys, q, qd)` | `q`, `v` |
# | `jax.lax.scan` over `pipeline.step(sys, state, act)` | `jdyn.simulate(model, q, v, t1, controller=...)` |
# | `env.reset(key)`, `env.step(state, action)` | the same of a `jdyn.environments.Environment` |
# | `jax.vmap(env.step)`, in step with each other | `jax.vmap`, `jdyn.simulate_batch`: no lane waits for another |
# | `sys.tree_replace({"link.inertia.mass": mass})` | `jdyn.vary(model, {"body:NAME.mass": mass})` |
# | gradients through all steps are kept in memory | accepted steps are replayed |
# | `brax.io.html.render(sys, states)` | `jdyn.animate(motion)` |
#
# ## All of it, as assertions

# %%
errors = {
    name: float(np.max(np.abs(ours - other)) / np.max(np.abs(other))) for name, (ours, other) in differences.items()
}
for name, error in errors.items():
    print(f"{name:28} {error:.1e}")
    assert error < 1e-11
# MuJoCo's default integrator is of first order.
assert apart[2.5e-4] < 1e-2 and apart[1e-3] > 3 * apart[2.5e-4]
jdyn.plots.curves(
    1e3 * np.array(list(apart)), {"MuJoCo, Euler": list(apart.values())}, "step [ms]", "apart after 0.5 s [rad or m]"
).figure
