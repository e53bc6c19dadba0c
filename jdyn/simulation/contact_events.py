"""Instants at which points of shapes begin and cease to touch."""

import jax.numpy as jnp

from jdyn.contact import ContactForces
from jdyn.model import Model
from jdyn.simulation.events import Event

# Steps end at this power of rounding on either side of a kink [m].
APART = 2 / 3


def contact_events(model: Model, contact: ContactForces) -> tuple[Event, ...]:
    """Where forces of contact have kinks; none of them changes the state.

    Each has an entry for its near side and one for its far side, so that the one step across is too short to matter:
    at the kink itself, rounding would decide which of two derivatives the ends of steps have.
    """

    def sides(t, y):
        distances = contact.distances(model, y.q)
        width = jnp.finfo(distances.dtype).eps ** APART
        return jnp.concatenate([distances - width, distances + width])

    def same(t, y, entry):
        return y

    return Event(sides, same), Event(sides, same, direction="rising")
