"""One lane of a store again."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jdyn.sweep.contents import Contents, contents_of
from jdyn.sweep.spec import Spec
from jdyn.sweep.stored import lane_of
from jdyn.terminal.messages import enumerated, short

# Lanes that a design may have for nothing: it takes a moment to draw them.
FEW_LANES = 2**16


def replay(store: str | os.PathLike, lane: int, fn: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Run one lane of a sweep again, with all of its motion.

    ```
    motion = jdyn.replay("payloads.zarr", 17).motion  # of `jdyn sweep spec.toml`
    motion = jdyn.replay("payloads.zarr", 17, lambda p: simulated(p["mass"], p["kp"]))
    ```

    >>> def lane(p):
    ...     return {"weight": 9.81 * p["mass"]}
    >>> dataset = jdyn.sweep(lane, jdyn.designs.Grid(mass=[1.0, 2.0]), store="masses.zarr", progress=False)
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
    contents = contents_of(store)
    parameters, _ = lane_of(contents, lane)
    if fn is not None:
        return fn({name: jnp.asarray(value) for name, value in parameters.items()})
    spec = spec_of(contents, "give the function as fn")
    with spec.precision():
        return spec.lane(parameters)


def spec_of(store: Contents, instead: str) -> Spec:
    """The spec of a store, by what this says of its function.

    Raises:
        ValueError: if that is no spec; `instead` is what to do then.
    """
    function = store.words["function"]
    if not function.startswith("{"):
        raise ValueError(f"{store.path}: it is a sweep of the function {short(function)}, and of no spec; {instead}")
    # It may have been swept over another design than its own; a foreign one may ask for more than any.
    spec = Spec.from_json(function, str(store.path), max(store.size, FEW_LANES))
    if missing := [name for name in spec.varied if name not in store.parameters]:
        raise ValueError(f"{store.path}: its spec has parameters that it lacks: {enumerated(missing)}")
    return spec
