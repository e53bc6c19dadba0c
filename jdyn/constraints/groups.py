"""Constraints of one kind, traced once for all of them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from jdyn.model.constraints import Constraint


class ConstraintGroup(NamedTuple):
    """Constraints that differ in numbers and names alone, and are traced once.

    Attributes:
        first: One of them.
        arrays: The numbers of all, along one more axis in front.
        frames, joints: Names, a row a constraint.
    """

    first: Constraint
    arrays: Any
    frames: list[tuple[str, ...]]
    joints: list[tuple[str, ...]]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], dtype: Any) -> "ConstraintGroup":
        numbers = [eqx.filter(constraint, eqx.is_array) for constraint in constraints]
        leaves = zip(*map(jax.tree.leaves, numbers), strict=True)
        stacked = [jnp.stack([x.astype(dtype) if eqx.is_inexact_array(x) else x for x in each]) for each in leaves]
        arrays = jax.tree.unflatten(jax.tree.structure(numbers[0]), stacked)
        return cls(constraints[0], arrays, [c.frames for c in constraints], [c.joints for c in constraints])

    def map(self, function: Callable, *rows: Any) -> Any:
        """Results of `function` for every constraint and its rows, stacked."""

        def one(arrays, *row):
            return function(eqx.combine(arrays, self.first), *row)

        return jax.vmap(one)(self.arrays, *rows)


def by_kind(
    constraints: Sequence[Constraint], dtype: Any, function: Callable[[ConstraintGroup], tuple[Array, ...]]
) -> list[list[Array]]:
    """Results of `function` for each kind, one constraint after another."""
    kinds: dict[Any, list[int]] = {}
    for place, constraint in enumerate(constraints):
        kinds.setdefault(_kind(constraint), []).append(place)
    found: list[list[Array]] = [[] for _ in constraints]
    for places in kinds.values():
        parts = function(ConstraintGroup.of([constraints[place] for place in places], dtype))
        for row, place in enumerate(places):
            found[place] = [part[row] for part in parts]
    return found


def _kind(constraint: Constraint) -> Any:
    """Structure that constraints share which are traced together: all but names and numbers."""
    names = (*constraint.frames, *constraint.joints, constraint.frames, constraint.joints)
    fields = {field: getattr(constraint, field.name) for field in dataclasses.fields(constraint)}
    static = tuple(x for field, x in fields.items() if field.metadata.get("static") and x not in names)
    parts = [x for field, x in fields.items() if not field.metadata.get("static")]
    arrays, rest = eqx.partition(parts, eqx.is_array)
    shapes = tuple(x.shape for x in jax.tree.leaves(arrays))
    functions = tuple(map(id, jax.tree.leaves(rest)))
    sizes = len(constraint.frames), len(constraint.joints)
    return type(constraint), sizes, static, jax.tree.structure(parts), shapes, functions
