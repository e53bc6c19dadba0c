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
# # What a measured motion tells of a robot
#
# A double pendulum carries 0.2 kg at its second link that its model does not know of. Torques and angles of one motion
# are measured, with noise. Which parameters do they tell, how well, and what is the model that fits?

# %%
import jax
import jax.numpy as jnp
import numpy as np
import xarray

import jdyn
from jdyn.identification import identify_log, measurement, save_report

jax.config.update("jax_enable_x64", True)
MORE, NOISE = 0.2, {"v": 1e-4, "tau": 0.02}  # [kg]; [rad/s], [N m]

nominal = jdyn.load("double_pendulum")
link = nominal.body_names[1]
true = jdyn.vary(nominal, {f"body:{link}.mass": nominal.inertias.mass[1] + MORE})

# %% [markdown]
# ## A motion to measure
#
# Two sines for each joint, for ten seconds. `jdyn.identification.exciting_motion` designs better ones, within the
# limits of joints. The measurement goes into a file, as one of your own would: `jdyn identify measured.nc
# double_pendulum` reads it.

# %%
time = jnp.linspace(0.0, 10.0, 1001)
size, rate = jnp.array([[0.6, 0.3], [0.5, 0.4]]), jnp.array([[1.0, 2.7], [1.9, 3.3]])


def angles(t):
    return jnp.sum(size * jnp.sin(rate * t), axis=1)


velocities = jax.jacfwd(angles)
states = [jax.vmap(rows)(time) for rows in (angles, velocities, jax.jacfwd(velocities))]
torques = jax.vmap(lambda *state: jdyn.inverse_dynamics(true, *state))(*states)

rng = np.random.default_rng(0)
exact = {"q": states[0], "v": states[1], "tau": torques}
noisy = {name: x + NOISE.get(name, 0.0) * rng.standard_normal(x.shape) for name, x in exact.items()}
along = {"q": "q_coordinate", "v": "v_coordinate", "tau": "v_coordinate"}
dataset = xarray.Dataset({name: (("time", along[name]), np.asarray(x)) for name, x in noisy.items()}, {"time": time})
dataset.to_netcdf("measured.nc", engine="scipy")

# %% [markdown]
# ## What forces can tell at all
#
# Some parameters show in no force, others together only. The first mass moment of a link about its joint is what
# gravity pulls at; its mass alone is not.

# %%
print(jdyn.identification.base_parameters(nominal))

# %% [markdown]
# ## What these forces tell
#
# `jdyn.identify` finds a model whose bodies can exist, near the nominal one where forces say nothing, and tells which
# parameters forces know alone, with intervals. `mz` of the second link, its mass times the height of its centre, is
# −0.5 kg m in the model and −0.6 kg m in truth. Accelerations, which nobody measured, come from a smoothing spline.

# %%
motion = measurement(nominal, xarray.load_dataset("measured.nc"))
found = jdyn.identify(nominal, *motion)
print(found)

# %% [markdown]
# ## Does it explain the motion?
#
# What is left of the torques of joint 1 is noise: 0.02 N m, and a little that accelerations bring in.
# `jdyn.save_urdf` writes the model.


# %%
def unexplained(model):
    """What is left of the measured torques."""
    return motion.tau - jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(model, q, v, a))(*motion[:3])


left = {name: unexplained(model)[:, 0] for name, model in (("nominal", nominal), ("identified", found.model))}
noise = {name: float(jnp.std(row)) for name, row in left.items()}
print(noise)
jdyn.plots.curves(dataset.time.values, left, "time [s]", "unexplained torque of joint 1 [N m]").figure

# %% [markdown]
# ## From positions and torques alone
#
# Few robots measure velocities, and torques come late: here by 3 ms, which is less than a sample. `identify_log`
# filters and differentiates positions, looks for the delay and for offsets of torques beside the parameters, and keeps
# the end of the log to itself, to see whether the model predicts it. `jdyn identify log.csv double_pendulum --report
# fit.html` does the same with a file, or a bag of ROS.

# %%
late = [jax.vmap(rows)(time - 0.003) for rows in (angles, velocities, jax.jacfwd(velocities))]
late_torques = jax.vmap(lambda *state: jdyn.inverse_dynamics(true, *state))(*late)
quantities = {
    "q": (("time", "q_coordinate"), np.asarray(states[0]) + 1e-5 * rng.standard_normal(states[0].shape)),
    "tau": (("time", "v_coordinate"), np.asarray(late_torques) + NOISE["tau"] * rng.standard_normal(states[0].shape)),
}
log = identify_log(nominal, xarray.Dataset(quantities, {"time": time}))
print(f"delay: {1000 * log.channels['delay']:.2f} ms; errors of held-out torques: {log.held_out.errors.round(4)} N m")
print(*log.notes, sep="\n")

# %% [markdown]
# All of it is in one page, with plots of forces, residuals and friction.

# %%
save_report(log, "fit.html")
