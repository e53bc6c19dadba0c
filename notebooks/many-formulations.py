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
# # Many formulations, one system
#
# The same Newton-Euler equations can be solved in many ways: by eliminating joints one after another, by forming the
# mass matrix, by Gauss' principle of least constraint. On paper they agree. jdyn has them behind one
# argument, `method=`, so that one can see where they do not: in the number of operations and in rounding.

# %%
import time

import jax
import jax.numpy as jnp

import jdyn
from jdyn.view.plots.picture import axes_or_new

jax.config.update("jax_enable_x64", True)
model = jdyn.load("panda")
METHODS = [
    jdyn.ABA(), jdyn.ParallelABA(), jdyn.CRBA(), jdyn.studies.LeastConstraint(), jdyn.studies.WalkerOrin(),
    jdyn.studies.GaussDP(),
]  # fmt: skip
q = model.random(jax.random.key(0))
v, tau = jax.random.normal(jax.random.key(1), (2, model.nv))

# %% [markdown]
# ## They agree
#
# To fourteen digits or more in double precision.


# %%
def relative(a, b):
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


single = model.astype(jnp.float32)
reference = jdyn.forward_dynamics(model, q, v, tau)
rows = {}
for method in METHODS:
    double = jdyn.forward_dynamics(model, q, v, tau, method=method)
    rough = jdyn.forward_dynamics(single, *(x.astype(jnp.float32) for x in (q, v, tau)), method=method)
    rows[type(method).__name__] = relative(double, reference), relative(rough.astype(float), reference)
print(f"{'':20} float64    float32")
for name, (double, rough) in rows.items():
    print(f"{name:20} {double:.1e}    {rough:.1e}")

# %% [markdown]
# In single precision they part: forming the mass matrix loses more digits than eliminating joints does.

# %%
axes = axes_or_new(None, 6.0, 2.5)
axes.barh(list(rows), [rough for _, rough in rows.values()], color="0.6", edgecolor="black")
axes.set(xscale="log", xlabel="relative error of accelerations in float32")
axes.invert_yaxis()
axes.figure

# %% [markdown]
# ## They cost what they cost
#
# Time of one configuration in a batch of 256. Which one is fastest depends on the robot, the batch and the machine;
# `python -m benchmarks.method_costs` draws it against the number of links, and `jdyn.diagnose(model)` says which one
# keeps how many digits on a robot of yours. On ill-conditioned ones, the notebook formulation-stiffness shows what
# rounding makes of a simulation.

# %%
states = jax.random.normal(jax.random.key(2), (3, 256, model.nv))
costs = {}
for method in (jdyn.ABA(), jdyn.CRBA()):
    run = jax.jit(jax.vmap(lambda q, v, tau, method=method: jdyn.forward_dynamics(model, q, v, tau, method=method)))
    run(*states).block_until_ready()
    started = time.perf_counter()
    run(*states).block_until_ready()
    costs[type(method).__name__] = 1e6 * (time.perf_counter() - started) / 256
print({name: f"{cost:.2f} µs" for name, cost in costs.items()})
