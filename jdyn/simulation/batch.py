"""Many simulations at once."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array, PyTree

from jdyn.model import checked, dynamics_only
from jdyn.simulation.simulate import PartOptions, named, simulate
from jdyn.simulation.system import System
from jdyn.simulation.trajectory import Trajectory

# What may differ from lane to lane, beside what a simulation starts with.
OPTIONS = ("t0", "dt0", "jump_times", "solver", "stepsize_controller")


def simulate_batch(
    *start: Any,
    in_axes: Mapping[str, Any] | None = None,
    reduce: Callable[[Trajectory], PyTree[Array]] = lambda trajectory: trajectory,
    throw: bool = False,
    **options: Any,
) -> Any:
    """`simulate` for many lanes, each with its own steps.

    ```
    heavier = jax.vmap(lambda mass: model.with_body("hand", mass=mass))(masses)
    trajectories = jdyn.simulate_batch(heavier, q0, v0, 2.0, in_axes={"model": 0, "q0": None, "v0": None})
    ```

    This is `jax.vmap` of `simulate`. No lane waits for another, neither forwards nor in derivatives, so that a batch
    costs the mean number of steps; on a CPU, lanes that touch things run one by one. A lane that fails, by its number
    of steps, by NaN or by its tolerances, ends with its own code in `result` and does not affect the others.

    >>> model, starts = jdyn.load("pendulum"), jnp.array([[0.5], [1.0], [1.5]])
    >>> trajectories = jdyn.simulate_batch(model, starts, jnp.zeros((3, 1)), 1.0)
    >>> print(trajectories.q[:, -1, 0].round(3))
    [-0.403 -0.902 -1.483]

    Args:
        start: `system`, `state` and `t1` [s], or `model`, `q0`, `v0` and `t1`, as `simulate` takes them.
        in_axes: Arguments that differ between lanes, with the axis of lanes, or with a PyTree of axes for its leaves:
            `system`, `state`, `t1`, or in the short form `model`, `q0`, `v0`, `t1` and the parts of a system; and `t0`,
            `dt0`, `jump_times`, `solver`, `stepsize_controller`. If left out, states differ.
        reduce: Computes the result from each trajectory, such as `lambda trajectory: trajectory.q[-1]`, on the device.
            The whole trajectory if left out.
        throw: Whether the first lane that fails raises.
        options: The other arguments of `simulate`, the same for all lanes.

    Returns:
        Trajectories, or the results of `reduce`, with a leading axis of lanes in every array.

    Raises:
        ValueError: if `in_axes` names something else, or sizes disagree.
    """
    given = named("simulate_batch", start, options)
    names = tuple(given)
    system, whole = given[names[0]], "system" in given
    if not whole:
        checked(system)
    known = (*names, *(() if whole else PartOptions.__annotations__), *OPTIONS)
    in_axes = dict.fromkeys(names[1:-1], 0) if in_axes is None else in_axes
    if unknown := sorted(set(in_axes) - set(known)):
        raise ValueError(f"in_axes: expected names among {', '.join(known)}, got {', '.join(map(repr, unknown))}")
    given |= options
    if absent := sorted(name for name, axes in in_axes.items() if axes is not None and name not in given):
        raise ValueError(f"in_axes: expected arguments that are given, got {', '.join(map(repr, absent))}")
    sees_shapes = system.sees_shapes if whole else any(sensor.uses_shapes for sensor in options.get("sensors", ()))
    if (system.contact if whole else options.get("contact")) is None and not sees_shapes:
        given[names[0]] = _without_shapes(system)
        in_axes = {name: _without_shapes(axes) for name, axes in in_axes.items()}
    axes = {name: in_axes.get(name) for name in given if name in names or in_axes.get(name) is not None}
    same = {name: x for name, x in given.items() if name not in axes}

    def lane(differing):
        beginning = [differing.pop(name) for name in names if name in differing]
        return reduce(simulate(*beginning, **differing, **same, throw=throw))

    return eqx.filter_vmap(lane, in_axes=(axes,))({name: given[name] for name in axes})


def _without_shapes(x):
    """A model or a system, or axes of one, without shapes, which matter where they touch or sensors look at them;
    anything else as it is."""
    return eqx.tree_at(lambda x: x.model, x, dynamics_only(x.model)) if isinstance(x, System) else dynamics_only(x)
