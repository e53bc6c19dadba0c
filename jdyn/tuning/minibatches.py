"""Which rows of data each step sees."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from jdyn.tuning.parameters import named_leaves


class Minibatches:
    """Rows of data in a fresh order in every epoch, which follows from the seed and the number of the step alone.

    Rows that do not fill a batch are left out of an epoch, others in each.

    >>> import optax
    >>> rows = jdyn.tuning.Minibatches(jnp.arange(6.0), 2, seed=1)
    >>> found = jdyn.tune(lambda x, rows: jnp.mean((x - rows) ** 2), 0.0, optimizer=optax.sgd(0.1), steps=30, data=rows)
    >>> print(abs(found.params - 2.5) < 1)
    True

    Attributes:
        data: A PyTree of arrays with a leading axis of rows.
        batch: Number of rows that a step sees.
        seed: Of the orders.
        rows: Number of rows of the data.

    Raises:
        ValueError: if leading axes differ, or there are fewer rows than a batch has.
    """

    def __init__(self, data: PyTree[Array], batch: int, seed: int = 0):
        self.data, self.seed = jax.tree.map(jnp.asarray, data), seed
        self.rows = _common_length(self.data)
        self.batch = batch
        if not 1 <= self.batch <= self.rows:
            raise ValueError(f"batch: expected 1 to {self.rows} rows, as many as there are in data, got {batch}")
        self._epoch, self._order = -1, np.arange(self.rows)

    @property
    def steps_per_epoch(self) -> int:
        return self.rows // self.batch

    def numbers(self, step: int) -> Int[np.ndarray, " batch"]:
        """Numbers of the rows that a step sees."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if self.batch == self.rows:
            return np.arange(self.rows)
        if epoch != self._epoch:
            key = jax.random.fold_in(jax.random.key(self.seed), epoch)
            self._epoch, self._order = epoch, np.asarray(jax.random.permutation(key, self.rows))
        return self._order[place * self.batch : (place + 1) * self.batch]


def minibatches(data: PyTree[Array] | Minibatches | None) -> Minibatches | None:
    """Data as minibatches, of all rows unless it says less; None where there is none."""
    if data is None or isinstance(data, Minibatches):
        return data
    return Minibatches(data, _common_length(data))


def _common_length(data):
    leaves = named_leaves(data)
    lengths = {name: leaf.shape[0] if leaf.ndim else None for name, leaf in leaves}
    if not lengths or None in lengths.values() or len(set(lengths.values())) > 1:
        found = ", ".join(
            f"data{name.removeprefix('params')} has {length or 'none'}" for name, length in lengths.items()
        )
        raise ValueError(f"data: expected arrays with one leading axis, of rows; {found or 'there are no arrays'}")
    return leaves[0][1].shape[0]
