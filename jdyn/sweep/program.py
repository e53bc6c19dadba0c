"""A function of one lane as a program for a batch of lanes."""

from __future__ import annotations

import hashlib
import os
import queue
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jaxtyping import Array

from jdyn.simulation import Result, succeeded
from jdyn.sweep.layout import Output
from jdyn.terminal.messages import short


class Program:
    """Program that computes a chunk of lanes, on any of this machine's devices.

    Devices do not share a chunk: none waits for another one's lanes, and each takes the next chunk when it has time.

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
        # Of this thread: contexts such as `jax.enable_x64` do not reach others.
        self.double = jnp.zeros(()).dtype == np.float64
        self._chunk, self._batch = chunk, jax.jit(jax.vmap(_checked(fn)))
        self._shapes = {name: ((chunk, *values.shape[1:]), values.dtype) for name, values in lane.items()}
        self._lowered = self._lowered_for(jax.local_devices()[0])
        outputs = {name: Output(info.shape[1:], str(info.dtype)) for name, info in self._lowered.out_info.items()}
        self.outputs = outputs | ({} if "result" in outputs else {"result": Output((), "int32")})
        where = f"{jax.__version__} {jax.local_devices()[0].device_kind}"
        self.digest = hashlib.sha256(f"{where}\n{self._lowered.as_text()}".encode()).hexdigest()
        self._free: queue.Queue[Any] = queue.Queue()

    def compile(self) -> None:
        _, *others = jax.local_devices()
        programs = [self._lowered.compile(), *(self._lowered_for(device).compile() for device in others)]
        for i in range(at_once_here()):
            self._free.put(programs[i % len(programs)])

    def __call__(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of lanes by their parameters, on the next device that is free."""
        lanes = _lanes(parameters)
        # The last lane fills up the chunk.
        numbers = np.minimum(np.arange(self._chunk), lanes - 1)
        compiled = self._free.get()
        try:
            with jax.enable_x64(self.double):
                outputs = compiled({name: values[numbers] for name, values in parameters.items()})
            return _with_result({name: np.asarray(output)[:lanes] for name, output in outputs.items()})
        finally:
            self._free.put(compiled)

    def _lowered_for(self, device):
        there = SingleDeviceSharding(device)
        return self._batch.lower({
            name: jax.ShapeDtypeStruct(shape, dtype, sharding=there) for name, (shape, dtype) in self._shapes.items()
        })  # fmt: skip


def at_once_here() -> int:
    """Chunks that run at a time on this machine: XLA runs one on one processor, or on a whole accelerator."""
    devices = jax.local_device_count()
    return max(_processors(), devices) if jax.default_backend() == "cpu" else devices


def _processors():
    """Number of processors that this process may use, as far as Python can tell."""
    found = getattr(os, "process_cpu_count", None) or (lambda: len(os.sched_getaffinity(0)))
    return found() if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lanes(arrays):
    return len(next(iter(arrays.values())))


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
            f"sweep: fn must return a dict of arrays, but {short(name)} is of type {type(value).__name__}"
        ) from error


def _with_result(outputs):
    """Outputs with a `result`, and with NaN where the given one says that a lane failed."""
    floats = [name for name, output in outputs.items() if jnp.issubdtype(output.dtype, jnp.inexact)]
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
