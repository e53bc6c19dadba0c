"""Ends of simulations."""

import enum

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Int


class Result(enum.IntEnum):
    """End of a simulation. Trajectories and datasets hold these as integers, one a lane.

    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> jdyn.Result(int(motion.result)).name
    'success'
    """

    success = 0
    max_steps = 1
    step_too_small = 2
    nonfinite = 3
    solver_failed = 4
    event = 5
    max_events = 6
    constraints = 7
    bad_model = 8
    bad_configuration = 9
    endless_events = 10
    turn = 11
    singular = 12
    derivatives = 13
    overlap = 14
    # Of lanes that a sweep has not come to yet.
    not_run = -1


MESSAGES = {
    Result.max_steps: "max_steps was reached; raise it, loosen the tolerances, or try an implicit solver",
    Result.step_too_small: "the error stayed above the tolerances however small the step; is the motion continuous?",
    Result.nonfinite: "the state or its rate is not finite; look at masses, gains and initial state",
    Result.max_events: "max_events have happened; raise it, or end the simulation where they accumulate",
    Result.constraints: "the constraints are not met; jdyn.assemble finds a start, later on they contradict each other",
    Result.bad_model: "no mechanism has these numbers, such as a negative mass, friction below zero, or NaN",
    Result.bad_configuration: "q0 is no configuration: NaN, infinity, or a quaternion of length 0; see model.neutral()",
    Result.endless_events: "max_events have happened, at last again and again at one instant; look at their resets",
    Result.turn: "steps of this length turn a free body or a ball joint by more than half a revolution; shorten them",
    Result.singular: "constraints are singular there, as of a stretched linkage: none or several motions go on from "
    "there; at the start, begin elsewhere or with a velocity along one of them",
    Result.derivatives: "steps are short enough for the motion, none is for its derivatives; are forces smooth?",
    Result.overlap: "rigid shapes overlap at the start; begin with them apart, or exclude the pair",
    Result.solver_failed: "the implicit solver did not converge, or the step controller gave up",
}


class SimulationError(RuntimeError):
    """A simulation with `throw=True` did not reach its end.

    >>> try:
    ...     motion = jdyn.simulate(jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1), 1.0, max_steps=2)
    ... except jdyn.SimulationError:
    ...     print("two steps are too few")
    two steps are too few
    """


def succeeded(result: Int[Array, "*lanes"]) -> Bool[Array, "*lanes"]:
    """Tell whether codes mean success: the end, or an event that ends the simulation."""
    return (result == Result.success) | (result == Result.event)


def raise_on_failure(tree, result: Int[Array, ""], progress, describe):
    """`tree`, or an error if `result` is not a success.

    Outside of transformations the error is a `SimulationError` with the text `describe()`. Messages of a compiled
    program are fixed before it runs, so that it gives the time as a percentage.

    Args:
        tree: What the simulation returns.
        result: `Result` of the simulation.
        progress: Fraction of the time that was simulated.
        describe: Text of the error, called only where values are known.
    """
    failed: Bool[Array, ""] = ~succeeded(result)
    if not isinstance(result, Tracer):
        if failed:
            raise SimulationError(describe())
        return tree
    percent = jnp.nan_to_num(jnp.floor(100 * progress)).astype(result.dtype)
    return eqx.branched_error_if(tree, failed, 101 * result + jnp.clip(percent, 0, 100), _compiled_messages())


def _compiled_messages():
    return [
        f"simulate stopped after {percent} % of the time: {MESSAGES.get(Result(result), '')}. "
        "With throw=False a failed simulation returns NaN and its result code instead of raising."
        for result in Result
        if result != Result.not_run
        for percent in range(101)
    ]


def result_meanings() -> dict[str, object]:
    """The codes as attributes of a dataset's variable, by the CF conventions for flags."""
    return {
        "flag_values": np.array([int(result) for result in Result], np.int32),
        "flag_meanings": " ".join(result.name for result in Result),
    }
