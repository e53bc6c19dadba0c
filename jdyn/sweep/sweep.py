"""Batched simulation over a design of experiments."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from jdyn.simulation import Result, result_meanings, succeeded
from jdyn.sweep.design import Design, extra_dims
from jdyn.sweep.store import Output, Store
from jdyn.terminal.interruption import interruptions

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
    progress: bool | None = None,
    store: str | os.PathLike | None = None,
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

    With a `store`, results are kept as they come. After a crash, a full disk or Ctrl-C the same call goes on, and
    computes only chunks that are missing or damaged:

    ```
    dataset = jdyn.sweep(lane, design, store="payloads.zarr")
    ```

    `fn` is compiled once for all chunks; on a CPU, as many chunks run at a time as there are processors. With
    `throw=False` in `simulate`, a lane that fails does not affect others.

    Args:
        fn: One lane: from a dict of scalars by parameter name to a dict of arrays. The entry `result`, such as
            `Trajectory.result`, says whether the lane succeeded.
        over: Such as `jdyn.Grid(...)`, `jdyn.Samples(...)`, `jdyn.Sobol(...)`, or a product of them.
        chunk: Most lanes in a batch; if left out 1024 on a CPU, fewer where that keeps processors busy, and 65536 on
            an accelerator. The results of a batch must fit the memory.
        progress: Whether to show a progress bar on standard error; if left out, where that is a terminal.
        store: Folder for the results, a Zarr group, which `xarray.open_zarr` opens too. The dataset is then read from
            there as it is needed: memory holds the chunks that run, whatever the size of the design.

    Returns:
        A dataset with one variable for each entry, along the axes of the design, or along `lane` if it is in a store,
        which has the design's parameters as coordinates; and then along `<entry>_0`, `<entry>_1`, ... Floating-point
        entries of failed lanes are NaN; if `fn` returns no `result`, lanes with a non-finite entry get the code
        `nonfinite`. Attributes are `compile_seconds`, `run_seconds`, `lanes_per_second`, `chunk` and `device`.

    Raises:
        ValueError: if `fn` does not return a dict of arrays, names clash, or the store is that of another sweep.
        OSError: if results cannot be written.
        SweepInterrupted: on Ctrl-C, once the chunks that run are finished.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk: expected a positive number of lanes, got {chunk}")
    size = min(_usual_chunk(over.size) if chunk is None else chunk, over.size)
    started = time.perf_counter()
    lowered = _lowered(fn, over, size)
    kept = _Memory(over, size) if store is None else Store.at(store, over, _outputs(lowered), size, _digest(lowered))
    run = lowered.compile()
    compiled = time.perf_counter()
    lanes = _run_chunks(run, over, size, kept, progress)
    seconds = time.perf_counter() - compiled
    attributes = {
        "compile_seconds": compiled - started,
        "run_seconds": seconds,
        "lanes_per_second": lanes / seconds,
        "chunk": size,
        "device": str(jax.devices()[0].device_kind),
    }
    return kept.dataset().assign_attrs(attributes)


def _usual_chunk(size):
    """Chunks of one size, as many as processors or a multiple of that."""
    largest = CPU_CHUNK if jax.default_backend() == "cpu" else ACCELERATOR_CHUNK
    rounds = -(-size // (largest * _processors()))
    return -(-size // (rounds * _processors()))


def _lowered(fn, over, chunk):
    """The batch of lanes as a program to compile, so that compiling and running are timed apart."""

    def lane(parameters):
        outputs = fn(parameters)
        if not isinstance(outputs, dict):
            raise ValueError(f"sweep: fn must return a dict of arrays, got {type(outputs).__name__}")
        return {name: _array(name, value) for name, value in outputs.items()}

    lowered = jax.jit(jax.vmap(lane)).lower(_parameters(over, np.zeros(chunk, int)))
    _check_names(over, lowered.out_info)
    return lowered


def _outputs(lowered):
    """What the store has of each lane."""
    outputs = {name: Output(info.shape[1:], str(info.dtype)) for name, info in lowered.out_info.items()}
    return outputs if "result" in outputs else outputs | {"result": Output((), "int32")}


def _digest(lowered):
    """Of the program, with the numbers that the function closes over, and of what compiles it."""
    where = f"{jax.__version__} {jax.devices()[0].device_kind}"
    return hashlib.sha256(f"{where}\n{lowered.as_text()}".encode()).hexdigest()


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


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; says what is kept."""


def _run_chunks(run, over, chunk, kept, progress):
    """Run the chunks that are missing, several at a time, since a CPU runs one on one processor. Return their lanes."""
    missing = kept.missing()

    def finish(piece, lanes, parameters):
        outputs = {name: np.asarray(output)[:lanes] for name, output in run(parameters).items()}
        kept.write(piece, _with_result(outputs))
        return lanes

    total = sum(len(kept.lanes(piece)) for piece in missing)
    disable = None if progress is None else not progress
    with (
        interruptions() as interrupted,
        tqdm(total=total, unit="lane", desc="sweep", disable=disable) as bar,
        ThreadPoolExecutor(_processors()) as pool,
    ):
        done, waiting, left = 0, set(), iter(missing)
        while done < total and (waiting or not interrupted):
            for piece in itertools.islice(left, 0 if interrupted else 2 * _processors() - len(waiting)):
                # Make parameters here: contexts such as `jax.enable_x64` do not reach other threads.
                numbers = kept.lanes(piece)
                filled = np.pad(numbers, (0, chunk - len(numbers)), mode="edge")
                waiting.add(pool.submit(finish, piece, len(numbers), _parameters(over, filled)))
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            if interrupted:
                waiting = {future for future in waiting if not future.cancel()}
            lanes = sum(future.result() for future in ended)
            done += lanes
            bar.update(lanes)
    if interrupted:
        raise SweepInterrupted(f"sweep: interrupted after {done} of {total} lanes, {kept.after_interruption}")
    return total


def _processors():
    """Number of chunks that run at a time: XLA uses one processor of a CPU for a chunk, and the whole of a GPU."""
    return (getattr(os, "process_cpu_count", os.cpu_count)() or 1) if jax.default_backend() == "cpu" else 1


class _Memory:
    """Results in memory, in the interface of `Store`.

    Attributes:
        over: The design.
        chunk: Lanes of a chunk.
    """

    after_interruption = "which are lost; sweep(..., store=path) keeps them"

    def __init__(self, over: Design, chunk: int):
        self.over, self.chunk, self._outputs = over, chunk, {}

    def missing(self):
        return range(-(-self.over.size // self.chunk))

    def lanes(self, piece):
        """Neighbours in a design take about as long as each other: they go to different chunks, which then all take as
        long."""
        return np.arange(piece, self.over.size, len(self.missing()))

    def write(self, piece, outputs):
        for name, output in outputs.items():
            all = self._outputs.setdefault(name, np.empty((self.over.size, *output.shape[1:]), output.dtype))
            all[self.lanes(piece)] = output

    def dataset(self):
        import xarray  # it takes as long to import as JAX, and nothing else needs it

        over, dims, shape = self.over, tuple(self.over.dims), tuple(self.over.dims.values())
        variables = {
            name: ((*dims, *extra_dims(name, output.shape[1:])), output.reshape(shape + output.shape[1:]))
            for name, output in self._outputs.items()
        }
        dataset = xarray.Dataset(variables, over.coordinates())
        dataset["result"].attrs.update(result_meanings())
        return dataset


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
