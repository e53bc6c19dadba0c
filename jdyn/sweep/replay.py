"""One lane of a store again."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jdyn.sweep.spec import Spec
from jdyn.sweep.stored import lane_of


def replay(store: str | os.PathLike, lane: int, fn: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Run one lane of a sweep again, with all of its motion.

    ```
    motion = jdyn.replay("payloads.zarr", 17).motion  # of `jdyn sweep spec.toml`
    motion = jdyn.replay("payloads.zarr", 17, lambda p: simulated(p["mass"], p["kp"]))
    ```

    >>> def lane(p):
    ...     return {"weight": 9.81 * p["mass"]}
    >>> dataset = jdyn.sweep(lane, jdyn.Grid(mass=[1.0, 2.0]), store="masses.zarr", progress=False)
    >>> print(jdyn.replay("masses.zarr", 1, lane)["weight"])
    19.62

    Args:
        store: Folder of the sweep.
        lane: Its number, along the axis `lane`.
        fn: From the lane's parameters to anything. It may be left out for a sweep from a spec.

    Returns:
        What `fn` returns, or the lane with its `parameters`, `model`, `gains` and `motion`, in the spec's precision:
        that of a sweep in float64 is for `with jax.enable_x64(True)`.

    Raises:
        ValueError: if there is no such lane, or what the store says of its function is no spec.
        OSError: if the store cannot be read.
    """
    parameters, _, function = lane_of(store, lane)
    if fn is not None:
        return fn({name: jnp.asarray(value) for name, value in parameters.items()})
    spec = spec_of(function, store, "give the function as fn")
    with spec.precision():
        return spec.lane(parameters)


def spec_of(function: str, store: str | os.PathLike, instead: str) -> Spec:
    """The spec of a store, by what this says of its function.

    Raises:
        ValueError: if that is no spec; `instead` is what to do then.
    """
    if not function.startswith("{"):
        raise ValueError(f"{store}: it is a sweep of the function {function!r}, and of no spec; {instead}")
    return Spec.from_json(function, str(store))
