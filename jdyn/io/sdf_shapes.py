"""Shapes of links in SDF documents."""

import numpy as np

from jdyn.io.meshes import located
from jdyn.io.rules import color_of
from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element
from jdyn.model import Touching
from jdyn.spatial import Transform
from jdyn.terminal.messages import short

# Size parameters of each shape: tag, number of values, default.
_SIZES: dict[str, tuple[tuple[str, int, tuple[float, ...] | None], ...]] = {
    "box": (("size", 3, None),),
    "sphere": (("radius", 1, None),),
    "cylinder": (("radius", 1, None), ("length", 1, None)),
    "capsule": (("radius", 1, None), ("length", 1, None)),
    "ellipsoid": (("radii", 3, None),),
    "plane": (("size", 2, (1.0, 1.0)),),
    "mesh": (("scale", 3, (1.0, 1.0, 1.0)),),
}
# Every bit that SDFormat has.
_ALL_BITS = 0xFFFF


def add_shape(values: Values, source: Source, link: str, element: Element, placement: Transform) -> None:
    """Add the shape of a `<visual>` or a `<collision>` to the builder.

    Args:
        values: Reads texts.
        source: The document.
        link: Name of the link.
        element: The element.
        placement: Its pose in the link.
    """
    where, geometry = source.where(element), element.first("geometry")
    shapes = [] if geometry is None else [shape for tag in _SIZES for shape in geometry.all(tag)]
    if len(shapes) > 1:
        values.builder.problem(f"{where}: <geometry> has {len(shapes)} shapes, expected one")
    if not shapes:
        values.notes.add("ignored, without a shape", f"<{element.tag}> of link {short(link)}")
        return
    shape, path = shapes[0], None
    size = np.concatenate([values.numbers(where, shape, *parameter) for parameter in _SIZES[shape.tag]])
    if shape.tag == "mesh":
        path = _mesh(values, source, where, shape)
    elif np.any(size < 0):
        values.builder.problem(f"{where}: a <{shape.tag}> has a negative size")
        return
    if shape.tag == "plane":
        placement = placement @ Transform(_turned(values.numbers(where, shape, "normal", 3, (0, 0, 1))), np.zeros(3))  # type: ignore[arg-type]
        # A plane that may touch has no end, whatever its size to look at.
        size = np.zeros(2) if element.tag == "collision" else size
    values.builder.add_shape(
        link, shape.tag, size, placement=placement, role=element.tag, path=path,  # type: ignore[arg-type]
        name=element.attributes.get("name") or None, color=_color(values, link, element),
        touching=_touching(values, where, element) if element.tag == "collision" else None,
    )  # fmt: skip


def _turned(normal: np.ndarray) -> np.ndarray:
    """A rotation that takes z to a direction, by the shortest way."""
    length = np.linalg.norm(normal)
    x, y, z = normal / length if length > 0 else np.array([0.0, 0.0, 1.0])
    if z < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    across = np.array([[0, 0, x], [0, 0, y], [-x, -y, 0]])
    return np.eye(3) + across + across @ across / (1 + z)


def _touching(values: Values, where: str, element: Element) -> Touching:
    surface = element.first("surface")
    friction = None if surface is None else surface.first("friction")
    contact = None if surface is None else surface.first("contact")
    laws = (
        [] if friction is None else [(friction.first(law), tag) for law, tag in (("ode", "mu"), ("bullet", "friction"))]
    )
    law, tag = next(((law, tag) for law, tag in laws if law is not None), (None, "mu"))
    mu = values.number(where, law, tag, 1.0)
    if values.number(where, law, f"{tag}2", mu) != mu:
        values.notes.add("ignored", f"a second coefficient of friction, other than the first, of {where}")
    bits = values.number(where, contact, "collide_bitmask", _ALL_BITS)
    if not (0 <= bits <= _ALL_BITS and bits == int(bits)):
        values.builder.problem(f"{where}: <collide_bitmask> is {bits:g}, expected a whole number up to {_ALL_BITS}")
        bits = _ALL_BITS
    return Touching(mu, contype=int(bits), conaffinity=int(bits))


def _color(values: Values, link: str, element: Element) -> tuple[float, ...] | None:
    material = element.first("material")
    text = values.text(material, "diffuse")
    if text is None:
        return None
    if (rgba := color_of(text if len(text.split()) != 3 else f"{text} 1")) is None:
        values.notes.add("ignored, colours that are not four numbers from 0 to 1", f"of link {short(link)}")
    return rgba


def _mesh(values: Values, source: Source, where: str, mesh: Element) -> str | None:
    uri = values.text(mesh, "uri")
    if not uri:
        values.builder.problem(f"{where}: <mesh> has no <uri>")
        return None
    name = uri.replace("model://", "package://", 1)
    return located(source.meshes, name, short(uri), values.notes, "of models")
