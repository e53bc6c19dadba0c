"""What each operation of StableHLO does with the numbers and buffers of a thread."""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jdyn.threads.factors import cholesky, triangular_solve
from jdyn.threads.loops import branch, loop
from jdyn.threads.sorting import sort
from jdyn.threads.translation import MOST_NUMBERS, Translation, callee
from jdyn.threads.values import Buffer, Item, Kind, Numbers, Untranslatable, Value, literal, written

# Entries that are read or written one by one, at most.
MOST_WRITTEN_OUT = 4096
# Numbers that are arranged, not computed.
MOST_ARRANGED = 2048

Rule = Callable[[Translation, Any, list[Value], list[bool]], list[Value]]

RULES: dict[str, Rule] = {}


def translate(program: Translation, operation: Any, values: dict, consumed: list[bool], over: set) -> list[Value]:
    """The results of an operation.

    Args:
        program: The translation.
        operation: What to translate.
        values: Of everything that it can see.
        consumed: Which operands nobody reads after it, so that they may be changed in place.
        over: All that nobody reads after it.
    """
    name, operands = operation.name, [values[x] for x in operation.operands]
    if name == "stablehlo.while":
        return loop(program, operation, values, operands, consumed)
    if name in ("stablehlo.case", "stablehlo.if"):
        return branch(program, operation, values, operands, over)
    if name in ("func.call", "stablehlo.composite"):
        return program.call(callee(operation), operands, consumed)
    if name in _WITH_REGIONS:
        return _WITH_REGIONS[name](program, operation, values, operands, consumed)
    rule = RULES.get(name)
    if rule is None:
        raise Untranslatable(f"the operation {name}{_target(operation)}")
    return rule(program, operation, operands, consumed)


def _target(operation):
    attributes = operation.attributes
    return f" {attributes['call_target_name'].value}" if "call_target_name" in attributes else ""


def rule(name: str):
    def register(function):
        RULES[f"stablehlo.{name}"] = function
        return function

    return register


def _kind(operation, i=0) -> Kind:
    return Kind.of(operation.results[i].type)


def _integers(attribute) -> list[int]:
    return list(ir.DenseI64ArrayAttr(attribute))


# Elementwise


def elementwise(program: Translation, kind: Kind, function, operands: Sequence[Value], consumed=()) -> Value:
    """`function` of the operands' entries."""
    if kind.size <= MOST_NUMBERS:
        rows = list(zip(*(program.as_numbers(x).items for x in operands), strict=True))
        found = {row: _as_item(program, kind, function(*row)) for row in dict.fromkeys(map(_Row, rows))}
        return program.numbers(kind, [found[_Row(row)] for row in rows])
    if all(isinstance(x, Numbers) and x.uniform for x in operands):
        item = _as_item(program, kind, function(*(x.items[0] for x in operands if isinstance(x, Numbers))))
        return program.numbers(kind, [item] * kind.size)
    given = itertools.zip_longest(operands, consumed, fillvalue=False)
    reused = [x for x, each in given if each and isinstance(x, Buffer) and x.writable and x.kind.dtype == kind.dtype]
    target = reused[0].like(kind) if reused else program.new_buffer(kind)
    with program.block(f"for (int i = 0; i < {kind.size}; ++i)"):
        program.emit(f"{target.at('i')} = {written(function(*(program.entry(x, 'i') for x in operands)))};")
    return target


class _Row(tuple):
    """Items of operands. The truth value true is not the number 1."""

    __slots__ = ()

    def __eq__(self, other):
        return tuple.__eq__(self, other) and [*map(type, self)] == [*map(type, other)]

    def __hash__(self):
        return hash((*map(type, self), *self))


def _as_item(program, kind, found) -> Item:
    return program.variable(kind, found) if isinstance(found, str) and not _simple(found) else found


def _simple(text):
    return text.isidentifier() or text.replace(".", "").rstrip("f").isdigit()


def _constant(program, operation, operands, consumed):
    kind = _kind(operation)
    attribute = operation.attributes["value"]
    try:
        dense = ir.DenseElementsAttr(attribute)
        if dense.is_splat:
            element = dense.get_splat_value()
            return [program.numbers(kind, [literal(_number(element, kind), kind)] * kind.size)]
        entries = _entries(dense, kind)
    except ValueError as error:
        raise Untranslatable("a constant that is not written out") from error
    return [program.numbers(kind, [literal(x, kind) for x in entries])]


