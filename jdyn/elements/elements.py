"""All force elements of a mechanism together."""

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Kinematics, differentiated_jacobians
from jdyn.elements.element import ForceElement, checked_force, state_of
from jdyn.elements.tendon_inertia import AddedInertia
from jdyn.model import Model

Coordinates = Float[Array, " nv"]
Matrix = Float[Array, "nv nv"]
States = tuple[Any, ...] | None


class Elements(eqx.Module):
    """Force elements that act on one mechanism, with one look at its bodies.

    Attributes:
        each: The elements. `states` of methods are theirs in this order, None for one without; the last ones, or all,
            may be left out if they have none.
    """

    each: tuple[ForceElement, ...] = ()

    def force(self, model: Model, t: Scalar, q: Array, v: Array, states: States = None) -> Coordinates:
        """Generalized force of all of them [N m or N]."""
        kinematics = self._seen(model, q, v)
        forces = self._forces(t, kinematics, states)
        terms = [force for force in forces if force.ndim == 1]
        if on_bodies := [force for force in forces if force.ndim == 2]:
            terms.append(kinematics.generalized(_sum(on_bodies)))
        return _sum(terms)

    def on_bodies(self, t: Scalar, kinematics: Kinematics, states: States = None) -> Float[Array, "nb 6"]:
        """Forces on bodies of those that push bodies, each in its frame and at its origin."""
        pushing = (force for force in self._forces(t, kinematics, states) if force.ndim == 2)
        return sum(pushing, start=jnp.zeros_like(kinematics.velocities))

    def _forces(self, t, kinematics, states):
        """Force of each, generalized or on bodies."""
        return [
            checked_force(element, kinematics.model, element.force(t, kinematics, memory)).astype(kinematics.v.dtype)
            for element, memory in self._with(states)
        ]

    def slopes(
        self, model: Model, t: Scalar, q: Array, v: Array, states: States = None
    ) -> tuple[Coordinates, Coordinates] | None:
        """Slopes of those that are implicit in joints; None where none is."""
        return self._slopes("joints", model, t, q, v, states)

    def coupled_slopes(
        self, model: Model, t: Scalar, q: Array, v: Array, states: States = None
    ) -> tuple[Matrix, Matrix] | None:
        """Slopes of those that couple joints; None where none does."""
        return self._slopes("coupled", model, t, q, v, states)

    @property
    def couple(self) -> bool:
        """Tell whether one has slopes that couple joints."""
        return any(element.implicit == "coupled" for element in self.each)

    def jacobians(
        self, model: Model, t: Scalar, q: Array, v: Array, states: States = None
    ) -> tuple[Array, Array, Array]:
        """∂τ/∂t, ∂τ/∂q along the tangent space, and ∂τ/∂v of `force`."""
        return differentiated_jacobians(lambda t, q, v: self.force(model, t, q, v, states), model, t, q, v)

    @property
    def add_inertia(self) -> bool:
        """Tell whether one adds inertia."""
        return any(element.adds_inertia for element in self.each)

    def inertia(self, model: Model, q: Array, v: Array) -> AddedInertia:
        """Inertia of those that add some, in one state."""
        adding = [element for element in self.each if element.adds_inertia]

        def at(s):
            kinematics = Kinematics.of(model, model.integrate(q, s * v), v)
            moments, inertias = zip(*(element.along(kinematics) for element in adding), strict=True)
            return jnp.stack(moments), jnp.stack([jnp.asarray(m, v.dtype) for m in inertias])

        zero = jnp.zeros((), v.dtype)
        (moments, inertias), (change, _) = jax.jvp(at, (zero,), (jnp.ones_like(zero),))
        return AddedInertia(moments, inertias, change @ v)

    def energy(self, model: Model, q: Array, v: Array, states: States = None) -> Scalar:
        """Energy that they store [J]."""
        kinematics = self._seen(model, q, v)
        return _sum([element.energy(kinematics, memory) for element, memory in self._with(states)])

    def closed(self, model: Model, t: Scalar, q: Array, v: Array) -> "Elements":
        """The same, with the values that functions close over as leaves."""
        if not self.each:
            return self
        kinematics = self._seen(model, q, v)
        return Elements(tuple(element.closed(t, kinematics) for element in self.each))

    def start(self, model: Model, t: Scalar, q: Array, v: Array) -> States:
        """States of elements where a motion starts; None if there are none."""
        if not self.each:
            return None
        kinematics = self._seen(model, q, v)
        states = tuple(element.start(t, kinematics) for element in self.each)
        return states if jax.tree.leaves(states) else None

    def rate(self, model: Model, t: Scalar, q: Array, v: Array, states: States) -> States:
        """Rates of these states."""
        kinematics = self._seen(model, q, v)
        return tuple(
            None if memory is None else element.rate(t, kinematics, memory) for element, memory in self._with(states)
        )

    def _with(self, states: States) -> list[tuple[ForceElement, Any]]:
        """Elements with their states."""
        return list(itertools.zip_longest(self.each, states or ()))

    def _seen(self, model, q, v):
        return state_of(model, q, v, any(element.uses_bodies for element in self.each))

    def _slopes(self, implicit, model, t, q, v, states) -> Any:
        pairs = [pair for pair in self._with(states) if pair[0].implicit == implicit]
        if not pairs:
            return None
        kinematics = state_of(model, q, v, any(element.uses_bodies for element, _ in pairs))
        K, D = zip(*(element.slopes(t, kinematics, memory) for element, memory in pairs), strict=True)
        return _sum(K), _sum(D)


def _sum(terms: Sequence[Any]) -> Any:
    return functools.reduce(operator.add, terms)
