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
# # A hopper tuned by gradient
#
# Raibert's planar hopper has a body, a hip and a springy leg. Five numbers of its controller are tuned through landings
# and take-offs, so that it runs at a given speed and height. It starts with numbers by which each landing makes it
# faster.

# %%
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn

jax.config.update("jax_enable_x64", True)
model = jdyn.with_ground(jdyn.load("hopper"), friction=1.0)
contact = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=2e4, dissipation=1.0), slip_speed=1e-2)
SPEED, HEIGHT, SECONDS = 1.0, 1.8, 3.0  # of the body [m/s, m]; and of a motion [s]
start, times = jnp.array([0.0, 1.6, 0.0, 0.0, 0.0]), jnp.linspace(0.0, SECONDS, 91)

# %% [markdown]
# ## Raibert's controller
#
# In flight the hip swings the leg to where the foot should land: further back for more speed. While the leg is
# compressed, the hip holds the body level, and the leg pushes as it extends. The leg's length tells flight from stance;
# one passes into the other smoothly, so that a gradient sees both.
#
# It leans a little from the start. Where it hops exactly on the spot, nothing slips, and no error shows that steps are
# too long for the friction that begins in them: the motion is right, but derivatives grow with each landing, to 6e5, of
# 84, after 3 s at a tolerance of 1e-3. At 1e-5, as below, they are off by a tenth, at 1e-7 by less than a thousandth.

# %%
before = {"thrust": 50.0, "placing": 0.02, "lean": 0.01, "kp": 300.0, "kd": 40.0}


def controller(p):
    def force(t, q, v):
        pitch, hip, leg = q[2:]
        stance = jax.nn.sigmoid((-leg - 0.02) / 0.005)
        landing = p["placing"] * (v[0] - SPEED) - p["lean"] - pitch
        swing = 120.0 * (landing - hip) - 20.0 * v[3]
        level = p["kp"] * pitch + p["kd"] * v[2]
        extend = -2000.0 * leg - 30.0 * v[4]
        push = jax.nn.sigmoid(v[4] / 0.1) * p["thrust"]
        motors = [(1 - stance) * swing + stance * level, (1 - stance) * extend + stance * push]
        return jnp.concatenate([jnp.zeros(3), jnp.stack(motors)])

    return force


@jax.jit
def motion(p):
    return jdyn.simulate(
        model, start, jnp.zeros(5), SECONDS, controller=controller(p), contact=contact, saveat=times, throw=False,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
    )  # fmt: skip


# %% [markdown]
# ## What is wanted
#
# In the second half of the motion: the speed, the height of the highest hop, and a level body.


# %%
def loss(p):
    run = motion(p)
    late = times > SECONDS / 2
    speed = jnp.mean((run.v[:, 0] - SPEED) ** 2, where=late)
    height = (jnp.max(run.q[:, 1], where=late, initial=0.0) - HEIGHT) ** 2
    return speed + height + jnp.mean(run.q[:, 2] ** 2, where=late)


# %% [markdown]
# ## Twenty-five steps
#
# The contact forces are functions of the state, so the gradient is that of the motion, landings and all. `Interval`
# keeps numbers where they make sense.

# %%
bounds = {
    "thrust": jdyn.tuning.Interval(0.0, 300.0),
    "placing": jdyn.tuning.Interval(-0.3, 0.3),
    "lean": jdyn.tuning.Interval(-0.3, 0.3),
    "kp": jdyn.tuning.Positive(),
    "kd": jdyn.tuning.Positive(),
}
result = jdyn.tune(loss, before, optimizer=optax.adam(0.1), steps=25, bounds=bounds, progress=False)
print({name: f"{value:.3g}" for name, value in result.params.items()})
print(f"loss: {result.losses[0]:.3f}, then {result.losses[result.best_step]:.3f}")
jdyn.plots.tuning(result).figure

# %% [markdown]
# ## Before and after

# %%
runs = {"before": motion(before), "after": motion(result.params)}
heights = {name: np.asarray(run.q[:, 1]) for name, run in runs.items()}
jdyn.plots.curves(np.asarray(times), heights, "time [s]", "height of the body [m]").figure

# %%
jdyn.animate(runs["after"], fps=15, size=(320, 200))
