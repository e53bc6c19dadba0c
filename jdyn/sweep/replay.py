"""One lane of a store again."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jdyn.sweep.outputs import Lane
from jdyn.sweep.spec import Spec
from jdyn.sweep.store import lane_of


def replay(store: str | os.PathLike, lane: int, fn: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Run one lane of a sweep again, with all of its motion.

    ```
    motion = jdyn.replay("payloads.zarr", 17).motion  # of `jdyn sweep spec.toml`
    motion = jdyn.replay("payloads.zarr", 17, lambda p: simulated(p["mass"], p["kp"]))
    ```

    Args:
        store: Folder of the sweep.
        lane: Its number, along the axis `lane`.
        fn: From the lane's parameters to anything. It may be left out for a sweep from a spec.

    Returns:
        What `fn` returns, or a `jdyn.sweep.Lane`.

    Raises:
        ValueError: if there is no such lane, or what the store says of its function is no spec.
        OSError: if the store cannot be read.
    """
    parameters, _, function = lane_of(store, lane)
    if fn is not None:
        return fn({name: jnp.asarray(value) for name, value in parameters.items()})
    return replayed(parameters, function, store)


def replayed(parameters: dict[str, np.ndarray], function: str, store: str | os.PathLike) -> Lane:
    """The lane of these parameters by a spec."""
    if not function.startswith("{"):
        raise ValueError(
            f"{store}: it is a sweep of the function {function!r}, and of no spec; give the function as fn"
        )
    spec = Spec.from_json(function, str(store))
    with spec.precision():
        return spec.lane({name: jnp.asarray(value) for name, value in parameters.items()})
