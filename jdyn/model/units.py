"""Units of the numbers of parts of a system, by which `jdyn.scale` changes them."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Scalar

from jdyn.array import Structure, with_fields
from jdyn.model.model import Model
from jdyn.spatial import SpatialInertia, Transform

Units: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Type of the class variable `units` of a part of a system, a unit for each field that has one.

A unit is made of kg, m, s, N, J, W and Pa, with `^` before exponents and at most one `/`, such as `"J s/m^2"`, and is
empty for a number without one; a tuple has one for each entry of an array. `x` is the unit of what the part moves by,
the coordinate of its joint or the length of its transmission, m or 1, and `u` that of what the activation of an
actuator follows. A field with a unit may be a function of time; `"pose"` is that of a function that gives a pose.
Poses, inertias and other parts within need none. Numbers of the mechanism itself are in kg, m and x alone; those which
have to do with time, forces or surroundings are written with s, N, J, W or Pa, also where these cancel, since they stay
where `jdyn.scale` does not make motions similar: a density of water is in `"N s^2/m^4"`.

Three names are no fields: `"value"` of sensors, `"length"` of transmissions, `"command"` of actuators and activations.
"""

# 1.0, a number of Python, where nothing changes.
Factor: TypeAlias = Array | float

_DERIVED: dict[str, dict[str, float]] = {
    "N": {"kg": 1, "m": 1, "s": -2}, "J": {"kg": 1, "m": 2, "s": -2}, "W": {"kg": 1, "m": 2, "s": -3},
    "Pa": {"kg": 1, "m": -1, "s": -2},
}  # fmt: skip
_BASE: tuple[str, ...] = ("kg", "m", "s", "x", "u")


class Scaling(NamedTuple):
    """Factors of all units.

    Attributes:
        model: The mechanism as it was.
        length, mass, time: Factors of these.
        similar: Whether numbers change that have to do with time, forces or surroundings.
        natural: Whether times are such that gravity stays the same.
        travel: Factor of `x`.
        command: Factor of `u`.
        travels: Factors of the lengths that actuators act along, by their names.
    """

    model: Model
    length: Factor
    mass: Factor
    time: Factor
    similar: bool
    natural: bool
    travel: Factor | None = None
    command: Factor | None = None
    travels: Mapping[str, Factor] = {}

    def factor(self, unit: str) -> Factor:
        """Factor of numbers in a unit."""
        powers, forceful = _parsed(unit)
        factor: Factor = 1.0
        if forceful and not self.similar:
            return factor
        values = dict(zip(_BASE, (self.mass, self.length, self.time, self.travel, self.command), strict=True))
        for symbol, power in powers.items():
            if (value := values[symbol]) is None:
                raise ValueError(f"scale: the unit {unit!r} has {symbol}, which stands for nothing here")
            if not isinstance(value, float | int):
                factor = value**power if isinstance(factor, float | int) else factor * value**power
        return factor

    def joint(self, joint: str) -> Factor:
        """Factor of the coordinates of a joint.

        Raises:
            ValueError: if some are angles and others are lengths.
        """
        topology = self.model.topology
        motions = set(topology.kinds[topology.joint(joint)].motions)
        if "slide" in motions and len(motions) > 1:
            raise ValueError(
                f"scale: joint {joint!r} has coordinates in m and in rad, which a sensor would show as one"
            )
        return self.length if "slide" in motions else 1.0

    def along(self, travel: Factor) -> Self:
        """The same for a part that moves by something with this factor."""
        return self._replace(travel=travel)

    def numbers(self, part: Any, **others: Any) -> Any:
        """A part with other numbers, by its `units`, and with other fields that are given.

        Raises:
            ValueError: if the unit of a number is not known.
        """
        units, changed = units_of(type(part)), dict(others)
        static = {field.name for field in dataclasses.fields(part) if field.metadata.get("static")}
        for field, value in vars(part).items():
            if field in others or field in static or value is None:
                continue
            if units is not None and field in units:
                changed[field] = self._times(value, units[field])
            elif isinstance(value, eqx.Module | Structure | tuple | list | Mapping):
                changed[field] = scaled(value, self)
            elif eqx.is_inexact_array_like(value) or callable(value):
                raise self.refusal(part, f"has a field {field!r} of unknown unit; name it in `units` of the class")
        if units is None:
            raise self.refusal(part, "does not say in which units its numbers are; give the class `units = {...}`")
        return with_fields(part, **changed)

    def refusal(self, part: Any, reason: str) -> ValueError:
        """An error that says why a part of the system cannot be scaled."""
        name = getattr(part, "name", "")
        called = f" {name!r}" if isinstance(name, str) and name else ""
        return ValueError(f"scale: {type(part).__name__}{called} {reason}")

    def _times(self, value: Any, unit: str | tuple[str, ...]) -> Any:
        if unit == "pose":
            return scaled(value, self) if _has_units(value) else InScaledTime(value, self.time, self.length, pose=True)
        if isinstance(unit, tuple):
            factors = [self.factor(each) for each in unit]
            if all(isinstance(factor, float | int) for factor in factors):
                return value
            return times(value, jnp.stack([jnp.asarray(factor, self.model.dtype) for factor in factors]))
        factor = self.factor(unit)
        if callable(value) and not eqx.is_array(value):
            # What does not change with time may stay, too.
            still = isinstance(factor, float | int) and isinstance(self.time, float | int)
            return value if still else InScaledTime(value, self.time, factor)
        return times(value, factor)


