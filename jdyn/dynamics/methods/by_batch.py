"""Forward dynamics by one method for a single configuration, and by another for batches."""

import jax

from jdyn.dynamics.methods.aba import ABA
from jdyn.dynamics.methods.crba import CRBA
from jdyn.dynamics.methods.method import Method
from jdyn.dynamics.recursion.batching import single_or_batch


class ByBatch(Method):
    """One method for a single configuration, another under `jax.vmap`.

    With its defaults a single configuration costs half of the time of `ABA`, up to a hundred degrees of freedom, and
    compiles sooner. It then has the digits that `CRBA` keeps; `jdyn.diagnose` tells how many. Derivatives cost as much
    as those of `batch`, and the value in addition.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.ByBatch()).round(3))
    [-6.047  8.063]

    Attributes:
        single: For a single configuration.
        batch: For batches, and for the factors that derivatives take.
    """

    single: Method = CRBA()
    batch: Method = ABA()

    def factor(self, model, q):
        return self.batch.factor(model, q)

    def solve(self, model, factors, tau):
        return self.batch.solve(model, factors, tau)

    def accelerations(self, model, factors, q, v, tau, f_ext):
        return self.batch.accelerations(model, factors, q, v, tau, f_ext)

    def accelerations_and_factors(self, model, q, v, tau, f_ext):
        arguments = model, q, v, tau, f_ext
        like = jax.eval_shape(self.batch.accelerations_and_factors, *arguments)
        return single_or_batch(self._single, self.batch.accelerations_and_factors, like)(*arguments)

    def _single(self, model, q, v, tau, f_ext):
        # Without derivatives, XLA removes the unused factors.
        a, _ = self.single.accelerations_and_factors(model, q, v, tau, f_ext)
        return a, self.batch.factor(model, q)
