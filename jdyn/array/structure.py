"""Frozen dataclasses that are PyTrees."""

import dataclasses
from typing import dataclass_transform

import equinox as eqx
import jax


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, eqx.field))
class Structure:
    """Base of the parts of a model: each subclass is a frozen dataclass and a PyTree, and needs no decorator.

    JAX takes it apart in C++: handing a model to a compiled function costs half of what it costs with an
    `equinox.Module`. Fields are leaves, except those that `equinox.field(static=True)` marks, which must be hashable.
    Two structures are equal only if they are the same object.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        static = [field.name for field in fields if field.metadata.get("static", False)]
        leaves = [field.name for field in fields if field.name not in static]
        jax.tree_util.register_dataclass(cls, data_fields=leaves, meta_fields=static)

    def __repr__(self) -> str:
        return eqx.tree_pformat(self)
