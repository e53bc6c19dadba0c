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
# # Tuning by gradient
#
# Two gains for each joint of a double pendulum, tuned through the simulation: what the motion costs is a function of
# the gains, JAX differentiates it, and an optimizer walks down. Before a gradient is used, it is checked.

# %%
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn

jax.config.update("jax_enable_x64", True)
model = jdyn.load("double_pendulum")
start, target = jnp.array([0.0, 0.0]), jnp.array([1.5, 0.5])
before = {"kp": jnp.array([60.0, 60.0]), "kd": jnp.array([2.0, 2.0])}  # per unit of inertia; it swings


def motion(gains, t1=2.0):
    controller = jdyn.PD(model, target, **gains) + jdyn.GravityCompensation(model)
    return jdyn.simulate(
        model, start, jnp.zeros(2), t1, controller=controller, saveat=jnp.linspace(0, t1, 101), solver=diffrax.Tsit5(),
        throw=False,
    )  # fmt: skip


# %% [markdown]
# ## What a motion costs
#
# The mean square of the error, and a little of the squared torques, so that gains do not grow without end.


# %%
def loss(gains, t1=2.0):
    run = motion(gains, t1)
    return jdyn.losses.tracking_error(run, target) + 1e-4 * jdyn.losses.effort(run)


# %% [markdown]
# ## Is the gradient right?
#
# `jdyn.gradient_health` compares it with finite differences along every gain, and looks at how it grows with the
# simulated time. Marks to the left of 10⁻³ agree; this motion is damped, so that its gradient does not explode.

# %%
health = jdyn.gradient_health(loss, before, horizons=(0.5, 1.0, 2.0))
print(health)
figure = jdyn.plots.Picture(figsize=(10, 3), layout="constrained")
left, right = figure.subplots(1, 2)
jdyn.plots.gradient_health(health, axes=left)
jdyn.plots.gradient_growth(health, axes=right)
figure

# %% [markdown]
# ## Descend it
#
# With `bounds`, the optimizer walks in logarithms of the gains: a step of 0.3 is a third of a gain.

# %%
result = jdyn.tune(loss, before, optimizer=optax.adam(0.3), steps=60, bounds=jdyn.tuning.Positive(), progress=False)
print({name: [f"{gain:.1f}" for gain in gains] for name, gains in result.params.items()})
figure = jdyn.plots.Picture(figsize=(10, 3), layout="constrained")
left, right = figure.subplots(1, 2)
jdyn.plots.tuning(result, axes=left)
motions = {"before": motion(before), "after": motion(result.params)}
jdyn.plots.distance(motions, target, axes=right)
figure

# %% [markdown]
# ## How good is it?
#
# A grid of two numbers, one kp and one kd for both joints, is easily swept. No pair of these is better than the four
# tuned gains.

# %%
grid = jdyn.designs.Grid(kp=np.geomspace(5.0, 500.0, 24), kd=np.geomspace(1.0, 100.0, 24))
sweep = jdyn.sweep(
    lambda p: {"loss": loss({name: jnp.full(2, gain) for name, gain in p.items()})}, grid, progress=False
)
print(f"tuned: {result.losses[result.best_step]:.4f}, best of the grid: {float(sweep.loss.min()):.4f}")
jdyn.plots.heat_map(sweep, "loss").figure
