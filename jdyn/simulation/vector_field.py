"""The equations of motion as a first-order system."""

import dataclasses
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.constraints import (
    Projected,
    StateChange,
    accelerations_and_forces,
    impulse_response,
    projected,
    warm_start,
)
from jdyn.contact import ContactForces, Reaction, RigidForces
from jdyn.control.controller import DynamicController
from jdyn.dynamics import (
    ABA,
    Method,
    bias_forces,
    differentiated_jacobians,
    forward_dynamics,
    mass_matrix,
)
from jdyn.dynamics.force_slopes import summed
from jdyn.elements import Elements, Stops
from jdyn.impulses import WarmStart
from jdyn.model import Constraint, Model, checked
from jdyn.simulation.state import ControllerMemory, ElementStates, Owner, State, controller_memory


class VectorField(eqx.Module):
    """(q, v, x) ↦ (dq/dt, dv/dt, dx/dt), x the parts of the state beside the motion.

    Attributes:
        model: The mechanism.
        controller: Any controller, as one with a memory.
        method: Forward-dynamics method; `jdyn.ABA()` if None.
        stops: The force element that holds joints within their limits, apart from the others, since convex solvers take
            it as rows of its own; None if nothing does.
        constraints: Constraints beyond the tree of joints.
        iterates: Whether constraints have so many rows that iterating is faster than factoring their matrix.
        warm_start: Start of the iterations; None where they start from nothing.
        contact: Forces of contact; None if no shapes may touch.
        elements: Force elements beside the controller.
        other_owners: Owners of parts of the state, beside the controller and elements.
    """

    model: Model
    controller: DynamicController
    method: Method | None
    stops: Stops | None = None
    constraints: tuple[Constraint, ...] = ()
    iterates: bool = eqx.field(static=True, default=False)
    warm_start: WarmStart | None = None
    contact: ContactForces | None = None
    elements: Elements = Elements()
    other_owners: tuple[Owner, ...] = ()

    def __call__(self, t: Scalar, y: State, args: Any = None) -> State:
        tau = self.force(t, y)
        a, reaction = self.accelerations(self.model, t, y, tau)
        rate = self.part_rates(t, y, tau if reaction is None else tau + reaction)
        return eqx.tree_at(lambda rate: (rate.q, rate.v), rate, (self.model.rate(y.q, y.v), a))

    def accelerations(
        self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"] | None]:
        """Accelerations of a model under generalized forces, and the forces of constraints, of rigid contact and of
        inertia that force elements add, if there are any."""
        a, reaction = self._without_reacting_contact(model, t, y, tau)
        if self.contact is None or not self.contact.reacts:
            return a, reaction
        touching = self._reaction(model, t, y, a)
        return a + touching.a, touching.tau if reaction is None else reaction + touching.tau

    def reacting_force(self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces that follow from the accelerations under others: of rigid contact, and of inertia that
        force elements add [N m or N]."""
        if self.contact is None or not self.contact.reacts:
            return self.inertial_force(model, t, y, tau)
        touching = self.contact_reaction(model, t, y, tau).tau
        return touching + self.inertial_force(model, t, y, tau + touching)

    def contact_reaction(self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]) -> Reaction:
        """Forces of contact that follow from all others, see `jdyn.contact.RigidForces.reaction`."""
        a, _ = self._without_reacting_contact(model, t, y, tau)
        return self._reaction(model, t, y, a)

    def _reaction(self, model: Model, t: Scalar, y: State, a: Float[Array, " nv"]) -> Reaction:
        contact = cast(RigidForces, self.contact)
        return contact.reaction(model, y.q, y.v, a, lambda force: self.response(t, y, force, model))

    def _without_reacting_contact(
        self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"] | None]:
        if not self.elements.add_inertia:
            return self._accelerations(model, t, y, tau)
        pull = self.inertial_force(model, t, y, tau)
        a, reaction = self._accelerations(model, t, y, tau + pull)
        return a, pull if reaction is None else pull + reaction

    def inertial_force(self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized force with which inertia that force elements add resists the accelerations of a model under
        generalized forces [N m or N]."""
        if not self.elements.add_inertia:
            return jnp.zeros_like(tau)
        added = self.elements.inertia(self.model, y.q, y.v)
        a, _ = self._accelerations(model, t, y, tau)
        responses = jax.vmap(lambda force: self._response(model, t, y, force))(added.moments)
        return -added.pulls(responses, added.moments @ a + added.rates) @ added.moments

    def _accelerations(
        self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"] | None]:
        """The same without added inertia."""
        if not self.constraints:
            return forward_dynamics(model, y.q, y.v, tau, method=self.method), None
        return accelerations_and_forces(
            model, self.constraints, y.q, y.v, tau, t=t, method=self.method, warm_start=self.warm_start
        )

    def for_step(self, t: Scalar, y: State) -> "VectorField":
        """The field of a step that begins at `t` in `y`: with what is found once for all its stages."""
        contact = None if self.contact is None else self.contact.begun(self.model, y.q, y.v)
        start = None
        if self.iterates:
            start = warm_start(self.model, self.constraints, y.q, t=t, method=self.method)
        return dataclasses.replace(self, warm_start=start, contact=contact)

    def repaired(
        self, t: tuple[Scalar, Scalar], h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]
    ) -> "VectorField":
        """The field with the derivatives of a step between two states, see `GradientPolicy.repaired`."""
        if self.contact is None:
            return self
        contact = self.contact.gradient_policy.repaired(self.contact, self.model, t, h, start, end)
        return dataclasses.replace(self, contact=contact)

    def at_time(self, t: Any) -> "VectorField":
        """The field of a stage at a time of the step, as solvers count it [s]."""
        return self if self.contact is None else dataclasses.replace(self, contact=self.contact.at_time(t))

    def response(
        self, t: Scalar, y: State, impulse: Float[Array, " nv"], model: Model | None = None
    ) -> Float[Array, " nv"]:
        """Change of velocity by an impulse on the coordinates, under the constraints; of another model, if there is
        one, such as one with inertia that a solver adds."""
        model = self.model if model is None else model
        change = self._response(model, t, y, impulse)
        if not self.elements.add_inertia:
            return change
        added = self.elements.inertia(self.model, y.q, y.v)
        responses = jax.vmap(lambda force: self._response(model, t, y, force))(added.moments)
        return change - added.pulls(responses, added.moments @ change) @ responses

    def _response(self, model: Model, t: Scalar, y: State, impulse: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The same without added inertia."""
        return impulse_response(self._method, model, self.constraints, t, y.q, y.v, impulse)

    def projected(
        self, t: Scalar, y: State, error: State | None = None
    ) -> tuple[State, Projected | None, State | None]:
        """Project a state and its error onto the constraints: the nearest state that meets them, the projection (None
        where there are no constraints), and the error by which to judge a step.

        The part of the error that constraints take away counts up to the distance of the state from them. It alone
        shows the error of prescribed and coupled coordinates, of which the projected error has nothing. The whole
        estimate would be too much near singular configurations: constraints that are met up to rounding demand
        accelerations there of a rounding over the cube of the distance. And rounding of the state is no error of a
        step.
        """
        if not self.constraints:
            return y, None, error
        change = None
        if error is not None:
            dq = jax.jvp(lambda near: self.model.difference(y.q, near), (y.q,), (error.q,))[1]
            change = StateChange(dq, error.v)
        near = projected(self._method, self.model, self.constraints, t, y.q, y.v, change, self.warm_start)
        if error is not None and near.change is not None:
            remaining = self.model.rate(near.q, near.change.q), near.change.v
            moved = near.q - y.q, near.v - y.v
            judged = jax.tree.map(_error_up_to_distance, remaining, (error.q, error.v), moved, near.distance)
            error = eqx.tree_at(lambda error: (error.q, error.v), error, judged)
        return eqx.tree_at(lambda y: (y.q, y.v), y, (near.q, near.v)), near, error

    def overshot(self, y0: State, y1: State) -> Bool[Array, ""]:
        """Tell whether a step between two states has gone too deep into shapes, see `StepPolicy.overshot`."""
        if self.contact is None:
            return jnp.array(False)
        return self.contact.step_policy(self.model, y0.q).overshot(self.model, y1.q, y1.v)

    @property
    def _method(self) -> Method:
        return ABA() if self.method is None else self.method

    def part_rates(self, t: Scalar, y: State, tau: Float[Array, " nv"]) -> State:
        """Rates of the parts of the state beside the motion, by their owners; rates of the motion are zero."""
        still, model = jnp.zeros_like(y.v), self.model
        # States without a part are those of problems of motion alone.
        owners = [owner for owner in self.owners if owner.part in y.parts]
        return State(still, still, {owner.part: owner.rate(model, t, y, tau) for owner in owners})

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Owners of parts of the state."""
        return ControllerMemory(self.controller), ElementStates(self.elements), *self.other_owners

    def force(self, t: Scalar, y: State) -> Float[Array, " nv"]:
        """Generalized forces of the controller, of force elements and of contact [N m or N]."""
        tau = self._checked_force(self.controller.force(t, y.q, y.v, controller_memory(y)))
        if self._all_elements.each:
            tau = tau + self._all_elements.force(*self._element_arguments(t, y))
        return tau if self.contact is None else tau + self.contact.force(self.model, y.q, y.v)

    @property
    def _all_elements(self) -> Elements:
        """All force elements."""
        return self.elements if self.stops is None else Elements((*self.elements.each, self.stops))

    def _element_arguments(self, t: Scalar, y: State) -> tuple[Model, Scalar, Array, Array, Any]:
        """Arguments of `Elements.force`."""
        return self.model, t, y.q, y.v, y.parts.get(ElementStates.part)

    def force_slopes(self, t: Scalar, y: State) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Slopes by which `force` falls with each joint's own coordinate and velocity; zero where it does not fall."""
        K, D = self.controller.force_slopes(self.model, t, y.q, y.v, controller_memory(y))
        # Slopes have the shape of the force, and may be the first to show that it is wrong.
        K, D = self._checked_force(K), self._checked_force(D)
        slopes = self._all_elements.slopes(*self._element_arguments(t, y))
        if slopes is not None:
            K, D = K + slopes[0], D + slopes[1]
        return jnp.maximum(K, 0), jnp.maximum(D, 0)

    def force_jacobians(
        self, t: Scalar, y: State
    ) -> tuple[Float[Array, " nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """∂/∂t of `force`, ∂/∂q along the tangent space, and ∂/∂v."""
        parts = [self.controller.force_jacobians(self.model, t, y.q, y.v, controller_memory(y))]
        if self._all_elements.each:
            parts.append(self._all_elements.jacobians(*self._element_arguments(t, y)))
        contact = self.contact
        if contact is not None:
            parts.append(
                differentiated_jacobians(lambda t, q, v: contact.force(self.model, q, v), self.model, t, y.q, y.v)
            )
        return summed(parts)

    def mass_matrix(self, y: State) -> Float[Array, "nv nv"]:
        """M, with inertia that force elements add."""
        M = mass_matrix(self.model, y.q)
        return M + self.elements.inertia(self.model, y.q, y.v).matrix if self.elements.add_inertia else M

    def bias_forces(self, y: State) -> Float[Array, " nv"]:
        """Forces of `jdyn.bias_forces`, with those of inertia that force elements add."""
        bias = bias_forces(self.model, y.q, y.v)
        return bias + self.elements.inertia(self.model, y.q, y.v).bias if self.elements.add_inertia else bias

    def coupled_slopes(self, t: Scalar, y: State) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]] | None:
        """Slopes of force elements that couple joints; None where none does."""
        return self._all_elements.coupled_slopes(*self._element_arguments(t, y))

    @property
    def couples_joints(self) -> bool:
        """Tell whether a force element couples joints in its slopes."""
        return self.elements.couple

    def _checked_force(self, tau: Any) -> Float[Array, " nv"]:
        """The output of a controller as a force, if it has the shape of one."""
        if jnp.shape(tau) != (self.model.nv,):
            raise ValueError(
                f"controller: expected tau of shape ({self.model.nv},) for {self.model.name!r}, a force for each entry "
                f"of v, got {jnp.shape(tau)}"
            )
        return checked(self.model, tau=tau)[0]


def _error_up_to_distance(remaining: Array, error: Array, moved: Array, distance: Scalar) -> Array:
    """The error that constraints leave, and the part that they take away, up to the distance that they moved the state.

    Near singular configurations, rounding of rows moves the state much farther than its distance from the constraints.
    """
    most = jnp.minimum(jnp.abs(moved), distance)
    return remaining + jnp.clip(error - remaining, -most, most)
