"""Parts of what is simulated, and systems as trajectories know them."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jdyn.actuators import Actuator, Actuators
from jdyn.array import in_type, with_fields
from jdyn.contact import Contact, ModelSurfaces, ModelSurroundings, colliders
from jdyn.contact.colliders import Colliders
from jdyn.contact.directional import warn_of_directions
from jdyn.control import Constant, Driven
from jdyn.control.controller import Controller, DynamicController, with_memory
from jdyn.dynamics import Method
from jdyn.elements import Elements, ForceElement
from jdyn.model import Constraint, Model, checked
from jdyn.sensors import Sensor
from jdyn.simulation.joint_limits import CompliantLimits, ImpactLimits
from jdyn.simulation.state import ControllerMemory, ElementStates, State, starting
from jdyn.terminal.messages import enumerated, short, unknown
from jdyn.transmissions import NoSurfaces, Surfaces


def _tuple_of(kind: type, name: str, example: str) -> Callable[[Any], tuple]:
    """Make a converter of a field that takes a list of objects of a kind."""

    def checked_tuple(x):
        if not isinstance(x, Sequence) or not all(isinstance(each, kind) for each in x):
            raise ValueError(f"{name}: expected a list of them, such as [{example}(...)], got {short(x)}")
        return tuple(x)

    return checked_tuple


def _has_method(part, name):
    """Tell whether a part is None or has a method that simulations call."""
    return part is None or (hasattr(part, name) and not isinstance(part, type))


class Parts(eqx.Module):
    """Fields of `jdyn.System`, which describes them."""

    model: Model
    controller: Any = None
    actuators: tuple[Actuator, ...] = eqx.field(
        converter=_tuple_of(Actuator, "actuators", "jdyn.actuators.Motor"), default=()
    )
    contact: Contact | None = None
    elements: tuple[ForceElement, ...] = eqx.field(
        converter=_tuple_of(ForceElement, "elements", "jdyn.elements.PointSpring"), default=()
    )
    constraints: tuple[Constraint, ...] = eqx.field(
        converter=_tuple_of(Constraint, "constraints", "jdyn.constraints.Connect"), default=()
    )
    joint_limits: CompliantLimits | ImpactLimits | None = None
    method: Method | None = None
    sensors: tuple[Sensor, ...] = eqx.field(converter=_tuple_of(Sensor, "sensors", "jdyn.sensors.Gyro"), default=())
    configurations: dict[str, Float[Array, " nq"]] = eqx.field(default_factory=dict)

    def __check_init__(self):
        checked(self.model)
        with_memory(self.controller)
        names = Actuators(self.actuators).names
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"actuators: several are called {', '.join(twice)}; give each a name=... of its own")
        if not _has_method(self.contact, "between"):
            raise ValueError(
                f"contact: expected jdyn.CompliantContact(), jdyn.ConvexContact() or None, got {self.contact!r}"
            )
        if not _has_method(self.joint_limits, "stops"):
            raise ValueError(
                f"joint_limits: expected jdyn.CompliantLimits(), jdyn.ImpactLimits() or None, got {self.joint_limits!r}"
            )
        names = [sensor.name for sensor in self.sensors]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ValueError(f"sensors: expected another name for each, got {twice[0]!r} twice")
        if not isinstance(self.method, Method | None):
            raise ValueError(
                f"method: expected one such as jdyn.ABA() or jdyn.CRBA(), or None, got {self.method!r}; "
                "jdyn.diagnose(model).method is the one that it recommends"
            )

    # `jax.jit(system.step)` looks the method up by the hash of its system; arrays have none.
    def __hash__(self) -> int:
        return id(self)

    def state(
        self, q: Float[Array, " nq"] | str | None = None, v: Float[Array, " nv"] | None = None, *, t: ArrayLike = 0.0
    ) -> State:
        """The state of `System.state`, without what sensors remember."""
        model, still = self.model, jnp.zeros(self.model.nv, self.model.dtype)
        if isinstance(q, str) and q not in self.configurations:
            raise ValueError(f"q: {unknown('configuration', q, tuple(self.configurations))}")
        at = self.configurations.get("qpos0", model.neutral()) if q is None else q
        at = self.configurations[at] if isinstance(at, str) else at
        q0, v0 = checked(model, q=at, v=still if v is None else v)
        dtype = jnp.result_type(model.dtype, q0.dtype, v0.dtype)
        q0, v0 = model.astype(dtype).normalize(q0.astype(dtype)), v0.astype(dtype)
        system = self.astype(dtype)
        owners = [ControllerMemory(system.driver()), ElementStates(Elements(system.elements))]
        return starting(owners, system.model, jnp.asarray(t, dtype), q0, v0, {})

    def astype(self, dtype: Any) -> Self:
        """The same with numbers of a floating type, but for those of the controller, which casts its own."""

        def cast(tree):
            return jax.tree.map(lambda x: jnp.asarray(x, dtype), tree)

        constraints = in_type(self.constraints, dtype)
        elements, actuators = jax.tree.map(
            lambda x: jnp.asarray(x, dtype) if eqx.is_inexact_array(x) or isinstance(x, float) else x,
            (self.elements, self.actuators),
        )
        return self.but(
            model=self.model.astype(dtype), contact=cast(self.contact), elements=elements, constraints=constraints,
            actuators=actuators,
            joint_limits=cast(self.joint_limits), configurations=cast(self.configurations),
            sensors=in_type(self.sensors, dtype),
        )  # fmt: skip

    def but(self, **changes: Any) -> Self:
        """The same with other parts, by their names, such as `controller=...`; they are not checked again.

        >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[jdyn.actuators.PositionServo("joint1", kp=50.0)])
        >>> told = system.but(controller=jdyn.control.Constant(jnp.array([0.4])))  # the command of the servo
        >>> print(told.controller.tau)
        [0.4]
        """
        return with_fields(self, **changes)

    def driver(self, shapes: Colliders | None = None) -> DynamicController:
        """The controller, through the actuators if there are some.

        Args:
            shapes: Those that may touch; those of the model if left out.

        Raises:
            ValueError: if an actuator adheres to shapes that are rigid.
        """
        if not self.actuators:
            return with_memory(self.controller)
        actuators = Actuators(self.actuators)
        if actuators.use_shapes:
            actuators = actuators.among(self._surfaces(shapes))
        silent = Constant(jnp.zeros(len(actuators.command_names), self.model.dtype))
        commander = silent if self.controller is None else self.controller
        return Driven(self.model, with_memory(commander), actuators)

    def _surfaces(self, shapes: Colliders | None) -> Surfaces:
        """Collision shapes, for actuators that look at what they touch."""
        if self.contact is None:
            return NoSurfaces()
        shapes = self.touching() if shapes is None else shapes
        if shapes is None or self.contact.reacts:
            name = next(
                each.name or each.transmission.label for each in self.actuators if each.transmission.uses_shapes
            )
            raise ValueError(
                f"actuators: {name!r} acts where shapes overlap, which rigid ones do not; take jdyn.CompliantContact() "
                "or jdyn.ConvexContact()"
            )
        return ModelSurfaces(shapes)

    @property
    def sees_shapes(self) -> bool:
        """Tell whether any sensor looks at collision shapes."""
        return any(sensor.uses_shapes for sensor in self.sensors)

    def around(self) -> ModelSurroundings | None:
        """Collision shapes of the model, if a sensor looks at them.

        Raises:
            ValueError: if there are none.
        """
        return ModelSurroundings(colliders(self.model)) if self.sees_shapes else None

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
                f"contact: no two collision shapes of {self.model.name!r} may touch, see "
                f"jdyn.contact.collision_pairs; put "
                "ground under it by jdyn.with_ground, or leave contact out"
            )
        self.contact.check(shapes)
        warn_of_directions(self.contact, shapes)
        return shapes


def without_commands(system: Parts) -> str:
    """A remark on a system whose actuators nobody commands; empty for others."""
    if system.controller is not None or not system.actuators:
        return ""
    return f"no controller, so the commands of {enumerated(Actuators(system.actuators).names)} are zero"


S = TypeVar("S", bound=Parts)


class Known(eqx.Module, Generic[S]):
    """A system of which every leaf is an array, so that all transformations take and return it.

    Attributes:
        numbers: Its leaves that are numbers; None in the place of others.
        others: Its other leaves; None in the place of numbers.
        structure: Structure of its leaves.
    """

    numbers: tuple[Array | None, ...]
    others: tuple[Any, ...] = eqx.field(static=True)
    structure: Any = eqx.field(static=True)

    @classmethod
    def of(cls, system: S, lanes: tuple[int, ...] = ()) -> Self:
        """A system, the same for all lanes of a batch of that shape."""
        leaves, structure = jax.tree.flatten(system)
        numbers = tuple(_number(x) for x in leaves)
        others = tuple(x if number is None else None for x, number in zip(leaves, numbers, strict=True))
        if lanes:
            numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, (*lanes, *x.shape)), numbers)
        return cls(numbers, others, structure)

    @property
    def system(self) -> S:
        return self.with_numbers(self.numbers)

    def with_numbers(self, numbers: tuple[Array | None, ...]) -> S:
        """The system with other numbers, such as those of one lane."""
        leaves = [x if number is None else number for x, number in zip(self.others, numbers, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)


def has_functions(part: Any) -> bool:
    """Tell whether a part of a system has functions, which may close over traced values, and which no two parts
    share."""
    return any(callable(x) for x in jax.tree.leaves(part))


class Unknown(Controller):
    """Placeholder of a controller with functions, which trajectories do not keep."""

    def __call__(self, t, q, v):
        raise ValueError(
            "controller: a trajectory keeps the commands of a controller that has functions, but not the functions; "
            "Trajectory.with_system tells it the system"
        )


def _number(x):
    """A floating-point number or an array, as an array; None for all else."""
    if isinstance(x, jax.Array):
        return x
    return jnp.asarray(x) if isinstance(x, np.ndarray) or eqx.is_inexact_array_like(x) else None
