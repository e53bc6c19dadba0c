"""Values of a thread: numbers in variables, and buffers in memory."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
from jaxlib.mlir import ir

# C's names of the types of StableHLO.
C_TYPES = {
    "f32": "float",
    "f64": "double",
    "i1": "bool",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "ui8": "unsigned char",
    "ui16": "unsigned short",
    "ui32": "unsigned int",
    "ui64": "unsigned long long",
}

# What a variable or a literal is written as. Integers and truth values that are known are Python's.
Item = str | int | bool


class Untranslatable(NotImplementedError):
    """Why a program cannot run one thread a lane."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """Shape and type of a value.

    Attributes:
        shape: Its shape.
        dtype: Its type as StableHLO names it.
    """

    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, type_: Any) -> "Kind":
        """Type for one of StableHLO."""
        ranked = ir.RankedTensorType(type_)
        dtype = str(ranked.element_type)
        if dtype not in C_TYPES:
            raise Untranslatable(f"numbers of type {dtype}")
        return cls(tuple(ranked.shape), dtype)

    @property
    def c(self) -> str:
        return C_TYPES[self.dtype]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * (8 if self.dtype.endswith("64") else 4)

    @property
    def floating(self) -> bool:
        return self.dtype.startswith("f")

    def indices(self):
        """All of them, rows last."""
        return itertools.product(*map(range, self.shape))

    def strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def flat(self, index) -> int:
        return sum(i * stride for i, stride in zip(index, self.strides(), strict=True))

    def flat_in_c(self, index) -> Item:
        """The same of indices that may be C's."""
        terms = [f"({i}) * {stride}" for i, stride in zip(index, self.strides(), strict=True) if i not in (0, "0")]
        return " + ".join(terms) if terms else 0


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """An array as variables and literals, one an entry.

    Attributes:
        kind: Its shape and type.
        items: (size,) of them.
    """

    kind: Kind
    items: tuple[Item, ...]

    @property
    def uniform(self) -> bool:
        """Tell whether all entries are one."""
        return len(set(map(written, self.items))) == 1

    def array(self) -> np.ndarray:
        found = np.empty(self.kind.size, object)
        found[:] = self.items
        return found.reshape(self.kind.shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Buffer:
    """An array in memory.

    Attributes:
        kind: Its shape and type.
        name: Of the pointer.
        stride: What lies between two entries, in entries: 1, or `LANES` where lanes lie side by side.
        writable: Whether the thread may change it. It may not change its arguments.
    """

    kind: Kind
    name: str
    stride: str
    writable: bool

    def at(self, index: Item) -> str:
        """The entry of a flat index."""
        if self.stride == "1":
            return f"{self.name}[{index}]"
        if isinstance(index, int):
            return f"{self.name}[{index} * {self.stride}]" if index else f"{self.name}[0]"
        return f"{self.name}[({index}) * {self.stride}]"

    def like(self, kind: Kind) -> "Buffer":
        """The same memory as another shape."""
        return dataclasses.replace(self, kind=kind)


Value = Numbers | Buffer


def literal(number: Any, kind: Kind) -> Item:
    """A known number: as Python's where it is an integer or a truth value."""
    if kind.dtype == "i1":
        return bool(number)
    if not kind.floating:
        return int(number)
    number = float(number)
    suffix = "f" if kind.dtype == "f32" else ""
    if math.isnan(number):
        return f"nan_of<{kind.c}>()"
    if math.isinf(number):
        return ("-" if number < 0 else "") + f"infinity_of<{kind.c}>()"
    text = repr(number)
    if suffix:
        text = repr(float(np.float32(number)))
    return f"{text}{suffix}" if number >= 0 and math.copysign(1, number) > 0 else f"({text}{suffix})"


def written(item: Item) -> str:
    """Literal of C."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        if item == -(2**63):
            return "(-9223372036854775807LL - 1)"
        text = str(item) if -(2**31) < item < 2**31 else f"{item}{'ULL' if item >= 2**63 else 'LL'}"
        return text if item >= 0 else f"({text})"
    return item


def known(*items: Item) -> bool:
    """Tell whether all are numbers that are known."""
    return all(isinstance(x, int) for x in items)


def wrapped(number: int, kind: Kind) -> int:
    """A known integer as its type holds it."""
    bits = int(kind.dtype.lstrip("ui"))
    number %= 1 << bits
    return number if kind.dtype.startswith("ui") or number < 1 << bits - 1 else number - (1 << bits)


def clamped(x: Item, low: Item, high: Item) -> str:
    """An integer between two bounds."""
    return f"({x} < {low} ? {low} : {x} > {high} ? {high} : {x})"
