"""Steps whose derivatives know for how long shapes touch within them."""

import warnings
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jdyn.contact import ContactForces, ContactWarning
from jdyn.simulation.loop import Equations, Motion, Problem, Way, step
from jdyn.simulation.solver import traits
from jdyn.simulation.state import State

Stepped = tuple[Motion, State | None, Any, Any]


def has_kinks(problem: Problem) -> bool:
    """Tell whether derivatives of steps depend on where they end. A solver that remembers many steps would begin anew
    with each."""
    return _contact(problem) is not None and traits(problem.solver).resumes


def warn_of_jumps(problem: Problem):
    """Warn of forces that begin with a jump, in a simulation that is differentiated."""
    contact = _contact(problem)
    if contact is not None and contact.gradient_policy.has_jumps:
        warnings.warn(
            "contact: the force of this law begins with a jump when shapes touch, and derivatives leave out that the "
            "instant changes; take CompliantContact(located=True), with which steps end there, or "
            "jdyn.contact.HuntCrossley()",
            ContactWarning,
            stacklevel=2,
        )


def _contact(problem: Problem) -> ContactForces | None:
    """Contact of steps as long as errors allow; derivatives of others are those of the steps, as differences have
    them."""
    adaptive = isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController)
    return problem.equations.field.contact if adaptive else None


def step_across(problem: Problem, equations: Equations, motion: Motion, way: Way, end: State | None) -> Stepped:
    """Take a step like `step`, with the derivatives of a step to that end, or without kinks."""
    if end is None:
        return step(problem, equations, motion, way)
    # The rate that a solver remembers, of the end of the step before, knows nothing of this one's kinks.
    motion = eqx.tree_at(lambda motion: motion.jumped, motion, jnp.array(True))
    return step(problem, equations, motion, way, end)


@eqx.filter_custom_jvp
def step_forwards(problem: Problem, equations: Equations, motion: Motion, way: Way) -> Stepped:
    """Take a step like `step`, for forward-mode derivatives: these take the step once more, to know its end before."""
    return step(problem, equations, motion, way)


@step_forwards.def_jvp
def _step_forwards_jvp(primals, tangents):
    taken = step(*primals)
    wanted = jax.tree.map(lambda x: x is not None, tangents, is_leaf=lambda x: x is None)
    moving, fixed = eqx.partition(primals, wanted)

    def across(moving):
        problem, equations, motion, way = eqx.combine(moving, fixed)
        return step_across(problem, equations, motion, way, taken[0].y)

    return taken, eqx.filter_jvp(across, (moving,), (tangents,))[1]
