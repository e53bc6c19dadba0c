"""Operations that only arrange entries."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import MOST_WRITTEN_OUT, Translation, most_numbers
from jdyn.execution.threads.values import Buffer, Kind, Numbers, Untranslatable, Value, literal, written


def _arranged(program: Translation, kind: Kind, source: Value, index_of: Callable[[list], Any]) -> list[Value]:
    """A result whose entry at an index is the source's entry at `index_of` it, known or written in C."""
    if kind.size <= most_numbers(source):
        flat = (source.kind.flat(index_of(list(index))) for index in kind.indices())
        if isinstance(source, Numbers):
            return [program.numbers(kind, [source.items[i] for i in flat])]
        return [program.numbers(kind, [program.loaded(source, i) for i in flat])]
    if isinstance(source, Numbers) and source.uniform:
        return [program.numbers(kind, [source.items[0]] * kind.size)]
    target = program.new_buffer(kind)

    def body(indices):
        here = kind.flat_in_c(indices)
        there = source.kind.flat_in_c(index_of(indices))
        program.emit(f"{target.at(here)} = {written(program.entry(source, there))};")

    program.nest(kind.shape, body)
    return [target]


def _broadcast(program: Translation, operation: Operation) -> list[Value]:
    (source,) = operation.operands
    axes = operation.integers("broadcast_dimensions")

    def index_of(index):
        return [0 if size == 1 else index[axis] for axis, size in zip(axes, source.kind.shape, strict=True)]

    if source.kind.size == operation.kind().size and list(axes) == sorted(axes):
        return _reshape(program, operation)
    return _arranged(program, operation.kind(), source, index_of)


def _reshape(program: Translation, operation: Operation) -> list[Value]:
    (source,), kind = operation.operands, operation.kind()
    if isinstance(source, Numbers):
        return [program.numbers(kind, source.items)]
    if not source.writable or operation.consumed[0]:
        return [source.like(kind)]
    return [program.own(source, False).like(kind)]


def _transpose(program: Translation, operation: Operation) -> list[Value]:
    axes = operation.integers("permutation")

    def index_of(index):
        there = [0] * len(axes)
        for axis, i in zip(axes, index, strict=True):
            there[axis] = i
        return there

    return _arranged(program, operation.kind(), operation.operands[0], index_of)


def _slice(program: Translation, operation: Operation) -> list[Value]:
    starts, steps = (operation.integers(x) for x in ("start_indices", "strides"))

    def index_of(index):
        return [_affine(start, step, i) for start, step, i in zip(starts, steps, index, strict=True)]

    return _arranged(program, operation.kind(), operation.operands[0], index_of)


def _affine(start, step, i):
    return start + step * i if isinstance(i, int) else f"{start} + {step} * {i}"


def _reverse(program: Translation, operation: Operation) -> list[Value]:
    axes, shape = operation.integers("dimensions"), operation.operands[0].kind.shape

    def index_of(index):
        return [_affine(shape[axis] - 1, -1, i) if axis in axes else i for axis, i in enumerate(index)]

    return _arranged(program, operation.kind(), operation.operands[0], index_of)


def _iota(program: Translation, operation: Operation) -> list[Value]:
    kind = operation.kind()
    axis = operation.integer("iota_dimension")
    if kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"counting up to {kind.size}")
    return [program.numbers(kind, [literal(index[axis], kind) for index in kind.indices()])]


def _concatenate(program: Translation, operation: Operation) -> list[Value]:
    kind, axis = operation.kind(), operation.integer("dimension")
    if kind.size <= most_numbers(*operation.operands):
        arrays = [program.as_numbers(x).array() for x in operation.operands]
        return [program.numbers(kind, np.concatenate(arrays, axis).reshape(-1).tolist())]
    target, start = program.new_buffer(kind), 0
    for source in operation.operands:
        steps = [(start if i == axis else 0, 1) for i in range(len(kind.shape))]
        _placed(program, source, target, steps)
        start += source.kind.shape[axis]
    return [target]


def _pad(program: Translation, operation: Operation) -> list[Value]:
    source, filling = operation.operands
    kind = operation.kind()
    low, interior = (operation.integers(x) for x in ("edge_padding_low", "interior_padding"))
    item = program.entry(filling, 0)
    if kind.size <= most_numbers(source):
        items: Any = np.full(kind.shape, None, object)
        items[...] = item
        given = program.as_numbers(source).array()
        for index in source.kind.indices():
            there = tuple(a + i * (b + 1) for a, b, i in zip(low, interior, index, strict=True))
            if all(0 <= i < size for i, size in zip(there, kind.shape, strict=True)):
                items[there] = given[index]
        return [program.numbers(kind, items.reshape(-1).tolist())]
    if min(low) < 0 or min(operation.integers("edge_padding_high")) < 0:
        raise Untranslatable("padding that cuts")
    target = program.own(program.numbers(kind, [item] * kind.size), False)
    _placed(program, source, target, [(a, b + 1) for a, b in zip(low, interior, strict=True)])
    return [target]


def _placed(program, source: Value, target: Buffer, steps):
    """The source's entries at (start + step i) along every axis of the target."""

    def body(indices):
        there = [_affine(start, step, i) for (start, step), i in zip(steps, indices, strict=True)]
        item = program.entry(source, source.kind.flat_in_c(indices))
        program.emit(f"{target.at(target.kind.flat_in_c(there))} = {written(item)};")

    program.nest(source.kind.shape, body)


RULES = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.reverse": _reverse,
    "stablehlo.iota": _iota,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.pad": _pad,
}
