"""Inertia that an SDF link has by its collision shapes, which are solid.

Source: sdformat.org, "Automatic calculation of moments of inertia for primitive shapes", of SDFormat 1.11 and later.
"""

import numpy as np

from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element
from jdyn.spatial import Transform

# Of water [kg/m³], where a file says nothing.
DENSITY = 1000.0
_SPHERE = 4 / 3 * np.pi


def automatic_inertia(
    values: Values, source: Source, link: Element, places: dict[int, Transform]
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Mass, centre of mass and moments of inertia about it of a link, in its frame.

    Args:
        values: Reads texts.
        source: The document.
        link: The element of the link.
        places: The pose of each collision in the link, by its number.

    Returns:
        None after a problem: if the link has no collision, or one whose volume is not known.
    """
    where, inertial = source.where(link), link.first("inertial")
    common = values.number(where, inertial, "density", DENSITY)
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    collisions = link.all("collision")
    for number, collision in enumerate(collisions):
        found = _solid(values, source.where(collision), collision)
        if found is None:
            values.builder.problem(
                f"{source.where(collision)}: <inertial auto> needs a box, sphere, cylinder, capsule or ellipsoid; "
                "write mass and moments of the link into the file"
            )
            return None
        density, (volume, along), X = values.number(where, collision, "density", common), found, places[number]
        R, p = np.asarray(X.rotation), np.asarray(X.translation)
        mass += density * volume
        first += density * volume * p
        second += density * ((R * along) @ R.T + volume * np.outer(p, p))
    if not collisions or mass <= 0:
        values.builder.problem(f"{where}: <inertial auto> needs collisions with volume and density")
        return None
    com = first / mass
    second -= mass * np.outer(com, com)
    factor = values.number(where, inertial, "mass", mass) / mass
    return factor * mass, com, factor * (np.trace(second) * np.eye(3) - second)


def _solid(values: Values, where: str, collision: Element) -> tuple[float, np.ndarray] | None:
    """Volume of a shape, and the integrals of x², y² and z² over it; None for shapes without a formula."""
    geometry = collision.first("geometry")
    shapes = [] if geometry is None else geometry.children
    if len(shapes) != 1:
        return None
    shape = shapes[0]
    match shape.tag:
        case "box":
            sides = values.numbers(where, shape, "size", 3)
            return float(np.prod(sides)), np.prod(sides) * sides**2 / 12
        case "sphere" | "ellipsoid":
            sphere = shape.tag == "sphere"
            radii = values.numbers(where, shape, "radius" if sphere else "radii", 1 if sphere else 3) * np.ones(3)
            volume = _SPHERE * np.prod(radii)
            return float(volume), volume * radii**2 / 5
        case "cylinder" | "capsule":
            radius, length = (values.number(where, shape, tag) for tag in ("radius", "length"))
            caps = 0.0 if shape.tag == "cylinder" else _SPHERE * radius**3
            volume = np.pi * radius**2 * length
            across = volume * radius**2 / 4 + caps * radius**2 / 5
            along = volume * length**2 / 12 + caps * (length**2 / 4 + 3 * length * radius / 8 + radius**2 / 5)
            return volume + caps, np.array([across, across, along])
        case _:
            return None
