"""Systems of which joints are locked."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jdyn.actuators import Actuators
from jdyn.array import with_fields
from jdyn.control.controller import Around, DynamicController, with_memory
from jdyn.model import Locked, Model, Topology, without_locked
from jdyn.model import lock as lock_model
from jdyn.simulation.system import System


@overload
def lock(mechanism: Model, joints: Mapping[str, ArrayLike]) -> Model: ...


@overload
def lock(mechanism: System, joints: Mapping[str, ArrayLike]) -> System: ...


def lock(mechanism, joints):
    """A copy of a model or a system of which some joints are fixed, at given values.

    What a fixed joint moved becomes part of the body before it, which takes its inertia, or of the world; it keeps its
    name as a frame. Joints that follow a fixed one are fixed, too. The rest of the model moves as it would with a
    motor that holds the joints, and its coordinates keep their order.

    >>> arm = jdyn.lock(jdyn.load("double_pendulum"), {"joint2": jnp.pi / 2})
    >>> print(arm.nv, arm.body_names, arm.frame_names, arm.inertias.mass)
    1 ('link1',) ('tip', 'link2') [2.]

    A system loses what acts on locked joints alone, and what looks at these alone: their motors, friction, prescribed
    motions, the sensors of the joints and the motors. Tendons and sums of joints count locked ones as constants. Load
    cells between bodies that are one now still feel what is beyond the cut. The controller goes on as if the joints
    were there, at rest at these values; what it commands them is dropped.

    >>> motors = [jdyn.actuators.Motor("joint1"), jdyn.actuators.Motor("joint2")]
    >>> system = jdyn.System(jdyn.load("double_pendulum"), actuators=motors)
    >>> print(len(jdyn.lock(system, {"joint2": 0.3}).actuators))
    1

    Args:
        mechanism: The model or the system.
        joints: Coordinates by name of the joint [rad or m]: a number, or one for each coordinate.

    Raises:
        ValueError: if there is no such joint, a joint follows another one, a value is not finite or has a wrong
            shape, or a gear or another part of a system connects a locked joint with one that moves.
    """
    if isinstance(mechanism, Model):
        return lock_model(mechanism, joints)
    system, before = mechanism, mechanism.model
    if not joints:
        return system
    locked = Locked.at(before, joints)
    names = Actuators(system.actuators).names
    changed = [without_locked(each, locked) for each in system.actuators]
    stay = [i for i, each in enumerate(changed) if each is not None]
    locked = locked._replace(actuators=frozenset(names) - {names[i] for i in stay})
    topology = before.topology
    in_q = _left(topology, locked, topology.q_offsets, topology.independent_q)
    in_v = _left(topology, locked, topology.v_offsets, topology.independent_v)

    def rest(parts: Any) -> list:
        return [each for part in parts if (each := without_locked(part, locked)) is not None]

    controller = system.controller
    if controller is not None:
        ends = np.cumsum([0, *Actuators(system.actuators).command_counts])
        out = [k for i in stay for k in range(ends[i], ends[i + 1])] if system.actuators else in_v
        controller = OfLocked(with_memory(controller), _held(locked), before.nv, in_q, in_v, tuple(out))
    return system.but(
        model=locked.after,
        controller=controller,
        # Names that they have from what they act on may change.
        actuators=tuple(with_fields(changed[i], name=names[i]) for i in stay),
        elements=tuple(rest(system.elements)),
        constraints=tuple(rest(system.constraints)),
        sensors=tuple(rest(system.sensors)),
        configurations={name: q[np.array(in_q, int)] for name, q in system.configurations.items()},
    )


class OfLocked(Around):
    """A controller that knows joints which are locked, as if they rested where they are.

    Attributes:
        controller: The controller.
        q: Configuration in which the joints are locked.
        nv: Number of the velocities that it knows.
        in_q, in_v: Places of the coordinates that are left.
        out: Places of the outputs that are left.
    """

    controller: DynamicController
    q: Float[Array, " nq"]
    nv: int = eqx.field(static=True)
    in_q: tuple[int, ...] = eqx.field(static=True)
    in_v: tuple[int, ...] = eqx.field(static=True)
    out: tuple[int, ...] = eqx.field(static=True)

    def seen(self, q, v):
        at, rest = self.q.astype(q.dtype), jnp.zeros(self.nv, v.dtype)
        return at.at[np.array(self.in_q, int)].set(q), rest.at[np.array(self.in_v, int)].set(v)

    def force(self, t, q, v, memory):
        return super().force(t, q, v, memory)[np.array(self.out, int)]


def _held(locked: Locked) -> Float[Array, " nq"]:
    """The neutral configuration, but for joints that are locked."""
    model = locked.before
    q = model.expand(model.neutral())
    for joint, value in locked.joints.items():
        q = q.at[model.topology.q_slice(model.topology.joint(joint))].set(value)
    return q[np.array(model.topology.independent_q, int)]


def _left(topology: Topology, locked: Locked, offsets: Sequence[int], independent: Sequence[int]) -> tuple[int, ...]:
    """Places of the coordinates that are left among those of the model."""
    bodies = [topology.joint(joint) for joint in locked.joints]
    gone = {k for body in bodies for k in range(offsets[body], offsets[body + 1])}
    return tuple(place for place, full in enumerate(independent) if full not in gone)
