"""Moves of a state: its configuration along the manifold, all other leaves by adding."""

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.model import Model
from jdyn.simulation.state import State


def displaced(model: Model, y: State, displacement: Float[Array, " nv"]) -> State:
    """The state after its configuration has moved with constant velocity."""
    return eqx.tree_at(lambda y: y.q, y, model.normalize(model.integrate(y.q, displacement)))


def incremented(y: State, increment: PyTree, share: Scalar | float = 1.0) -> State:
    """The state after a share of an increment of all its leaves but the configuration."""
    leaves = jax.tree.map(lambda y, dy: y + share * dy, without_configuration(y), increment)
    return with_configuration_of(y, leaves)


def without_configuration(y: State) -> PyTree:
    """All leaves of a state but its configuration."""
    return eqx.tree_at(lambda y: y.q, y, None)


def with_configuration_of(y: State, leaves: PyTree) -> State:
    """A state with the configuration of `y` and other leaves beside it."""
    return eqx.tree_at(lambda y: y.q, leaves, y.q, is_leaf=lambda leaf: leaf is None)
