"""Steps whose derivatives know for how long shapes touch within them."""

import warnings
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp

from jdyn.array import moving_and_fixed
from jdyn.contact import ContactForces, ContactWarning
from jdyn.simulation.loop import Equations, Motion, Problem, StepSpan, step
from jdyn.simulation.solver import traits
from jdyn.simulation.state import State

StepResult = tuple[Motion, State | None, Any, Any]


def has_kinks(problem: Problem) -> bool:
    """Tell whether derivatives of steps depend on where they end. A solver that remembers many steps would begin anew
    with each."""
    contact = _contact(problem)
    return contact is not None and contact.gradient_policy.repairs and traits(problem.solver).resumes


def warn_of_jumps(problem: Problem):
    """Warn of forces that begin with a jump, in a simulation that is differentiated."""
    contact = _contact(problem)
    if contact is not None and contact.gradient_policy.has_jumps:
        warnings.warn(f"contact: {contact.gradient_policy.about_jumps}", ContactWarning, stacklevel=2)


def _contact(problem: Problem) -> ContactForces | None:
    """The contact model if lengths of steps adapt, else None: fixed steps keep their own derivatives, as finite
    differences see them."""
    adaptive = isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController)
    return problem.equations.field.contact if adaptive else None


def step_across_kinks(
    problem: Problem, equations: Equations, motion: Motion, span: StepSpan, end: State | None
) -> StepResult:
    """Take a step like `step`, with the derivatives of a step to that end; None for a step without kinks."""
    if end is None:
        return step(problem, equations, motion, span)
    # The rate that a solver remembers, of the end of the step before, knows nothing of this one's kinks.
    motion = eqx.tree_at(lambda motion: motion.jumped, motion, jnp.array(True))
    return step(problem, equations, motion, span, end)


@eqx.filter_custom_jvp
def step_for_forward_mode(problem: Problem, equations: Equations, motion: Motion, span: StepSpan) -> StepResult:
    """Take a step like `step`, for forward-mode derivatives: these take the step once more, to know its end before."""
    return step(problem, equations, motion, span)


@step_for_forward_mode.def_jvp
def _step_for_forward_mode_jvp(primals, tangents):
    taken_step = step(*primals)
    moving, fixed = moving_and_fixed(primals, tangents)

    def across(moving):
        problem, equations, motion, span = eqx.combine(moving, fixed)
        return step_across_kinks(problem, equations, motion, span, taken_step[0].y)

    return taken_step, eqx.filter_jvp(across, (moving,), (tangents,))[1]