class InScaledTime(eqx.Module):
    """A function of time in the units of a scaled mechanism.

    Attributes:
        function: The function in the old units.
        time: Factor of times.
        factor: That of the values; of lengths in poses.
        pose: Whether values are poses.
    """

    function: Callable[[Scalar], Any]
    time: Factor
    factor: Factor
    pose: bool = eqx.field(static=True, default=False)

    def __call__(self, t: Scalar) -> Any:
        value = self.function(t if isinstance(self.time, float | int) else t / self.time.astype(t.dtype))
        if self.pose:
            return dataclasses.replace(value, translation=times(value.translation, self.factor))
        return times(value, self.factor)


def scaled(part: Any, scaling: Scaling) -> Any:
    """A part of a system in other sizes, or several.

    A part whose units depend on what it has to do with says itself what becomes of it, by a method `scaled(scaling)`.

    Raises:
        ValueError: if it does not say in which units its numbers are.
    """
    if isinstance(part, Transform):
        return dataclasses.replace(part, translation=times(part.translation, scaling.length))
    if isinstance(part, SpatialInertia):
        mass, moment, rotational = (scaling.factor(unit) for unit in ("kg", "kg m", "kg m^2"))
        return SpatialInertia(
            times(part.mass, mass), times(part.first_moment, moment), times(part.rotational, rotational)
        )
    if hasattr(part, "scaled"):
        return part.scaled(scaling)
    if type(part) in (tuple, list):
        return type(part)(scaled(each, scaling) for each in part)
    if isinstance(part, Mapping):
        return {name: scaled(each, scaling) for name, each in part.items()}
    return scaling.numbers(part) if isinstance(part, eqx.Module | Structure) else part


def times(x: Any, factor: Factor) -> Any:
    """A number or an array, multiplied."""
    if isinstance(factor, float | int):
        return x
    x = jnp.asarray(x, factor.dtype) if isinstance(x, float | int) else jnp.asarray(x)
    # What has no end has none in other units, and no derivative.
    finite = jnp.isfinite(x)
    return jnp.where(finite, jnp.where(finite, x, 0) * factor.astype(x.dtype), x)


def unit_of(part: Any, what: str) -> str | None:
    """Unit of the value of a sensor, of the length of a transmission, of a command; None if it is not known."""
    unit = (units_of(type(part)) or {}).get(what)
    return unit if isinstance(unit, str) else None


@functools.cache
def units_of(kind: type) -> Units | None:
    """Units of a class and of what it inherits from; None if nobody says any."""
    stated = [vars(each)["units"] for each in reversed(kind.__mro__) if "units" in vars(each)]
    return functools.reduce(lambda known, own: {**known, **own}, stated, {}) if stated else None


def _has_units(part: Any) -> bool:
    return isinstance(part, Transform) or hasattr(part, "scaled") or units_of(type(part)) is not None


@functools.cache
def _parsed(unit: str) -> tuple[dict[str, float], bool]:
    """Powers of kg, m, s, x and u, and whether it is written with times or forces."""
    powers: dict[str, float] = dict.fromkeys(_BASE, 0.0)
    forceful = False
    for side, sign in zip(unit.split("/"), (1, -1), strict=False):
        for word in side.split():
            symbol, _, power = word.partition("^")
            parts = {symbol: 1} if symbol in _BASE else _DERIVED.get(symbol)
            if parts is None and symbol not in ("1", "rad"):
                raise ValueError(f"units: expected kg, m, s, N, J, W, Pa, x or u, got {symbol!r} in {unit!r}")
            forceful = forceful or symbol == "s" or symbol in _DERIVED
            for base, own in (parts or {}).items():
                powers[base] += sign * own * float(power or 1)
    return {base: int(p) if p == int(p) else p for base, p in powers.items() if p}, forceful
