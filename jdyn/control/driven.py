"""A controller that commands actuators."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.actuators import Actuators
from jdyn.array import in_type
from jdyn.control.controller import DynamicController
from jdyn.dynamics import Kinematics, differentiated_slopes
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Model
from jdyn.transmissions import Travels, forces_on_bodies

States = dict[str, Any]


class Commanded(NamedTuple):
    """Memory of actuators under a controller.

    Attributes:
        controller: What the controller remembers.
        actuators: States of actuators that have one, by name.
    """

    controller: PyTree[Array]
    actuators: States


class Driven(DynamicController):
    """Forces of actuators that a controller commands.

    Attributes:
        model: The mechanism.
        controller: Its outputs are commands, one for each actuator, or several where it takes so many.
        actuators: The actuators.
    """

    model: Model
    controller: DynamicController
    actuators: Actuators

    def start(self, t, q, v):
        memory = Commanded(self.controller.start(t, q, v), self._of(q).start(self._travels(q, v)))
        return memory if jax.tree.leaves(memory) else None

    def force(self, t, q, v, memory):
        travels, forces = self.outputs(t, q, v, memory)
        return travels.generalized(forces)

    def outputs(self, t: Scalar, q: Array, v: Array, memory: Any) -> tuple[Travels, Float[Array, " rows"]]:
        """Lengths of transmissions, their rates and moments, and the forces along them [N or N m]."""
        travels = self._travels(q, v)
        return travels, self._of(q).forces(self.commands(t, q, v, memory), travels, _states(memory))

    def on_bodies(self, kinematics: Kinematics, forces: Float[Array, " rows"]) -> Float[Array, "nb 6"]:
        """Forces on bodies of actuators that push some, each in its frame and at its origin, by the forces of all."""
        return forces_on_bodies([each.transmission for each in self.actuators.each], kinematics, forces)

    def rate(self, t, q, v, memory):
        if memory is None:
            return None
        rates = self._of(q).rates(self.commands(t, q, v, memory), self._travels(q, v), memory.actuators)
        return Commanded(self.controller.rate(t, q, v, memory.controller), rates)

    def force_slopes(self, model, t, q, v, memory):
        """Slopes of each joint on its own: of servos by their lengths, and of commands by the state."""
        actuators, travels, states = self._of(q), self._travels(q, v), _states(memory)
        K, D = actuators.slopes(self.commands(t, q, v, memory), travels, states)

        def by_commands(q, v):
            return travels.generalized(actuators.forces(self.commands(t, q, v, memory), travels, states))

        fed_back = differentiated_slopes(by_commands, model, q, v)
        return K @ travels.moments**2 + fed_back[0], D @ travels.moments**2 + fed_back[1]

    def commands(self, t: Scalar, q: Array, v: Array, memory: Any) -> Float[Array, " nu"]:
        """Commands of the controller.

        Raises:
            ValueError: if there are more or fewer than actuators take.
        """
        commands = self.controller.force(t, q, v, None if memory is None else memory.controller)
        names = self.actuators.command_names
        if jnp.shape(commands) != (len(names),):
            raise ValueError(
                f"controller: expected {len(names)} commands, one for each of the actuators {', '.join(names[:5])}"
                f"{', ...' if len(names) > 5 else ''}, got shape {jnp.shape(commands)}"
            )
        return commands

    def with_links(self):
        return Driven(with_links(self.model), self.controller.with_links(), self.actuators)

    @property
    def ticks(self):
        return self.controller.ticks

    def next_tick(self, memory):
        return self.controller.next_tick(memory.controller)

    def update(self, t, q, v, memory):
        return memory._replace(controller=self.controller.update(t, q, v, memory.controller))

    def _of(self, q):
        return in_type(self.actuators, q.dtype)

    def _travels(self, q, v):
        return self._of(q).travels(self.model, q, v)


def _states(memory: Commanded | None) -> States:
    return {} if memory is None else memory.actuators