RULES["stablehlo.constant"] = _constant


def _number(element, kind):
    if kind.floating:
        return ir.FloatAttr(element).value
    if kind.dtype == "i1":
        return ir.BoolAttr(element).value
    value = ir.IntegerAttr(element).value
    return value % (1 << int(kind.dtype[2:])) if kind.dtype.startswith("ui") else value


def _entries(dense, kind):
    if kind.dtype == "i1":
        return [bool(x) for x in ir.DenseIntElementsAttr(dense)]
    return np.array(dense).reshape(-1).tolist()


def _known(*items) -> bool:
    return all(isinstance(x, (int, bool)) for x in items)


def _wrapped(number: int, kind: Kind) -> int:
    bits = int(kind.dtype.lstrip("ui"))
    number %= 1 << bits
    return number if kind.dtype.startswith("ui") or number < 1 << bits - 1 else number - (1 << bits)


def _arithmetic(operator: str, exact: Callable, truth: str):
    def rule(program, operation, operands, consumed):
        kind = _kind(operation)

        def each(x, y):
            if kind.dtype == "i1":
                return _logical(truth, x, y)
            if _known(x, y):
                return _wrapped(exact(int(x), int(y)), kind)
            return f"{written(x)} {operator} {written(y)}"

        return [elementwise(program, kind, each, operands, consumed)]

    return rule


def _logical(operator, x, y):
    """Of truth values."""
    if _known(x, y):
        return bool({"&": x and y, "|": x or y, "^": x != y}[operator])
    for known, other in ((x, y), (y, x)):
        if isinstance(known, bool):
            if operator == "&":
                return other if known else False
            if operator == "|":
                return True if known else other
            return f"!{other}" if known else other
    return x if x == y and operator != "^" else f"{x} {operator} {y}"


RULES["stablehlo.add"] = _arithmetic("+", lambda x, y: x + y, "|")
RULES["stablehlo.subtract"] = _arithmetic("-", lambda x, y: x - y, "^")
RULES["stablehlo.multiply"] = _arithmetic("*", lambda x, y: x * y, "&")


def _bitwise(operator: str, exact: Callable):
    def rule(program, operation, operands, consumed):
        kind = _kind(operation)

        def each(x, y):
            if kind.dtype == "i1":
                return _logical(operator, x, y)
            return _wrapped(exact(x, y), kind) if _known(x, y) else f"{written(x)} {operator} {written(y)}"

        return [elementwise(program, kind, each, operands, consumed)]

    return rule


RULES["stablehlo.and"] = _bitwise("&", lambda x, y: x & y)
RULES["stablehlo.or"] = _bitwise("|", lambda x, y: x | y)
RULES["stablehlo.xor"] = _bitwise("^", lambda x, y: x ^ y)


@rule("not")
def _not(program, operation, operands, consumed):
    kind = _kind(operation)

    def each(x):
        if kind.dtype == "i1":
            return not x if _known(x) else f"!{x}"
        return _wrapped(~x, kind) if _known(x) else f"~{x}"

    return [elementwise(program, kind, each, operands, consumed)]


def _written_as(pattern: str, integers: str | None = None):
    """Of one expression for numbers with a point, and perhaps another for integers."""

    def rule(program, operation, operands, consumed):
        kind = _kind(operation)
        chosen = pattern if Kind.of(operation.operands[0].type).floating else integers
        if chosen is None:
            raise Untranslatable(f"{operation.name} of integers")

        def each(*items):
            return chosen.format(*map(written, items), c=kind.c)

        return [elementwise(program, kind, each, operands, consumed)]

    return rule


