"""Many simulations at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree

from jdyn.contact import Contact
from jdyn.model import Constraint, Model, checked, dynamics_only
from jdyn.simulation.simulate import simulate
from jdyn.simulation.trajectory import Trajectory

IN_AXES = {"q0": 0, "v0": 0}


def simulate_batch(
    model: Model,
    q0: Float[Array, "lanes nq"],
    v0: Float[Array, "lanes nv"],
    t1: ArrayLike,
    *,
    controller: Any = None,
    contact: Contact | None = None,
    constraints: Sequence[Constraint] = (),
    jump_times: Sequence[float] | Float[ArrayLike, " jumps"] = (),
    in_axes: Mapping[str, Any] = IN_AXES,
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
        model: The mechanism.
        q0: Configurations at the start [rad or m].
        v0: Velocities at the start [rad/s or m/s].
        t1: End [s].
        controller: As `simulate` takes it.
        contact: As `simulate` takes it.
        constraints: As `simulate` takes them.
        jump_times: As `simulate` takes them.
        in_axes: Arguments that differ between lanes: `model`, `q0`, `v0`, `t1`, `controller`, `contact`, `constraints`
            or `jump_times` with the axis of lanes, or with a PyTree of axes for its leaves. If left out, `q0` and `v0`
            differ.
        reduce: Computes the result from each trajectory, such as `lambda trajectory: trajectory.q[-1]`, on the device.
            The whole trajectory if left out.
        throw: Whether the first lane that fails raises.
        **options: The other options of `simulate`, the same for all lanes.

    Returns:
        Trajectories, or the results of `reduce`, with a leading axis of lanes in every array.

    Raises:
        ValueError: if `in_axes` names something else, or sizes disagree.
    """
    checked(model)
    known = ("model", "q0", "v0", "t1", "controller", "contact", "constraints", "jump_times")
    if unknown := sorted(set(in_axes) - set(known)):
        raise ValueError(f"in_axes: expected names among {', '.join(known)}, got {', '.join(map(repr, unknown))}")
    # Shapes matter where they touch.
    kept = dynamics_only if contact is None else lambda x: x
    axes = tuple(kept(in_axes.get(name)) for name in known)

    def lane(model, q0, v0, t1, *others):
        return reduce(simulate(model, q0, v0, t1, **dict(zip(known[4:], others, strict=True)), throw=throw, **options))

    others = controller, contact, tuple(constraints), jnp.asarray(jump_times)
    return eqx.filter_vmap(lane, in_axes=axes)(kept(model), q0, v0, t1, *others)
