"""Contacts that hold a mechanism while it is controlled: what they leave free, and the forces that they shall exert."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import LeastNorm, in_type, shaped
from jdyn.constraints import closed, constraint_rows
from jdyn.control.arguments import inputs
from jdyn.dynamics import ABA, bias_forces, inverse_dynamics, mass_matrix
from jdyn.impulses.saddle_point import saddle_point
from jdyn.model import Constraint, Model


class HeldContacts(eqx.Module):
    """Contacts of any links that hold while a task is controlled, and the forces that they shall exert.

    Contacts are constraints, as the controller knows them: `jdyn.constraints.PointOnPlane` leaves a point free to slide
    along a plane, `Connect` holds it, `Weld` a face. Each row has a force. Where every coordinate is actuated, forces
    are what is asked for, and motions what contacts leave free. Where fewer are, as on legs, balance decides some of
    them: forces are then the nearest to what is asked for, in the sum of squares over all rows. So redundant contacts
    share a load by the least forces if none are asked for, and internal forces are chosen by asking.

    Nobody tells the controller where a contact ends or slips: ask for forces that push, and within friction.

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.array([0.5, 1.0]), jnp.zeros(2)
    >>> tip = jdyn.frame_pose(model, q, "tip").translation
    >>> table = jdyn.constraints.PointOnPlane("world", "tip", offset=tip[2])
    >>> pressing = jdyn.control.OperationalSpace(
    ...     model, "tip", tip + jnp.array([0.1, 0.0, 0.0]), kp=100.0, kd=20.0,
    ...     damping=jdyn.control.SingularRegion(), contacts=jdyn.control.HeldContacts([table], 20.0),
    ... )
    >>> held = jdyn.constrained_dynamics(model, [table], q, v, pressing(0.0, q, v))
    >>> print(held.multipliers.round(2))
    [20.]
    >>> print(jdyn.frame_acceleration(model, q, v, held.a, "tip", frame="aligned")[3:].round(2) + 0.0)
    [10.  0.  0.]

    Attributes:
        constraints: The contacts.
        forces: Force of each row [N or N m], in the order of the constraints, or one for all; as
            `jdyn.constrained_dynamics` has them in `multipliers`.
        actuated: Coordinates that are driven: indices, a mask, or the matrix of shape (nv, nu) from forces of actuators
            to generalized forces, with columns that do not depend on each other; every coordinate if left out.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal of Robotics and
    Automation 1987; Russakow, Khatib, Rock, Extended operational space formulation for serial-to-parallel chain
    (branching) manipulators, ICRA 1995; Sentis, Park, Khatib, Compliant control of multicontact and center-of-mass
    behaviors in humanoid robots, IEEE Transactions on Robotics 2010.
    """

    constraints: tuple[Constraint, ...] = eqx.field(converter=tuple)
    forces: Float[ArrayLike, "*rows"] = 0.0
    actuated: Any = None

    def of(self, model: Model) -> "HeldContacts":
        """The same in arrays of the model's type.

        Raises:
            ValueError: if a shape is wrong, or there is no such frame or joint.
        """
        constraints = in_type(self.constraints, model.dtype)
        if not constraints:
            raise ValueError("contacts: expected at least one constraint, got none")
        q, v = model.neutral(), jnp.zeros(model.nv, model.dtype)
        rows = jax.eval_shape(lambda: constraint_rows(model, constraints, jnp.zeros((), model.dtype), q, v).b)
        forces = shaped("contacts.forces", self.forces, model.dtype, (), rows.shape, owner=model.name)
        actuated = None if self.actuated is None else inputs(model, self.actuated)
        return HeldContacts(constraints, forces, actuated)

    def closed(self, model: Model, t: Scalar, q: Float[Array, " nq"]) -> "HeldContacts":
        """The same, with the values that functions of constraints close over as leaves."""
        return HeldContacts(closed(model, self.constraints, t, q), self.forces, self.actuated)


class Freedom(eqx.Module):
    """Accelerations that held contacts leave to a mechanism at a state.

    Attributes:
        nearest: Those nearest to the accelerations that are wished for, by Gauss' measure, the norm of M.
        responses: Φ of each row of a task, the accelerations by its force while contacts hold.
        J: Jacobian of the contacts.
    """

    nearest: Float[Array, " nv"]
    responses: Float[Array, "task nv"]
    J: Float[Array, "rows nv"]

    @classmethod
    def at(
        cls,
        held: HeldContacts,
        model: Model,
        t: Scalar,
        state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
        wished: Float[Array, " nv"],
        task: Float[Array, "task nv"],
    ) -> "Freedom":
        """Find what contacts leave free.

        Args:
            held: The contacts.
            model: The mechanism.
            t: Time [s].
            state: Configuration and velocity.
            wished: Accelerations [rad/s² or m/s²].
            task: Jacobian of the task.
        """
        q, v = state
        M = mass_matrix(model, q)
        rows = constraint_rows(model, held.constraints, jnp.asarray(t, q.dtype), q, v)
        J, demanded = rows.J, rows.gamma
        if held.actuated is not None:
            # Momentum of motions that neither contacts stop nor actuators drive changes by other forces alone.
            undriven = _kernel(jnp.concatenate([J, held.actuated.T]))
            J = jnp.concatenate([J, undriven @ M])
            demanded = jnp.concatenate([demanded, -undriven @ bias_forces(model, q, v)])
        sides = jnp.concatenate([(M @ wished)[None], task])
        demands = jnp.zeros((len(sides), len(J)), q.dtype).at[0].set(demanded)
        found = saddle_point(ABA(), model, q, J, sides, demands)
        return cls(found.x[0], found.x[1:], rows.J)


def actuator_forces(
    held: HeldContacts,
    model: Model,
    state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
    a: Float[Array, " nv"],
    J: Float[Array, "rows nv"],
) -> Float[Array, " nv"]:
    """Generalized forces of the actuators by which a mechanism accelerates as told, and contacts exert the forces that
    are asked for, or the nearest [N m or N]."""
    forces = jnp.broadcast_to(held.forces, J.shape[:1])
    total = inverse_dynamics(model, *state, a) - forces @ J
    if held.actuated is None:
        return total
    B = held.actuated
    driven = B @ _least_norm(B, jnp.eye(model.nv, dtype=B.dtype))
    # What nobody drives, contacts have to bear.
    undriven = jnp.eye(model.nv, dtype=B.dtype) - driven
    return driven @ (total - J.T @ _least_norm(undriven @ J.T, undriven @ total[:, None])[:, 0])


def _least_norm(A: Float[Array, "m n"], B: Float[Array, "m sides"]) -> Float[Array, "n sides"]:
    """The smallest X with A X = B, or that is nearest to it."""
    factors = LeastNorm.of(A @ A.T)

    def solved(B):
        return A.T @ jax.vmap(factors.solve, in_axes=1, out_axes=1)(B)

    # Twice, since rounding of A Aᵀ leaves rows unmet.
    X = solved(B)
    return X + solved(B - A @ X)


def _kernel(A: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """Projector onto the vectors x with A x = 0."""
    eye = jnp.eye(A.shape[1], dtype=A.dtype)
    return eye - _least_norm(A, A @ eye)
