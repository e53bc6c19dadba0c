"""More pairs of meshes than a simulation should look at in every step."""

import warnings

from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import ContactWarning

# Two hulls of 64 vertices take half a millisecond on one core, every time that forces are asked for.
MANY = 100


def warn_of_many_pairs(colliders: Colliders, nearest: int | None):
    """Warn where all pairs of so many meshes are looked at that motions take minutes.

    Args:
        colliders: The shapes.
        nearest: How many pairs of two kinds are looked at; None for all.
    """
    meshes = {row for row, entry in enumerate(colliders.entries) if entry.kind == "mesh"}
    count = sum(a in meshes and b in meshes for a, b in colliders.pairs)
    if nearest is None and count > MANY:
        warnings.warn(
            f"{count} pairs of meshes may touch, and each takes half a millisecond whenever forces are asked for. Look "
            "at the nearest alone (contact=...(nearest=20)), keep apart what never meets (jdyn.load(..., srdf=...), "
            "Builder.exclude), or give links simpler shapes",
            ContactWarning,
            stacklevel=5,
        )
