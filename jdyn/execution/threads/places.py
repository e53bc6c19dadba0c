"""Entries that are read and written at places that are computed."""

import contextlib
from collections.abc import Sequence

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import MOST_ARRANGED, MOST_NUMBERS, MOST_WRITTEN_OUT, Translation, most_numbers
from jdyn.execution.threads.values import Item, Kind, Numbers, Untranslatable, Value, clamped, known, written


def _start(program, index: Item, most: int) -> Item:
    """A first index that leaves room for what follows."""
    if most == 0:
        return 0
    if isinstance(index, int):
        return min(max(index, 0), most)
    return program.variable(Kind((), "i32"), f"(int){clamped(index, 0, most)}")


def _sum(program, terms: Sequence[tuple[Item, int]]) -> Item:
    """Σ factor · index."""
    known = sum(i * factor for i, factor in terms if isinstance(i, int))
    unknown = [i if factor == 1 else f"{i} * {factor}" for i, factor in terms if not isinstance(i, int)]
    if not unknown:
        return known
    return program.variable(Kind((), "i32"), " + ".join([*unknown, str(known)] if known else unknown))


def _looked_up(program, source: Value, terms: Sequence[tuple[Item, int]]) -> Item:
    """The entry at Σ factor · index."""
    unknown = [(i, factor) for i, factor in terms if isinstance(i, str)]
    if isinstance(source, Numbers) and len(unknown) == 1:
        ((index, factor),) = unknown
        first = sum(i * factor for i, factor in terms if isinstance(i, int))
        return program.chosen(source, source.items[first::factor], index)
    return program.entry(source, _sum(program, terms))


def _dynamic_slice(program: Translation, operation: Operation) -> list[Value]:
    source, *starts = operation.operands
    kind, strides = operation.kind(), operation.operands[0].kind.strides()
    most = [a - b for a, b in zip(source.kind.shape, kind.shape, strict=True)]
    starts = [_start(program, program.entry(x, 0), room) for x, room in zip(starts, most, strict=True)]
    terms = list(zip(starts, strides, strict=True))
    if kind.size <= (MOST_ARRANGED if known(*starts) and isinstance(source, Numbers) else MOST_NUMBERS):
        flat = [source.kind.flat(index) for index in kind.indices()]
        return [program.numbers(kind, [_looked_up(program, source, [*terms, (i, 1)]) for i in flat])]
    first = _sum(program, terms)
    target = program.new_buffer(kind)

    def body(indices):
        there = f"{first} + {source.kind.flat_in_c(indices)}"
        program.emit(f"{target.at(kind.flat_in_c(indices))} = {written(program.entry(source, there))};")

    program.nest(kind.shape, body)
    return [target]


def _dynamic_update_slice(program: Translation, operation: Operation) -> list[Value]:
    source, update, *starts = operation.operands
    kind = operation.kind()
    most = [a - b for a, b in zip(kind.shape, update.kind.shape, strict=True)]
    starts = [_start(program, program.entry(x, 0), room) for x, room in zip(starts, most, strict=True)]
    first = _sum(program, list(zip(starts, kind.strides(), strict=True)))
    if isinstance(first, int) and kind.size <= most_numbers(source, update) and isinstance(source, Numbers):
        items = list(source.items)
        for index, item in zip(update.kind.indices(), program.as_numbers(update).items, strict=True):
            items[first + kind.flat(index)] = item
        return [program.numbers(kind, items)]
    if update.kind.size == kind.size:
        return [update]
    target = program.own(source, operation.consumed[0])
    if update.kind.size <= MOST_NUMBERS:
        for index, item in zip(update.kind.indices(), program.as_numbers(update).items, strict=True):
            program.emit(f"{target.at(_sum(program, [(first, 1), (kind.flat(index), 1)]))} = {written(item)};")
        return [target.like(kind)]

    def body(indices):
        item = program.entry(update, update.kind.flat_in_c(indices))
        program.emit(f"{target.at(f'{first} + {kind.flat_in_c(indices)}')} = {written(item)};")

    program.nest(update.kind.shape, body)
    return [target.like(kind)]


