"""Deviations from a state, as vectors of its tangent space."""

import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from jdyn.model import Model
from jdyn.simulation.state import State


def deviation(model: Model, y: State, near: State) -> Float[Array, " nx"]:
    """x = [e; w; z]: the tangent vector that leads from the configuration of `y` to that of `near`, and the deviations
    of the velocity and of all parts, in the order of their leaves."""
    return jnp.concatenate([model.difference(y.q, near.q), near.v - y.v, _parts(near) - _parts(y)])


def deviating(model: Model, y: State, x: Float[Array, " nx"]) -> State:
    """The state that deviates from `y` by x."""
    nv, (z, unravel) = len(y.v), ravel_pytree(y.parts)
    return State(model.integrate(y.q, x[:nv]), y.v + x[nv : 2 * nv], unravel(z + x[2 * nv :].astype(z.dtype)))


def deviation_size(y: State) -> int:
    """Number of entries of a deviation."""
    return 2 * len(y.v) + sum(x.size for x in jax.tree.leaves(y.parts))


def deviation_names(model: Model, y: State) -> tuple[str, ...]:
    """Name of each entry of a deviation: `"q."` or `"v."` and an entry of v, or the place of an entry of the parts."""
    names = [f"{kind}.{name}" for kind in ("q", "v") for name in model.topology.v_names]
    for path, x in jax.tree.leaves_with_path(y.parts):
        names += entry_names(jax.tree_util.keystr(path, simple=True, separator="."), x.shape)
    return tuple(names)


def entry_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Names of the entries of an array; that of the array itself, if it is a number."""
    return [f"{name}[{i}]" for i in range(math.prod(shape))] if shape else [name]


def _parts(y: State) -> Float[Array, " nz"]:
    return ravel_pytree(y.parts)[0].astype(y.v.dtype)
