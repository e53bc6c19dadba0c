"""Moves of a state: its configuration along the manifold, all other leaves by adding."""

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.model import Model
from jdyn.simulation.state import State


def drifted(model: Model, y: State, displacement: Float[Array, " nv"]) -> State:
    """The state after its configuration has moved with constant velocity."""
    return eqx.tree_at(lambda y: y.q, y, model.normalize(model.integrate(y.q, displacement)))


def kicked(y: State, increment: PyTree, share: Scalar | float = 1.0) -> State:
    """The state after a share of an increment of all its leaves but the configuration."""
    return with_rest(y, jax.tree.map(lambda y, dy: y + share * dy, rest(y), increment))


def rest(y: State) -> PyTree:
    """All leaves of a state but its configuration."""
    return eqx.tree_at(lambda y: y.q, y, None)


def with_rest(y: State, leaves: PyTree) -> State:
    """The state with other leaves beside its configuration."""
    return eqx.tree_at(lambda y: y.q, leaves, y.q, is_leaf=lambda leaf: leaf is None)
