"""Everything that is simulated, in one PyTree."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, Self

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.contact import Contact, colliders
from jdyn.contact.colliders import Colliders
from jdyn.control.dynamic import with_memory
from jdyn.dynamics import Method, resolved
from jdyn.model import Constraint, Model, checked
from jdyn.simulation.fixed_step import StepInfo, fixed_step
from jdyn.simulation.joint_limits import CompliantLimits, ImpactLimits, JointLimits
from jdyn.simulation.vector_field import State


class System(eqx.Module):
    """A mechanism with all that acts on it. Every number is a leaf: it can be swept, batched and differentiated.

    >>> model = jdyn.load("pendulum")
    >>> system = jdyn.System(model, controller=jdyn.PD(model, jnp.ones(1), kp=50.0, kd=10.0))
    >>> motion = jdyn.simulate(system, system.state(jnp.zeros(1)), 2.0)
    >>> print(motion.q[-1].round(2))
    [0.92]

    Attributes:
        model: The mechanism.
        controller: `controller(t, q, v) -> tau`, or a `jdyn.DynamicController` with a memory; no torque if None.
        contact: How shapes of the model push each other where they touch, `jdyn.CompliantContact()` or
            `jdyn.ConvexContact()`; they pass through each other if None.
        constraints: Beyond the tree of joints: `jdyn.Connect`, `jdyn.Weld`, `jdyn.Gear`, `jdyn.PrescribedJoint` and
            others.
        joint_limits: Springs, `jdyn.CompliantLimits()`, or impacts, `jdyn.ImpactLimits(restitution=0.5)`, that hold
            joints within their limits; nothing does if None.
        method: Forward-dynamics method; `jdyn.ABA()` if None. `"auto"` becomes what `jdyn.diagnose` recommends.
    """

    model: Model
    controller: Any
    contact: Contact | None
    constraints: tuple[Constraint, ...]
    joint_limits: CompliantLimits | ImpactLimits | None
    method: Method | None

    def __init__(
        self,
        model: Model,
        *,
        controller: Any = None,
        contact: Contact | None = None,
        constraints: Sequence[Constraint] = (),
        joint_limits: CompliantLimits | ImpactLimits | None = None,
        method: Method | Literal["auto"] | None = None,
    ):
        """Raises:
        ValueError: if a part is something else.
        """
        checked(model)
        with_memory(controller)
        if not isinstance(contact, Contact | None):
            raise ValueError(
                f"contact: expected jdyn.CompliantContact(), jdyn.ConvexContact() or None, got {contact!r}"
            )
        if not isinstance(joint_limits, JointLimits | None):
            raise ValueError(
                f"joint_limits: expected jdyn.CompliantLimits(), jdyn.ImpactLimits() or None, got {joint_limits!r}"
            )
        self.model, self.controller, self.contact = model, controller, contact
        self.constraints, self.joint_limits = tuple(constraints), joint_limits
        self.method = resolved(method, model)

    def state(
        self, q: Float[Array, " nq"] | None = None, v: Float[Array, " nv"] | None = None, *, t: ArrayLike = 0.0
    ) -> State:
        """A state of the system, with what its controller remembers where a motion starts.

        Args:
            q: Configuration [rad or m]; quaternions are scaled to unit length. The neutral one if left out.
            v: Velocity [rad/s or m/s]; at rest if left out.
            t: Time of the start [s].

        Raises:
            ValueError: if a size disagrees with the model.
        """
        model, still = self.model, jnp.zeros(self.model.nv, self.model.dtype)
        q0, v0 = checked(model, q=model.neutral() if q is None else q, v=still if v is None else v)
        dtype = jnp.result_type(model.dtype, q0.dtype, v0.dtype)
        q0, v0 = model.astype(dtype).normalize(q0.astype(dtype)), v0.astype(dtype)
        return State(q0, v0, with_memory(self.controller).start(jnp.asarray(t, dtype), q0, v0))

    def step(
        self,
        state: State,
        action: Float[ArrayLike, " nv"] | None = None,
        dt: ArrayLike = 0.002,
        *,
        t: ArrayLike = 0.0,
        solver: diffrax.AbstractSolver | None = None,
    ) -> tuple[State, StepInfo]:
        """Take one step of a given length, as environments and controllers with a fixed rate do.

        Works under `jit`, `vmap`, `jvp` and `grad`, and inside `jax.lax.scan`. Nobody judges its error: `jdyn.simulate`
        does. A controller that ticks does so at the end of the step, if a tick is due by then.

        >>> model = jdyn.load("pendulum")
        >>> system = jdyn.System(model, joint_limits=jdyn.CompliantLimits())
        >>> state = system.state(jnp.array([1.0]))
        >>> for _ in range(100):
        ...     state, info = system.step(state, jnp.array([0.5]), dt=0.01)
        >>> print(state.q.round(3), info.result == jdyn.Result.success)
        [-0.66] True

        Args:
            state: Where it begins, see `state`; it has to meet the constraints.
            action: Generalized forces during the step, beside those of the controller [N m or N]; none if left out.
            dt: Length of the step [s], positive.
            t: Time at which it begins [s].
            solver: `jdyn.ConvexEuler(rows=1)` with convex contact, else `jdyn.Automatic()` if left out, whose step is
                implicit in contact and in the forces of joints. `jdyn.SemiImplicitEuler()` evaluates forces once.

        Returns:
            The state at the end, and what the step shows beside it.

        Raises:
            ValueError: if a size disagrees with the model, or the system looks for instants: impacts of joints, and
                contact with `located=True`, are events.
        """
        return fixed_step(self, state, action, dt, t, solver)

    def astype(self, dtype: Any) -> Self:
        """The same with numbers of a floating type, but for those of the controller, which casts its own."""

        def cast(tree):
            return jax.tree.map(lambda x: jnp.asarray(x, dtype), tree)

        constraints = jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, self.constraints)
        return dataclasses.replace(
            self, model=self.model.astype(dtype), contact=cast(self.contact), constraints=constraints,
            joint_limits=cast(self.joint_limits),
        )  # fmt: skip

    def touching(self) -> Colliders | None:
        """Collision shapes of the model, if they touch.

        Raises:
            ValueError: if no two may touch, or the law of contact does not suit them.
        """
        if self.contact is None:
            return None
        shapes = colliders(self.model)
        if not shapes.pairs:
            raise ValueError(
                f"contact: no two collision shapes of {self.model.name!r} may touch, see jdyn.collision_pairs; put "
                "ground under it by jdyn.with_ground, or leave contact out"
            )
        self.contact.check(shapes)
        return shapes
