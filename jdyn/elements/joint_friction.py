"""Dry friction in a joint: Stribeck's curve, and the LuGre model with bristles that bend before they slip."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers, with_fields
from jdyn.elements.element import ForceElement, Implicit
from jdyn.model import JointName, Scaling, Units


class _JointFriction(ForceElement):
    """Friction along the one coordinate of a joint.

    Attributes:
        joint: Name of a joint with one coordinate.
        coulomb: Friction that is left at large speeds [N m or N].
        static: Friction that is overcome before a joint at rest moves [N m or N].
        stribeck_speed: Speed at which most of the difference is gone [rad/s or m/s].
        viscous: [N m s/rad or N s/m].
    """

    implicit: Implicit = eqx.field(static=True, default="joints", kw_only=True)
    uses_bodies: ClassVar[bool] = False
    units: ClassVar[Units] = {
        "coulomb": "J/x", "static": "J/x", "stribeck_speed": "x/s", "viscous": "J s/x^2", "smooth": "x/s",
        "stiffness": "J/x^2", "damping": "J s/x^2", "fading": "x/s",
    }  # fmt: skip

    joint: JointName = eqx.field(static=True)
    coulomb: Scalar = eqx.field(converter=as_numbers)
    static: Scalar = eqx.field(converter=as_numbers)
    stribeck_speed: Scalar = eqx.field(converter=as_numbers)
    viscous: Scalar = eqx.field(default=0.0, converter=as_numbers)

    def scaled(self, scaling: Scaling) -> Self:
        """The same in a scaled joint."""
        return scaling.along(scaling.joint(self.joint)).numbers(self)

    def _sliding(self, v: Scalar) -> Scalar:
        """Size of the friction at a speed: g(v)."""
        return self.coulomb + (self.static - self.coulomb) * jnp.exp(-((v / self.stribeck_speed) ** 2))

    def _speed(self, kinematics: Any) -> Scalar:
        model = kinematics.model
        return model.expand_velocity(kinematics.v)[_coordinate(model, self.joint)]

    def _on_joint(self, kinematics: Any, force: Scalar) -> Float[Array, " nv"]:
        model = kinematics.model
        full = jnp.zeros(model.topology.v_offsets[-1], kinematics.v.dtype)
        return model.reduce_force(full.at[_coordinate(model, self.joint)].set(force))


def _coordinate(model, joint: str) -> int:
    """Number of the coordinate of a joint.

    Raises:
        ValueError: if the joint has more than one.
    """
    topology = model.topology
    body = topology.joint(joint)
    if (nv := topology.kinds[body].nv) != 1:
        raise ValueError(f"friction of joint {joint!r}: expected a joint with one coordinate, got one with {nv}")
    return topology.v_offsets[body]


class StribeckFriction(_JointFriction):
    """Friction that falls from its static to its sliding value with speed: −g(v) tanh(v / smooth) − viscous v, with
    g(v) = F_c + (F_s − F_c) exp(−(v / v_s)²).

    A joint at rest creeps. `jdyn.elements.LuGreFriction` sticks.

    >>> rough = jdyn.elements.StribeckFriction("joint1", coulomb=0.5, static=0.8, stribeck_speed=0.1)
    >>> print(rough.generalized(jdyn.load("pendulum"), 0.0, jnp.zeros(1), jnp.array([1.0])))
    [-0.5]

    Attributes:
        joint: Name of a joint with one coordinate.
        coulomb: F_c, friction that is left at large speeds [N m or N].
        static: F_s, friction at small speeds [N m or N].
        stribeck_speed: v_s [rad/s or m/s].
        viscous: [N m s/rad or N s/m].
        smooth: Speed at which friction has three quarters of its value [rad/s or m/s].
    """

    smooth: Scalar = eqx.field(default=1e-3, converter=as_numbers)

    def force(self, t: Scalar, kinematics: Any, memory: Any) -> Float[Array, " nv"]:
        v = self._speed(kinematics)
        return self._on_joint(kinematics, -self._sliding(v) * jnp.tanh(v / self.smooth) - self.viscous * v)


class LuGreFriction(_JointFriction):
    """Friction of bristles that bend by z before they slip: dz/dt = v − σ₀ |v| z / g(v), and the force
    −(σ₀ z + σ₁ dz/dt + viscous v), with g(v) = F_c + (F_s − F_c) exp(−(v / v_s)²).

    It sticks, slips, and shows hysteresis before it slips.

    >>> rough = jdyn.elements.LuGreFriction("joint1", coulomb=2.0, static=6.0, stribeck_speed=0.01, stiffness=1e4)
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.array([0.3]), jnp.zeros(1), 1.0, elements=[rough])
    >>> print(motion.q[-1].round(3))  # a weight of 4.905 sin(0.3) = 1.45 is held
    [0.3]

    Source: Canudas de Wit, Olsson, Åström, Lischinsky 1995, A new model for control of systems with friction.

    Attributes:
        joint: Name of a joint with one coordinate.
        coulomb: F_c, friction that is left at large speeds [N m or N].
        static: F_s, friction that is overcome before a joint at rest moves [N m or N].
        stribeck_speed: v_s [rad/s or m/s].
        viscous: [N m s/rad or N s/m].
        stiffness: σ₀, of the bristles [N m/rad or N/m].
        damping: σ₁ [N m s/rad or N s/m]; if left out √σ₀ times the square root of one unit of inertia, as published.
        fading: Speed v_d with which σ₁ fades, σ₁ exp(−(v / v_d)²), so that friction never drives; it does not fade if
            left out [rad/s or m/s].
    """

    stiffness: Scalar = eqx.field(default=1e5, converter=as_numbers)
    damping: Scalar | None = eqx.field(default=None, converter=lambda x: None if x is None else as_numbers(x))
    fading: Scalar | None = eqx.field(default=None, converter=lambda x: None if x is None else as_numbers(x))

    def scaled(self, scaling: Scaling) -> Self:
        """The same in a scaled joint; a damping that is left out stands for one in the unit of the joint."""
        damping = jnp.sqrt(self.stiffness) if self.damping is None and scaling.similar else self.damping
        return super(LuGreFriction, with_fields(self, damping=damping)).scaled(scaling)

    def start(self, t: Scalar, kinematics: Any) -> Array:
        """z where a motion starts: straight bristles."""
        return jnp.zeros((), kinematics.v.dtype)

    def rate(self, t: Scalar, kinematics: Any, memory: Any) -> Array:
        v = self._speed(kinematics)
        return v - self.stiffness * jnp.abs(v) * memory / self._sliding(v)

    def force(self, t: Scalar, kinematics: Any, memory: Any) -> Float[Array, " nv"]:
        v = self._speed(kinematics)
        damping = jnp.sqrt(self.stiffness) if self.damping is None else self.damping
        if self.fading is not None:
            damping = damping * jnp.exp(-((v / self.fading) ** 2))
        bent = self.stiffness * memory + damping * self.rate(t, kinematics, memory)
        return self._on_joint(kinematics, -bent - self.viscous * v)

    def energy(self, kinematics: Any, memory: Any) -> Scalar:
        """½ σ₀ z²."""
        return 0.5 * self.stiffness * memory**2
