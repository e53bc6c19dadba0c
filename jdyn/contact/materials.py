"""Materials of surfaces, and what two of them make."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from jdyn.contact.colliders import Colliders
from jdyn.contact.directional import Directions, Weights
from jdyn.contact.laws import ContactLaw
from jdyn.contact.moving_points import MovingPoints
from jdyn.model import Scaling, Shape, times
from jdyn.model.shapes import all_friction
from jdyn.terminal.messages import short, unknown


class Material(eqx.Module):
    """A surface.

    Two surfaces in contact are springs in series, each of which takes its share of the depth: 1/k = 1/k₁ + 1/k₂ for a
    linear law. The dissipation is the mean by these shares, as in Drake. Friction is the larger one of the two, as in
    MuJoCo, whose files count on it, or that of the shape of higher priority (`jdyn.contact.Touching`).

    Stiffness is that of a point. Shapes that touch along a line have two points, along an area as much as four, so that
    a box on one of its faces is four times as stiff as a ball.

    >>> rubber = jdyn.contact.Material(stiffness=1e5, friction=1.0)
    >>> contact = jdyn.CompliantContact(materials={"world": rubber})

    Attributes:
        stiffness: Of the surface on a rigid one [N/m, or N/m^1.5 where a law has the exponent 1.5]; `jnp.inf` for a
            rigid one, of which not both may be.
        dissipation: What is lost, in the unit and the meaning that the law states: s/m for `jdyn.contact.HuntCrossley`.
            None for the default of the law.
        friction: Coulomb's coefficient [1]; or three: for sliding [1], for turning about the normal and for rolling
            [m]. None for those of the shape, as far as its `condim` has them.

    Raises:
        ValueError: if the stiffness is not positive, or something else is negative or not finite.
    """

    stiffness: Any = 2e5
    dissipation: Any = None
    friction: Any = None

    def __check_init__(self):
        check_numbers("stiffness", self.stiffness, lambda x: x > 0, "numbers that are positive")
        if self.dissipation is not None:
            check_numbers("dissipation", self.dissipation, _not_negative, "numbers that are not negative and finite")
        if self.friction is not None:
            check_numbers("friction", self.friction, _not_negative, "numbers that are not negative and finite")


def scaled_materials(contact: Any, law: ContactLaw, scaling: Scaling) -> dict[str, Any]:
    """The `material` and the `materials` of a contact in the units of a scaled mechanism.

    Raises:
        ValueError: if the unit of the law's dissipation is not known.
    """
    if (unit := law.dissipation_unit) is None:
        raise scaling.refusal(law, 'has a dissipation of unknown unit; give the class `dissipation_unit = "s/m"`')
    stiffness = scaling.factor(f"N/m^{law.exponent:g}")
    dissipation = scaling.factor(unit)

    def one(material: Material) -> Material:
        # What a law has by itself is in the old units, too.
        stated = law.dissipation if material.dissipation is None else material.dissipation
        stays = material.dissipation is None and isinstance(dissipation, float | int)
        friction = material.friction
        if isinstance(friction, tuple | list) or jnp.shape(friction) == (3,):
            sliding, *others = friction
            friction = (sliding, *(times(x, scaling.length) for x in others))
        return Material(times(material.stiffness, stiffness), None if stays else times(stated, dissipation), friction)

    return {
        "material": one(contact.material),
        "materials": {name: one(material) for name, material in contact.materials.items()},
    }


class PairMaterials(NamedTuple):
    """Numbers that the two materials of each pair make.

    Attributes:
        stiffness: [N/mᵉ].
        dissipation: In the law's unit.
        friction: For sliding [1], turning and rolling [m]; the larger ones where they depend on the direction.
        directions: How friction depends on the direction; None where it does not.
    """

    stiffness: Float[Array, " pairs"]
    dissipation: Float[Array, " pairs"]
    friction: Float[Array, "pairs 3"]
    directions: Directions | None

    def at(self, points: MovingPoints) -> "PointMaterials":
        """Materials of points. A patch is as stiff as its points are together."""
        stiffness, dissipation, friction = (x[points.pairs.of_points] for x in self[:3])
        weights = None if self.directions is None else self.directions.weights(points)
        return PointMaterials(stiffness * points.found.weight, dissipation, friction, weights)


class PointMaterials(NamedTuple):
    """Numbers of points.

    Attributes:
        stiffness: [N/mᵉ].
        dissipation: In the law's unit.
        friction: For sliding [1], turning and rolling [m]; the larger ones where they depend on the direction.
        weights: How friction depends on the direction; None where it does not.
    """

    stiffness: Float[Array, " points"]
    dissipation: Float[Array, " points"]
    friction: Float[Array, "points 3"]
    weights: Weights | None


def pair_materials(
    colliders: Colliders, default: Material, materials: Mapping[str, Material], law: ContactLaw
) -> PairMaterials:
    """Materials of all pairs of shapes.

    Raises:
        ValueError: if a material belongs to no shape and no link.
    """
    dtype = colliders.sizes.dtype
    shapes = [of_shape(entry, default, materials) for entry in colliders.entries]
    check_names(colliders, materials)
    softness = jnp.stack([_number("stiffness", x.stiffness, dtype) for x in shapes]) ** (-1 / law.exponent)
    stated = (law.dissipation if x.dissipation is None else x.dissipation for x in shapes)
    dissipation = jnp.stack([_number("dissipation", x, dtype) for x in stated])
    a, b = np.array(colliders.pairs, int).reshape(-1, 2).T
    both = softness[a] + softness[b]
    lost = (softness[a] * dissipation[a] + softness[b] * dissipation[b]) / both
    given = [x.friction for x in shapes]
    directions = Directions.of(_without_given(colliders, given))
    return PairMaterials(both**-law.exponent, lost, pair_friction(colliders, given), directions)


def refuse_rigid_pairs(colliders: Colliders, default: Material, materials: Mapping[str, Material]):
    """Raise a ValueError that names a pair of shapes which are both known to be rigid: no force would part them."""
    rigid = [_is_rigid(of_shape(entry, default, materials), colliders.sizes.dtype) for entry in colliders.entries]
    for a, b in colliders.pairs:
        if rigid[a] and rigid[b]:
            names = " and ".join(repr(colliders.entries[row].name) for row in (a, b))
            raise ValueError(
                f"stiffness: {names} may touch and are both rigid, so that no depth says with what force; give one of "
                "them a finite stiffness, materials={NAME: jdyn.contact.Material(stiffness=2e5)}"
            )


def _is_rigid(material: Material, dtype: Any) -> bool:
    """Tell whether it is known to be rigid; traced numbers are not known."""
    if isinstance(material.stiffness, Tracer):
        return False
    return bool(np.any(np.asarray(material.stiffness) > np.finfo(dtype).max))


def resist_turning(colliders: Colliders, default: Material, materials: Mapping[str, Material]) -> bool:
    """Tell whether friction against turning or rolling may be other than zero. If a material states three numbers, it
    may, even if they are zeros."""
    stated = (material.friction for material in (default, *materials.values()))
    return colliders.turning or any(
        isinstance(friction, tuple | list) or getattr(friction, "shape", ()) == (3,) for friction in stated
    )


def pair_friction(colliders: Colliders, given: Sequence[Any]) -> Float[Array, "pairs 3"]:
    """The largest of what materials say and of what shapes say that have none, among those of the highest priority;
    that of pairs which have their own, unless a material of one of the two says something."""
    by_shapes = _without_given(colliders, given).pair_friction()
    dtype = by_shapes.dtype
    by_materials = jnp.stack([_friction(0.0 if friction is None else friction, dtype) for friction in given])
    return jnp.maximum(by_shapes, colliders.larger(by_materials))


def _without_given(colliders: Colliders, given: Sequence[Any]) -> Colliders:
    """The shapes without the friction that materials say in its place."""
    return colliders.without_friction(np.array([friction is not None for friction in given]))


def of_shape(entry: Shape, default: Any, materials: Mapping[str, Any]) -> Any:
    """Material of the shape's own name, else that of its link."""
    return materials.get(entry.name, materials.get(entry.link, default))