for _name, _patterns in {
    "divide": ("{0} / {1}", "quotient<{c}>({0}, {1})"),
    "remainder": ("fmod({0}, {1})", "rest<{c}>({0}, {1})"),
    "power": ("pow({0}, {1})", "integer_power<{c}>({0}, {1})"),
    "maximum": ("larger({0}, {1})", "({0} > {1} ? {0} : {1})"),
    "minimum": ("smaller({0}, {1})", "({0} < {1} ? {0} : {1})"),
    "atan2": ("atan2({0}, {1})",),
    "negate": ("-{0}", "({c})-{0}"),
    "abs": ("fabs({0})", "({0} < 0 ? -{0} : {0})"),
    "sign": ("sign_of({0})", "({c})(({0} > 0) - ({0} < 0))"),
    "sqrt": ("sqrt({0})",),
    "rsqrt": ("(({c})1 / sqrt({0}))",),
    "cbrt": ("cbrt({0})",),
    "exponential": ("exp({0})",),
    "exponential_minus_one": ("expm1({0})",),
    "log": ("log({0})",),
    "log_plus_one": ("log1p({0})",),
    "logistic": ("(({c})1 / (({c})1 + exp(-{0})))",),
    "sine": ("sin({0})",),
    "cosine": ("cos({0})",),
    "tan": ("tan({0})",),
    "tanh": ("tanh({0})",),
    "floor": ("floor({0})",),
    "ceil": ("ceil({0})",),
    "round_nearest_even": ("rint({0})",),
    "round_nearest_afz": ("round({0})",),
    "is_finite": ("(fabs({0}) < infinity_of<decltype({0} + 0)>())",),
    "shift_left": (None, "shifted_left<{c}>({0}, {1})"),
    "shift_right_logical": (None, "shifted_right<{c}>({0}, {1})"),
    "shift_right_arithmetic": (None, "shifted_right_signed<{c}>({0}, {1})"),
}.items():
    RULES[f"stablehlo.{_name}"] = _written_as(*_patterns) if _patterns[0] else _written_as("", _patterns[1])

for _name in ("acos", "asin", "atan", "acosh", "asinh", "atanh", "cosh", "sinh", "erf", "erfc", "lgamma"):
    RULES[f"chlo.{_name}"] = _written_as(_name + "({0})")


_COMPARED = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


_EXACT = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


@rule("compare")
def _compare(program, operation, operands, consumed):
    direction = stablehlo.ComparisonDirectionAttr(operation.attributes["comparison_direction"]).value
    sign, total = _COMPARED[direction], False
    if "compare_type" in operation.attributes:
        total = stablehlo.ComparisonTypeAttr(operation.attributes["compare_type"]).value == "TOTALORDER"

    def each(x, y):
        if _known(x, y):
            return _EXACT[sign](int(x), int(y))
        x, y = (f"in_order({written(item)})" if total else written(item) for item in (x, y))
        return f"{x} {sign} {y}"

    return [elementwise(program, _kind(operation), each, operands)]


@rule("select")
def _select(program, operation, operands, consumed):
    which, yes, no = operands
    kind = _kind(operation)
    if which.kind.size == 1 and kind.size != 1:
        which = program.numbers(Kind(kind.shape, "i1"), program.as_numbers(which).items * kind.size)

    def each(which, yes, no):
        if _known(which):
            return yes if which else no
        return yes if yes == no and type(yes) is type(no) else f"{which} ? {written(yes)} : {written(no)}"

    return [elementwise(program, kind, each, [which, yes, no], [False, *consumed[1:]])]


@rule("clamp")
def _clamp(program, operation, operands, consumed):
    kind = _kind(operation)
    low, x, high = operands

    def widened(bound):
        if bound.kind.size == kind.size:
            return bound
        return program.numbers(kind, program.as_numbers(bound).items * kind.size)

    def each(low, x, high):
        if _known(low, x, high):
            return min(max(low, x), high)
        if kind.floating:
            return f"smaller(larger({written(x)}, {written(low)}), {written(high)})"
        return _clamped(written(x), written(low), written(high))

    return [elementwise(program, kind, each, [widened(low), x, widened(high)])]


def _clamped(x, low, high):
    return f"({x} < {low} ? {low} : {x} > {high} ? {high} : {x})"


@rule("convert")
def _convert(program, operation, operands, consumed):
    kind, given = _kind(operation), operands[0].kind

    def each(x):
        if kind.dtype == given.dtype:
            return x
        if _known(x):
            if kind.dtype == "i1":
                return bool(x)
            return literal(x, kind) if kind.floating else _wrapped(int(x), kind)
        if kind.dtype == "i1":
            return f"{x} != 0"
        return f"({kind.c}){x}" if kind.floating or not given.floating else f"integer_of<{kind.c}>({x})"

    return [elementwise(program, kind, each, operands, consumed)]


