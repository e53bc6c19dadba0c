"""Sorting by a thread."""

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import Translation
from jdyn.execution.threads.values import Kind, Value, written


def _sort(program: Translation, operation: Operation) -> list[Value]:
    """Arrays in the order that a comparison of their entries gives, by insertion, which is stable."""
    shape = operation.operands[0].kind.shape
    axis = operation.integer("dimension") % len(shape)
    block = operation.blocks[0]
    arrays = [program.own(x, each) for x, each in zip(operation.operands, operation.consumed, strict=True)]
    strides = Kind(shape, "i32").strides()
    i, j = program.name("i"), program.name("i")

    def insert(indices):
        first = " + ".join(f"{i} * {strides[a]}" for a, i in indices) or "0"
        here, before = (f"{first} + {place} * {strides[axis]}" for place in (j, f"({j} - 1)"))
        with program.block(f"for (int {i} = 1; {i} < {shape[axis]}; ++{i})"):
            with program.block(f"for (int {j} = {i}; {j} > 0; --{j})"):
                pairs = [(program.loaded(x, here), program.loaded(x, before)) for x in arrays]
                dtypes = [x.kind.dtype for x in arrays for _ in range(2)]
                (smaller,) = program.applied(block, operation.values, dtypes, [item for pair in pairs for item in pair])
                program.emit(f"if (!({written(smaller)})) break;")
                for x, (item, other) in zip(arrays, pairs, strict=True):
                    program.emit(f"{x.at(here)} = {other};")
                    program.emit(f"{x.at(before)} = {item};")

    others = [a for a in range(len(shape)) if a != axis]
    program.nest([shape[a] for a in others], lambda indices: insert(list(zip(others, indices, strict=True))))
    return [x.like(value.kind) for x, value in zip(arrays, operation.operands, strict=True)]


RULES = {"stablehlo.sort": _sort}
