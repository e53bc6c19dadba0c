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
# # Gradients through events
#
# A ball that bounces has a velocity that jumps. Where it is later still depends smoothly on how it was thrown, as long
# as the number of bounces stays: the instant of a bounce moves, and the jump with it. jdyn differentiates both. Here
# the answer is known in closed form, so that one can look whether it is right.

# %%
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

jax.config.update("jax_enable_x64", True)
G = 9.81

builder = jdyn.Builder("ball", gravity=(0, 0, -G))
builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0, inertia=0.004)
builder.add_shape("ball", "sphere", 0.1, placement=(0, 0, 0.1), color=(0.9, 0.5, 0.2))
ball = builder.build()

# %% [markdown]
# ## A bounce
#
# An event happens where its condition falls through zero; its reset gives the state after it. Both are functions of the
# state, and of whatever they close over: here the share of the speed that is left, which is differentiated below.


# %%
def drop(height, restitution, t1):
    bounce = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=-restitution * y.v))
    return jdyn.simulate(ball, jnp.array([height]), jnp.zeros(1), t1, events=[bounce])


motion = drop(1.0, 0.8, 2.0)
print("bounces at", motion.events.ts[:4].round(4), "s")
jdyn.plots.trajectory(motion).figure

# %%
jdyn.animate(motion, fps=15, size=(160, 240))

# %% [markdown]
# ## The end by the start
#
# The ball hits the ground at $t_1 = \sqrt{2 h / g}$ with speed $g t_1$, of which the share $e$ is left. After one
# bounce it is at $z = e g t_1 (t - t_1) - g (t - t_1)^2 / 2$.


# %%
def exact(height, restitution, t):
    first = jnp.sqrt(2 * height / G)
    return restitution * G * first * (t - first) - G * (t - first) ** 2 / 2


def simulated(height, restitution, t):
    return drop(height, restitution, t).q[-1, 0]


t1 = 1.0
computed = jax.jit(jax.value_and_grad(simulated, argnums=(0, 1, 2)))(1.0, 0.8, t1)
expected = jax.value_and_grad(exact, argnums=(0, 1, 2))(1.0, 0.8, t1)
for name, ours, closed in zip(
    ("z", *(f"dz/d{x}" for x in ("h", "e", "t"))), jax.tree.leaves(computed), jax.tree.leaves(expected), strict=True
):
    print(f"{name:6} {float(ours): .9f}   closed form {float(closed): .9f}")

# %% [markdown]
# ## Where it cannot be
#
# Just as the ball touches the ground at the end, one more bounce comes or goes: the height is continuous there, its
# derivative is not. No method of differentiation can help that. The picture has both curves; the derivative jumps where
# the height is zero.

# %%
times = jnp.linspace(0.2, 2.0, 91)
slopes = jax.jit(jax.vmap(jax.grad(simulated), (None, None, 0)))(1.0, 0.8, times)
heights = jax.jit(jax.vmap(simulated, (None, None, 0)))(1.0, 0.8, times)
jdyn.plots.curves(
    np.asarray(times),
    {"z [m]": np.asarray(heights), "dz/dh": np.asarray(slopes)},
    "end of the simulation [s]",
    "height and its derivative",
).figure
