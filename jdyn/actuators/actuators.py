"""All actuators of a mechanism together."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jdyn.actuators.actuator import Actuator, Travel
from jdyn.array import with_fields
from jdyn.model import Model
from jdyn.transmissions import Surfaces, Travels, rows_of

States = dict[str, Any]


class Actuators(eqx.Module):
    """Actuators of one mechanism. Those that differ in numbers alone are computed together.

    Attributes:
        each: The actuators. `states` of methods are those that they have, by name.
    """

    each: tuple[Actuator, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their own names, or those of their transmissions."""
        return tuple(each.name or each.transmission.label or f"actuator{i}" for i, each in enumerate(self.each))

    @property
    def command_names(self) -> tuple[str, ...]:
        """Names of all commands, in their order: those of actuators, and of the inputs of those that have several."""
        each = zip(self.names, self.each, strict=True)
        return tuple(f"{name}.{what}" if what else name for name, actuator in each for what in _inputs(actuator))

    @property
    def command_counts(self) -> tuple[int, ...]:
        """Number of commands of each."""
        return tuple(len(_inputs(each)) for each in self.each)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of lengths that each acts along."""
        return tuple(each.transmission.count for each in self.each)

    @property
    def use_shapes(self) -> bool:
        """Tell whether any transmission looks at collision shapes."""
        return any(each.transmission.uses_shapes for each in self.each)

    def among(self, surfaces: Surfaces) -> "Actuators":
        """The same among collision shapes."""
        each = (with_fields(each, transmission=each.transmission.among(surfaces)) for each in self.each)
        return Actuators(tuple(each))

    def travels(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Travels:
        """Lengths of their transmissions, rates and moments."""
        return Travels.at([each.transmission for each in self.each], model, q, v)

    def start(self, travels: Travels) -> States:
        """States where a motion starts."""
        started = (each.start(at) for each, at in zip(self.each, self._travel_of_each(travels), strict=True))
        return {name: state for name, state in zip(self.names, started, strict=True) if state is not None}

    def forces(self, commands: Float[Array, " nu"], travels: Travels, states: States) -> Float[Array, " rows"]:
        """Forces along the transmissions, in the rows of travels [N or N m]."""
        numbers, forces = zip(*self._by_kind("limited_force", commands, travels, states), strict=True)
        places, rows = np.arange(sum(self.counts)), rows_of(self.counts)
        order = np.argsort(np.concatenate([np.atleast_1d(places[rows[i]]) for kind in numbers for i in kind]))
        return jnp.concatenate([jnp.ravel(x) for x in forces])[order].astype(travels.lengths.dtype)

    def rates(self, commands: Float[Array, " nu"], travels: Travels, states: States) -> States:
        """Rates of the states."""
        found: States = {}
        for numbers, rates in self._by_kind("limited_rate", commands, travels, states):
            found |= {self.names[i]: jax.tree.map(lambda x, k=k: x[k], rates) for k, i in enumerate(numbers)}
        return {name: jax.tree.map(lambda x, like: x.astype(like.dtype), found[name], states[name]) for name in states}

    def slopes(
        self, commands: Float[Array, " nu"], travels: Travels, states: States
    ) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """Slopes by which forces fall with the length of their transmission, and with its rate; where it has several,
        each with its own."""
        zeros = jnp.zeros_like(travels.lengths)
        # Which of its lengths a row is.
        number = np.concatenate([np.arange(count) for count in self.counts])
        alone = [jnp.asarray(number == i, zeros.dtype) for i in range(max(self.counts))]

        def forces(lengths, velocities):
            return self.forces(commands, travels._replace(lengths=lengths, velocities=velocities), states)

        _, change = jax.linearize(forces, travels.lengths, travels.velocities)
        by_length = sum((one * change(one, zeros) for one in alone), start=zeros)
        return -by_length, -sum((one * change(zeros, one) for one in alone), start=zeros)

    def _by_kind(
        self, name: str, commands: Array, travels: Travels, states: States
    ) -> Iterator[tuple[list[int], PyTree[Array]]]:
        """Results of a method, by its name, of all actuators of each kind, stacked, with the numbers of these."""
        kinds: dict[Any, list[int]] = {}

        def method(actuator, *state):
            return getattr(actuator, name)(*state)

        bare = [with_fields(each, name="", transmission=None) for each in self.each]
        memories, of_each = [states.get(name) for name in self.names], self._split(commands)
        travel_of_each = self._travel_of_each(travels)
        for i, each in enumerate(zip(bare, memories, travel_of_each, strict=True)):
            leaves, structure = jax.tree.flatten(each)
            # What is no number, such as a function, cannot be stacked.
            alike = tuple(jnp.shape(x) if eqx.is_array_like(x) else id(x) for x in leaves)
            kinds.setdefault((structure, alike), []).append(i)
        for numbers in kinds.values():
            arguments = [(bare[i], of_each[i], travel_of_each[i], memories[i]) for i in numbers]
            if len(numbers) == 1:
                yield numbers, jax.tree.map(lambda x: x[None], method(*arguments[0]))
            else:
                yield numbers, jax.vmap(method)(*jax.tree.map(lambda *x: jnp.stack(x), *arguments))

    def _travel_of_each(self, travels: Travels) -> list[Travel]:
        return [Travel(travels.lengths[row], travels.velocities[row]) for row in rows_of(self.counts)]

    def _split(self, commands: Float[Array, " nu"]) -> list[Array]:
        """The command of each actuator, an array for one with several."""
        first, found = 0, []
        for count in self.command_counts:
            found.append(commands[first] if count == 1 else commands[first : first + count])
            first += count
        return found


def _inputs(actuator: Actuator) -> tuple[str, ...]:
    """Names of the inputs of an actuator; that of the only one is empty."""
    return actuator.inputs if len(actuator.inputs) > 1 else ("",)
