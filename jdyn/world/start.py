"""Contact of simulations of worlds, and starts that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jdyn.contact import Contact, distances
from jdyn.simulation import System
from jdyn.simulation.prepared import default_controller, judged_contact, suitable_solver


def within(system: System, solver: Any, stepsize_controller: Any) -> Contact | None:
    """Contact of a system with what follows from the tolerances of a simulation."""
    if system.contact is None:
        return None
    by_default = default_controller(system.model.dtype, suitable_solver(solver, system), touches=True)
    return judged_contact(system.contact, stepsize_controller, by_default)


def overlapping(system: System, q: Float[Array, " nq"]) -> str:
    """Sentence that names the shapes that overlap most; empty if none do, or numbers are not known."""
    if isinstance(q, Tracer):
        return ""
    apart = distances(system.model, q)
    depths = -np.asarray(apart.distance)
    deepest = int(np.argmax(depths))
    first, second = apart.names[deepest]
    if not depths[deepest] > 0:
        return ""
    return (
        f"{first!r} and {second!r} overlap by {depths[deepest]:.3g} m at the start; begin with them apart, or exclude "
        "the pair"
    )
