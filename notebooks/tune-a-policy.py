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
# # A policy by gradient
#
# A small network holds a pendulum upright. It is a controller like any other, so that `jdyn.tune` tunes its weights
# through `jdyn.simulate`: each step sees a batch of initial states, and after each epoch all of them are looked at, by
# which the best weights are chosen.

# %%
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn

model = jdyn.load("pendulum")
upright, times = jnp.full(1, jnp.pi), jnp.linspace(0, 2, 41)
LIMIT = 8.0  # torque of the motor [N m]; holding the rod level takes 4.9


class Policy(jdyn.Controller):
    network: eqx.nn.MLP

    def __call__(self, t, q, v):
        seen = jnp.concatenate([jnp.sin(q), jnp.cos(q), v])
        return LIMIT * jnp.tanh(self.network(seen))


network = eqx.nn.MLP(3, 1, width_size=16, depth=1, activation=jnp.tanh, key=jax.random.key(0))
untrained = Policy(network)


# %% [markdown]
# ## The loss
#
# Of one initial state: the mean squared angle from upright, and a little of the squared torque. `jdyn.robust` makes the
# mean over a batch of it, or the mean of the worst share with `jdyn.tuning.CVaR`. Nothing is stiff, so that an explicit
# solver does.


# %%
def motion(policy, start):
    return jdyn.simulate(
        model, start["q"], start["v"], 2.0, controller=policy, saveat=times, solver=diffrax.Tsit5(), throw=False
    )


def loss(policy, start):
    run = motion(policy, start)
    return jdyn.losses.tracking_error(run, upright) + 1e-3 * jdyn.losses.effort(run)


def drawn(number, seed):
    """Initial states within 1 rad and 1 rad/s of upright."""
    q, v = np.random.default_rng(seed).uniform(-1, 1, (2, number, 1))
    return {"q": jnp.asarray(np.pi + q, model.dtype), "v": jnp.asarray(v, model.dtype)}


# %% [markdown]
# ## Eighty steps
#
# The optimizer is a chain of optax. Of 64 initial states each step sees 8, in a fresh order in every epoch. Circles
# are the losses of all 64, by which the best weights are chosen.

# %%
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.02))
result = jdyn.tune(
    jdyn.robust(loss),
    untrained,
    data=jdyn.tuning.Minibatches(drawn(64, seed=0), 8),
    optimizer=optimizer,
    steps=80,
    progress=False,
)
jdyn.plots.tuning(result).figure

# %% [markdown]
# ## States that it has not seen
#
# A hundred of them, in one program. All lines end upright and at rest.

# %%
runs = eqx.filter_jit(jax.vmap(motion, (None, 0)))(result.params, drawn(100, seed=1))
final = runs.q[:, -1, 0]
print(f"after 2 s, the farthest of 100 is {float(jnp.max(jnp.abs(final - jnp.pi))):.3g} rad from upright")
jdyn.plots.phase_portrait(runs).figure

# %% [markdown]
# A movie of four of them: one is solid, the others are ghosts.

# %%
jdyn.animate(runs, lanes=[0, 1, 2, 3], fps=20, size=(320, 240))
