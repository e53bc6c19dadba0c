"""Systems as trajectories know them."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.control.controller import Controller
from jdyn.simulation.system import System


class Known(eqx.Module):
    """A system of which every leaf is an array, so that all transformations take and return it.

    Attributes:
        numbers: Its leaves that are numbers; None in the place of others.
        others: The others; None in the place of numbers.
        structure: Of its leaves.
    """

    numbers: tuple[Array | None, ...]
    others: tuple[Any, ...] = eqx.field(static=True)
    structure: Any = eqx.field(static=True)

    @classmethod
    def of(cls, system: System, lanes: tuple[int, ...] = ()) -> Self:
        """A system, the same for all lanes of a batch of that shape."""
        leaves, structure = jax.tree.flatten(system)
        numbers = tuple(_number(x) for x in leaves)
        others = tuple(x if number is None else None for x, number in zip(leaves, numbers, strict=True))
        if lanes:
            numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, (*lanes, *x.shape)), numbers)
        return cls(numbers, others, structure)

    @property
    def system(self) -> System:
        return self.with_numbers(self.numbers)

    def with_numbers(self, numbers: tuple[Array | None, ...]) -> System:
        """The system with other numbers, such as those of one lane."""
        leaves = [x if number is None else number for x, number in zip(self.others, numbers, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)


def has_functions(part: Any) -> bool:
    """Tell whether a part of a system has functions, which may close over traced values, and which no two parts
    share."""
    return any(callable(x) for x in jax.tree.leaves(part))


class Unknown(Controller):
    """Place of a controller with functions, which trajectories do not keep."""

    def __call__(self, t, q, v):
        raise ValueError(
            "controller: a trajectory keeps the forces of a controller that has functions, but not the functions; "
            "Trajectory.with_system tells it the system"
        )


def _number(x):
    """A floating-point number or an array, as an array; None for all else."""
    if isinstance(x, jax.Array):
        return x
    return jnp.asarray(x) if isinstance(x, np.ndarray) or eqx.is_inexact_array_like(x) else None
