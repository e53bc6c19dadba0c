"""A move to a target under control, as the commands simulate it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jdyn.control import PD, ComputedTorque, Controller, GravityCompensation
from jdyn.dynamics import mass_matrix
from jdyn.model import Free, Model, dynamics_only
from jdyn.simulation import State, System, Trajectory, simulate

# Largest move of a joint: large for an arm, but not so large that it turns around itself [rad or m].
LARGEST_MOVE = 0.8
CONTROLLERS = ("pd", "computed_torque")


class ControlledMove(eqx.Module):
    """A move from a start to a target, under PD control with gravity compensated or under computed torque.

    Gains are per unit of joint inertia, so that one number suits every joint of any robot.

    Attributes:
        model: The mechanism as the controller knows it.
        q0, v0: Start.
        target: End.
        inertia: Diagonal of the mass matrix at the start [kg m² or kg].
        effort: Largest generalized force of each motor [N m or N]; infinite where the file gives none or zero.
        kind: Of controller, one of `CONTROLLERS`.
    """

    model: Model = eqx.field(converter=dynamics_only)
    q0: Float[Array, " nq"]
    v0: Float[Array, " nv"]
    target: Float[Array, " nq"]
    inertia: Float[Array, " nv"]
    effort: Float[Array, " nv"]
    kind: str = eqx.field(static=True)

    def __init__(
        self, model: Model, seed: int, *, q0: Any = None, v0: Any = None, target: Any = None, kind: str = "pd"
    ):
        """Args:
        model: The mechanism.
        seed: Of the target.
        q0: Start, that next to q = 0 within the limits if left out.
        v0: Velocity at the start, rest if left out.
        target: End, drawn within the limits if left out.
        kind: Of controller.
        """
        if Free in model.topology.kinds:
            raise ValueError(
                f"{model.name!r} has a free base, which no motor moves to a target; "
                "--fixed-base bolts it down if the file allows it"
            )
        limits, independent_q = model.limits, np.array(model.topology.independent_q)
        self.model, self.kind = model, kind
        # Rotations that are not turned are within any limit.
        numbers = np.isin(independent_q, model.topology.ranged[0])
        clipped = jnp.clip(model.neutral(), limits.lower[independent_q], limits.upper[independent_q])
        near = jnp.where(numbers, clipped, model.neutral())
        self.q0 = near if q0 is None else _sized("q0", q0, model.nq, model)
        self.v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else _sized("v0", v0, model.nv, model)
        move = model.difference(self.q0, random_start(model, seed))
        near = model.integrate(self.q0, jnp.clip(move, -LARGEST_MOVE, LARGEST_MOVE))
        self.target = near if target is None else _sized("target", target, model.nq, model)
        self.inertia = jnp.diag(mass_matrix(model, self.q0))
        effort = limits.effort[np.array(model.topology.independent_v)]
        self.effort = jnp.where(effort > 0, effort, jnp.inf)

    @property
    def coordinates(self) -> dict[str, int]:
        """Places of the coordinates of joints that have one, by name; none where a joint has a quaternion."""
        topology = self.model.topology
        names = [topology.joint_names[i] for i, kind in enumerate(topology.kinds) for _ in range(kind.nq)]
        independent = [names[k] for k in topology.independent_q]
        return {name: i for i, name in enumerate(independent) if self.model.flat and independent.count(name) == 1}

    def moved(self, changes: Mapping[str, ArrayLike]) -> ControlledMove:
        """With other coordinates, by names such as `q0:elbow`, `v0:elbow` and `target:elbow`."""
        reach, places = self, self.coordinates
        for name, value in changes.items():
            what, _, joint = name.partition(":")
            moved = getattr(reach, what).at[places[joint]].set(value)
            reach = eqx.tree_at(lambda reach, what=what: getattr(reach, what), reach, moved)
        return reach

    def controller(self, kp, kd) -> Controller:
        if self.kind == "computed_torque":
            return ComputedTorque(self.model, self.target, kp=kp, kd=kd)
        gains = {"kp": kp * self.inertia, "kd": kd * self.inertia}
        return PD(self.model, self.target, **gains) + GravityCompensation(self.model)

    def run(self, system: System, kp, kd, t1, **options: Any) -> Trajectory:
        """The move of a system, with the controller's gains."""
        system = dataclasses.replace(system, controller=self.controller(kp, kd))
        return simulate(system, State(self.q0, self.v0), t1, throw=False, **options)

    def distances(self, trajectory: Trajectory):
        """Distance to the target over time [rad or m]."""
        errors = jax.vmap(self.model.difference, (0, None))(trajectory.q, self.target)
        return jnp.linalg.norm(errors, axis=1)


def random_start(model: Model, seed: int) -> Array:
    """A configuration within the limits, the same in both precisions."""
    return model.astype(jnp.float32).random(jax.random.key(seed)).astype(model.dtype)


def _sized(name, values, size, model):
    if np.shape(values) != (size,):
        raise ValueError(f"{name}: expected {size} numbers for {model.name!r}, got {np.size(values)}")
    return jnp.asarray(values, model.dtype)
