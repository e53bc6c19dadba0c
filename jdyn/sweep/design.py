"""Designs of experiments: the parameters of every lane of a sweep."""

from __future__ import annotations

import abc
import functools
import hashlib
import json
import math
from typing import Any, ClassVar

import numpy as np

from jdyn.terminal.messages import enumerated, short, short_name


class Design(abc.ABC):
    """Values of named parameters for every lane. Designs with the same lanes along the same axes are equal.

    >>> design = jdyn.designs.Samples(mass=[1.0, 2.0]) * jdyn.designs.Grid(kp=[10.0, 100.0, 1000.0])
    >>> isinstance(design, jdyn.designs.Design), design.size, design.dims
    (True, 6, {'sample': 2, 'kp': 3})

    Attributes:
        values: Values of each parameter, as given.
    """

    values: dict[str, np.ndarray]
    _kinds: ClassVar[dict[str, type[Design]]] = {}

    def __init_subclass__(cls):
        Design._kinds[cls.__name__] = cls

    @property
    @abc.abstractmethod
    def dims(self) -> dict[str, int]:
        """Names and sizes of the axes that the lanes fill, the last one fastest."""

    @abc.abstractmethod
    def lanes(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters of the lanes of these numbers."""

    @abc.abstractmethod
    def coordinates(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Coordinates of the dataset: dimensions and values by name."""

    @property
    def size(self) -> int:
        """Number of lanes."""
        return math.prod(self.dims.values())

    def __mul__(self, other: Design) -> Product:
        """Every lane of this design with every lane of another one."""
        return Product(self, other)

    def zip(self, other: Design) -> Zip:
        """Each lane of this design with the same lane of another one."""
        return Zip(self, other)

    @functools.cached_property
    def digest(self) -> str:
        """Digest of all lanes and their axes."""
        found = hashlib.sha256(repr(list(self.dims.items())).encode())
        for name, (dims, values) in sorted(self.coordinates().items()):
            found.update(repr((name, dims, values.shape, values.dtype.str)).encode())
            found.update(np.ascontiguousarray(values).tobytes())
        return found.hexdigest()

    def __eq__(self, other):
        return isinstance(other, Design) and self.digest == other.digest

    def __hash__(self):
        return hash(self.digest)

    def to_json(self) -> str:
        """Text from which `jdyn.designs.Design.from_json` makes an equal design."""
        return json.dumps(self._recipe(), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Design:
        """The design that `to_json` wrote.

        Raises:
            ValueError: if it is another text.
        """
        try:
            return Design._of(json.loads(text))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected the text of a design, as Design.to_json writes it: {error}") from error

    @abc.abstractmethod
    def _recipe(self) -> dict[str, Any]:
        """Recipe of the design, as JSON can say it."""

    @classmethod
    @abc.abstractmethod
    def _made(cls, recipe: dict[str, Any]) -> Design:
        """The design of a recipe."""

    @staticmethod
    def _of(recipe):
        return Design._kinds[recipe["kind"]]._made(recipe)


class _Listed(Design):
    """Designs whose parameters are listed one by one."""

    def _recipe(self):
        listed = {name: [values.tolist(), values.dtype.name] for name, values in self.values.items()}
        return {"kind": type(self).__name__, "values": listed}

    @classmethod
    def _made(cls, recipe):
        return cls(**{name: np.array(*listed) for name, listed in recipe["values"].items()})

    def __repr__(self):
        listed = ", ".join(f"{name}={np.array2string(x, threshold=8)}" for name, x in self.values.items())
        return f"{type(self).__name__}({listed})"


class Grid(_Listed):
    """Every combination of the given values: `jdyn.designs.Grid(mass=[1.0, 2.0], kp=np.geomspace(10, 1000, 32))`.

    >>> design = jdyn.designs.Grid(mass=[1.0, 2.0], kp=[10.0, 100.0, 1000.0])
    >>> design.size, design.dims
    (6, {'mass': 2, 'kp': 3})

    Args:
        **axes: Values along each axis, by its name, shape (n,), n > 0; they also label it.

    Raises:
        ValueError: if there is no axis, or one is empty, not one-dimensional, or not made of numbers.
    """

    def __init__(self, /, **axes):
        self.values = {name: _numeric("Grid", name, values) for name, values in axes.items()}
        _check_not_empty("Grid", self.values)
        for name, values in self.values.items():
            if values.ndim != 1:
                raise ValueError(
                    f"Grid axis {short(name)}: expected numbers of shape (n,), got shape {values.shape}; "
                    "jdyn.designs.Samples takes arrays for a parameter"
                )

    @property
    def dims(self):
        return {name: len(values) for name, values in self.values.items()}

    def lanes(self, numbers):
        places = np.unravel_index(numbers, tuple(self.dims.values()))
        return {name: values[place] for (name, values), place in zip(self.values.items(), places, strict=True)}

    def coordinates(self):
        return {name: ((name,), values) for name, values in self.values.items()}


class Samples(_Listed):
    """Lanes given one by one: `jdyn.designs.Samples(mass=masses, q0=configurations)` along the axis `sample`.

    >>> design = jdyn.designs.Samples(mass=[1.0, 2.0, 3.0], q0=np.zeros((3, 2)))
    >>> design.size, design.dims
    (3, {'sample': 3})

    Args:
        **parameters: Values of each parameter, shape (samples, ...), with the same number of samples.

    Raises:
        ValueError: if there is no parameter or no sample, if the lengths differ, or if some are not numbers.
    """

    def __init__(self, /, **parameters):
        if "sample" in parameters:
            raise ValueError("Samples: 'sample' is the name of the axis, call the parameter something else")
        self.values = {name: _numeric("Samples", name, values) for name, values in parameters.items()}
        _check_not_empty("Samples", self.values)
        lengths = {name: len(values) for name, values in self.values.items()}
        if len(set(lengths.values())) > 1:
            listed = enumerated([f"{short_name(name)} has {length}" for name, length in lengths.items()])
            raise ValueError(f"Samples: every parameter needs the same number of samples, but {listed}")

    @property
    def dims(self):
        return {"sample": len(next(iter(self.values.values())))}

    def lanes(self, numbers):
        return {name: values[numbers] for name, values in self.values.items()}

    def coordinates(self):
        return {name: (("sample", *extra_dims(name, values.shape[1:])), values) for name, values in self.values.items()}


class _Pair(Design):
    """Lanes that have the parameters of two designs."""

    def __init__(self, first: Design, second: Design):
        if shared := sorted(set(first.values) & set(second.values)):
            raise ValueError(f"{self._name}: both designs have parameters called {', '.join(map(repr, shared))}")
        self.first, self.second = first, second
        self.values = first.values | second.values

    @property
    def _name(self):
        return type(self).__name__

    def _recipe(self):
        return {"kind": self._name, "first": self.first._recipe(), "second": self.second._recipe()}

    @classmethod
    def _made(cls, recipe):
        return cls(Design._of(recipe["first"]), Design._of(recipe["second"]))

    def __repr__(self):
        return f"{self._name}({self.first!r}, {self.second!r})"


class Product(_Pair):
    """Every lane of one design with every lane of another one, the latter's fastest: `jdyn.designs.Grid(kp=[10.0,
    100.0]) * jdyn.designs.Samples(mass=masses, q0=configurations)`, along the axes of both.

    Args:
        first, second: The designs.

    Raises:
        ValueError: if both have a parameter or an axis of the same name.
    """

    def __init__(self, first: Design, second: Design):
        super().__init__(first, second)
        if shared := sorted(_all_dims(first) & _all_dims(second)):
            raise ValueError(f"Product: both designs have axes called {', '.join(map(repr, shared))}")

    @property
    def dims(self):
        return self.first.dims | self.second.dims

    def lanes(self, numbers):
        first, second = np.divmod(numbers, self.second.size)
        return self.first.lanes(first) | self.second.lanes(second)

    def coordinates(self):
        return self.first.coordinates() | self.second.coordinates()


class Zip(_Pair):
    """Each lane of one design with the same lane of another one: `jdyn.designs.Sobol(128, mass=(0.5, 2.0)).zip(
    jdyn.designs.Samples(q0=configurations))`, along the axis `sample`.

    Args:
        first, second: The designs.

    Raises:
        ValueError: if both have a parameter of the same name, or they have not as many lanes.
    """

    def __init__(self, first: Design, second: Design):
        super().__init__(first, second)
        if first.size != second.size:
            raise ValueError(f"Zip: expected as many lanes in both designs, got {first.size} and {second.size}")

    @property
    def dims(self):
        return {"sample": self.first.size}

    def lanes(self, numbers):
        return self.first.lanes(numbers) | self.second.lanes(numbers)

    def coordinates(self):
        lanes = self.lanes(np.arange(self.size))
        return {name: (("sample", *extra_dims(name, values.shape[1:])), values) for name, values in lanes.items()}


def _all_dims(design):
    """Axes of lanes and of parameters that are arrays."""
    return {dim for dims, _ in design.coordinates().values() for dim in dims}


def extra_dims(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the dimensions of a variable besides those of the lanes."""
    return tuple(f"{name}_{i}" for i in range(len(shape)))


def _numeric(design, name, values):
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{design} parameter {short(name)}: expected real numbers, got {values.dtype}")
    return values.astype(values.dtype.newbyteorder("="))


def _check_not_empty(design, values):
    if not values:
        raise ValueError(f"{design}: no parameter is given, as in {design}(mass=[1.0, 2.0])")
    for name, array in values.items():
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(
                f"{design} parameter {short(name)}: expected at least one value along an axis, got {array!r}"
            )
