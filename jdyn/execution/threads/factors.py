"""Cholesky factors and triangular systems of a thread."""

from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import Translation
from jdyn.execution.threads.values import Kind, Untranslatable, Value


def _cholesky(program: Translation, operation: Operation) -> list[Value]:
    """L of A = L Lᵀ, column by column, or its transpose."""
    (A,) = operation.operands
    kind = A.kind
    if not kind.floating:
        raise Untranslatable("a Cholesky factor of integers")
    lower = operation.flag("lower")
    L = program.own(A, operation.consumed[0])
    n, c = kind.shape[-1], kind.c

    def entry(first, i, j):
        return L.at(f"{first} + {i} * {n} + {j}" if lower else f"{first} + {j} * {n} + {i}")

    def factor(first):
        j, i, k, s = (program.name(x) for x in "jikc")
        with program.block(f"for (int {j} = 0; {j} < {n}; ++{j})"):
            with program.block(f"for (int {i} = {j}; {i} < {n}; ++{i})"):
                program.emit(f"{c} {s} = {entry(first, i, j)};")
                with program.block(f"for (int {k} = 0; {k} < {j}; ++{k})"):
                    program.emit(f"{s} -= {entry(first, i, k)} * {entry(first, j, k)};")
                program.emit(f"if ({i} > {j}) {entry(first, j, i)} = 0;")
                program.emit(f"{entry(first, i, j)} = {i} > {j} ? {s} / {entry(first, j, j)} : sqrt({s});")

    _for_each(program, kind.shape[:-2], n * n, factor)
    return [L.like(kind)]


def _triangular_solve(program: Translation, operation: Operation) -> list[Value]:
    """X of op(A) X = B, or of X op(A) = B, by substitution."""
    A, B = operation.operands
    flags = {x: operation.flag(x) for x in ("left_side", "lower", "unit_diagonal")}
    transposed = stablehlo.TransposeAttr(operation.attributes["transpose_a"]).value != "NO_TRANSPOSE"
    X, A = program.own(B, operation.consumed[1]), program.as_buffer(A)
    n, (rows, columns) = A.kind.shape[-1], B.kind.shape[-2:]
    # X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ.
    swapped = transposed == flags["left_side"]
    downwards = flags["lower"] != swapped
    count = columns if flags["left_side"] else rows

    def entry_of_A(first, i, k):
        i, k = (k, i) if swapped else (i, k)
        return A.at(f"{first} * {n * n} + {i} * {n} + {k}")

    def entry_of_X(first, i, j):
        i, j = (i, j) if flags["left_side"] else (j, i)
        return X.at(f"{first} * {rows * columns} + {i} * {columns} + {j}")

    def substitute(first):
        j, step, i, k, s = (program.name(x) for x in "jlikc")
        with program.block(f"for (int {j} = 0; {j} < {count}; ++{j})"):
            with program.block(f"for (int {step} = 0; {step} < {n}; ++{step})"):
                program.emit(f"const int {i} = {step if downwards else f'{n - 1} - {step}'};")
                program.emit(f"{X.kind.c} {s} = {entry_of_X(first, i, j)};")
                done = f"{k} = 0; {k} < {i}" if downwards else f"{k} = {i} + 1; {k} < {n}"
                with program.block(f"for (int {done}; ++{k})"):
                    program.emit(f"{s} -= {entry_of_A(first, i, k)} * {entry_of_X(first, k, j)};")
                if not flags["unit_diagonal"]:
                    program.emit(f"{s} /= {entry_of_A(first, i, i)};")
                program.emit(f"{entry_of_X(first, i, j)} = {s};")

    _for_each(program, B.kind.shape[:-2], 1, substitute)
    return [X.like(B.kind)]


def _for_each(program, batch, size, body):
    """Solve several systems one after another, by the number of each times a size."""
    count = Kind(tuple(batch), "i32").size
    number = program.name("i")
    with program.block(f"for (int {number} = 0; {number} < {count}; ++{number})"):
        body(f"{number} * {size}" if size != 1 else number)


RULES = {"stablehlo.cholesky": _cholesky, "stablehlo.triangular_solve": _triangular_solve}
