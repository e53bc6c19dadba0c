"""Batched simulation over a design of experiments."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from jdyn.simulation import Result, result_meanings, succeeded
from jdyn.sweep.design import Design, extra_dims

if TYPE_CHECKING:
    import xarray

# In a chunk, the next lane replaces a lane that is done, so that only the last ones wait for the slowest. So chunks
# should be many times larger than the number of lanes at a time, 64 on a CPU and thousands on an accelerator.
CPU_CHUNK = 1024
ACCELERATOR_CHUNK = 65536


def sweep(
    fn: Callable[[dict[str, Array]], dict[str, Array]],
    over: Design,
    *,
    chunk: int | None = None,
    progress: bool = True,
) -> xarray.Dataset:
    """Run `fn` for every lane of a design, in batches, and label the results.

    ```
    def lane(p):
        robot = model.with_body("hand", mass=p["mass"])
        controller = jdyn.PD(model, target, kp=p["kp"], kd=20.0)
        trajectory = jdyn.simulate(robot, q0, v0, 2.0, controller=controller, throw=False)
        return {"error": jnp.linalg.norm(trajectory.q[-1] - target), "result": trajectory.result}

    dataset = jdyn.sweep(lane, jdyn.Grid(mass=[0.5, 1.0, 2.0], kp=[10.0, 100.0]))
    ```

    `fn` is compiled once for all chunks; on a CPU, as many chunks run at a time as there are processors. With
    `throw=False` in `simulate`, a lane that fails does not affect others.

    Args:
        fn: One lane: from a dict of scalars by parameter name to a dict of arrays. The entry `result`, such as
            `Trajectory.result`, says whether the lane succeeded.
        over: `jdyn.Grid(...)` or `jdyn.Samples(...)`.
        chunk: Most lanes in a batch; if left out 1024 on a CPU, fewer where that keeps processors busy, and 65536 on
            an accelerator. The results of a batch must fit the memory.
        progress: Whether to show a progress bar on standard error.

    Returns:
        A dataset with one variable for each entry, along the axes of the design and then along `<entry>_0`,
        `<entry>_1`, ... Floating-point entries of failed lanes are NaN; if `fn` returns no `result`, lanes with a
        non-finite entry get the code `nonfinite`. Attributes are `compile_seconds`, `run_seconds`, `lanes_per_second`,
        `chunk` and `device`.

    Raises:
        ValueError: if `fn` does not return a dict of arrays, or names clash.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk: expected a positive number of lanes, got {chunk}")
    chunk = _usual_chunk(over.size) if chunk is None else min(chunk, over.size)
    started = time.perf_counter()
    run = _compiled(fn, over, chunk)
    compiled = time.perf_counter()
    outputs = _run_chunks(run, over, chunk, progress)
    seconds = time.perf_counter() - compiled
    attributes = {
        "compile_seconds": compiled - started,
        "run_seconds": seconds,
        "lanes_per_second": over.size / seconds,
        "chunk": chunk,
        "device": str(jax.devices()[0].device_kind),
    }
    return _dataset(over, _with_result(outputs), attributes)


def _usual_chunk(size):
    """Chunks of one size, as many as processors or a multiple of that."""
    largest = CPU_CHUNK if jax.default_backend() == "cpu" else ACCELERATOR_CHUNK
    rounds = -(-size // (largest * _processors()))
    return -(-size // (rounds * _processors()))


def _compiled(fn, over, chunk):
    """The batch of lanes as a compiled program, so that compiling and running are timed apart."""

    def lane(parameters):
        outputs = fn(parameters)
        if not isinstance(outputs, dict):
            raise ValueError(f"sweep: fn must return a dict of arrays, got {type(outputs).__name__}")
        return {name: _array(name, value) for name, value in outputs.items()}

    lowered = jax.jit(jax.vmap(lane)).lower(_parameters(over, np.zeros(chunk, int)))
    _check_names(over, lowered.out_info)
    return lowered.compile()


def _array(name, value):
    try:
        return jnp.asarray(value)
    except TypeError as error:
        raise ValueError(
            f"sweep: fn must return a dict of arrays, but {name!r} is of type {type(value).__name__}"
        ) from error


def _parameters(over, numbers):
    return {name: jnp.asarray(values) for name, values in over.lanes(numbers).items()}


def _check_names(over, outputs):
    if not outputs:
        raise ValueError("sweep: fn returns an empty dict, expected at least one array")
    if "result" in outputs and outputs["result"].ndim != 1:
        raise ValueError(f"sweep: expected a scalar 'result', got shape {outputs['result'].shape[1:]}")
    taken = {*over.dims, *over.coordinates()}
    if "result" in taken:
        raise ValueError("sweep: 'result' says how a lane ended, call the parameter something else")
    for name, output in outputs.items():
        for used in (name, *extra_dims(name, output.shape[1:])):
            if used in taken:
                raise ValueError(f"sweep: {used!r} of what fn returns is already the name of something else")
            taken.add(used)


def _run_chunks(run, over, chunk, progress):
    """Outputs of every lane. A CPU runs one chunk on one processor, so several at a time fill it."""

    def lanes(parameters):
        return {name: np.asarray(output) for name, output in run(parameters).items()}

    # Neighbours in a design take about as long as each other. They go to different chunks, so that all take as long.
    chunks = -(-over.size // chunk)
    numbers = [np.arange(first, over.size, chunks) for first in range(chunks)]
    outputs = {}
    with (
        tqdm(total=over.size, unit="lane", desc="sweep", disable=not progress) as bar,
        ThreadPoolExecutor(_processors()) as pool,
    ):
        # Make parameters here: contexts such as `jax.enable_x64` do not reach other threads.
        filled = [np.pad(those, (0, chunk - len(those)), mode="edge") for those in numbers]
        parts = pool.map(lanes, [_parameters(over, those) for those in filled])
        for those, part in zip(numbers, parts, strict=True):
            for name, output in part.items():
                all = outputs.setdefault(name, np.empty((over.size, *output.shape[1:]), output.dtype))
                all[those] = output[: len(those)]
            bar.update(len(those))
    return outputs


def _processors():
    """Number of chunks that run at a time: XLA uses one processor of a CPU for a chunk, and the whole of a GPU."""
    return (getattr(os, "process_cpu_count", os.cpu_count)() or 1) if jax.default_backend() == "cpu" else 1


def _with_result(outputs):
    """Outputs with a `result`, and with NaN where the given one says that a lane failed."""
    floats = [name for name, output in outputs.items() if np.issubdtype(output.dtype, np.inexact)]
    if "result" not in outputs:
        lanes = len(next(iter(outputs.values())))
        finite = [np.isfinite(outputs[name]).reshape(lanes, -1).all(axis=1) for name in floats]
        good = np.logical_and.reduce([np.ones(lanes, bool), *finite])
        return outputs | {"result": np.where(good, Result.success, Result.nonfinite).astype(np.int32)}
    failed = ~succeeded(outputs["result"])
    blanked = {name: outputs[name].copy() for name in floats}
    for output in blanked.values():
        output[failed] = np.nan
    return outputs | blanked


def _dataset(over, outputs, attributes):
    import xarray  # it takes as long to import as JAX, and nothing else needs it

    dims, shape = tuple(over.dims), tuple(over.dims.values())
    variables = {
        name: ((*dims, *extra_dims(name, output.shape[1:])), output.reshape(shape + output.shape[1:]))
        for name, output in outputs.items()
    }
    dataset = xarray.Dataset(variables, over.coordinates(), attributes)
    dataset["result"].attrs.update(result_meanings())
    return dataset
