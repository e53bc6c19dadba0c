"""Copies of modules with other fields."""

from typing import Any, TypeVar

M = TypeVar("M")


def with_fields(module: M, **fields: Any) -> M:
    """A copy of a module with other fields, which are neither converted nor checked.

    It takes a tenth of the time of `dataclasses.replace`.
    """
    other = object.__new__(type(module))
    vars(other).update(vars(module), **fields)
    return other
