"""Instants at which points of shapes begin and cease to touch."""

import jax.numpy as jnp

from jdyn.simulation.events import Event
from jdyn.simulation.vector_field import VectorField

# Steps end at this power of rounding on either side of a kink [m].
APART = 2 / 3


def contact_events(field: VectorField) -> tuple[Event, ...]:
    """Where forces of contact have kinks; none of them changes the state.

    Each has an entry for its near side and one for its far side, so that the one step across is too short to matter:
    at the kink itself, rounding would decide which of two derivatives the ends of steps have.
    """

    def sides(t, y):
        distances = field.contact.distances(field.model, y.q)
        width = jnp.finfo(distances.dtype).eps ** APART
        return jnp.concatenate([distances - width, distances + width])

    def same(t, y, entry):
        return y

    return Event(sides, same), Event(sides, same, direction="rising")
