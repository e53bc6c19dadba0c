"""Fields of worlds, and systems made of some of their objects."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import shaped
from jdyn.contact import Contact, RigidContact, pairs_if_any
from jdyn.dynamics import Method
from jdyn.elements import ForceElement
from jdyn.model import Constraint, renamed
from jdyn.simulation import CompliantLimits, ImpactLimits, State, System, merge
from jdyn.terminal.messages import short, unknown
from jdyn.world.object import WorldObject
from jdyn.world.places import named_in, owner


def _gravity(x: Any) -> Array | None:
    return None if x is None else shaped("gravity", x, float, (3,))


class WorldParts(eqx.Module):
    """Fields of `jdyn.World`, which describes them."""

    contact: Contact | None = RigidContact()
    gravity: Float[Array, "3"] | None = eqx.field(converter=_gravity, default=None)
    constraints: tuple[Constraint, ...] = eqx.field(converter=tuple, default=())
    elements: tuple[ForceElement, ...] = eqx.field(converter=tuple, default=())
    joint_limits: CompliantLimits | ImpactLimits | None = None
    method: Method | None = None
    names: tuple[str, ...] = eqx.field(static=True, default=())
    objects: tuple[WorldObject, ...] = ()

    def __check_init__(self):
        # A model of contact is any object with a method `between`.
        if not (self.contact is None or (hasattr(self.contact, "between") and not isinstance(self.contact, type))):
            raise ValueError(
                f"contact: expected jdyn.RigidContact(), jdyn.ConvexContact(), jdyn.CompliantContact() or None, got "
                f"{short(self.contact)}"
            )

    # `jax.jit(world.simulate)` looks the method up by the hash of its world; arrays have none.
    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, name: str) -> WorldObject:
        """The object of a name.

        Raises:
            KeyError: if there is none.
        """
        return self.objects[self._place(name, KeyError)]

    @property
    def fall(self) -> Array | None:
        """Acceleration of free fall [m/s²]; None of a world without gravity of its own and without objects."""
        if self.gravity is not None or not self.objects:
            return self.gravity
        return self.objects[0].system.model.gravity

    def together(self, names: Sequence[str], known_as: Sequence[str] | None = None) -> System:
        """One system of some objects, with what is between them.

        Args:
            names: Of the objects, in order.
            known_as: Names that they have in the system; the same if left out.

        Raises:
            ValueError: as for `merged`.
        """
        if not names:
            raise ValueError("world: it has no objects; world.with_object(name, system) gives it one")
        called = names if known_as is None else known_as
        chosen = [self[name] for name in names]
        system = merge(
            {name: each.system for name, each in zip(called, chosen, strict=True)},
            {name: each.placement for name, each in zip(called, chosen, strict=True)},
            gravity=jnp.asarray(self.fall, chosen[0].system.model.dtype),
            name="world",
        )
        new = dict(zip(names, called, strict=True))

        def between(parts: tuple) -> list:
            inside = [part for part in parts if set(named_in(part, self.names)) <= set(names)]
            return renamed(inside, lambda name: "/".join([new.get(owner(name), owner(name)), *name.split("/")[1:]]))

        touch = bool(pairs_if_any(system.model))
        return system.but(
            contact=self.contact if touch else None,
            joint_limits=self.joint_limits,
            method=self.method,
            constraints=(*system.constraints, *between(self.constraints)),
            elements=(*system.elements, *between(self.elements)),
        ).astype(system.model.dtype)

    def coupled(self) -> list[tuple[str, ...]]:
        """Objects that each constraint and each force element between objects names."""
        return [named_in(part, self.names) for part in (*self.constraints, *self.elements)]

    def start_of(self, system: System, t: Scalar | float = 0.0) -> State:
        """State of the merged system at the start."""
        q, v = (jnp.concatenate([getattr(each, name) for each in self.objects]) for name in ("q", "v"))
        return system.state(q, v, t=t)

    def _place(self, name: str, kind: type[Exception] = ValueError) -> int:
        if name not in self.names:
            raise kind(f"name: {unknown('object', name, self.names)}")
        return self.names.index(name)
