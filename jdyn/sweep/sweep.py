"""Batched simulation over a design of experiments."""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Array

from jdyn.simulation import Result, succeeded
from jdyn.sweep.design import Design, extra_dims
from jdyn.sweep.engines import Dask, Local, threads_of
from jdyn.sweep.layout import MOST_BYTES, is_name
from jdyn.sweep.memory import Memory
from jdyn.sweep.program import Program, at_once_here
from jdyn.sweep.store import Store, chunk_of
from jdyn.terminal.interruption import interruptions
from jdyn.terminal.messages import known, short
from jdyn.terminal.progress import progress_bar

if TYPE_CHECKING:
    import distributed
    import xarray

# In a chunk, the next lane replaces a lane that is done, so that only the last ones wait for the slowest. So chunks
# should be many times larger than the number of lanes at a time, 96 on a CPU and thousands on an accelerator.
CPU_CHUNK = 1024
ACCELERATOR_CHUNK = 65536
NAMES = {int(result): result.name for result in Result}


def sweep(
    fn: Callable[[dict[str, Array]], dict[str, Array]],
    over: Design,
    *,
    chunk: int | None = None,
    progress: bool | None = None,
    store: str | os.PathLike | None = None,
    attrs: Mapping[str, Mapping[str, str]] | None = None,
    shard: tuple[int, int] = (1, 1),
    engine: distributed.Client | None = None,
) -> xarray.Dataset:
    """Run `fn` for every lane of a design, in batches, and label the results.

    ```
    def lane(p):
        robot = model.with_body("hand", mass=p["mass"])
        controller = jdyn.PD(model, target, kp=p["kp"], kd=20.0)
        trajectory = jdyn.simulate(robot, q0, v0, 2.0, controller=controller, throw=False)
        return {"error": jnp.linalg.norm(trajectory.q[-1] - target), "result": trajectory.result}

    dataset = jdyn.sweep(lane, jdyn.designs.Grid(mass=[0.5, 1.0, 2.0], kp=[10.0, 100.0]))
    ```

    With a `store`, results are kept as they come. After a crash, a full disk or Ctrl-C the same call goes on, and
    computes only chunks that are missing or damaged:

    ```
    dataset = jdyn.sweep(lane, design, store="payloads.zarr")
    ```

    `fn` is compiled once for all chunks. Chunks run on every processor of a CPU, or on all accelerators of this
    machine. With `throw=False` in `simulate`, a lane that fails does not affect others.

    >>> dataset = jdyn.sweep(lambda p: {"weight": 9.81 * p["mass"]}, jdyn.designs.Grid(mass=[1.0, 2.0]), progress=False)
    >>> print(dataset["weight"].sel(mass=2.0).item())
    19.62

    Args:
        fn: One lane: from a dict of scalars by parameter name to a dict of arrays. The entry `result`, such as
            `Trajectory.result`, says whether the lane succeeded.
        over: Such as `jdyn.designs.Grid(...)`, `jdyn.designs.Samples(...)`, `jdyn.designs.Sobol(...)`, or a product of
            them.
        chunk: Most lanes in a batch; if left out, that of the store, or 1024 on a CPU, fewer where that keeps
            processors busy, and 65536 on an accelerator. The results of a batch must fit the memory.
        progress: Whether to show a progress bar, with failures by their codes; if left out, on a terminal and in a
            notebook.
        store: Folder for the results, a Zarr group, which `xarray.open_zarr` opens too. The dataset is then read from
            there as it is needed: memory holds the chunks that run, whatever the size of the design.
        attrs: Attributes of parameters and entries, by name, such as `{"kp": {"units": "1/s²", "long_name": "gain"}}`.
        shard: (i, n) computes the i-th of n parts, each n-th chunk, for n processes with the same `store`, such as a
            scheduler's array of jobs, i from 1 to n. Lanes of parts that are not done have the result -1, `not_run`.
            Each process takes the devices of its own machine, under `jax.distributed` as well, where
            `(jax.process_index() + 1, jax.process_count())` is the part of each.
        engine: A `distributed.Client`, whose workers then compute the chunks; this process writes them. Workers may die
            and come back; where none is left, a warning says so.

    Returns:
        A dataset with one variable for each entry, along the axes of the design, or along `lane` if it is in a store,
        which has the design's parameters as coordinates; and then along `<entry>_0`, `<entry>_1`, ... Floating-point
        entries of failed lanes are NaN; if `fn` returns no `result`, lanes with a non-finite entry get the code
        `nonfinite`. Attributes are `compile_seconds`, `run_seconds`, `lanes_per_second`, `lanes_found`, those that a
        store had before, `chunk` and `device`.

    Raises:
        ValueError: if `fn` does not return a dict of arrays, names clash, or the store is that of another sweep.
        OSError: if results cannot be written.
        SweepInterrupted: on Ctrl-C, once the chunks that run are finished.
    """
    _check(chunk, shard, store)
    stored = None if store is None else chunk_of(store)
    at_once = at_once_here() if engine is None else threads_of(engine)
    size = min(chunk or stored or _usual_chunk(over.size, at_once * shard[1]), over.size)
    started = time.perf_counter()
    lane = _parameters(over, np.zeros(1, int))
    program = Program(fn, lane, size)
    _check_names(over, program.outputs, attrs or {})
    if store is None:
        kept = Memory(over, size, attrs or {})
    else:
        _check_files(over, program.outputs, size)
        words = fn.to_json() if hasattr(fn, "to_json") else getattr(fn, "__qualname__", repr(fn))
        kept = Store.at(store, over, program.outputs, size, program.digest, attrs or {}, words)
    own, lacking = range(shard[0] - 1, -(-over.size // size), shard[1]), set(kept.missing())
    missing = [chunk for chunk in own if chunk in lacking]
    found = sum(len(kept.lanes(chunk)) for chunk in own if chunk not in lacking)
    if missing and engine is None:
        program.compile()
    compiled = time.perf_counter()
    chunks = Local(program) if engine is None else Dask(engine, fn, lane, size, program)
    lanes = _run_chunks(chunks, over, kept, missing, progress, found)
    seconds = time.perf_counter() - compiled
    attributes = {
        "compile_seconds": compiled - started,
        "run_seconds": seconds,
        "lanes_per_second": lanes / seconds,
        "lanes_found": found,
        "chunk": size,
        "device": str(jax.devices()[0].device_kind),
    }
    return kept.dataset().assign_attrs(attributes)


def _check(chunk, shard, store):
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk: expected a positive number of lanes, got {chunk}")
    if not 1 <= shard[0] <= shard[1]:
        raise ValueError(f"shard: expected (i, n) with i from 1 to n, got {shard}")
    if shard != (1, 1) and store is None:
        raise ValueError("shard: parts of a sweep come together in a store; give each process the same store=path")


def _usual_chunk(size, at_once):
    """Chunks of one size, as many as run at a time or a multiple of that."""
    largest = CPU_CHUNK if jax.default_backend() == "cpu" else ACCELERATOR_CHUNK
    rounds = -(-size // (largest * at_once))
    return -(-size // (rounds * at_once))


def _parameters(over, numbers):
    """Parameters of lanes, in the precision that JAX has in this thread: contexts such as `jax.enable_x64` do not reach
    others."""
    return {name: _in_precision(name, values) for name, values in over.lanes(numbers).items()}


def _in_precision(name, values):
    narrow = values.astype(jax.dtypes.canonicalize_dtype(values.dtype))
    if values.dtype.kind in "iu" and np.any(narrow != values):
        raise ValueError(f"{short(name)}: whole numbers beyond {narrow.dtype} need jax_enable_x64")
    return narrow


def _check_names(over, outputs, attrs):
    """Check the names of what a lane has, beside those of the design."""
    if outputs["result"].shape:
        raise ValueError(f"sweep: expected a scalar 'result', got shape {outputs['result'].shape}")
    if not np.issubdtype(outputs["result"].dtype, np.signedinteger):
        raise ValueError(f"sweep: expected codes of jdyn.Result as 'result', got {outputs['result'].dtype}")
    taken = {*over.dims, *over.coordinates(), *(dim for dims, _ in over.coordinates().values() for dim in dims)}
    if "result" in taken:
        raise ValueError("sweep: 'result' says how a lane ended, call the parameter something else")
    for name, output in outputs.items():
        for used in (name, *extra_dims(name, output.shape)):
            if used in taken:
                raise ValueError(f"sweep: {short(used)} of what fn returns is already the name of something else")
            taken.add(used)
    names = [*over.values, *outputs]
    for name in attrs:
        if name not in names:
            raise ValueError(f"attrs: there is no parameter and no entry {short(name)}; {known(name, names)}")


def _check_files(over, outputs, chunk):
    """Check that a store can have them."""
    for name in [*over.values, *outputs]:
        if not is_name(name):
            raise ValueError(
                f"store: {short(name)} cannot be the name of a file in it, call the parameter or entry otherwise"
            )
    for name, output in outputs.items():
        if chunk * output.bytes > MOST_BYTES:
            raise ValueError(
                f"store: {chunk} lanes of {name!r} would be a file of {chunk * output.bytes / 2**20:.0f} MiB, expected "
                f"at most {MOST_BYTES / 2**20:.0f}; give chunk={max(MOST_BYTES // output.bytes, 1)} or less"
            )


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; says what is kept.

    >>> issubclass(jdyn.SweepInterrupted, KeyboardInterrupt)
    True
    """


def _run_chunks(engine, over, kept, missing, progress, found):
    """Run the chunks that are missing, several at a time. Return their lanes, besides those that were found."""
    total, done, failures = sum(len(kept.lanes(chunk)) for chunk in missing), 0, collections.Counter()
    chunks, waiting = iter(missing), {}
    with (
        interruptions() as interrupted,
        progress_bar("sweep", "lane", found + total, progress, done=found) as bar,
        engine.pool,
        contextlib.ExitStack() as on_error,
    ):
        on_error.callback(lambda: [future.cancel() for future in waiting])
        while done < total and (waiting or not interrupted):
            for chunk in itertools.islice(chunks, 0 if interrupted else max(2 * engine.at_once - len(waiting), 0)):
                waiting[engine.submit(_parameters(over, kept.lanes(chunk)))] = chunk
            for future in engine.done(waiting):
                chunk, outputs = waiting.pop(future), future.result()
                kept.write(chunk, outputs)
                done += len(kept.lanes(chunk))
                failures.update(outputs["result"][~succeeded(outputs["result"])].tolist())
                bar.set_postfix({NAMES.get(code, str(code)): many for code, many in failures.items()}, refresh=False)
                bar.update(len(kept.lanes(chunk)))
            if interrupted:
                # The first ones may run.
                running = dict(itertools.islice(waiting.items(), engine.at_once))
                waiting = {f: chunk for f, chunk in waiting.items() if f in running or not f.cancel()}
    if interrupted and done < total:
        raise SweepInterrupted(f"sweep: interrupted after {done} of {total} lanes, {kept.after_interruption}")
    return total