@rule("bitcast_convert")
def _bitcast(program, operation, operands, consumed):
    kind = _kind(operation)
    return [elementwise(program, kind, lambda x: f"bits_of<{kind.c}>(({operands[0].kind.c}){written(x)})", operands)]


@rule("reduce_precision")
def _reduce_precision(program, operation, operands, consumed):
    kind = _kind(operation)
    kept = tuple(ir.IntegerAttr(operation.attributes[x]).value for x in ("exponent_bits", "mantissa_bits"))
    if kept != {"f32": (8, 23), "f64": (11, 52)}[kind.dtype]:
        raise Untranslatable("numbers of less precision")
    return [operands[0]]


@rule("optimization_barrier")
def _barrier(program, operation, operands, consumed):
    return list(operands)


# Arrangements


def _arranged(program, operation, source: Value, index_of: Callable[[list], Any], consumed=()) -> list[Value]:
    """A result whose entry at an index is the source's entry at `index_of` it, known or written in C."""
    kind = _kind(operation)
    if kind.size <= _most(source):
        flat = (source.kind.flat(index_of(list(index))) for index in kind.indices())
        if isinstance(source, Numbers):
            return [program.numbers(kind, [source.items[i] for i in flat])]
        return [program.numbers(kind, [program.loaded(source, i) for i in flat])]
    if isinstance(source, Numbers) and source.uniform:
        return [program.numbers(kind, [source.items[0]] * kind.size)]
    target = program.new_buffer(kind)

    def body(indices):
        here = _flat_in_c(kind, indices)
        there = _flat_in_c(source.kind, index_of(indices))
        program.emit(f"{target.at(here)} = {written(program.entry(source, there))};")

    program.nest(kind.shape, body)
    return [target]


def _filled(program, kind, item) -> Buffer:
    target = program.new_buffer(kind)
    with program.block(f"for (int i = 0; i < {kind.size}; ++i)"):
        program.emit(f"{target.at('i')} = {written(item)};")
    return target


def _flat_in_c(kind: Kind, index) -> Item:
    terms = [f"({i}) * {stride}" for i, stride in zip(index, kind.strides(), strict=True) if i not in (0, "0")]
    return " + ".join(terms) if terms else 0


@rule("broadcast_in_dim")
def _broadcast(program, operation, operands, consumed):
    (source,) = operands
    axes = _integers(operation.attributes["broadcast_dimensions"])

    def index_of(index):
        return [0 if size == 1 else index[axis] for axis, size in zip(axes, source.kind.shape, strict=True)]

    if source.kind.size == _kind(operation).size and list(axes) == sorted(axes):
        return _reshape(program, operation, operands, consumed)
    return _arranged(program, operation, source, index_of)


@rule("reshape")
def _reshape(program, operation, operands, consumed):
    (source,), kind = operands, _kind(operation)
    if isinstance(source, Numbers):
        return [program.numbers(kind, source.items)]
    if not source.writable or consumed[0]:
        return [source.like(kind)]
    return [program.own(source, False).like(kind)]


@rule("transpose")
def _transpose(program, operation, operands, consumed):
    axes = _integers(operation.attributes["permutation"])

    def index_of(index):
        there = [0] * len(axes)
        for axis, i in zip(axes, index, strict=True):
            there[axis] = i
        return there

    return _arranged(program, operation, operands[0], index_of)


@rule("slice")
def _slice(program, operation, operands, consumed):
    starts, steps = (_integers(operation.attributes[x]) for x in ("start_indices", "strides"))

    def index_of(index):
        return [_affine(start, step, i) for start, step, i in zip(starts, steps, index, strict=True)]

    return _arranged(program, operation, operands[0], index_of)


def _most(*sources) -> int:
    """How many entries are as many variables, where operands are only arranged."""
    return MOST_ARRANGED if all(isinstance(x, Numbers) or not x.writable for x in sources) else MOST_NUMBERS


def _affine(start, step, i):
    return start + step * i if isinstance(i, int) else f"{start} + {step} * {i}"


@rule("reverse")
def _reverse(program, operation, operands, consumed):
    axes, shape = _integers(operation.attributes["dimensions"]), operands[0].kind.shape

    def index_of(index):
        return [_affine(shape[axis] - 1, -1, i) if axis in axes else i for axis, i in enumerate(index)]

    return _arranged(program, operation, operands[0], index_of)