def _gather(program: Translation, operation: Operation) -> list[Value]:
    source, indices = operation.operands
    kind = operation.kind()
    if kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"looking up {kind.size} entries")
    d = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    sizes = operation.integers("slice_sizes")
    vectors = _vectors(program, indices, d.index_vector_dim)
    batch_axes = [axis for axis in range(len(kind.shape)) if axis not in d.offset_dims]
    own_batch = dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
    window_axes = [
        axis for axis in range(len(sizes))
        if axis not in d.collapsed_slice_dims and axis not in d.operand_batching_dims
    ]  # fmt: skip
    starts: dict = {}

    def terms_of(index):
        at = [index[axis] for axis in batch_axes]
        if tuple(at) not in starts:
            vector = vectors[tuple(at)]
            start: list[Item] = [0] * len(sizes)
            for axis, item in zip(d.start_index_map, vector, strict=True):
                start[axis] = _start(program, item, source.kind.shape[axis] - sizes[axis])
            for axis, index_axis in own_batch.items():
                start[axis] = at[index_axis - (index_axis > d.index_vector_dim)]
            starts[tuple(at)] = start
        offset = dict(zip(window_axes, (index[axis] for axis in d.offset_dims), strict=True))
        strides = source.kind.strides()
        terms = [(i, strides[axis]) for axis, i in enumerate(starts[tuple(at)])]
        return terms + [(offset.get(axis, 0), strides[axis]) for axis in range(len(sizes))]

    items = [_looked_up(program, source, terms_of(index)) for index in kind.indices()]
    return [program.from_items(kind, items)]


def _vectors(program, indices: Value, axis: int) -> np.ndarray:
    """Starts, whose entries are the last axis."""
    found = program.as_numbers(indices).array()
    return found[..., None] if axis == found.ndim else np.moveaxis(found, axis, -1)


def _scatter(program: Translation, operation: Operation) -> list[Value]:
    count = (len(operation.operands) - 1) // 2
    if count != 1:
        raise Untranslatable("a scatter of several arrays")
    source, indices, update = operation.operands
    kind = operation.kind()
    if update.kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"a scatter of {update.kind.size} entries")
    d = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    vectors = _vectors(program, indices, d.index_vector_dim)
    own_batch = dict(zip(d.input_batching_dims, d.scatter_indices_batching_dims, strict=True))
    scatter_axes = [axis for axis in range(len(update.kind.shape)) if axis not in d.update_window_dims]
    rank = len(kind.shape)
    window_axes = [
        axis for axis in range(rank) if axis not in d.inserted_window_dims and axis not in d.input_batching_dims
    ]
    extent = [1] * rank
    for axis, update_axis in zip(window_axes, d.update_window_dims, strict=True):
        extent[axis] = update.kind.shape[update_axis]
    placed = []
    for index in update.kind.indices():
        at = [index[axis] for axis in scatter_axes]
        vector = vectors[tuple(at)]
        start: list[Item] = [0] * rank
        for axis, item in zip(d.scattered_dims_to_operand_dims, vector, strict=True):
            start[axis] = item
        for axis, index_axis in own_batch.items():
            start[axis] = at[index_axis - (index_axis > d.index_vector_dim)]
        inside: list[Item] = []
        for axis, first in enumerate(start):
            room = kind.shape[axis] - extent[axis]
            if isinstance(first, int):
                inside.append(0 <= first <= room)
            else:
                inside.append(f"{first} >= 0 & {first} <= {room}")
        offset = [0] * rank
        for axis, update_axis in zip(window_axes, d.update_window_dims, strict=True):
            offset[axis] = index[update_axis]
        placed.append((start, offset, inside, index))
    block, strides = operation.blocks[0], kind.strides()
    new = program.as_numbers(update).array()

    def combined(old, item):
        return program.applied(block, operation.values, [kind.dtype] * 2, [old, item])[0]

    if isinstance(source, Numbers) and all(known(*start) for start, *_ in placed):
        items = list(source.items)
        for start, offset, inside, index in placed:
            if all(inside):
                flat = kind.flat([a + b for a, b in zip(start, offset, strict=True)])
                items[flat] = combined(items[flat], new[index])
        return [program.numbers(kind, items)]
    target = program.own(source, operation.consumed[0])
    for start, offset, inside, index in placed:
        unknown = [x for x in inside if isinstance(x, str)]
        if False in inside:
            continue
        terms = [(f"(int){i}" if isinstance(i, str) else i, stride) for i, stride in zip(start, strides, strict=True)]
        with program.block(f"if ({' & '.join(unknown)})") if unknown else contextlib.nullcontext():
            flat = _sum(program, terms + list(zip(offset, strides, strict=True)))
            item = combined(program.loaded(target, flat), new[index])
            program.emit(f"{target.at(flat)} = {written(item)};")
    return [target.like(kind)]


RULES = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
