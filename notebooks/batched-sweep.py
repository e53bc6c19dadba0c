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
# # A thousand motions, one picture, one of them as a movie
#
# How soft may a controller be before a payload that it does not know of spoils its aim? A double pendulum moves to a
# target under PD control with gravity compensated. The sweep varies the gain and the payload; each pair is one lane of
# a batch, with step sizes of its own.

# %%
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

model = jdyn.load("double_pendulum")
tip = model.body_names[-1]
times, target = jnp.linspace(0.0, 2.0, 41), jnp.array([2.0, -1.0])


def motion(p):
    """One lane: the payload moves with the tip, and the controller knows the nominal model only."""
    heavier = jdyn.vary(model, {f"body:{tip}.mass": model.inertias.mass[-1] + p["payload"]})
    controller = jdyn.PD(model, target, kp=p["kp"], kd=20.0) + jdyn.GravityCompensation(model)
    return jdyn.simulate(heavier, [0.0, 0.0], [0.0, 0.0], 2.0, controller=controller, saveat=times, throw=False)


def kept(p):
    run = motion(p)
    away = run.q - target
    return {"error": jnp.max(jnp.abs(away[-1])), "first_joint": run.q[:, 0], "result": run.result}


# %% [markdown]
# ## The sweep
#
# With a store, what is done is kept as it comes: after a crash the same call goes on. A grid has one axis for each
# parameter.

# %%
design = jdyn.designs.Grid(kp=np.geomspace(10.0, 1000.0, 32), payload=np.linspace(0.0, 2.0, 32))
store = pathlib.Path(tempfile.mkdtemp()) / "payloads.zarr"
labels = {"error": {"units": "rad", "long_name": "error after 2 s"}, "first_joint": {"units": "rad"}}
labels |= {"kp": {"long_name": "gain"}, "payload": {"units": "kg"}}
jdyn.sweep(kept, design, store=store, attrs=labels, progress=False)

sweep = jdyn.open_sweep(store)
jdyn.plots.heat_map(sweep, "error").figure

# %% [markdown]
# Soft controllers sag under the payload, in proportion to it; the star is the best lane. All lanes over time, as a
# median and bands:

# %%
jdyn.plots.fan(sweep, "first_joint", "first_joint_0", times=np.asarray(times)).figure

# %% [markdown]
# ## One lane again
#
# A store holds what was kept, not every motion. `jdyn.replay` runs one lane again, with all of it: here the worst one,
# beside the best as a ghost.

# %%
flat = np.asarray(sweep["error"]).ravel()
worst, best = int(np.nanargmax(flat)), int(np.nanargmin(flat))
runs = {name: jdyn.replay(store, lane, motion) for name, lane in (("worst", worst), ("best", best))}
jdyn.plots.distance(runs, target).figure

# %%
both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs.values())
jdyn.animate(both, fps=20, size=(320, 240), trails=[tip])
