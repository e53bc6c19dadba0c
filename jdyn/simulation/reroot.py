"""Systems one tree of which gets another root."""

from typing import overload

import equinox as eqx
import jax
import jax.numpy as jnp

from jdyn.control.controller import Around, DynamicController, with_memory
from jdyn.dynamics import rerooted_state
from jdyn.model import Model, OtherRoot, with_other_root
from jdyn.model import reroot as reroot_model
from jdyn.simulation.system import System


@overload
def reroot(mechanism: Model, link: str) -> Model: ...


@overload
def reroot(mechanism: System, link: str) -> System: ...


def reroot(mechanism, link):
    """The same mechanism with another link as the root of its tree, such as a foot of a humanoid: of a model or of a
    system.

    The free joint moves the new root. Joints on the way to the old one move what carried them, about the opposite axis:
    every other joint keeps its coordinate, its limits, damping, friction, spring and armature, and those that follow
    others do so as before. A tree keeps its place among others; in it the new root comes first, then the way to the old
    one, then all else in its old order.

    All links, frames and shapes stay where they are. The frame of a body has to be on the axis of the joint that turns
    it. A body that another joint turns now is therefore called `body_at_joint`, and `body` is a frame on it.
    `jdyn.rerooted_state` finds states that correspond.

    >>> builder = jdyn.Builder("walker")
    >>> builder.add_link("torso", jdyn.Free(), mass=5.0, inertia=0.1)
    >>> builder.add_link("leg", jdyn.Revolute((0, 1, 0)), parent="torso", joint_name="hip", mass=1.0, inertia=0.01)
    >>> walker = builder.build()
    >>> standing = jdyn.reroot(walker, "leg")
    >>> print(standing.body_names, standing.joint_names, standing.frame_names)
    ('leg', 'torso_at_hip') ('torso', 'hip') ('torso',)
    >>> system = jdyn.System(walker, sensors=[jdyn.sensors.Gyro("gyro", "torso")])
    >>> print(jdyn.reroot(system, "leg").sense(jdyn.reroot(system, "leg").state())["gyro"])
    [0. 0. 0.]

    All parts of a system go along, and act on the same links, joints and shapes. Configurations are those of the new
    coordinates. The controller sees the old coordinates; commands of actuators stay what they are, and where there are
    no actuators, generalized forces are turned into those that do the same work. Sensors of what a link carries,
    such as `jdyn.sensors.SubtreeCenterOfMass`, go along where the link carries the same, or is the old root, with all
    of the tree. The springs of `joint_limits` are as stiff as those of the new model, in whose mass matrix a joint on
    the way has another entry on the diagonal.

    Args:
        mechanism: The model or the system.
        link: The new root: a body of a tree that moves freely, or a frame on one, whose pose is that of the free joint
            then.

    Raises:
        ValueError: if there is no such link, its tree stands on the ground, a joint on the way has several degrees of
            freedom or is one of your own, the free joint has damping, friction, stiffness, armature or a limit, or a
            name is taken. Traced numbers of the free joint become NaN where they would be refused. Of a system, also
            if a part is about the free joint, about forces in the joint of a body on the way or what it carries, or has
            a reference that another body would hold.
    """
    if not isinstance(mechanism, System):
        return reroot_model(mechanism, link)
    system, before = mechanism, mechanism.model
    change = OtherRoot.at(before, link)
    if change.after is before:
        return system
    controller = system.controller
    if controller is not None:
        bare = before.without_shapes(), change.after.without_shapes()
        controller = OfOtherRoot(with_memory(controller), *bare, bool(system.actuators))
    still = jnp.zeros(before.nv, before.dtype)
    return system.but(
        model=change.after,
        controller=controller,
        configurations={
            name: rerooted_state(before, change.after, q, still)[0] for name, q in system.configurations.items()
        },
        **{
            part: with_other_root(getattr(system, part), change)
            for part in ("actuators", "contact", "elements", "constraints", "sensors")
        },
    )


class OfOtherRoot(Around):
    """A controller that knows the coordinates of a model with another root.

    Attributes:
        controller: The controller.
        known: The model whose coordinates it knows.
        model: The model that moves.
        commands: Whether its outputs are commands of actuators, not generalized forces.
    """

    controller: DynamicController
    known: Model
    model: Model
    commands: bool = eqx.field(static=True)

    def seen(self, q, v):
        return rerooted_state(self.model.astype(q.dtype), self.known.astype(q.dtype), q, v)

    def force(self, t, q, v, memory):
        output = super().force(t, q, v, memory)
        if self.commands:
            return output
        _, back = jax.vjp(lambda v: self.seen(q, v)[1], v)
        return back(output)[0]
