"""Floating-point operations of a program, counted as the literature on robot dynamics counts them."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import DropVar, Jaxpr, JaxprEqn, Literal
from jax.interpreters.partial_eval import dce_jaxpr

from jdyn.dynamics import Method, forward_dynamics
from jdyn.dynamics.building_blocks import program_of
from jdyn.model import Model


@dataclasses.dataclass(frozen=True)
class Operations:
    """Numbers of operations of each kind.

    Attributes:
        multiplications: Products.
        additions: Sums and differences.
        divisions: Quotients.
        roots: Square and cube roots.
        functions: Sines, cosines and all other elementary functions.
    """

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    roots: int = 0
    functions: int = 0

    @property
    def total(self) -> int:
        """Multiplications and additions, which the literature counts, without the rest."""
        return self.multiplications + self.additions

    def __add__(self, other: "Operations") -> "Operations":
        ours, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Operations(*(x + y for x, y in zip(ours, theirs, strict=True)))

    def __mul__(self, times: int) -> "Operations":
        return Operations(*(x * times for x in dataclasses.astuple(self)))


class UncountableError(ValueError):
    """A program has an operation whose cost is unknown before it runs, or without a rule."""


def operations(function: Callable, *arguments: Any) -> Operations:
    """Floating-point operations of `function(*arguments)`. It is traced, and neither compiled nor run.

    The rule: an elementwise operation counts once for each element, a difference as an addition. A product of matrices
    (m, k) and (k, n) is m k n multiplications and m (k - 1) n additions, zeros included. Cholesky and LU factorizations
    and triangular solutions have the textbook counts. The body of a loop counts as often as it runs; of branches, the
    most expensive one counts.

    Not counted: integers, comparisons, signs, choices and moves; values that no result needs; values that depend on
    constants alone, outside of loops; products with a constant 0, 1 or -1 and sums with a constant 0, if all entries of
    the constant are equal. Variables that `function` closes over are constants. Zeros in the data count, and so do the
    rows of constants that a loop goes through.

    Args:
        function: Takes and returns PyTrees of arrays.
        *arguments: Arrays, or `jax.ShapeDtypeStruct`.

    Raises:
        UncountableError: a `ValueError`, for loops whose number of turns depends on data, for complex numbers, and
            for operations without a rule, such as iterative decompositions.

    Source: the textbook counts are those of Golub and Van Loan, Matrix Computations, sections 3.1, 3.2 and 4.2.
    """
    closed = jax.make_jaxpr(function)(*arguments)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    return _count(jaxpr, [_constant(x) for x in closed.consts], [None] * len(jaxpr.invars))[0]


def forward_dynamics_operations(model: Model, method: Method | None = None) -> Operations:
    """Operations of one evaluation of forward dynamics: n_single of Cloutier's thesis (1995), section 5.2.2.

    The numbers of the model count as constants. Passive forces are included.

    Args:
        model: The mechanism.
        method: Forward-dynamics method; `jdyn.ABA()` if left out.

    Raises:
        UncountableError: as `operations` does.
    """
    q, v = (jax.ShapeDtypeStruct((size,), model.dtype) for size in (model.nq, model.nv))
    return operations(lambda q, v, tau: forward_dynamics(model, q, v, tau, method=method), q, v, v)


@dataclasses.dataclass(frozen=True)
class _Constant:
    """A value that does not depend on the arguments; its entry, if all entries are known to be equal."""

    value: float | None = None


# None stands for a value that depends on the arguments.
_Known = _Constant | None
_Found = tuple[Operations, list[_Known]]


def _constant(x) -> _Constant:
    if not isinstance(x, np.ndarray | np.generic | jax.Array | int | float | bool) or np.size(x) == 0:
        return _Constant()
    if isinstance(x, jax.Array) and not jnp.issubdtype(x.dtype, np.number):
        return _Constant()
    entries = np.asarray(x)
    equal = np.issubdtype(entries.dtype, np.number) and np.all(entries == entries.flat[0])
    return _Constant(float(np.real(entries.flat[0])) if equal else None)


def _count(jaxpr: Jaxpr, constants: Sequence[_Known], arguments: Sequence[_Known]) -> _Found:
    """The operations of a program, and which of its results are constants."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))

    def read(x) -> _Known:
        return _constant(x.val) if isinstance(x, Literal) else known[x]

    found = Operations()
    for equation in jaxpr.eqns:
        inputs = [read(x) for x in equation.invars]
        if inputs and all(x is not None for x in inputs):
            same = inputs[0] if equation.primitive.name in _SAME_ENTRIES else _Constant()
            outputs: list[_Known] = [same] * len(equation.outvars)
        else:
            counted, outputs = _of_equation(equation, inputs)
            found += counted
        known.update(zip(equation.outvars, outputs, strict=True))
    return found, [read(x) for x in jaxpr.outvars]