@rule("iota")
def _iota(program, operation, operands, consumed):
    kind = _kind(operation)
    axis = ir.IntegerAttr(operation.attributes["iota_dimension"]).value
    if kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"counting up to {kind.size}")
    return [program.numbers(kind, [literal(index[axis], kind) for index in kind.indices()])]


@rule("concatenate")
def _concatenate(program, operation, operands, consumed):
    kind, axis = _kind(operation), ir.IntegerAttr(operation.attributes["dimension"]).value
    if kind.size <= _most(*operands):
        arrays = [program.as_numbers(x).array() for x in operands]
        return [program.numbers(kind, np.concatenate(arrays, axis).reshape(-1).tolist())]
    target, start = program.new_buffer(kind), 0
    for source in operands:
        steps = [(start if i == axis else 0, 1) for i in range(len(kind.shape))]
        _placed(program, source, target, steps)
        start += source.kind.shape[axis]
    return [target]


@rule("pad")
def _pad(program, operation, operands, consumed):
    source, filling = operands
    kind = _kind(operation)
    low, interior = (_integers(operation.attributes[x]) for x in ("edge_padding_low", "interior_padding"))
    item = program.entry(filling, 0)
    if kind.size <= _most(source):
        items: Any = np.full(kind.shape, None, object)
        items[...] = item
        given = program.as_numbers(source).array()
        for index in source.kind.indices():
            there = tuple(a + i * (b + 1) for a, b, i in zip(low, interior, index, strict=True))
            if all(0 <= i < size for i, size in zip(there, kind.shape, strict=True)):
                items[there] = given[index]
        return [program.numbers(kind, items.reshape(-1).tolist())]
    if min(low) < 0 or min(_integers(operation.attributes["edge_padding_high"])) < 0:
        raise Untranslatable("padding that cuts")
    target = _filled(program, kind, item)
    _placed(program, source, target, [(a, b + 1) for a, b in zip(low, interior, strict=True)])
    return [target]


def _placed(program, source: Value, target: Buffer, steps):
    """The source's entries at (start + step i) along every axis of the target."""

    def body(indices):
        there = [_affine(start, step, i) for (start, step), i in zip(steps, indices, strict=True)]
        item = program.entry(source, _flat_in_c(source.kind, indices))
        program.emit(f"{target.at(_flat_in_c(target.kind, there))} = {written(item)};")

    program.nest(source.kind.shape, body)


# Places that are computed


def _start(program, index: Item, most: int) -> Item:
    """A first index that leaves room for what follows."""
    if most == 0:
        return 0
    if isinstance(index, int):
        return min(max(index, 0), most)
    return program.variable(Kind((), "i32"), f"(int){_clamped(index, 0, most)}")


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


@rule("dynamic_slice")
def _dynamic_slice(program, operation, operands, consumed):
    source, *starts = operands
    kind, strides = _kind(operation), operands[0].kind.strides()
    most = [a - b for a, b in zip(source.kind.shape, kind.shape, strict=True)]
    starts = [_start(program, program.entry(x, 0), room) for x, room in zip(starts, most, strict=True)]
    terms = list(zip(starts, strides, strict=True))
    if kind.size <= (MOST_ARRANGED if _known(*starts) and isinstance(source, Numbers) else MOST_NUMBERS):
        flat = [source.kind.flat(index) for index in kind.indices()]
        return [program.numbers(kind, [_looked_up(program, source, [*terms, (i, 1)]) for i in flat])]
    first = _sum(program, terms)
    target = program.new_buffer(kind)

    def body(indices):
        there = f"{first} + {_flat_in_c(source.kind, indices)}"
        program.emit(f"{target.at(_flat_in_c(kind, indices))} = {written(program.entry(source, there))};")

    program.nest(kind.shape, body)
    return [target]


