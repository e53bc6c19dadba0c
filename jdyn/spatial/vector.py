"""Spatial vectors as plain `(6,)` arrays, angular part first: motion [ω; v], force [n; f].

Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 2.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

Motion6 = Float[Array, "6"]
Force6 = Float[Array, "6"]


def cross_motion(v: Motion6, m: Motion6) -> Motion6:
    """v × m: the rate of change of a motion vector `m` that is fixed in a frame moving with velocity `v`."""
    return jnp.concatenate([jnp.cross(v[:3], m[:3]), jnp.cross(v[:3], m[3:]) + jnp.cross(v[3:], m[:3])])


def cross_force(v: Motion6, f: Force6) -> Force6:
    """v ×* f: the rate of change of a force vector `f` that is fixed in a frame moving with velocity `v`."""
    return jnp.concatenate([jnp.cross(v[:3], f[:3]) + jnp.cross(v[3:], f[3:]), jnp.cross(v[:3], f[3:])])
