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
# # From a robot file to a moving robot
#
# A robot of one's own, as a URDF file: two links of carbon on two hinges, with the shapes that they have. Everything
# below also works for `jdyn.load("my_robot.urdf")`, for a MuJoCo file, and for the robots that come with jdyn, such as
# `jdyn.load("panda")`.

# %%
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jdyn

jax.config.update("jax_enable_x64", True)


def link(name, color):
    return f"""<link name="{name}">
      <inertial><origin xyz="0 0 -0.25"/><mass value="1"/>
        <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.001"/></inertial>
      <visual><origin xyz="0 0 -0.25"/><geometry><cylinder radius="0.03" length="0.5"/></geometry>
        <material name="{name} paint"><color rgba="{color} 1"/></material></visual>
    </link>"""


def joint(name, parent, child, place):
    return f"""<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{place}"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="10"/></joint>"""


pathlib.Path("my_arm.urdf").write_text(f"""<robot name="my arm"><link name="world"/>
{link("upper", "0.2 0.4 0.7")}{link("lower", "0.9 0.6 0.2")}<link name="hand"/>
{joint("shoulder", "world", "upper", "0 0 1.2")}{joint("elbow", "upper", "lower", "0 0 -0.5")}
<joint name="grip" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0 0 -0.5"/></joint></robot>""")
model = jdyn.load("my_arm.urdf")
print(model.joint_names, model.body_names, [shape.kind for shape in model.shapes.entries])

# %% [markdown]
# ## What it weighs, where it is, what moves it
#
# Functions take the model first, then a configuration `q`, a velocity `v`, forces `tau`: SI units, angles in radians.

# %%
q, v = jnp.array([0.3, 0.5]), jnp.zeros(2)
M = jdyn.mass_matrix(model, q)
gravity = jdyn.gravity_forces(model, q)
print("mass matrix [kg m²]\n", M.round(4))
print("torques that hold it [N m]", gravity.round(4))
print("hand [m]", jdyn.frame_pose(model, q, "hand").translation.round(4))
print("let go, it accelerates by [rad/s²]", jdyn.forward_dynamics(model, q, v, jnp.zeros(2)).round(3))

# %% [markdown]
# ## It moves
#
# A controller is any function `controller(t, q, v)`, or one of jdyn's; they can be added.

# %%
target = jnp.array([1.2, -0.8])


def reach(model, kp=20.0):
    controller = jdyn.PD(model, target, kp=kp, kd=4.0) + jdyn.GravityCompensation(model)
    return jdyn.simulate(model, q, v, 2.0, controller=controller)


motion = reach(model)
print("ends at", motion.q[-1].round(3), "after", int(motion.stats["accepted_steps"]), "steps")
jdyn.plots.trajectory(motion).figure

# %%
jdyn.animate(motion, fps=15, size=(320, 240), trails=["hand"])

# %% [markdown]
# ## A force of your own
#
# Springs, drag and thrusters are force elements of jdyn. Another one is a class of ten lines: where bodies and frames
# are and how they move is given, a force on one of them is wanted. Here the hand swings through oil.


# %%
class Oil(jdyn.ForceElement):
    """Resists a frame where it is under the surface."""

    frame: jdyn.Name = eqx.field(static=True)
    surface: float
    viscosity: float

    def force(self, t, kinematics, memory):
        under = jax.nn.sigmoid((self.surface - kinematics.position(self.frame)[2]) / 0.01)
        return kinematics.push(self.frame, -self.viscosity * under * kinematics.velocity(self.frame)[3:])


def swing(viscosity):
    """Energy of the arm, let go above the oil [J]."""
    return jdyn.simulate(model, q, v, 2.0, elements=[Oil("hand", 0.3, viscosity)]).energy


viscosities = (0.0, 1.0, 10.0)
energies = np.asarray(jax.vmap(swing)(jnp.array(viscosities)))
lines = {f"{viscosity:g} N s/m": energy for viscosity, energy in zip(viscosities, energies, strict=True)}
jdyn.plots.curves(np.linspace(0.0, 2.0, 101), lines, "time [s]", "energy [J]").figure

# %% [markdown]
# ## A batch of it, and derivatives
#
# `jax.vmap` makes batches, over states and over any number of the model; `jax.grad` differentiates through the
# simulation. How far from the target does the hand stop, if it carries something, and how does that change with the
# gain?


# %%
@jax.jit
def miss(kp, payload):
    """Distance of the joints from their target after two seconds [rad]."""
    heavier = jdyn.vary(model, {"body:lower.mass": 1.0 + payload})
    controller = jdyn.PD(model, target, kp=kp, kd=4.0) + jdyn.GravityCompensation(model)
    return jnp.linalg.norm(jdyn.simulate(heavier, q, v, 2.0, controller=controller).q[-1] - target)


payloads = jnp.linspace(0.0, 2.0, 9)
misses = jax.vmap(miss, (None, 0))(20.0, payloads)
slope = jax.grad(miss)(20.0, 1.0)
step = 1e-3
difference = (miss(20.0 + step, 1.0) - miss(20.0 - step, 1.0)) / (2 * step)
print("by gradient", slope.round(6), "by differences", difference.round(6))
jdyn.plots.curves(
    np.asarray(payloads), {"kp = 20": np.asarray(misses)}, "payload [kg]", "distance from the target [rad]"
).figure
