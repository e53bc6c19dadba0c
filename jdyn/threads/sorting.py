"""Sorting by a thread."""

from typing import Any

from jaxlib.mlir import ir

from jdyn.threads.translation import Translation
from jdyn.threads.values import Kind, Value, written


def sort(
    program: Translation, operation: Any, values: dict, operands: list[Value], consumed: list[bool]
) -> list[Value]:
    """Arrays in the order that a comparison of their entries gives, by insertion, which is stable."""
    shape = operands[0].kind.shape
    axis = ir.IntegerAttr(operation.attributes["dimension"]).value % len(shape)
    block = operation.regions[0].blocks[0]
    arrays = [program.own(x, each) for x, each in zip(operands, consumed, strict=True)]
    strides = Kind(shape, "i32").strides()
    i, j = program.name("i"), program.name("i")

    def insert(indices):
        first = " + ".join(f"{i} * {strides[a]}" for a, i in indices) or "0"
        here, before = (f"{first} + {place} * {strides[axis]}" for place in (j, f"({j} - 1)"))
        with program.block(f"for (int {i} = 1; {i} < {shape[axis]}; ++{i})"):
            with program.block(f"for (int {j} = {i}; {j} > 0; --{j})"):
                pairs = [(program.loaded(x, here), program.loaded(x, before)) for x in arrays]
                kinds = [Kind((), x.kind.dtype) for x in arrays]
                arguments = [
                    program.numbers(kind, [item]) for kind, pair in zip(kinds, pairs, strict=True) for item in pair
                ]
                (smaller,) = program.run(block, values, set(), arguments, [False] * len(arguments))
                program.emit(f"if (!({written(program.as_numbers(smaller).items[0])})) break;")
                for x, (item, other) in zip(arrays, pairs, strict=True):
                    program.emit(f"{x.at(here)} = {other};")
                    program.emit(f"{x.at(before)} = {item};")

    others = [a for a in range(len(shape)) if a != axis]
    program.nest([shape[a] for a in others], lambda indices: insert(list(zip(others, indices, strict=True))))
    return [x.like(value.kind) for x, value in zip(arrays, operands, strict=True)]
