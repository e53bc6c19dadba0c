"""A measured motion to identify a robot from: `python notebooks/measured_motion.py` writes it to measured.nc, and
`jdyn identify measured.nc double_pendulum` reads it.

It is that of the double pendulum, whose second link carries 0.2 kg that its model does not know of. Torques of the
motors are noisy by 0.02 N m, velocities by 1e-4 rad/s.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray

import jdyn

jax.config.update("jax_enable_x64", True)
MORE, NOISE = 0.2, {"v": 1e-4, "tau": 0.02}

nominal = jdyn.load("double_pendulum")
link = nominal.body_names[1]
true = jdyn.vary(nominal, {f"body:{link}.mass": nominal.inertias.mass[1] + MORE})

# Sums of two sines for each joint, and their derivatives.
time = jnp.linspace(0.0, 10.0, 1001)
size, rate = jnp.array([[0.6, 0.3], [0.5, 0.4]]), jnp.array([[1.0, 2.7], [1.9, 3.3]])


def angles(t):
    return jnp.sum(size * jnp.sin(rate * t), axis=1)


velocities = jax.jacfwd(angles)
motion = {"q": jax.vmap(angles)(time), "v": jax.vmap(velocities)(time)}
motion["tau"] = jax.vmap(lambda *state: jdyn.inverse_dynamics(true, *state))(
    motion["q"], motion["v"], jax.vmap(jax.jacfwd(velocities))(time)
)

rng = np.random.default_rng(0)
noisy = {name: x + NOISE.get(name, 0.0) * rng.standard_normal(x.shape) for name, x in motion.items()}
along = {"q": "q_coordinate", "v": "v_coordinate", "tau": "v_coordinate"}
dataset = xarray.Dataset({name: (("time", along[name]), np.asarray(x)) for name, x in noisy.items()}, {"time": time})
dataset.to_netcdf("measured.nc", engine="scipy")
