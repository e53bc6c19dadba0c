"""Control of a point or a body in the coordinates of its task."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import with_fields
from jdyn.control.arguments import configuration, place, scalar_or
from jdyn.control.controller import ModelBased
from jdyn.control.held_contacts import Freedom, HeldContacts, actuator_forces
from jdyn.control.singular_region import SingularRegion
from jdyn.dynamics import frame_pose, inverse_dynamics, jacobian, mass_matrix
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.model import compiled
from jdyn.spatial import Transform, matrix_to_quaternion, quaternion_log


class Posture(eqx.Module):
    """Task of the motions that a task in space leaves free: to keep to a configuration.

    >>> model = jdyn.load("panda")
    >>> posture = jdyn.control.Posture(kp=10.0, kd=5.0)
    >>> controller = jdyn.control.OperationalSpace(model, "flange", [0.4, 0.0, 0.5], kp=100.0, kd=20.0, posture=posture)
    >>> controller(0.0, model.neutral(), jnp.zeros(7)).shape
    (7,)

    Attributes:
        target: Configuration [rad or m], shape (nq,); `model.neutral()` if None.
        kp: Square of the natural frequency [1/s²], a scalar or shape (nv,).
        kd: Damping [1/s], a scalar or shape (nv,).
    """

    target: Float[ArrayLike, " nq"] | None = None
    kp: Float[ArrayLike, "*nv"] = 0.0
    kd: Float[ArrayLike, "*nv"] = 0.0

    def of(self, model: Model) -> "Posture":
        """The same in arrays of the model's type.

        Raises:
            ValueError: if a shape is wrong.
        """
        target = configuration(model, "posture", model.neutral() if self.target is None else self.target)
        gains = (scalar_or(model, model.nv, f"posture.{name}", getattr(self, name)) for name in ("kp", "kd"))
        return Posture(target, *gains)


class OperationalSpace(ModelBased):
    """Drives a body or frame to a position or a pose, and the remaining motions to a posture.

    With an exact model the task moves like an oscillator of natural frequency √kp and damping ratio kd / (2 √kp), a
    rotation at least while it turns about one axis. The posture acts through the dynamically consistent null space:
    the accelerations that it causes leave the task alone. Gravity, Coriolis and passive forces are compensated in all
    coordinates.

    ```
    posture = jdyn.control.Posture(kd=5.0)
    controller = jdyn.control.OperationalSpace(model, "hand", [0.4, 0.0, 0.5], kp=100.0, kd=20.0, posture=posture)
    ```

    At a singular configuration no force accelerates the task in some direction. Therefore Λ = (J M⁻¹ Jᵀ)⁻¹ is damped:
    where J M⁻¹ Jᵀ, scaled to a mean of one over its angular and over its linear diagonal, has the eigenvalue s, Λ has
    s / (s² + μ²) instead of 1 / s, with μ = `damping`. Forces stay finite, directions out of reach are given up, and
    elsewhere accelerations miss their demand by (μ/s)². Without damping Λ is exact, and not finite where it does not
    exist: at singularities, and on planar mechanisms for tasks in space. A `SingularRegion` in its place is exact
    outside of a region about singularities, and leaves what it gives up within to the posture.

    With `contacts` the task takes the motions that contacts leave free, wherever on the mechanism they are: Λ is the
    inverse of J Φ Jᵀ, Φ = M⁻¹ − M⁻¹ Jcᵀ (Jc M⁻¹ Jcᵀ)⁺ Jc M⁻¹ with the Jacobian Jc of the contacts. What is asked for
    in other directions is left out, and contacts exert the forces that `HeldContacts` asks for. Damping or a
    `SingularRegion` is needed where contacts take directions from the task; scales are those without contacts.

    >>> model = jdyn.load("double_pendulum")
    >>> controller = jdyn.control.OperationalSpace(model, "tip", [1.0, 0.0, -1.5], kp=100.0, kd=20.0)
    >>> controller(0.0, jnp.array([0.3, 0.3]), jnp.zeros(2)).shape
    (2,)

    Args:
        model: The mechanism as the controller knows it.
        body_or_frame: Body index, body name or frame name.
        target: In the world: a position [m] of shape (3,), or a pose (`Transform`), whose task has six components,
            angular first, in world axes.
        kp: Square of the natural frequency [1/s²], a scalar or one for each component.
        kd: Damping [1/s], a scalar or one for each component.
        target_velocity: Of the frame's origin [m/s] or of the pose [rad/s, m/s], a scalar or one for each component.
        target_acceleration: [m/s²], or [rad/s², m/s²], a scalar or one for each component.
        posture: Task of the remaining motions; none if left out.
        damping: μ, without unit, or a `SingularRegion`.
        contacts: Contacts that hold.

    Raises:
        ValueError: if there is no such body or frame, it is fixed to the world, or a shape is wrong.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal of Robotics and
    Automation 1987.
    """

    model: Model = eqx.field(converter=dynamics_only)
    body_or_frame: str | int = eqx.field(static=True)
    target: Float[Array, "3"] | Transform
    kp: Float[Array, "*task"]
    kd: Float[Array, "*task"]
    target_velocity: Float[Array, "*task"]
    target_acceleration: Float[Array, "*task"]
    posture: Posture
    damping: Float[Array, ""] | SingularRegion
    contacts: HeldContacts | None

    def __init__(
        self,
        model: Model,
        body_or_frame: str | int,
        target: ArrayLike | Transform,
        *,
        kp: ArrayLike,
        kd: ArrayLike,
        target_velocity: ArrayLike = 0.0,
        target_acceleration: ArrayLike = 0.0,
        posture: Posture | None = None,
        damping: ArrayLike | SingularRegion = 1e-4,
        contacts: HeldContacts | None = None,
    ):
        checked(model)
        self.model, self.body_or_frame = model, body_or_frame
        self.target, size = place(model, body_or_frame, target)
        self.kp, self.kd = scalar_or(model, size, "kp", kp), scalar_or(model, size, "kd", kd)
        self.target_velocity = scalar_or(model, size, "target_velocity", target_velocity)
        self.target_acceleration = scalar_or(model, size, "target_acceleration", target_acceleration)
        self.posture = (Posture() if posture is None else posture).of(model)
        singular = isinstance(damping, SingularRegion)
        self.damping = damping.of(model) if singular else jnp.asarray(damping, model.dtype)
        self.contacts = None if contacts is None else contacts.of(model)

    def __call__(self, t, q, v):
        return _forces(self, t, q, v)

    def closed(self, t, q, v):
        return with_fields(self, contacts=None if self.contacts is None else self.contacts.closed(self.model, t, q))


@compiled
def _forces(control, t, q, v):
    model, contacts = control.model, control.contacts
    error, J = _task(control, q)
    velocity, bias = jax.jvp(lambda q: _task(control, q)[1] @ v, (q,), (model.rate(q, v),))
    task = control.target_acceleration + control.kp * error + control.kd * (control.target_velocity - velocity)
    posture = control.posture
    free = posture.kp * model.difference(q, posture.target) - posture.kd * v
    # Forces Jᵀ F change the posture's accelerations as little as the task allows, in the norm of M. This is the sum of
    # the task's forces and the posture's forces through the null space, in another order.
    M_inverse_J_T = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(mass_matrix(model, q)), J.T)
    mobility = J @ M_inverse_J_T
    scale = _scale(mobility)
    if contacts is None:
        force = _forces_of_task(control.damping, scale, mobility, task - bias - J @ free)
        return inverse_dynamics(model, q, v, free) + J.T @ force
    freedom = Freedom.at(contacts, model, t, (q, v), free, J)
    demand = task - bias - J @ freedom.nearest
    force = _forces_of_task(control.damping, scale, J @ freedom.responses.T, demand)
    return actuator_forces(contacts, model, (q, v), freedom.nearest + force @ freedom.responses, freedom.J)


def _task(control, q):
    """The error that leads to the target, in world axes, and the Jacobian."""
    J = jacobian(control.model, q, control.body_or_frame, frame="aligned")
    pose = frame_pose(control.model, q, control.body_or_frame)
    if not isinstance(control.target, Transform):
        return control.target - pose.translation, J[3:]
    turn = quaternion_log(matrix_to_quaternion(control.target.rotation @ pose.rotation.T))
    return jnp.concatenate([turn, control.target.translation - pose.translation]), J


def _scale(mobility):
    """Factors of the rows of a task, by which its mobility has a mean of one."""
    means = jnp.mean(jnp.diagonal(mobility).reshape(-1, 3), axis=1)
    return jnp.repeat(1 / jnp.sqrt(jnp.where(means > 0, means, 1)), 3)


def _forces_of_task(damping, scale, mobility, demand):
    """Λ times what is asked for."""
    S = scale[:, None] * mobility * scale[None]
    if isinstance(damping, SingularRegion):
        return scale * damping.force(S, scale * demand)
    # S (S² + μ²)⁻¹ without squaring S.
    shift = damping * jnp.eye(len(S), dtype=S.dtype)
    augmented = jnp.block([[S, shift], [-shift, S]])
    rows = jnp.concatenate([scale * demand, jnp.zeros_like(demand)])
    return scale * jnp.linalg.solve(augmented, rows)[: len(S)]
