"""Surfaces of rigid shapes, and what two of them make."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.contact.colliders import Colliders
from jdyn.contact.materials import check_names, check_numbers, of_shape, pair_friction
from jdyn.model import Units


class RigidMaterial(eqx.Module):
    """A surface of a rigid shape.

    Two surfaces that meet have the smaller restitution of both: what is soft does not bounce off anything. Friction is
    the larger one, as in MuJoCo, or that of the shape of higher priority (`jdyn.contact.Touching`).

    >>> clay = jdyn.contact.RigidMaterial(restitution=0.0, friction=1.0)
    >>> contact = jdyn.RigidContact(restitution=0.9, materials={"ground": clay})

    Attributes:
        restitution: e, from 0 to 1; that of the contact if None.
        friction: Coefficient of friction μ; that of the contact if None.

    Raises:
        ValueError: if a number is out of its range.
    """

    units: ClassVar[Units] = {"restitution": "", "friction": ""}

    restitution: Scalar | float | None = None
    friction: Scalar | float | None = None

    def __check_init__(self):
        if self.restitution is not None:
            check_numbers("restitution", self.restitution, lambda x: (x >= 0) & (x <= 1), "a number from 0 to 1")
        if self.friction is not None:
            check_numbers("friction", self.friction, lambda x: (x >= 0) & np.isfinite(x), "a number not negative")


def rigid_pairs(
    colliders: Colliders, default: RigidMaterial, materials: Mapping[str, RigidMaterial]
) -> tuple[Float[Array, " pairs"], Float[Array, " pairs"]]:
    """Restitution and friction of all pairs of shapes; friction that no material states is that of the shapes.

    Raises:
        ValueError: if a material belongs to no shape and no link.
    """
    check_names(colliders, materials)
    shapes = [of_shape(entry, default, materials) for entry in colliders.entries]
    stated: list[Any] = [default.restitution if x.restitution is None else x.restitution for x in shapes]
    e = jnp.stack([jnp.asarray(x, colliders.sizes.dtype) for x in stated])
    first, second = np.array(colliders.pairs, int).reshape(-1, 2).T
    friction = [default.friction if x.friction is None else x.friction for x in shapes]
    return jnp.minimum(e[first], e[second]), pair_friction(colliders, friction)[:, 0]


def check_rigid_materials(materials: Any):
    """Raise a ValueError about what is no material."""
    if isinstance(materials, Mapping) and all(isinstance(x, RigidMaterial) for x in materials.values()):
        return
    raise ValueError(
        f"materials: expected {{name of a shape or a link: jdyn.contact.RigidMaterial()}}, got {materials!r}"
    )
