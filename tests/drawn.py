"""States and models drawn at random, for tests of any folder."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


def drawn_states(model, *lanes, seed=0, dtype=jnp.float64):
    """A configuration, a velocity, an acceleration or forces of joints, and forces on bodies; or some of each."""
    keys = jax.random.split(jax.random.key(seed), 4)
    q = jax.vmap(model.random)(jax.random.split(keys[0], *lanes)) if lanes else model.random(keys[0])
    v, a = (jax.random.normal(key, (*lanes, model.nv)) for key in keys[1:3])
    f_ext = jax.random.normal(keys[3], (*lanes, model.nb, 6))
    return tuple(x.astype(dtype) for x in (q, v, a, f_ext))


def with_joint_elements(model):
    """The model with rotors, dampers, friction and springs in every joint, of another size for each coordinate."""
    rng = np.random.default_rng(0)
    sizes = {"armature": 0.3, "damping": 0.2, "friction": 0.1, "stiffness": 1.5}
    return dataclasses.replace(
        model, **{name: jnp.asarray(rng.uniform(0, size, len(model.damping))) for name, size in sizes.items()}
    )
