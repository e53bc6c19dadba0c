"""Programs of one lane as few kernels of a processor.

On a CPU, XLA compiles a kernel for each loop over arrays, and takes some 50 ns to start each. A step of a robot that
touches things has hundreds of them, most of which compute for less than that. XLA has a way to compile a call as one
kernel, which it takes for small loops: a call with `ATTRIBUTES`. Here programs are cut into such calls.

Milliseconds of a processor for a second of motion in float64 + seconds to compile (JAX 0.10.2, single runs):

                                               quadruped      humanoid       gripper
    convex contact, steps of 2 ms              11 + 6.2       35 + 9.7       18 + 10.6
    the same, a kernel for each loop           18 + 5.9       63 + 8.8       35 + 9.0
    the same, the whole step as one kernel     8.6 + 9.0      30 + 18        15 + 24
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype
from jax.extend.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Primitive, Var, jaxpr_as_fun
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from jdyn.execution.deferred import program_of

ATTRIBUTES = {"inlineable": "false", "xla_cpu_small_call": "true"}
# Operations of a kernel. LLVM takes more than twice as long for a function that is twice as long: the step of a gripper
# as one kernel compiles in 12.7 s, in kernels of this size in 10.8, and runs as fast.
MOST = 4000
# Operations of a kernel that follow each other: a step of a quadruped with compliant contact compiles in nine tenths of
# the time that it takes with kernels of `MOST`, and runs as fast. A loop runs slower in pieces: it may have `MOST`.
PIECE = 1300
# An operation that holds so many, such as the loop over the stages of a step, is a kernel of its own: a step of a
# humanoid with compliant contact compiles in 8.8 s, of 10.5, and runs as fast.
ALONE = 1000
# Fewer operations than this are left where they are.
FEWEST = 8
# Numbers of an array, and multiplications of a product: larger ones have kernels of their own, which may use several
# processors and Eigen's products, and which write into their place what is left of an array.
LARGEST, PRODUCT = 2**15, 2**15

# Operations of one program that do what it does.
CALLS = frozenset(
    """
    checkpoint closed_call core_call custom_jvp_call custom_vjp_call custom_vmap_call deferred jit pjit remat remat2
    """.split()
)
LOOPS = frozenset("while scan cond".split())
# What a kernel may hold: XLA has no calls of libraries for it, and no sorting. Others stay outside.
PLAIN = frozenset(
    """
    abs acos acosh add add_any and argmax argmin asin asinh at_once atan atan2 atanh bitcast_convert_type
    broadcast_in_dim cbrt ceil clamp clz concatenate convert_element_type copy copy_p cos cosh cummax cummin
    cumprod cumsum div dot_general dynamic_slice dynamic_update_slice empty eq erf erfc exp exp2 expand_dims
    expm1 floor full gather ge gt imag integer_pow iota is_finite le log log1p logistic lt max min mul ne neg
    nextafter not optimization_barrier or pad platform_index population_count pow real reduce_and reduce_max
    reduce_min reduce_or reduce_precision reduce_prod reduce_sum reduce_xor rem reshape rev round rsqrt select_n
    shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice split sqrt square squeeze stack
    stop_gradient sub tan tanh tile transpose unstack unvmap_all unvmap_any unvmap_max xor
    """.split()
)


def in_few_kernels(function: Callable) -> Callable:
    """The function, compiled for a CPU as few kernels. It takes and returns PyTrees of arrays, may close over traced
    values, and is neither differentiable nor batchable."""

    def run(*arguments):
        leaves, tree = jax.tree.flatten(arguments)
        traced = jax.make_jaxpr(lambda *leaves: function(*tree.unflatten(leaves)), return_shape=True)
        program, result = traced(*leaves)
        if program.effects:
            # Callbacks, whose order a primitive would have to keep.
            return jax.tree.unflatten(jax.tree.structure(result), jaxpr_as_fun(program)(*leaves))
        inner = program.jaxpr
        operands, program = program.consts, _program([*inner.constvars, *inner.invars], inner.outvars, inner.eqns)
        found = _few_kernels.bind(*operands, *leaves, program=program, x64=canonicalize_dtype(np.float64) == np.float64)
        return jax.tree.unflatten(jax.tree.structure(result), found)

    return run


# Traced when they are lowered, in the float width that was set when they were called.


def _whole(*operands, program: ClosedJaxpr, x64: bool):
    with jax.enable_x64(x64):
        return jaxpr_as_fun(program)(*operands)


def _in_pieces(*operands, program: ClosedJaxpr, x64: bool):
    with jax.enable_x64(x64):
        return _Cut().results(program, operands)


_few_kernels = Primitive("few_kernels")
_few_kernels.multiple_results = True
_few_kernels.def_impl(_whole)
_few_kernels.def_abstract_eval(lambda *_, program, x64: program.out_avals)
mlir.register_lowering(_few_kernels, mlir.lower_fun(_whole, multiple_results=True))
mlir.register_lowering(_few_kernels, mlir.lower_fun(_in_pieces, multiple_results=True), platform="cpu")


def _one_call(context, *operands, program: ClosedJaxpr):
    """A call with `ATTRIBUTES`. Its operands are one tuple, one part of which is a result, too: XLA ends the process
    where such a call has an operand that it does not use, or uses nothing of but its empty arrays."""
    found = mlir.core_call_lowering(context, *operands, name="piece", call_jaxpr=program)
    inner = jax.tree.leaves(found)[0].owner
    given, callee = list(inner.operands), inner.attributes["callee"]
    least = min(range(len(given)), key=lambda i: math.prod(given[i].type.shape) or math.inf)
    types = [x.type for x in (*inner.results, given[least])]
    with ir.InsertionPoint(context.module_context.module.body):
        taken = ir.TupleType.get_tuple([x.type for x in given])
        kernel = func.FuncOp("kernel", ir.FunctionType.get([taken], types), visibility="private")
    context.module_context.symbol_table.insert(kernel)
    block = kernel.add_entry_block()
    with ir.InsertionPoint(block):
        parts = [stablehlo.get_tuple_element(block.arguments[0], i) for i in range(len(given))]
        func.ReturnOp([*func.CallOp(types[:-1], callee, parts).results, parts[least]])
    call = func.CallOp(types, ir.FlatSymbolRefAttr.get(kernel.name.value), [stablehlo.tuple(given)])
    attributes: dict[str, ir.Attribute] = {name: ir.StringAttr.get(value) for name, value in ATTRIBUTES.items()}
    call.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(attributes)
    inner.erase()
    return list(call.results)[:-1]


_kernel = Primitive("kernel")
_kernel.multiple_results = True
_kernel.def_abstract_eval(lambda *_, program: program.out_avals)
mlir.register_lowering(_kernel, _one_call)


class _Cut:
    """Cut of a program, which looks at each operation once."""

    def __init__(self):
        self._sizes: dict[int, float] = {}
        self._programs: dict[int, list[ClosedJaxpr]] = {}

    def results(self, program: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Compute the results of a program piece by piece."""
        inner = program.jaxpr
        known = dict(zip([*inner.constvars, *inner.invars], [*program.consts, *operands], strict=True))

        def value(x):
            return x.val if isinstance(x, Literal) else known[x]

        pieces = list(self._pieces(inner.eqns))
        for piece, needed in zip(pieces, _needed(pieces, inner.outvars), strict=True):
            # A kernel takes something that has numbers.
            takes = any(x in known and _array(x).size for x in _taken(piece))
            if takes and FEWEST <= sum(map(self._size, piece)) <= MOST:
                known.update(_of_kernel(piece, needed, value))
                continue
            for operation in piece:
                found = self._outside(operation, list(map(value, operation.invars)))
                known.update(zip(operation.outvars, found, strict=True))
        return list(map(value, inner.outvars))

    def _pieces(self, operations: Sequence[JaxprEqn]) -> Iterator[list[JaxprEqn]]:
        """Operations that follow each other, at most `PIECE` of them, those within others counted; large ones alone."""
        piece, size = [], 0.0
        for operation in operations:
            more = self._size(operation)
            if more >= ALONE or size + more > PIECE:
                yield piece
                piece, size = [], 0.0
            if more >= ALONE:
                yield [operation]
                continue
            piece.append(operation)
            size += more
        yield piece

    def _size(self, operation: JaxprEqn) -> float:
        """Number of operations, those within others counted; infinite where a kernel cannot hold them."""
        if id(operation) not in self._sizes:
            inner = [each for program in self._inner(operation) for each in program.jaxpr.eqns]
            self._sizes[id(operation)] = 1 + sum(map(self._size, inner)) if _fits(operation) else math.inf
        return self._sizes[id(operation)]

    def _inner(self, operation: JaxprEqn) -> list[ClosedJaxpr]:
        """The programs of an operation."""
        if id(operation) not in self._programs:
            self._programs[id(operation)] = _programs(operation)
        return self._programs[id(operation)]

    def _outside(self, operation: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        """The results of an operation that is not in a kernel: its programs are cut."""
        name, inner = operation.primitive.name, self._inner(operation)
        if name in CALLS:
            return self.results(inner[0], operands)
        options = operation.params
        if name in LOOPS:
            # Their options are JAX's own matter, but for the programs.
            options = {key: self._cut(value) for key, value in options.items()}
        found = operation.primitive.bind(*operands, **options)
        return found if operation.primitive.multiple_results else [found]

    def _cut(self, option: Any) -> Any:
        """A program, or several, which run in pieces; other options as they are."""
        if isinstance(option, tuple) and all(isinstance(x, ClosedJaxpr) for x in option):
            return tuple(map(self._cut, option))
        if not isinstance(option, ClosedJaxpr):
            return option
        return jax.make_jaxpr(lambda *operands: self.results(option, operands))(*option.in_avals)


def _of_kernel(operations: Sequence[JaxprEqn], needed: set[Var], value: Callable) -> dict[Var, Any]:
    """Values that operations need from elsewhere which are one kernel."""
    made = {x: None for operation in operations for x in operation.outvars}
    kept = [x for x in made if x in needed]
    if not kept:
        return {}
    taken = list(dict.fromkeys(x for x in _taken(operations) if x not in made))
    found = _kernel.bind(*map(value, taken), program=_program(taken, kept, operations))
    return dict(zip(kept, found, strict=True))


def _needed(pieces: Sequence[Sequence[JaxprEqn]], results: Sequence[Any]) -> list[set[Var]]:
    """Values that are needed after each piece."""
    needed, after = {x for x in results if isinstance(x, Var)}, []
    for piece in reversed(pieces):
        after.append(needed)
        needed = needed | set(_taken(piece))
    return after[::-1]


def _taken(operations: Sequence[JaxprEqn]) -> list[Var]:
    return [x for operation in operations for x in operation.invars if isinstance(x, Var)]


def _programs(operation: JaxprEqn) -> list[ClosedJaxpr]:
    """Programs within operations that are cut: what other operations have is their own matter."""
    if operation.primitive.name not in CALLS | LOOPS:
        return []
    deferred = program_of(operation)
    if deferred is not None:
        return [deferred]
    found = [x for value in operation.params.values() for x in (value if isinstance(value, tuple) else (value,))]
    # In JAX 0.12 both are one class, and what is closed keeps its values.
    programs = [x for x in found if isinstance(x, Jaxpr | ClosedJaxpr)]
    return [x if isinstance(x, ClosedJaxpr) else ClosedJaxpr(x, ()) for x in programs]


def _fits(operation: JaxprEqn) -> bool:
    """Tell whether a kernel may hold an operation, the programs in it aside."""
    name, options = operation.primitive.name, operation.params
    given, found = ([_array(x) for x in variables] for variables in (operation.invars, operation.outvars))
    if any(not all(isinstance(n, int) for n in x.shape) or x.size > LARGEST for x in (*given, *found)):
        # Sizes may be symbols, in programs to be exported.
        return False
    if name == "dot_general":
        (over, _), _ = options["dimension_numbers"]
        products = found[0].size * math.prod(given[0].shape[i] for i in over)
        return jnp.issubdtype(found[0].dtype, jnp.floating) and products <= PRODUCT
    if name == "scatter":
        # XLA makes a slice of a single place. It leaves others, and sums, to programs that kernels cannot hold.
        return given[1].size <= 1 and not options["dimension_numbers"].operand_batching_dims
    return name in PLAIN | CALLS | LOOPS


def _array(variable: Any) -> Any:
    """Its type, with a shape."""
    return variable.aval


def _program(taken: Sequence[Var], results: Sequence[Any], operations: Sequence[JaxprEqn]) -> ClosedJaxpr:
    names, paths = tuple(f"x{i}" for i in range(len(taken))), tuple(f"y{i}" for i in range(len(results)))
    about = DebugInfo("piece", "piece of a program", names, paths)
    return ClosedJaxpr(Jaxpr((), taken, results, operations, debug_info=about), ())
