"""Frozen dataclasses that are PyTrees."""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, dataclass_transform

import equinox as eqx
import jax


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, eqx.field))
class Structure:
    """Base of the parts of a model: each subclass is a frozen dataclass and a PyTree, and needs no decorator.

    Handing a model to a compiled function costs less than with an `equinox.Module`. Fields are leaves, except those
    that `equinox.field(static=True)` marks, which must be hashable. Two structures are equal only if they are the same
    object.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        _register(cls)

    def __repr__(self) -> str:
        return eqx.tree_pformat(self)


def _register(cls) -> None:
    """Tell JAX the leaves of a class.

    `jax.tree_util.register_dataclass` does so too, and is faster by about 1.5 µs a model. But JAX (0.10 to 0.12) takes
    dataclasses of different classes for the same if they have as many leaves: a compiled function that knows a capsule
    may run its program of capsules on a cylinder, and says nothing.
    """
    fields = dataclasses.fields(cls)
    static = tuple(field.name for field in fields if field.metadata.get("static", False))
    leaves = tuple(field.name for field in fields if field.name not in static)
    keys = [jax.tree_util.GetAttrKey(name) for name in leaves]
    leaves_of, static_of = _getter(leaves), _getter(static)

    def flatten(structure):
        return leaves_of(structure), static_of(structure)

    def flatten_with_keys(structure):
        return tuple(zip(keys, leaves_of(structure), strict=True)), static_of(structure)

    def unflatten(known, values):
        # JAX hands over leaves that are no arrays, too: nothing is checked.
        structure = object.__new__(cls)
        attributes = structure.__dict__
        attributes.update(zip(leaves, values, strict=True))
        attributes.update(zip(static, known, strict=True))
        return structure

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """Return a function that reads these attributes of an object."""
    match names:
        case ():
            return lambda structure: ()
        case (name,):
            return lambda structure: (getattr(structure, name),)
    return attrgetter(*names)
