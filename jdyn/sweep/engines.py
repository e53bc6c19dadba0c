"""Engines that run the chunks of a sweep: this machine's devices, or workers of a cluster."""

from __future__ import annotations

import functools
import pickle
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np

from jdyn.sweep.program import Program, at_once_here

# A cluster that has had no worker for so long is told of [s].
PATIENCE = 60.0


class Local:
    """Threads of this process, each of which has a chunk run.

    Attributes:
        program: What computes a chunk, compiled.
        pool: The threads.
    """

    def __init__(self, program: Program):
        self.program, self.pool = program, ThreadPoolExecutor(self.at_once)

    @property
    def at_once(self) -> int:
        """Chunks that run at a time."""
        return at_once_here()

    def submit(self, parameters: Mapping[str, np.ndarray]) -> Future[dict[str, np.ndarray]]:
        """Have lanes computed."""
        return self.pool.submit(self.program, parameters)

    def done(self, waiting: Iterable[Future]) -> set[Future]:
        """Wait until some of the futures are done, and return these."""
        return wait(waiting, return_when=FIRST_COMPLETED).done


class Dask:
    """Workers of a Dask cluster. The scheduler gives the chunks of a worker that dies to others.

    Attributes:
        client: `distributed.Client`.
        pool: The workers.
    """

    def __init__(self, client: Any, fn: Callable, lane: Mapping[str, np.ndarray], chunk: int, program: Program):
        """Args:
        client: `distributed.Client`.
        fn, lane, chunk: As `Program` takes them.
        program: That workers have to come to.
        """
        import cloudpickle  # Dask needs it, too

        self.client, self.pool = client, client.get_executor(pure=False)
        self._recipe = cloudpickle.dumps((fn, lane, chunk)), program.double, program.digest

    @property
    def at_once(self) -> int:
        """Chunks that run at a time: workers come and go."""
        return threads_of(self.client)

    def submit(self, parameters: Mapping[str, np.ndarray]) -> Future[dict[str, np.ndarray]]:
        """Have lanes computed."""
        return self.pool.submit(_on_worker, *self._recipe, parameters)

    def done(self, waiting: Iterable[Future]) -> set[Future]:
        """Wait until some of the futures are done, and return these. Warn where no worker is left."""
        while not (done := wait(waiting, PATIENCE, FIRST_COMPLETED).done):
            if not self.client.nthreads():
                warnings.warn(
                    "sweep: the cluster has no worker, and the sweep waits for one. Start some, or interrupt it and go "
                    "on later with the same store",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return done


def threads_of(client: Any) -> int:
    """Threads of all workers that are there."""
    return max(sum(client.nthreads().values()), 1)


_compiling = threading.Lock()


def _on_worker(recipe: bytes, double: bool, digest: str, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    with _compiling:
        program = _program(recipe, double, digest)
    return program(parameters)


@functools.lru_cache(maxsize=4)
def _program(recipe: bytes, double: bool, digest: str) -> Program:
    """Compiled once in each process."""
    # Numbers of the function are rounded where they are unpickled in single precision.
    with jax.enable_x64(double):
        program = Program(*pickle.loads(recipe))
    if program.digest != digest:
        raise ValueError(
            "sweep: a worker came to another program than this process, so that lanes would not be of one sweep; both "
            "need the same devices and the same versions of jdyn and JAX"
        )
    program.compile()
    return program