def _of_equation(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    name = equation.primitive.name
    unknown: list[_Known] = [None] * len(equation.outvars)
    deferred = program_of(equation)
    if deferred is not None:
        # JAX removes unused operations from a whole program, but not from this part of it.
        used = [not isinstance(x, DropVar) for x in equation.outvars]
        deferred, _ = dce_jaxpr(deferred.jaxpr, used, instantiate=True)
        return _count(deferred, [_Constant()] * len(deferred.constvars), inputs)[0], unknown
    if name in _PROGRAMS:
        return _PROGRAMS[name](equation, inputs)
    if not equation.outvars or not any(jnp.issubdtype(_dtype(x), np.inexact) for x in equation.outvars):
        return Operations(), unknown
    if any(jnp.issubdtype(_dtype(x), np.complexfloating) for x in equation.outvars):
        raise UncountableError(f"{name}: expected real numbers, got complex ones, for which there is no rule")
    if name in _FREE:
        return Operations(), unknown
    if name in ("mul", "add", "sub", "add_any", "div"):
        return _of_two(equation, inputs)
    if name in _ELEMENTWISE:
        return _ELEMENTWISE[name] * _size(equation.outvars[0]), unknown
    if name in _RULES:
        return _RULES[name](equation), unknown
    raise UncountableError(f"{name}: no rule says how many operations it takes")


def _of_two(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    """A sum, difference, product or quotient; it costs nothing where one side is a neutral constant 0, 1 or -1."""
    name, size = equation.primitive.name, _size(equation.outvars[0])
    values = [None if x is None else x.value for x in inputs]
    if name == "mul":
        if 0 in values:
            return Operations(), [_Constant(0.0)]
        return Operations(multiplications=0 if 1 in values or -1 in values else size), [None]
    if name == "div":
        return Operations(divisions=0 if values[1] in (1, -1) else size), [None]
    return Operations(additions=0 if 0 in values else size), [None]


# Programs within programs.


def _whole(name: str) -> Callable[[JaxprEqn, Sequence[_Known]], _Found]:
    def count(equation, inputs):
        return _inner(equation.params[name], inputs)

    return count


def _inner(program, inputs: Sequence[_Known]) -> _Found:
    """Count like `_count`, for a `Jaxpr` with or without its constants."""
    constants = getattr(program, "consts", ())
    return _count(getattr(program, "jaxpr", program), [_constant(x) for x in constants], inputs)


def _loop(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    turn = equation.params["jaxpr"]
    program = getattr(turn, "jaxpr", turn)
    # What all turns share comes first, then what one hands to the next; the rest has a row for each turn.
    shared = _unchanged(equation.invars, program.invars) - _unchanged(equation.outvars, program.outvars)
    varying: list[_Known] = [None] * (len(inputs) - shared)
    body, _ = _inner(turn, [*inputs[:shared], *varying])
    return body * equation.params["length"], [None] * len(equation.outvars)


def _unchanged(outside, inside) -> int:
    """Number of values that have the same shape within a turn."""
    return sum(x.aval.shape == y.aval.shape for x, y in zip(outside, inside, strict=True))


def _branches(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    found = [_inner(branch, inputs[1:])[0] for branch in equation.params["branches"]]
    return max(found, key=lambda x: (x.total, dataclasses.astuple(x))), [None] * len(equation.outvars)


def _endless(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    raise UncountableError("while: the number of turns depends on data")


def _linear_solution(equation: JaxprEqn, inputs: Sequence[_Known]) -> _Found:
    lengths, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    start = lengths.matvec + lengths.vecmat
    right_sides = inputs[sum(lengths) :]
    return _inner(solve, [*inputs[start : start + lengths.solve], *right_sides])


_PROGRAMS = {
    "jit": _whole("jaxpr"),
    "pjit": _whole("jaxpr"),
    "closed_call": _whole("call_jaxpr"),
    "core_call": _whole("call_jaxpr"),
    "remat": _whole("jaxpr"),
    "remat2": _whole("jaxpr"),
    "checkpoint": _whole("jaxpr"),
    "custom_jvp_call": _whole("call_jaxpr"),
    "custom_vjp_call": _whole("call_jaxpr"),
    "custom_linear_solve": _linear_solution,
    "scan": _loop,
    "while": _endless,
    "cond": _branches,
}


# Operations.


def _shape(x: Any) -> tuple[int, ...]:
    return x.aval.shape


def _dtype(x: Any) -> np.dtype:
    return x.aval.dtype


def _size(x: Any) -> int:
    return math.prod(_shape(x))


def _of_product(equation: JaxprEqn) -> Operations:
    (contracted, _), _ = equation.params["dimension_numbers"]
    length = math.prod(_shape(equation.invars[0])[axis] for axis in contracted)
    entries = _size(equation.outvars[0])
    return Operations(multiplications=entries * length, additions=entries * max(length - 1, 0))


def _of_reduction(kind: str) -> Callable[[JaxprEqn], Operations]:
    def count(equation):
        return Operations(**{kind: max(_size(equation.invars[0]) - _size(equation.outvars[0]), 0)})

    return count


def _of_reduction_by(equation: JaxprEqn) -> Operations:
    body, _ = _inner(equation.params["jaxpr"], [None] * 2 * len(equation.outvars))
    return body * max(_size(equation.invars[0]) - _size(equation.outvars[0]), 0)


def _of_running(kind: str) -> Callable[[JaxprEqn], Operations]:
    def count(equation):
        length = _shape(equation.outvars[0])[equation.params["axis"]]
        return Operations(**{kind: _size(equation.outvars[0]) // max(length, 1) * max(length - 1, 0)})

    return count


def _of_scatter(kind: str) -> Callable[[JaxprEqn], Operations]:
    return lambda equation: Operations(**{kind: _size(equation.invars[2])})


def _of_power(equation: JaxprEqn) -> Operations:
    """Operations of a power, by squaring."""
    power, size = equation.params["y"], _size(equation.outvars[0])
    products = max(abs(power).bit_length() + abs(power).bit_count() - 2, 0)
    return Operations(multiplications=products * size, divisions=size if power < 0 else 0)


def _of_cholesky(equation: JaxprEqn) -> Operations:
    *batch, n, _ = _shape(equation.outvars[0])
    products = (n**3 - n) // 6
    return Operations(products, products, n * (n - 1) // 2, n) * math.prod(batch)


def _of_lu(equation: JaxprEqn) -> Operations:
    *batch, rows, columns = _shape(equation.invars[0])
    below = [(rows - k, columns - k) for k in range(1, min(rows, columns) + 1)]
    products = sum(m * n for m, n in below)
    return Operations(products, products, sum(m for m, _ in below)) * math.prod(batch)


def _of_triangular_solution(equation: JaxprEqn) -> Operations:
    n, size = _shape(equation.invars[0])[-1], _size(equation.outvars[0])
    products = size * (n - 1) // 2
    return Operations(products, products, 0 if equation.params["unit_diagonal"] else size)


_RULES = {
    "dot_general": _of_product,
    "reduce_sum": _of_reduction("additions"),
    "reduce_prod": _of_reduction("multiplications"),
    "reduce": _of_reduction_by,
    "cumsum": _of_running("additions"),
    "cumprod": _of_running("multiplications"),
    "scatter-add": _of_scatter("additions"),
    "scatter-sub": _of_scatter("additions"),
    "scatter-mul": _of_scatter("multiplications"),
    "integer_pow": _of_power,
    "cholesky": _of_cholesky,
    "lu": _of_lu,
    "triangular_solve": _of_triangular_solution,
}
_ELEMENTWISE = {
    "square": Operations(multiplications=1),
    "sqrt": Operations(roots=1),
    "cbrt": Operations(roots=1),
    "rsqrt": Operations(divisions=1, roots=1),
    **dict.fromkeys(
        (
            "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
            "exp", "exp2", "expm1", "log", "log1p", "logistic", "pow", "erf",
        ),
        Operations(functions=1),
    ),
}  # fmt: skip
# Moves that keep all entries equal.
_SAME_ENTRIES = {"broadcast_in_dim", "convert_element_type", "copy", "reshape", "slice", "squeeze", "transpose"}
# Moves, choices, signs and comparisons.
_FREE = _SAME_ENTRIES | {
    "abs", "at_once", "ceil", "clamp", "concatenate", "cummax", "cummin", "dynamic_slice", "dynamic_update_slice",
    "floor", "gather", "iota", "max", "min", "neg", "nextafter", "optimization_barrier", "pad", "reduce_max",
    "reduce_min", "reduce_precision", "rev", "round", "scatter", "select_n", "sign", "sort",
    "split", "stack", "stop_gradient", "unstack",
}  # fmt: skip
