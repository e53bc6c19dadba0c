"""Actions: what acts during a step, or at an instant, beside the controller of a system."""

import dataclasses

from jaxtyping import Array, Float

from jdyn.actuators import Actuators
from jdyn.control import Driven, DynamicController
from jdyn.control.controller import Around
from jdyn.simulation.parts import Parts


def checked_action(system: Parts, action: Array) -> Array:
    """An action, if it has the shape of one: commands, or generalized forces."""
    size = len(Actuators(system.actuators).command_names) or system.model.nv
    what = "a command for each actuator" if system.actuators else "a force for each entry of v"
    if action.shape != (size,):
        raise ValueError(f"action: expected shape ({size},), {what} of {system.model.name!r}, got {action.shape}")
    return action


def with_action(controller: DynamicController, action: Array) -> DynamicController:
    """A controller with constant outputs beside its own; those of one that commands actuators are commands."""
    if isinstance(controller, Driven):
        return dataclasses.replace(controller, controller=with_action(controller.controller, action))
    return _WithAction(controller, action)


class _WithAction(Around):
    """A controller with constant outputs beside its own."""

    controller: DynamicController
    action: Float[Array, " outputs"]

    def force(self, t, q, v, memory):
        return super().force(t, q, v, memory) + self.action

    def force_slopes(self, model, t, q, v, memory):
        return self.controller.force_slopes(model, t, q, v, memory)

    def force_jacobians(self, model, t, q, v, memory):
        return self.controller.force_jacobians(model, t, q, v, memory)
