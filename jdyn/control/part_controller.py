"""Controllers of robots that are parts of a whole."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jdyn.control.controller import Around, DynamicController, with_memory
from jdyn.model import Model, checked
from jdyn.terminal.messages import unknown


class OnCoordinates(Around):
    """A controller that knows some coordinates of a mechanism as if they were all, and acts on these, or on some of the
    actuators.

    Attributes:
        controller: The controller.
        in_q, in_v: Places of its coordinates in those of the whole.
        out: Places of its outputs in those of the whole.
        count: Number of outputs of the whole.
    """

    controller: DynamicController
    in_q: tuple[int, ...] = eqx.field(static=True)
    in_v: tuple[int, ...] = eqx.field(static=True)
    out: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def seen(self, q, v):
        return q[np.array(self.in_q)], v[np.array(self.in_v)]

    def force(self, t, q, v, memory):
        own = super().force(t, q, v, memory)
        return jnp.zeros(self.count, own.dtype).at[np.array(self.out)].set(own)


class PartController(OnCoordinates):
    """A robot's own controller, where the robot is a part of a model that `jdyn.merge` made.

    It knows the state of its part alone, and acts on that. Controllers of several parts add up.

    >>> arm = jdyn.load("pendulum")
    >>> cell = jdyn.merge({"left": arm, "right": arm})
    >>> left, right = (jdyn.PD(arm, jnp.array([goal]), kp=50.0, kd=10.0) for goal in (0.5, -0.5))
    >>> both = jdyn.control.PartController(left, cell, "left") + jdyn.control.PartController(right, cell, "right")
    >>> motion = jdyn.simulate(cell, jnp.zeros(2), jnp.zeros(2), 3.0, controller=both)
    >>> print(motion.q[-1].round(2))
    [ 0.46 -0.46]

    Args:
        controller: Any controller of the part, as if it were alone, which gives generalized forces.
        model: The whole.
        part: Name of the part.

    Raises:
        ValueError: if the whole has no part of that name.
    """

    def __init__(self, controller, model: Model, part: str):
        checked(model)
        topology = model.topology
        self.controller = with_memory(controller)
        self.in_q, self.in_v = (
            tuple(place for place, name in enumerate(names) if name.startswith(f"{part}/"))
            for names in (topology.q_names, topology.v_names)
        )
        self.out, self.count = self.in_v, model.nv
        if not self.in_v:
            parts = tuple(dict.fromkeys(name.split("/")[0] for name in topology.joint_names if "/" in name))
            raise ValueError(f"PartController: {unknown('moving part', part, parts)}")
