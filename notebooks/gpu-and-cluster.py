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
# # On a GPU, and on a cluster
#
# Nothing changes in a program that moves to a GPU: `pip install "jax[cuda12]"`, and JAX takes it. What is worth knowing
# is how large batches are, in which precision one computes, and how a sweep is cut into parts that may die. This
# notebook runs on whatever there is.

# %%
import shutil

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

print(jax.devices()[0].platform)
model = jdyn.load("double_pendulum")
q0, v0 = jnp.array([2.0, 0.5]), jnp.zeros(model.nv)

# %% [markdown]
# ## Precision
#
# JAX computes in single precision unless one asks for more. Graphics cards for games compute in double precision at a
# thirtieth of the speed or less; forward dynamics in single precision has five digits or more on most robots, and
# `jdyn.diagnose(model)` says how many on yours. Matrix products of jdyn are exact to single precision on every device:
# the ten bits of TF32 would not do.
#
# ## Compile before the batch is there
#
# `jdyn.warm_up` compiles for a number of lanes, and tells the memory that they take: on a GPU, as many lanes as fit.

# %%
lanes = 1024
program = jdyn.warm_up(model, lanes)
states = jax.random.normal(jax.random.key(0), (3, lanes, model.nv))
accelerations = program(model, *states)
print(accelerations.shape, accelerations.dtype, program.memory and f"{program.memory.total / 1e6:.1f} MB")

# %% [markdown]
# How recursions over the bodies run can be chosen, `dataclasses.replace(model, executor="lanes")`; `"auto"` takes what
# was fastest: on an NVIDIA GPU, a batch is one kernel, one thread a lane. A batch of simulations keeps a device busy:
# no lane waits for another one's steps.
#
# ## A sweep in parts
#
# A sweep with a store survives what happens on clusters. Each job of an array computes its part, in any order, at any
# time, on any machine that sees the folder; a job that is killed goes on where it was.
#
# ```bash
# #SBATCH --array=1-8 --gres=gpu:1
# jdyn sweep notebooks/sweep.toml --store /scratch/payloads.zarr --shard $SLURM_ARRAY_TASK_ID/8
# ```
#
# In Python, here with two parts, one after the other. Lanes of parts that are not there yet are `not_run`.


# %%
def lane(p):
    heavier = jdyn.vary(model, {f"body:{model.body_names[1]}.mass": p["mass"]})
    damped = jdyn.simulate(heavier, q0, v0, 1.0, controller=lambda t, q, v: -p["damping"] * v, throw=False)
    return {"end": damped.q[-1, 0], "result": damped.result}


design = jdyn.designs.Grid(mass=np.linspace(0.5, 2.0, 8), damping=np.linspace(0.0, 2.0, 8))
shutil.rmtree("parts.zarr", ignore_errors=True)
half = jdyn.sweep(lane, design, store="parts.zarr", shard=(1, 2), chunk=16, progress=False)
print("after the first part:", int(np.sum(half.result == jdyn.Result.not_run)), "of", half.result.size, "have not run")
jdyn.sweep(lane, design, store="parts.zarr", shard=(2, 2), chunk=16, progress=False)
whole = jdyn.open_sweep("parts.zarr").load()
print("after the second:", int(np.sum(whole.result == jdyn.Result.success)), "succeeded")
jdyn.plots.heat_map(whole, "end").figure

# %% [markdown]
# The parts are what one process computes, bit for bit or nearly: a lane does not depend on its neighbours.

# %%
alone = jdyn.sweep(lane, design, chunk=16, progress=False)
print("largest difference", float(np.max(np.abs(alone.end.values - whole.end.values))))

# %% [markdown]
# ## A cluster that schedules itself
#
# With `pip install "jdyn[cluster]"`, workers of a Dask cluster compute the chunks, and may die and come back:
#
# ```python
# import distributed
#
# client = distributed.Client("tcp://scheduler:8786")
# jdyn.sweep(lane, design, store="parts.zarr", engine=client)
# ```
#
# On the command line, `jdyn sweep notebooks/sweep.toml --store DIR --scheduler tcp://scheduler:8786`.