@rule("dynamic_update_slice")
def _dynamic_update_slice(program, operation, operands, consumed):
    source, update, *starts = operands
    kind = _kind(operation)
    most = [a - b for a, b in zip(kind.shape, update.kind.shape, strict=True)]
    starts = [_start(program, program.entry(x, 0), room) for x, room in zip(starts, most, strict=True)]
    first = _sum(program, list(zip(starts, kind.strides(), strict=True)))
    if isinstance(first, int) and kind.size <= _most(source, update) and isinstance(source, Numbers):
        items = list(source.items)
        for index, item in zip(update.kind.indices(), program.as_numbers(update).items, strict=True):
            items[first + kind.flat(index)] = item
        return [program.numbers(kind, items)]
    if update.kind.size == kind.size:
        return [update]
    target = program.own(source, consumed[0])
    if update.kind.size <= MOST_NUMBERS:
        for index, item in zip(update.kind.indices(), program.as_numbers(update).items, strict=True):
            program.emit(f"{target.at(_sum(program, [(first, 1), (kind.flat(index), 1)]))} = {written(item)};")
        return [target.like(kind)]

    def body(indices):
        item = program.entry(update, _flat_in_c(update.kind, indices))
        program.emit(f"{target.at(f'{first} + {_flat_in_c(kind, indices)}')} = {written(item)};")

    program.nest(update.kind.shape, body)
    return [target.like(kind)]


@rule("gather")
def _gather(program, operation, operands, consumed):
    source, indices = operands
    kind = _kind(operation)
    if kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"looking up {kind.size} entries")
    d = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    sizes = _integers(operation.attributes["slice_sizes"])
    index_array, vector_axis = program.as_numbers(indices).array(), d.index_vector_dim
    if vector_axis == index_array.ndim:
        index_array = index_array[..., None]
    batch_axes = [axis for axis in range(len(kind.shape)) if axis not in d.offset_dims]
    own_batch = dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
    window_axes = [
        axis for axis in range(len(sizes))
        if axis not in d.collapsed_slice_dims and axis not in d.operand_batching_dims
    ]  # fmt: skip
    index_axes = [axis for axis in range(index_array.ndim) if axis != vector_axis]
    starts: dict = {}

    def terms_of(index):
        at = [index[axis] for axis in batch_axes]
        if tuple(at) not in starts:
            vector = index_array[tuple(_inserted(at, vector_axis))]
            start: list[Item] = [0] * len(sizes)
            for axis, item in zip(d.start_index_map, vector, strict=True):
                start[axis] = _start(program, item, source.kind.shape[axis] - sizes[axis])
            for axis, index_axis in own_batch.items():
                start[axis] = at[index_axes.index(index_axis)]
            starts[tuple(at)] = start
        offset = dict(zip(window_axes, (index[axis] for axis in d.offset_dims), strict=True))
        strides = source.kind.strides()
        terms = [(i, strides[axis]) for axis, i in enumerate(starts[tuple(at)])]
        return terms + [(offset.get(axis, 0), strides[axis]) for axis in range(len(sizes))]

    items = [_looked_up(program, source, terms_of(index)) for index in kind.indices()]
    return [_from_items(program, kind, items)]


def _inserted(index, axis):
    return [*index[:axis], slice(None), *index[axis:]]


def _from_items(program, kind, items) -> Value:
    found = program.numbers(kind, items)
    return found if kind.size <= MOST_NUMBERS else program.own(found, False)


def _scatter(program, operation, values, operands, consumed):
    count = (len(operands) - 1) // 2
    if count != 1:
        raise Untranslatable("a scatter of several arrays")
    source, indices, update = operands
    kind = _kind(operation)
    if update.kind.size > MOST_WRITTEN_OUT:
        raise Untranslatable(f"a scatter of {update.kind.size} entries")
    d = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    index_array, vector_axis = program.as_numbers(indices).array(), d.index_vector_dim
    if vector_axis == index_array.ndim:
        index_array = index_array[..., None]
    index_axes = [axis for axis in range(index_array.ndim) if axis != vector_axis]
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
        vector = index_array[tuple(_inserted(at, vector_axis))]
        start: list[Item] = [0] * rank
        for axis, item in zip(d.scattered_dims_to_operand_dims, vector, strict=True):
            start[axis] = item
        for axis, index_axis in own_batch.items():
            start[axis] = at[index_axes.index(index_axis)]
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
    block, strides = operation.regions[0].blocks[0], kind.strides()
    new = program.as_numbers(update).array()

    def combined(old, item):
        arguments = [program.numbers(Kind((), kind.dtype), [x]) for x in (old, item)]
        (found,) = program.run(block, values, set(), arguments, [False, False])
        return program.as_numbers(found).items[0]

    known = all(isinstance(i, int) for start, *_ in placed for i in start)
    if known and isinstance(source, Numbers):
        items = list(source.items)
        for start, offset, inside, index in placed:
            if all(inside):
                flat = kind.flat([a + b for a, b in zip(start, offset, strict=True)])
                items[flat] = combined(items[flat], new[index])
        return [program.numbers(kind, items)]
    target = program.own(source, consumed[0])
    for start, offset, inside, index in placed:
        unknown = [x for x in inside if isinstance(x, str)]
        if False in inside:
            continue
        terms = [(f"(int){i}" if isinstance(i, str) else i, stride) for i, stride in zip(start, strides, strict=True)]

        def put():
            flat = _sum(program, terms + list(zip(offset, strides, strict=True)))  # noqa: B023
            item = combined(program.loaded(target, flat), new[index])  # noqa: B023
            program.emit(f"{target.at(flat)} = {written(item)};")

        if unknown:
            with program.block(f"if ({' & '.join(unknown)})"):
                put()
        else:
            put()
    return [target.like(kind)]


