"""Surfaces of rigid shapes, and what two of them make."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

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
        static_friction: That up to which friction holds what sticks, not less than μ of what slides; that of the
            contact if None.

    Raises:
        ValueError: if a number is out of its range.
    """

    units: ClassVar[Units] = {"restitution": "", "friction": "", "static_friction": ""}

    restitution: Scalar | float | None = None
    friction: Scalar | float | None = None
    static_friction: Scalar | float | None = None

    def __check_init__(self):
        if self.restitution is not None:
            check_numbers("restitution", self.restitution, lambda x: (x >= 0) & (x <= 1), "a number from 0 to 1")
        for name in ("friction", "static_friction"):
            if (value := getattr(self, name)) is not None:
                check_numbers(name, value, lambda x: (x >= 0) & np.isfinite(x), "a number not negative")


class RigidPairs(NamedTuple):
    """Numbers that the two materials of each pair make, or those of points.

    Attributes:
        restitution: e.
        friction: μ of what slides.
        static_friction: That of what sticks; None where it is the same for all.
    """

    restitution: Float[Array, " pairs"]
    friction: Float[Array, " pairs"]
    static_friction: Float[Array, " pairs"] | None

    @classmethod
    def of(cls, colliders: Colliders, default: RigidMaterial, materials: Mapping[str, RigidMaterial]) -> "RigidPairs":
        """Numbers of all pairs of shapes; friction that no material states is that of the shapes.

        Raises:
            ValueError: if a material belongs to no shape and no link.
        """
        check_names(colliders, materials)
        shapes = [of_shape(entry, default, materials) for entry in colliders.entries]

        def stated(name: str) -> list[Any]:
            return [getattr(default if getattr(x, name) is None else x, name) for x in shapes]

        e = jnp.stack([jnp.asarray(x, colliders.sizes.dtype) for x in stated("restitution")])
        first, second = np.array(colliders.pairs, int).reshape(-1, 2).T
        slides, static = pair_friction(colliders, stated("friction"))[:, 0], stated("static_friction")
        holds = None
        if any(x is not None for x in static):
            holds = [0.0 if x is None else x for x in static]
            holds = jnp.maximum(slides, pair_friction(colliders, holds)[:, 0])
        return cls(jnp.minimum(e[first], e[second]), slides, holds)

    def at(self, pairs: Int[np.ndarray, " points"]) -> "RigidPairs":
        """Numbers of points, which are of these pairs."""
        static = self.static_friction
        return RigidPairs(self.restitution[pairs], self.friction[pairs], None if static is None else static[pairs])


def check_rigid_materials(materials: Any):
    """Raise a ValueError about what is no material."""
    if isinstance(materials, Mapping) and all(isinstance(x, RigidMaterial) for x in materials.values()):
        return
    raise ValueError(
        f"materials: expected {{name of a shape or a link: jdyn.contact.RigidMaterial()}}, got {materials!r}"
    )
