"""States and models drawn at random, for tests of any folder."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


def drawn_states(model, *lanes, seed=0, dtype=jnp.float64):
    """A configuration, a velocity, an acceleration or forces of joints, and forces on bodies; or some of each."""
    # Other numbers than a test draws that seeds a generator of its own alike.
    key, rng = jax.random.key(seed), np.random.default_rng((seed, 1))
    q = jax.vmap(model.random)(jax.random.split(key, *lanes)) if lanes else model.random(key)
    # By NumPy, which compiles nothing.
    drawn = (rng.normal(size=(*lanes, *each)) for each in ((model.nv,), (model.nv,), (model.nb, 6)))
    return q.astype(dtype), *(jnp.asarray(x, dtype) for x in drawn)


def unit(q, *starts):
    """The configurations with unit quaternions at these places. Unlike draws, it compiles nothing where files are
    imported."""
    q = np.array(q)
    for start in starts:
        q[..., start : start + 4] /= np.linalg.norm(q[..., start : start + 4], axis=-1, keepdims=True)
    return jnp.asarray(q)


def with_joint_elements(model):
    """The model with rotors, dampers, friction and springs in every joint, of another size for each coordinate."""
    rng = np.random.default_rng(0)
    sizes = {"armature": 0.3, "damping": 0.2, "friction": 0.1, "stiffness": 1.5}
    return dataclasses.replace(
        model, **{name: jnp.asarray(rng.uniform(0, size, len(model.damping))) for name, size in sizes.items()}
    )
