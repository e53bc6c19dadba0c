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
# # Robots that touch
#
# A quadruped drops and stands, with the forces at its feet; and a block on a slope, with all frictions at once, beside
# what a textbook says.

# %%
import jax
import jax.numpy as jnp
import numpy as np

import jdyn

jax.config.update("jax_enable_x64", True)
G = 9.81

# %% [markdown]
# ## A quadruped lands
#
# `jdyn.with_ground` puts ground under any model. Springs and dampers hold the legs; the trunk has no motor. Contact is
# compliant here: forces are functions of the state, which the default solver integrates.

# %%
model, contact = jdyn.with_ground(jdyn.load("quadruped"), friction=0.8), jdyn.CompliantContact()
crouch = model.neutral().at[2].set(0.35).at[7:].set(jnp.tile(jnp.array([0.0, -0.8, 1.6]), 4))
kp, kd = (jnp.full(model.nv, gain).at[:6].set(0.0) for gain in (100.0, 8.0))
legs = jdyn.PD(model, crouch, kp=kp, kd=kd)
landing = jdyn.simulate(
    model, crouch, jnp.zeros(model.nv), 1.0, controller=legs, contact=contact, saveat=jnp.linspace(0.0, 1.0, 201)
)
jdyn.animate(landing, fps=10, size=(240, 180))

# %% [markdown]
# `Trajectory.contacts` has the forces at all points, in every row. The feet share the weight in the end; the first blow
# is more than ten times as hard.

# %%
touching = landing.contacts
weight = G * float(jnp.sum(model.inertias.mass))
feet = {name: np.asarray(touching.force(f"{name}_foot")[:, 2]) for name in ("fr", "fl", "rr", "rl")}
total = sum(feet.values())
print(f"hardest: {total.max() / weight:.1f} times the weight; in the end: {total[-1] / weight:.3f}")
shares = {name: force / weight for name, force in feet.items()}
jdyn.plots.curves(np.asarray(landing.ts), shares, "time [s]", "force on a foot, as a share of the weight").figure

# %% [markdown]
# ## A block on a slope
#
# The slope has 0.3 rad, and the block sticks where friction is more than tan 0.3 = 0.31. Otherwise it slides
# $s = g (\sin α - μ \cos α) t^2 / 2$. Here gravity leans, and the ground is level. The block begins where its four
# corners bear it. Each lane of the batch has a material of its own, and contact is convex: what sticks does not creep.

# %%
SLOPE, SECONDS, STIFFNESS = 0.3, 1.0, 1e5
builder = jdyn.Builder("block", gravity=(G * np.sin(SLOPE), 0, -G * np.cos(SLOPE)))
builder.add_link("carriage", jdyn.Prismatic((1, 0, 0)), mass=0.0, inertia=0.0)
builder.add_link("block", jdyn.Prismatic((0, 0, 1)), parent="carriage", mass=1.0, inertia=2e-3)
builder.add_shape("block", "box", (0.2, 0.1, 0.1), role="collision")
block = jdyn.with_ground(builder.build())
frictions = jnp.linspace(0.0, 0.5, 11)


def surfaces(friction):
    return jdyn.ConvexContact(material=jdyn.contact.Material(stiffness=2 * STIFFNESS, friction=friction))


start = jnp.array([0.0, 0.05 - G * np.cos(SLOPE) / 4 / STIFFNESS])
lanes = jdyn.simulate_batch(
    block, start, jnp.zeros(2), SECONDS, contact=jax.vmap(surfaces)(frictions), in_axes={"contact": 0}
)
slid = np.asarray(lanes.q[:, -1, 0])
textbook = G * np.maximum(np.sin(SLOPE) - np.asarray(frictions) * np.cos(SLOPE), 0) * SECONDS**2 / 2
print(f"largest difference: {np.abs(slid - textbook).max():.1e} m")
lines = {"simulated": slid, "textbook": textbook}
jdyn.plots.curves(np.asarray(frictions), lines, "coefficient of friction", "slid in a second [m]").figure
