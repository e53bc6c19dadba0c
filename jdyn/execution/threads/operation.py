"""An operation of StableHLO, as the rules see it that translate one."""

import dataclasses
from typing import Any

from jaxlib.mlir import ir

from jdyn.execution.threads.values import Kind, Value


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
    """An operation with what it works on.

    Attributes:
        raw: The operation as MLIR has it.
        operands: What it works on.
        consumed: Which operands nobody reads after it, so that they may be changed in place.
        values: Of everything that its regions can see.
        over: All that nobody reads after it.
    """

    raw: Any
    operands: list[Value]
    consumed: list[bool]
    values: dict[Any, Value]
    over: set

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def attributes(self):
        return self.raw.attributes

    @property
    def blocks(self) -> list:
        """Blocks of its regions."""
        return [region.blocks[0] for region in self.raw.regions]

    def kind(self, result: int = 0) -> Kind:
        """Shape and type of a result."""
        return Kind.of(self.raw.results[result].type)

    def integer(self, name: str) -> int:
        """An attribute."""
        return ir.IntegerAttr(self.attributes[name]).value

    def integers(self, name: str) -> list[int]:
        """An attribute."""
        return list(ir.DenseI64ArrayAttr(self.attributes[name]))

    def flag(self, name: str) -> bool:
        """An attribute, false where it is left out."""
        return name in self.attributes and ir.BoolAttr(self.attributes[name]).value
