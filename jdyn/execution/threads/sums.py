"""Products of matrices, and reductions."""

import math

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import MOST_NUMBERS, MOST_WRITTEN_OUT, Translation
from jdyn.execution.threads.values import Buffer, Item, Untranslatable, Value, known, literal, wrapped, written


def _dot_general(program: Translation, operation: Operation) -> list[Value]:
    a, b = operation.operands
    kind = operation.kind()
    d = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    batch_a, batch_b = list(d.lhs_batching_dimensions), list(d.rhs_batching_dimensions)
    sum_a, sum_b = list(d.lhs_contracting_dimensions), list(d.rhs_contracting_dimensions)
    free_a = [x for x in range(len(a.kind.shape)) if x not in batch_a + sum_a]
    free_b = [x for x in range(len(b.kind.shape)) if x not in batch_b + sum_b]
    summed = [a.kind.shape[axis] for axis in sum_a]
    if kind.size * math.prod(summed) > MOST_WRITTEN_OUT:
        return [_dot_in_loops(program, kind, a, b, (batch_a, free_a, sum_a), (batch_b, free_b, sum_b), summed)]
    # In the order of the result: batches, then what is free on the left, then on the right.
    left = np.transpose(program.as_numbers(a).array(), batch_a + free_a + sum_a)
    right = np.transpose(program.as_numbers(b).array(), batch_b + free_b + sum_b)
    nb, nf = len(batch_a), len(free_a)
    items = []
    for index in kind.indices():
        x = np.asarray(left[index[: nb + nf]], object).reshape(-1)
        y = np.asarray(right[index[:nb] + index[nb + nf :]], object).reshape(-1)
        items.append(_dot(program, kind, list(zip(x.tolist(), y.tolist(), strict=True))))
    return [program.from_items(kind, items)]


def _dot(program, kind, pairs) -> Item:
    if not pairs:
        return literal(0, kind)
    if all(known(*pair) for pair in pairs):
        return wrapped(sum(int(x) * int(y) for x, y in pairs), kind)
    if kind.dtype == "i1":
        return program.variable(kind, " | ".join(f"({written(x)} & {written(y)})" for x, y in pairs))
    return program.variable(kind, " + ".join(f"{written(x)} * {written(y)}" for x, y in pairs))


def _dot_in_loops(program, kind, a, b, axes_a, axes_b, summed) -> Buffer:
    target = program.new_buffer(kind)
    (batch_a, free_a, sum_a), (batch_b, free_b, sum_b) = axes_a, axes_b

    def body(indices):
        nb, nf = len(batch_a), len(free_a)
        total = program.name("c")
        program.emit(f"{kind.c} {total} = 0;")

        def add(over):
            def at(value, batch, free, mine, own):
                index = [0] * len(value.kind.shape)
                for axes, given in ((batch, indices[:nb]), (free, own), (mine, over)):
                    for axis, i in zip(axes, given, strict=True):
                        index[axis] = i
                return program.entry(value, value.kind.flat_in_c(index))

            x = at(a, batch_a, free_a, sum_a, indices[nb : nb + nf])
            y = at(b, batch_b, free_b, sum_b, indices[nb + nf :])
            program.emit(f"{total} += {x} * {y};")

        program.nest(summed, add)
        program.emit(f"{target.at(kind.flat_in_c(indices))} = {total};")

    program.nest(kind.shape, body)
    return target


def _reduce(program: Translation, operation: Operation) -> list[Value]:
    half = len(operation.operands) // 2
    sources, starts = operation.operands[:half], operation.operands[half:]
    kinds = [operation.kind(i) for i in range(half)]
    axes = operation.integers("dimensions")
    given = sources[0].kind
    block = operation.blocks[0]
    dtypes = [kind.dtype for kind in kinds]

    def combined(before, row):
        return program.applied(block, operation.values, dtypes * 2, [*before, *row])

    first = [program.entry(x, 0) for x in starts]
    kept = [axis for axis in range(len(given.shape)) if axis not in axes]
    if given.size > MOST_WRITTEN_OUT or (kinds[0].size == 1 and given.size > MOST_NUMBERS):
        if kinds[0].size != 1:
            raise Untranslatable(f"a reduction of {given.size} entries to {kinds[0].size}")
        return _reduced_in_a_loop(program, sources, kinds, first, combined)
    arrays = [np.transpose(program.as_numbers(x).array(), kept + axes).reshape(kinds[0].size, -1) for x in sources]
    columns: list[list[Item]] = [[] for _ in kinds]
    for k in range(kinds[0].size):
        found = list(first)
        for j in range(arrays[0].shape[1]):
            row = [array[k, j] for array in arrays]
            neutral = half == 1 and j == 0 and _neutral(block, kinds[0], found[0])
            found = row if neutral else combined(found, row)
        for column, item in zip(columns, found, strict=True):
            column.append(item)
    return [program.from_items(kind, column) for kind, column in zip(kinds, columns, strict=True)]


def _reduce_window(program: Translation, operation: Operation) -> list[Value]:
    """Window sum of one array, as cumulative sums are written."""
    source, start = operation.operands
    kind, block, given = operation.kind(), operation.blocks[0], source.kind
    names = ("window_dimensions", "window_strides")
    window, steps = (operation.integers(x) if x in operation.attributes else [1] * len(given.shape) for x in names)
    if any(
        set(operation.integers(x)) != {1} for x in ("base_dilations", "window_dilations") if x in operation.attributes
    ):
        raise Untranslatable("windows with gaps")
    low = [0] * len(given.shape)
    if "padding" in operation.attributes:
        low = np.array(ir.DenseElementsAttr(operation.attributes["padding"])).reshape(-1, 2)[:, 0].tolist()
    array, first = program.as_numbers(source).array(), program.entry(start, 0)
    items, count = [], 0
    for index in kind.indices():
        begin = [i * step - before for i, step, before in zip(index, steps, low, strict=True)]
        inside = [slice(max(a, 0), max(a + size, 0)) for a, size in zip(begin, window, strict=True)]
        item, entries = first, array[tuple(inside)].reshape(-1).tolist()
        count += len(entries)
        if count > MOST_WRITTEN_OUT:
            raise Untranslatable(f"windows of {count} entries and more")
        for entry in entries:
            (item,) = program.applied(block, operation.values, [kind.dtype] * 2, [item, entry])
        items.append(item)
    return [program.from_items(kind, items)]


def _neutral(block, kind, item) -> bool:
    """Tell whether a reduction may begin with its first entry."""
    operations = [x.operation.name for x in block.operations]
    neutral = {"stablehlo.add": "0.0", "stablehlo.multiply": "1.0"}.get(operations[0])
    return len(operations) == 2 and kind.floating and neutral is not None and str(item).rstrip("f") == neutral


def _reduced_in_a_loop(program, sources, kinds, first, combined) -> list[Value]:
    names = [program.name("c") for _ in kinds]
    for name, kind, item in zip(names, kinds, first, strict=True):
        program.emit(f"{kind.c} {name} = {written(item)};")
    with program.block(f"for (int i = 0; i < {sources[0].kind.size}; ++i)"):
        found = combined(names, [program.entry(x, "i") for x in sources])
        program.assign(names, [kind.dtype for kind in kinds], found)
    return [program.numbers(kind, [name]) for name, kind in zip(names, kinds, strict=True)]


RULES = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
}
