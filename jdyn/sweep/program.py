"""A function of one lane as a program for a batch of lanes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array

from jdyn.simulation import Result, succeeded
from jdyn.sweep.store import Output

LANES = "lanes"


class Program:
    """What computes a chunk of lanes, with a loop on each device that waits for no other.

    Attributes:
        outputs: What each lane has, by name, `result` included.
        digest: Of the program, with the numbers that the function closes over, and of what compiles it.
        double: Whether it computes in double precision.
    """

    def __init__(self, fn: Callable[[dict[str, Array]], dict[str, Array]], lane: Mapping[str, np.ndarray], chunk: int):
        """Args:
        fn: From the parameters of a lane to what it has.
        lane: Parameters of one lane, shape (1, ...).
        chunk: Most lanes at a time.
        """
        devices = jax.local_devices()
        # Of this thread: contexts such as `jax.enable_x64` do not reach others.
        self.double = jnp.zeros(()).dtype == np.float64
        self._batch = -(-chunk // len(devices)) * len(devices)
        self._lowered = jax.jit(_on_all(devices, jax.vmap(_checked(fn)))).lower(self._filled(lane))
        self._compiled: Any = None
        outputs = {name: Output(info.shape[1:], str(info.dtype)) for name, info in self._lowered.out_info.items()}
        self.outputs = outputs | ({} if "result" in outputs else {"result": Output((), "int32")})
        where = f"{jax.__version__} {devices[0].device_kind}"
        self.digest = hashlib.sha256(f"{where}\n{self._lowered.as_text()}".encode()).hexdigest()

    def compile(self) -> None:
        self._compiled = self._lowered.compile()

    def __call__(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of lanes by their parameters."""
        lanes = _lanes(parameters)
        with jax.enable_x64(self.double):
            outputs = self._compiled(self._filled(parameters))
        return _with_result({name: np.asarray(output)[:lanes] for name, output in outputs.items()})

    def _filled(self, parameters):
        """A whole batch, whose last lane is there several times."""
        numbers = np.minimum(np.arange(self._batch), _lanes(parameters) - 1)
        return {name: values[numbers] for name, values in parameters.items()}


def _lanes(arrays):
    return len(next(iter(arrays.values())))


def _on_all(devices, batch):
    if len(devices) == 1:
        return batch
    lanes = PartitionSpec(LANES)
    # Loops of simulations end by their own devices' lanes, which the check of varying values does not follow.
    return jax.shard_map(batch, mesh=Mesh(devices, (LANES,)), in_specs=lanes, out_specs=lanes, check_vma=False)


def _checked(fn):
    def lane(parameters):
        outputs = fn(parameters)
        if not isinstance(outputs, dict):
            raise ValueError(f"sweep: fn must return a dict of arrays, got {type(outputs).__name__}")
        if not outputs:
            raise ValueError("sweep: fn returns an empty dict, expected at least one array")
        return {name: _array(name, value) for name, value in outputs.items()}

    return lane


def _array(name, value):
    try:
        return jnp.asarray(value)
    except TypeError as error:
        raise ValueError(
            f"sweep: fn must return a dict of arrays, but {name!r} is of type {type(value).__name__}"
        ) from error


def _with_result(outputs):
    """Outputs with a `result`, and with NaN where the given one says that a lane failed."""
    floats = [name for name, output in outputs.items() if np.issubdtype(output.dtype, np.inexact)]
    if "result" not in outputs:
        lanes = _lanes(outputs)
        finite = [np.isfinite(outputs[name]).reshape(lanes, -1).all(axis=1) for name in floats]
        good = np.logical_and.reduce([np.ones(lanes, bool), *finite])
        return outputs | {"result": np.where(good, Result.success, Result.nonfinite).astype(np.int32)}
    failed = ~succeeded(outputs["result"])
    blanked = {name: outputs[name].copy() for name in floats}
    for output in blanked.values():
        output[failed] = np.nan
    return outputs | blanked
