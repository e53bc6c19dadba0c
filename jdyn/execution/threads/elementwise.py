"""Operations on one entry after another, and constants."""

import itertools
import operator
from collections.abc import Callable, Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import MOST_NUMBERS, Translation
from jdyn.execution.threads.values import (
    Buffer,
    Item,
    Kind,
    Numbers,
    Untranslatable,
    Value,
    clamped,
    known,
    literal,
    wrapped,
    written,
)


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


def _constant(program: Translation, operation: Operation) -> list[Value]:
    kind = operation.kind()
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


def _arithmetic(operator: str, exact: Callable, truth: str):
    def rule(program: Translation, operation: Operation) -> list[Value]:
        kind = operation.kind()

        def each(x, y):
            if kind.dtype == "i1":
                return _logical(truth, x, y)
            if known(x, y):
                return wrapped(exact(int(x), int(y)), kind)
            return f"{written(x)} {operator} {written(y)}"

        return [elementwise(program, kind, each, operation.operands, operation.consumed)]

    return rule


def _logical(operator, x, y):
    """Operation on truth values."""
    if known(x, y):
        return bool({"&": x and y, "|": x or y, "^": x != y}[operator])
    for truth, other in ((x, y), (y, x)):
        if isinstance(truth, bool):
            if operator == "&":
                return other if truth else False
            if operator == "|":
                return True if truth else other
            return f"!{other}" if truth else other
    return x if x == y and operator != "^" else f"{x} {operator} {y}"


def _not(program: Translation, operation: Operation) -> list[Value]:
    kind = operation.kind()

    def each(x):
        if kind.dtype == "i1":
            return not x if known(x) else f"!{x}"
        return wrapped(~x, kind) if known(x) else f"~{x}"

    return [elementwise(program, kind, each, operation.operands, operation.consumed)]


def _written_as(pattern: str | None, integers: str | None = None):
    """Rule of one expression for numbers with a point, and perhaps another for integers."""

    def rule(program: Translation, operation: Operation) -> list[Value]:
        kind = operation.kind()
        chosen = pattern if operation.operands[0].kind.floating else integers
        if chosen is None:
            raise Untranslatable(f"{operation.name} of integers")

        def each(*items):
            return chosen.format(*map(written, items), c=kind.c)

        return [elementwise(program, kind, each, operation.operands, operation.consumed)]

    return rule


_COMPARED = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


_EXACT = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def _compare(program: Translation, operation: Operation) -> list[Value]:
    direction = stablehlo.ComparisonDirectionAttr(operation.attributes["comparison_direction"]).value
    sign, total = _COMPARED[direction], False
    if "compare_type" in operation.attributes:
        total = stablehlo.ComparisonTypeAttr(operation.attributes["compare_type"]).value == "TOTALORDER"

    def each(x, y):
        if known(x, y):
            return _EXACT[sign](int(x), int(y))
        x, y = (f"in_order({written(item)})" if total else written(item) for item in (x, y))
        return f"{x} {sign} {y}"

    return [elementwise(program, operation.kind(), each, operation.operands)]


def _select(program: Translation, operation: Operation) -> list[Value]:
    which, yes, no = operation.operands
    kind = operation.kind()
    if which.kind.size == 1 and kind.size != 1:
        which = program.numbers(Kind(kind.shape, "i1"), program.as_numbers(which).items * kind.size)

    def each(which, yes, no):
        if known(which):
            return yes if which else no
        return yes if yes == no and type(yes) is type(no) else f"{which} ? {written(yes)} : {written(no)}"

    return [elementwise(program, kind, each, [which, yes, no], [False, *operation.consumed[1:]])]


def _clamp(program: Translation, operation: Operation) -> list[Value]:
    kind = operation.kind()
    low, x, high = operation.operands

    def widened(bound):
        if bound.kind.size == kind.size:
            return bound
        return program.numbers(kind, program.as_numbers(bound).items * kind.size)

    def each(low, x, high):
        if known(low, x, high):
            return min(max(low, x), high)
        if kind.floating:
            return f"smaller(larger({written(x)}, {written(low)}), {written(high)})"
        return clamped(written(x), written(low), written(high))

    return [elementwise(program, kind, each, [widened(low), x, widened(high)])]


def _convert(program: Translation, operation: Operation) -> list[Value]:
    kind, given = operation.kind(), operation.operands[0].kind

    def each(x):
        if kind.dtype == given.dtype:
            return x
        if known(x):
            if kind.dtype == "i1":
                return bool(x)
            return literal(x, kind) if kind.floating else wrapped(int(x), kind)
        if kind.dtype == "i1":
            return f"{x} != 0"
        return f"({kind.c}){x}" if kind.floating or not given.floating else f"integer_of<{kind.c}>({x})"

    return [elementwise(program, kind, each, operation.operands, operation.consumed)]


