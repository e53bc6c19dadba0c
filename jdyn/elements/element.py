"""The protocol of force elements: what acts on a mechanism beside its controller, constraints and contact."""

import abc
from typing import Any, ClassVar, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree, Scalar

from jdyn.array import in_type
from jdyn.dynamics import Coordinates, Kinematics, differentiated_jacobians, differentiated_slopes
from jdyn.model import Model

Implicit = Literal["no", "joints", "coupled"]
Slopes = Float[Array, " nv"] | Float[Array, "nv nv"]


class ForceElement(eqx.Module):
    """A force that depends on time, on the motion and on a state of its own: a spring, a damper, drag, an actuator.

    `jdyn.System(model, elements=[...])` takes any number of them. A subclass defines `force`, and more of the methods
    as far as it has something to say. Numbers are leaves: `jdyn.vary` changes them, sweeps and gradients find them.

    >>> import equinox as eqx
    >>> class Magnet(jdyn.ForceElement):  # draws a frame to a point of the world
    ...     frame: jdyn.Name = eqx.field(static=True)
    ...     place: jax.Array
    ...     strength: float
    ...
    ...     def force(self, t, kinematics, memory):
    ...         away = kinematics.position(self.frame) - self.place
    ...         return kinematics.push(self.frame, force=-self.strength * away / (1 + away @ away) ** 2)
    >>> magnet = Magnet("tip", jnp.array([1.0, 0.0, 0.0]), 30.0)
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), 1.0, elements=[magnet])
    >>> print(motion.q[-1].round(2))
    [0.82]

    Attributes:
        implicit: Slopes that implicit solvers take of the force. `"no"`: none, so that a stiff force takes short steps;
            `"joints"`: in each joint by its own coordinate, which costs next to nothing; `"coupled"`: matrices, with
            which a step solves a linear system of the size of v. They change no result beyond tolerances.
            `jdyn.solvers.Rodas5P` and implicit solvers of diffrax differentiate the force anyway.
        uses_bodies: Whether `force` looks at bodies and frames, not at `kinematics.q` and `kinematics.v` alone.
        adds_inertia: Whether it has inertia that simulations add to the mechanism's, see `along`.
    """

    implicit: Implicit = eqx.field(static=True, default="no", kw_only=True)
    uses_bodies: ClassVar[bool] = True
    adds_inertia: ClassVar[bool] = False

    def __check_init__(self):
        if self.implicit not in ("no", "joints", "coupled"):
            raise ValueError(
                f"{type(self).__name__}.implicit: expected 'no', 'joints' or 'coupled', got {self.implicit!r}"
            )

    @abc.abstractmethod
    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, " nv"] | Float[Array, "nb 6"]:
        """Generalized forces [N m or N], or forces on all bodies as `kinematics.push` has them.

        Args:
            t: Time [s].
            kinematics: Configuration `q`, velocity `v`, and poses and velocities of frames.
            memory: State of the element; None for one without.
        """

    def astype(self, dtype) -> Self:
        """A copy whose floating-point numbers have a type."""
        return in_type(self, dtype)

    def start(self, t: Scalar, kinematics: Kinematics) -> PyTree[Array]:
        """State of the element where a motion starts, arrays that are integrated with the motion; None for an element
        without, as here."""
        return None

    def rate(self, t: Scalar, kinematics: Kinematics, memory: Any) -> PyTree[Array]:
        """Rate of that state; zero unless overridden."""
        return jax.tree.map(jnp.zeros_like, memory)

    def generalized(
        self, model: Model, t: ArrayLike, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: Any = None
    ) -> Float[Array, " nv"]:
        """Generalized forces of the element alone in one state [N m or N]."""
        kinematics, element = state_of(model, q, v, self.uses_bodies), self.astype(q.dtype)
        force = checked_force(self, model, element.force(jnp.asarray(t, q.dtype), kinematics, memory))
        return force if force.ndim == 1 else kinematics.generalized(force)

    def slopes(self, t: Scalar, kinematics: Kinematics, memory: Any) -> tuple[Slopes, Slopes]:
        """Slopes by which the generalized force falls with configuration, along the axes of v, and with velocity
        [N m/rad, N m s/rad or N/m, N s/m]: of shape (nv,) for `"joints"`, (nv, nv) for `"coupled"`.

        Symmetric and positive semidefinite ones keep all steps stable; `jdyn.solvers.ConvexEuler` takes their symmetric
        parts. What they leave out costs accuracy nothing, and steps at most.
        By differentiation, unless an element knows them.
        """
        model, q, v = kinematics.model, kinematics.q, kinematics.v
        if self.implicit == "joints":
            return differentiated_slopes(lambda q, v: self.generalized(model, t, q, v, memory), model, q, v)
        _, by_q, by_v = differentiated_jacobians(
            lambda t, q, v: self.generalized(model, t, q, v, memory), model, jnp.asarray(t, v.dtype), q, v
        )
        return -by_q, -by_v

    def along(self, kinematics: Kinematics) -> tuple[Float[Array, " nv"], Scalar]:
        """Moment arms of a length and the inertia along it, of an element that adds inertia: the length takes a force
        of the inertia times its acceleration."""
        raise NotImplementedError(f"{type(self).__name__} adds no inertia")

    def energy(self, kinematics: Kinematics, memory: Any) -> Scalar:
        """Energy that the element stores [J], part of `Trajectory.energy`; zero unless overridden."""
        return jnp.zeros((), kinematics.q.dtype)

    def closed(self, t: Scalar, kinematics: Kinematics) -> Self:
        """The same, with the values that its functions close over as leaves, by `equinox.filter_closure_convert`: loops
        may not close over values that are differentiated or batched. Elements without functions are closed."""
        return self


def state_of(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], bodies: bool) -> Any:
    """State as elements see it, with or without bodies."""
    return Kinematics.of(model, q, v) if bodies else Coordinates(model, q, v)


def checked_force(element: ForceElement, model: Model, force: Any) -> Array:
    """A force of an element, which its author may have given another shape.

    Raises:
        ValueError: if it is of another shape, or on bodies of an element that does not look at them.
    """
    force = jnp.asarray(force)
    joints, bodies = (model.nv,), (model.nb, 6)
    if force.shape not in ((joints, bodies) if element.uses_bodies else (joints,)):
        other = f", or forces on bodies of shape {bodies}, as Kinematics.push has them" if element.uses_bodies else ""
        raise ValueError(
            f"{type(element).__name__}.force: expected generalized forces of shape {joints} for {model.name!r}{other}, "
            f"got {force.shape}"
        )
    return force
