"""What is measured of every library: quantities, batches, and how a library offers itself to be measured."""

import dataclasses
from collections.abc import Callable
from typing import Any

ROLLOUT_STEPS = 100
TIME_STEP = 1e-3
ROLLOUT_LANES = 64
SWEEP_SECONDS = 2.0
# Comparing a few states is enough, and cheap where the reference is computed state by state.
COMPARED = 64
TOLERANCES = {"float64": (1e-6, 1e-8), "float32": (1e-5, 1e-6)}

QUANTITIES = (
    "forward dynamics",
    "inverse dynamics",
    "mass matrix",
    "derivatives",
    "rollout",
    "rollout gradient",
    "sweep",
)


class Unavailable(Exception):
    """What a library does not offer: why, in one line."""


@dataclasses.dataclass(frozen=True)
class Case:
    quantity: str
    batch: int


@dataclasses.dataclass(frozen=True)
class Functions:
    """A JAX library's functions of one configuration, in its own coordinates.

    Attributes:
        base: Convention of a floating base, a key of `states.BASES`, or `"fixed"`.
        joints: Names of the moving joints in the library's order, which follow the base's coordinates.
        forward: (q, v, tau) to accelerations.
        inverse: (q, v, a) to forces.
        mass: q to the mass matrix.
        integrate: (q, tangent vector) to the configuration that it leads to.
        derivatives: (q, v, tau) to da/dq, da/dv and da/dtau, on the tangent space; by `jax.jacfwd` if left out.
        sweep: (q, v, damping) of all lanes to their last configurations; diffrax around `forward` if left out.
        method: Which of its methods of forward dynamics that is, if it has several.
    """

    base: str
    joints: list[str]
    forward: Callable
    inverse: Callable
    mass: Callable
    integrate: Callable
    derivatives: Callable | None = None
    sweep: Callable | None = None
    method: str = ""


def of(quantities, batches, lanes, device) -> list[Case]:
    """The cases in the order in which they are run: the smallest batch of each quantity first.

    On a GPU every quantity is measured in every batch.
    """
    sizes: dict[str, Any] = {"rollout": [ROLLOUT_LANES], "rollout gradient": [ROLLOUT_LANES], "sweep": [lanes]}
    sizes["derivatives"] = [batch for batch in batches if batch <= 1024]
    if device == "gpu":
        sizes = {}
    return [Case(quantity, batch) for quantity in quantities for batch in sorted(sizes.get(quantity, batches))]