def _bitcast(program: Translation, operation: Operation) -> list[Value]:
    kind, given = operation.kind(), operation.operands[0].kind

    def each(x):
        return f"bits_of<{kind.c}>(({given.c}){written(x)})"

    return [elementwise(program, kind, each, operation.operands)]


def _reduce_precision(program: Translation, operation: Operation) -> list[Value]:
    kind = operation.kind()
    kept = tuple(operation.integer(x) for x in ("exponent_bits", "mantissa_bits"))
    if kept != {"f32": (8, 23), "f64": (11, 52)}[kind.dtype]:
        raise Untranslatable("numbers of less precision")
    return [operation.operands[0]]


def _barrier(program: Translation, operation: Operation) -> list[Value]:
    return list(operation.operands)


RULES = {
    "stablehlo.not": _not,
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.convert": _convert,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.constant": _constant,
    "stablehlo.add": _arithmetic("+", lambda x, y: x + y, "|"),
    "stablehlo.subtract": _arithmetic("-", lambda x, y: x - y, "^"),
    "stablehlo.multiply": _arithmetic("*", lambda x, y: x * y, "&"),
    "stablehlo.and": _arithmetic("&", lambda x, y: x & y, "&"),
    "stablehlo.or": _arithmetic("|", lambda x, y: x | y, "|"),
    "stablehlo.xor": _arithmetic("^", lambda x, y: x ^ y, "^"),
    "stablehlo.divide": _written_as("{0} / {1}", "quotient<{c}>({0}, {1})"),
    "stablehlo.remainder": _written_as("fmod({0}, {1})", "rest<{c}>({0}, {1})"),
    "stablehlo.power": _written_as("pow({0}, {1})", "integer_power<{c}>({0}, {1})"),
    "stablehlo.maximum": _written_as("larger({0}, {1})", "({0} > {1} ? {0} : {1})"),
    "stablehlo.minimum": _written_as("smaller({0}, {1})", "({0} < {1} ? {0} : {1})"),
    "stablehlo.atan2": _written_as("atan2({0}, {1})"),
    "stablehlo.negate": _written_as("-{0}", "({c})-{0}"),
    "stablehlo.abs": _written_as("fabs({0})", "({0} < 0 ? -{0} : {0})"),
    "stablehlo.sign": _written_as("sign_of({0})", "({c})(({0} > 0) - ({0} < 0))"),
    "stablehlo.sqrt": _written_as("sqrt({0})"),
    "stablehlo.rsqrt": _written_as("(({c})1 / sqrt({0}))"),
    "stablehlo.cbrt": _written_as("cbrt({0})"),
    "stablehlo.exponential": _written_as("exp({0})"),
    "stablehlo.exponential_minus_one": _written_as("expm1({0})"),
    "stablehlo.log": _written_as("log({0})"),
    "stablehlo.log_plus_one": _written_as("log1p({0})"),
    "stablehlo.logistic": _written_as("(({c})1 / (({c})1 + exp(-{0})))"),
    "stablehlo.sine": _written_as("sin({0})"),
    "stablehlo.cosine": _written_as("cos({0})"),
    "stablehlo.tan": _written_as("tan({0})"),
    "stablehlo.tanh": _written_as("tanh({0})"),
    "stablehlo.floor": _written_as("floor({0})"),
    "stablehlo.ceil": _written_as("ceil({0})"),
    "stablehlo.round_nearest_even": _written_as("rint({0})"),
    "stablehlo.round_nearest_afz": _written_as("round({0})"),
    "stablehlo.is_finite": _written_as("(fabs({0}) < infinity_of<decltype({0} + 0)>())"),
    "stablehlo.shift_left": _written_as(None, "shifted_left<{c}>({0}, {1})"),
    "stablehlo.shift_right_logical": _written_as(None, "shifted_right<{c}>({0}, {1})"),
    "stablehlo.shift_right_arithmetic": _written_as(None, "shifted_right_signed<{c}>({0}, {1})"),
    "chlo.square": _written_as("{0} * {0}", "{0} * {0}"),
    "chlo.acos": _written_as("acos({0})"),
    "chlo.asin": _written_as("asin({0})"),
    "chlo.atan": _written_as("atan({0})"),
    "chlo.acosh": _written_as("acosh({0})"),
    "chlo.asinh": _written_as("asinh({0})"),
    "chlo.atanh": _written_as("atanh({0})"),
    "chlo.cosh": _written_as("cosh({0})"),
    "chlo.sinh": _written_as("sinh({0})"),
    "chlo.next_after": _written_as("nextafter({0}, {1})"),
    "chlo.erf": _written_as("erf({0})"),
    "chlo.erfc": _written_as("erfc({0})"),
    "chlo.lgamma": _written_as("lgamma({0})"),
}