# Sums


@rule("dot_general")
def _dot_general(program, operation, operands, consumed):
    a, b = operands
    kind = _kind(operation)
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
    return [_from_items(program, kind, items)]


def _dot(program, kind, pairs) -> Item:
    if not pairs:
        return literal(0, kind)
    if all(_known(*pair) for pair in pairs):
        return _wrapped(sum(int(x) * int(y) for x, y in pairs), kind)
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
                return program.entry(value, _flat_in_c(value.kind, index))

            x = at(a, batch_a, free_a, sum_a, indices[nb : nb + nf])
            y = at(b, batch_b, free_b, sum_b, indices[nb + nf :])
            program.emit(f"{total} += {x} * {y};")

        program.nest(summed, add)
        program.emit(f"{target.at(_flat_in_c(kind, indices))} = {total};")

    program.nest(kind.shape, body)
    return target


def _reduce(program, operation, values, operands, consumed):
    half = len(operands) // 2
    sources, starts = operands[:half], operands[half:]
    kinds = [_kind(operation, i) for i in range(half)]
    axes = _integers(operation.attributes["dimensions"])
    given = sources[0].kind
    block = operation.regions[0].blocks[0]
    scalars = [Kind((), kind.dtype) for kind in kinds]

    def combined(before, row):
        arguments = [
            program.numbers(kind, [item])
            for kind, item in zip(scalars * 2, [*before, *row], strict=True)
        ]  # fmt: skip
        found = program.run(block, values, set(), arguments, [False] * len(arguments))
        return [program.as_numbers(x).items[0] for x in found]

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
    return [_from_items(program, kind, column) for kind, column in zip(kinds, columns, strict=True)]


def _neutral(block, kind, item) -> bool:
    """Whether a reduction may begin with its first entry."""
    operations = [x.operation.name for x in block.operations]
    neutral = {"stablehlo.add": "0.0", "stablehlo.multiply": "1.0"}.get(operations[0])
    return len(operations) == 2 and kind.floating and neutral is not None and str(item).rstrip("f") == neutral


def _reduced_in_a_loop(program, sources, kinds, first, combined) -> list[Value]:
    names = [program.name("c") for _ in kinds]
    for name, kind, item in zip(names, kinds, first, strict=True):
        program.emit(f"{kind.c} {name} = {written(item)};")
    with program.block(f"for (int i = 0; i < {sources[0].kind.size}; ++i)"):
        found = combined(names, [program.entry(x, "i") for x in sources])
        _assigned(program, names, kinds, found)
    return [program.numbers(kind, [name]) for name, kind in zip(names, kinds, strict=True)]


def _assigned(program, names, kinds, items):
    """At once: an item may be another's old value."""
    items = [
        program.variable(kind, item) if item in names and item != name else item
        for name, kind, item in zip(names, kinds, items, strict=True)
    ]
    for name, item in zip(names, items, strict=True):
        if name != item:
            program.emit(f"{name} = {written(item)};")


RULES["stablehlo.cholesky"] = cholesky
RULES["stablehlo.triangular_solve"] = triangular_solve

_WITH_REGIONS = {"stablehlo.reduce": _reduce, "stablehlo.scatter": _scatter, "stablehlo.sort": sort}
