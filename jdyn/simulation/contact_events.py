"""Instants at which points of shapes begin and cease to touch."""

import jax.numpy as jnp

from jdyn.contact import ContactForces
from jdyn.model import Model
from jdyn.simulation.events import Event

# Steps end by this power of rounding beyond a kink [m], where it is certain what touches.
BEYOND = 2 / 3


def contact_events(model: Model, contact: ContactForces) -> tuple[Event, ...]:
    """Events where forces of contact have kinks; none of them changes the state."""

    def deeper(t, y):
        distances = contact.distances(model, y.q)
        return distances + jnp.finfo(distances.dtype).eps ** BEYOND

    def further(t, y):
        distances = contact.distances(model, y.q)
        return distances - jnp.finfo(distances.dtype).eps ** BEYOND

    def same(t, y, entry):
        return y

    return Event(deeper, same), Event(further, same, direction="rising")