def check_names(colliders: Colliders, materials: Mapping[str, Any]):
    """Raise a ValueError about a name of a material that no shape and no link has."""
    names = {name for entry in colliders.entries for name in (entry.name, entry.link)}
    for name in materials:
        if name not in names:
            raise ValueError(f"materials: {unknown('shape and no link with one', name, sorted(names))}")


def _number(name: str, x: ArrayLike, dtype: Any) -> Array:
    if jnp.shape(x):
        raise ValueError(f"{name}: expected a number, got shape {jnp.shape(x)}; batches are for jax.vmap")
    return jnp.asarray(x, dtype)


def _friction(x: ArrayLike, dtype: Any) -> Float[Array, "3"]:
    x = jnp.asarray(x, dtype)
    if x.shape not in ((), (3,)):
        raise ValueError(f"friction: expected one number or three, got shape {x.shape}")
    return all_friction(x)


def check_materials(default: Any, materials: Any, law: ContactLaw):
    """Raise a ValueError about what is no law or no material, or has a dissipation that the law does not allow."""
    if not isinstance(law, ContactLaw):
        raise ValueError(f"law: expected one such as jdyn.contact.HuntCrossley(), got {law!r}")
    if not isinstance(materials, Mapping):
        raise ValueError(
            f"materials: expected {{name of a shape or a link: jdyn.contact.Material()}}, got {materials!r}"
        )
    for name, material in [("material", default), *((f"materials[{short(key)}]", x) for key, x in materials.items())]:
        if not isinstance(material, Material):
            raise ValueError(f"{name}: expected a jdyn.contact.Material, got {material!r}")
        if material.dissipation is not None:
            most = f"numbers up to {law.most_dissipation:g}, as {type(law).__name__} has them"
            check_numbers("dissipation", material.dissipation, lambda x: x <= law.most_dissipation, most)


def check_nearest(nearest: Any):
    """Raise a ValueError unless it is a number of pairs, or None."""
    if nearest is not None and not (isinstance(nearest, int) and nearest >= 1):
        raise ValueError(f"nearest: expected a whole number of pairs from 1, or None for all, got {nearest!r}")


def check_numbers(name: str, value: Any, good: Callable[[np.ndarray], Any], expected: str):
    """Raise a ValueError about bad numbers; traced values cannot be checked."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
        return
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.all(good(numbers)):
        shown = repr(value) if isinstance(value, str) else value
        raise ValueError(f"{name}: expected {expected}, got {shown}")


def _not_negative(x: np.ndarray) -> np.ndarray:
    return np.isfinite(x) & (x >= 0)
