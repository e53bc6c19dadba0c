"""A loss of free coordinates."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from jdyn.tuning.bounds import from_free
from jdyn.tuning.parameters import scalar


class Problem(NamedTuple):
    """Loss that is minimised, and its parameters.

    Attributes:
        function: Of the parameters, and of rows of data if there are any.
        fixed: Leaves of the parameters that are not tuned.
        bounds: A prefix of the parameters, see `jdyn.tuning.bounds`.
    """

    function: Callable
    fixed: PyTree
    bounds: PyTree

    def tuned(self, free: PyTree[Array]) -> PyTree[Array]:
        """Leaves of the parameters that are tuned."""
        return from_free(self.bounds, free)

    def params(self, free: PyTree[Array]) -> PyTree:
        """All parameters, as a user has them."""
        return eqx.combine(self.tuned(free), self.fixed)

    def of(self, free: PyTree[Array], *rows: Any) -> Any:
        """The function of the parameters with these free coordinates."""
        return self.function(self.params(free), *rows)

    def loss(self, free: PyTree[Array], *rows: Any) -> Float[Array, ""]:
        """The same where it is a scalar.

        Raises:
            ValueError: if it is none.
        """
        return scalar(self.of(free, *rows))
