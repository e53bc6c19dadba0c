"""Result of a tuning."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, PyTree

from jdyn.tuning.parameters import named_leaves

if TYPE_CHECKING:
    import xarray


class TuneWarning(UserWarning):
    """Tuning ended before its last step, or on a doubtful gradient.

    >>> import optax, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = jdyn.tune(lambda p: jnp.sqrt(p["x"]), {"x": 1.0}, optimizer=optax.sgd(1.0), steps=50)
    >>> caught[0].category.__name__
    'TuneWarning'
    """


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """The result of `tune`.

    >>> import optax
    >>> found = jdyn.tune(lambda p: (p["kp"] - 7.0) ** 2, {"kp": 1.0}, optimizer=optax.adam(0.2), steps=50)
    >>> len(found.losses), bool(found.losses.min() < found.losses[0])
    (51, True)

    Attributes:
        params: Parameters with the smallest loss met; that of all rows, where there are rows.
        losses: Loss of the initial parameters and after each step, shape (steps + 1,) unless it ended early; of the
            rows that the step sees.
        gradient_norms: Euclidean norm of the gradient at the same parameters, with respect to free coordinates where
            parameters have bounds.
        best_step: Index into `losses` of `params`.
        message: Why it ended before the last step; empty if it did not.
        judged: Losses by which `best_step` was chosen: those of all rows, once an epoch and NaN between; `losses`
            where every step sees all rows.
        learning_rates: That each step takes, of optimizers that have it in their state, such as
            `optax.inject_hyperparams` makes them; NaN for others.
        path: The tuned leaves of the parameters, by step; None if they are more than 64 numbers.
        info: `compile_seconds`, `run_seconds`, `device`.
    """

    params: PyTree
    losses: Float[np.ndarray, " evaluations"]
    gradient_norms: Float[np.ndarray, " evaluations"]
    best_step: int
    message: str
    judged: Float[np.ndarray, " evaluations"]
    learning_rates: Float[np.ndarray, " evaluations"]
    path: PyTree[np.ndarray] | None
    info: Mapping[str, Any]

    def to_xarray(self) -> xarray.Dataset:
        """The history along `step`: `loss`, `gradient_norm`, `judged_loss`, `learning_rate` where it is known, and the
        parameters if they are few, each under its path; `best_step`, `message` and `info` as attributes."""
        import xarray  # it takes as long to import as JAX, and few need it

        columns = {
            "loss": self.losses,
            "gradient_norm": self.gradient_norms,
            "judged_loss": self.judged,
            "learning_rate": self.learning_rates,
        }
        if np.all(np.isnan(self.learning_rates)):
            del columns["learning_rate"]
        columns |= {} if self.path is None else dict(named_leaves(self.path))
        variables = {
            name: (("step", *(f"{name}_{i}" for i in range(np.ndim(column) - 1))), column)
            for name, column in columns.items()
        }
        attributes = {"best_step": self.best_step, "message": self.message, **self.info}
        return xarray.Dataset(variables, {"step": np.arange(len(self.losses))}, attributes)


@dataclasses.dataclass(frozen=True)
class StartsResult:
    """The result of `tune_starts`.

    >>> import optax
    >>> starts = {"x": jnp.array([-2.0, 0.5, 3.0])}
    >>> def loss(p):
    ...     return (p["x"] ** 2 - 1) ** 2 + p["x"]
    >>> found = jdyn.tune_starts(loss, starts, optimizer=optax.adam(0.1), steps=100)
    >>> found.best_start, len(found.results)
    (0, 3)

    Attributes:
        results: Of each start.
        best_start: Number of the start with the smallest loss; its result is `best`.
    """

    results: tuple[TuneResult, ...]
    best_start: int

    @property
    def best(self) -> TuneResult:
        return self.results[self.best_start]

    @property
    def params(self) -> PyTree:
        """The best parameters of the best start."""
        return self.best.params

    def to_xarray(self) -> xarray.Dataset:
        """The histories along `start` and `step`, as of `TuneResult`, with NaN after a start's last step; `best_step`
        and `message` of each start, and the attribute `best_start`."""
        import xarray

        each = [result.to_xarray() for result in self.results]
        dataset = xarray.concat(
            [dataset.drop_attrs() for dataset in each], "start", join="outer", data_vars="all", coords="minimal"
        )
        for name in ("best_step", "message"):
            dataset[name] = "start", [attributes.attrs[name] for attributes in each]
        return dataset.assign_coords(start=np.arange(len(each))).assign_attrs(
            best_start=self.best_start, **self.best.info
        )
