"""Numbers that may become zero, but not negative."""

import jax.numpy as jnp

from jdyn.tuning import Bijection


class NotNegative(Bijection):
    """Numbers that are not negative, by their square roots, each by itself.

    Logarithms, as `jdyn.tuning.Positive` has them, would go on for ever where the best number is zero.
    """

    @property
    def expected(self):
        return "numbers that are not negative"

    def to_free(self, value):
        return jnp.sqrt(value)

    def from_free(self, free):
        return free**2
