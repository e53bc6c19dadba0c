"""A batch as a kernel of an NVIDIA GPU, one thread a lane."""

import array
import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.dtypes import canonicalize_dtype
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir, partial_eval
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.lanes import as_one_batch
from jdyn.execution.threads.lane import one_of_many
from jdyn.execution.threads.nvrtc import compiled
from jdyn.execution.threads.source import NAME, Source, source_of
from jdyn.execution.threads.values import Untranslatable

# Threads of a block.
THREADS = 64
FEWER_THREADS = 32
# Of an H100 or H200. Fewer lanes than fill all of them go into smaller blocks.
MULTIPROCESSORS = 132
# Threads that a multiprocessor has room for at least. More hide more of each other's waiting, and have fewer registers.
RESIDENT = 384

# The newest architecture that is compiled for. Newer cards run its programs, too.
NEWEST = 90


def threaded() -> bool:
    """Tell whether batches run one lane a thread: where JAX runs on a GPU of NVIDIA."""
    return jax.default_backend() == "gpu" and jax.devices()[0].device_kind.startswith("NVIDIA")


def on_threads(
    function: Callable[..., Sequence[Any]],
    otherwise: Callable[..., Sequence[Any]],
    lanes: int,
    varies: Sequence[bool],
    operands: Sequence[Any],
) -> list[Any]:
    """The results of a function for every lane of a batch, each lane's by one thread of a GPU.

    Loops of a lane end when it is done, intermediate results stay in registers, and all of it is one kernel. Where the
    function holds what threads cannot do, it runs in another way and a warning says why.

    Args:
        function: Of one lane's arrays, to a sequence of arrays. It must not close over traced values.
        otherwise: Of the operands, to the results of all lanes: what runs where threads cannot.
        lanes: How many.
        varies: Whether each operand has lanes, as its first axis.
        operands: Arrays.
    """
    lane = [jax.ShapeDtypeStruct(x.shape[each:], x.dtype) for x, each in zip(operands, varies, strict=True)]
    results = tuple(jax.eval_shape(function, *lane))
    if lanes == 0:
        return [jnp.zeros((0, *x.shape), x.dtype) for x in results]
    batch = _Batch(function, otherwise, lanes, tuple(varies), tuple(lane), results)
    return _threads.bind(*operands, batch=batch, x64=canonicalize_dtype(np.float64) == np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Batch:
    """A batch to run.

    Attributes:
        function, otherwise, lanes, varies: As `on_threads` takes them.
        operands: What has the shapes and types of a lane's operands.
        results: What has those of its results.
    """

    function: Callable
    otherwise: Callable
    lanes: int
    varies: tuple[bool, ...]
    operands: tuple[Any, ...]
    results: tuple[Any, ...]

    def only(self, used: Sequence[bool]) -> "_Batch":
        """The same without the results that nobody uses."""

        def some(results):
            return [x for x, each in zip(results, used, strict=True) if each]

        return dataclasses.replace(
            self,
            function=lambda *operands: some(self.function(*operands)),
            otherwise=lambda *operands: some(self.otherwise(*operands)),
            results=tuple(some(self.results)),
        )

    def repeated(self, batches: int, varies: Sequence[bool]) -> "_Batch":
        """So many batches as one, in which operands have lanes where `varies`."""

        def apart(x, inner):
            x = x.reshape(batches, self.lanes, *x.shape[1:])
            return x if inner else x[:, 0]

        def otherwise(*operands):
            rows = zip(operands, self.varies, varies, strict=True)
            operands = [apart(x, inner) if either else x for x, inner, either in rows]
            found = jax.vmap(self.otherwise, [0 if either else None for either in varies])(*operands)
            return [x.reshape(batches * self.lanes, *x.shape[2:]) for x in found]

        return dataclasses.replace(self, otherwise=otherwise, lanes=batches * self.lanes, varies=tuple(varies))

    def source(self) -> Source:
        """The kernel's source."""
        return source_of(program_of_lane(self.function, self.operands), self.lanes, self.varies)


def program_of_lane(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Program of a lane for operands like these, as a module of StableHLO."""
    with one_of_many():
        traced = jax.jit(lambda *operands: function(*operands), keep_unused=True).trace(*operands)
        # The platform whose programs call the fewest libraries: threads have none.
        return traced.lower(lowering_platforms=("tpu",)).compiler_ir("stablehlo")


_threads = Primitive("threads")
_threads.multiple_results = True
_threads.def_abstract_eval(
    lambda *_, batch, x64: [ShapedArray((batch.lanes, *x.shape), x.dtype) for x in batch.results]
)
_threads.def_impl(lambda *operands, **params: jax.jit(functools.partial(_threads.bind, **params))(*operands))


def _nested(operands, axes, *, batch, x64):
    """A batch of batches is a larger batch."""
    batches = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    with jax.enable_x64(x64):
        if batches == 0:
            return [jnp.zeros((0, batch.lanes, *x.shape), x.dtype) for x in batch.results], [0] * len(batch.results)
        outside = [axis is not None for axis in axes]
        first = [x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)]
        varies, flat = as_one_batch(batches, batch.lanes, outside, batch.varies, first)
        found = _threads.bind(*flat, batch=batch.repeated(batches, varies), x64=x64)
        return [x.reshape(batches, batch.lanes, *x.shape[1:]) for x in found], [0] * len(found)


batching.primitive_batchers[_threads] = _nested


def _without_unused(used, *read_and_equation):
    # JAX 0.12 says as well which operands are read.
    *_, equation = read_and_equation
    if not any(used):
        return [False] * len(equation.invars), None
    results = [x for x, each in zip(equation.outvars, used, strict=True) if each]
    params = equation.params | {"batch": equation.params["batch"].only(used)}
    return [True] * len(equation.invars), equation.replace(outvars=results, params=params)


partial_eval.dce_rules[_threads] = _without_unused


def _lowered(context, *operands, batch: _Batch, x64: bool):
    try:
        with jax.enable_x64(x64):
            source = batch.source()
    except Untranslatable as why:
        warnings.warn(f"a batch runs slower than it could: threads of a GPU cannot do {why}", stacklevel=2)
        return _otherwise(context, *operands, batch=batch, x64=x64)
    threads = THREADS if batch.lanes > MULTIPROCESSORS * THREADS else FEWER_THREADS
    text = compiled(source.cuda(threads, RESIDENT // threads), f"compute_{_architecture()}")
    given = [i for i, x in enumerate(batch.operands) if np.prod(x.shape)]
    found = [i for i, x in enumerate(batch.results) if np.prod(x.shape)]
    kept = [context.avals_out[i] for i in found]
    scratch = [ShapedArray((batch.lanes, kind.size), _DTYPES[kind.dtype]) for kind in source.scratch]
    config = {
        "name": ir.StringAttr.get(NAME),
        "kernel_type": ir.StringAttr.get("ptx"),
        "kernel_data": ir.StringAttr.get(text),
        "grid_x": _int32(-(-batch.lanes // threads)),
        "block_x": _int32(threads),
        **{name: _int32(1) for name in ("grid_y", "grid_z", "block_y", "block_z")},
        "shared_mem_bytes": _int32(0),
        "output_indices": ir.ArrayAttr.get([_int32(len(given) + i) for i in range(len(kept) + len(scratch))]),
    }
    call = stablehlo.CustomCallOp(
        [ir.RankedTensorType.get(x.shape, mlir.dtype_to_ir_type(x.dtype)) for x in (*kept, *scratch)],
        [operands[i] for i in given],
        call_target_name=ir.StringAttr.get("__gpu$xla.gpu.ptx"),
        has_side_effect=ir.BoolAttr.get(False),
        api_version=_int32(4),
        called_computations=ir.ArrayAttr.get([]),
        operand_layouts=ir.ArrayAttr.get(
            [_layout(context.avals_in[i], batch.varies[i] and source.lanes_last) for i in given]
        ),
        result_layouts=ir.ArrayAttr.get([_layout(x, source.lanes_last) for x in (*kept, *scratch)]),
    )
    call.attributes["backend_config"] = ir.DictAttr.get(config)
    results = dict(zip(found, call.results, strict=False))
    return [
        results[i] if i in results else mlir.ir_constant(np.zeros(aval.shape, aval.dtype))
        for i, aval in enumerate(context.avals_out)
    ]


_DTYPES = {
    "f32": jnp.float32, "f64": jnp.float64, "i1": jnp.bool_, "i8": jnp.int8, "i16": jnp.int16, "i32": jnp.int32,
    "i64": jnp.int64, "ui8": jnp.uint8, "ui16": jnp.uint16, "ui32": jnp.uint32, "ui64": jnp.uint64,
}  # fmt: skip


def _layout(aval, lanes_last: bool):
    """Axes from the one whose entries lie side by side on."""
    axes = list(reversed(range(len(aval.shape))))
    axes = [0, *axes[:-1]] if lanes_last else axes
    return ir.DenseElementsAttr.get(array.array("q", axes), type=ir.IndexType.get())


def _int32(number: int):
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)


def _architecture() -> int:
    """Architecture of the card at hand, up to `NEWEST`; without a card, the oldest one that runs every program of
    ours."""
    if not threaded():
        return 80
    major, minor = jax.devices()[0].compute_capability.split(".")
    return min(10 * int(major) + int(minor), NEWEST)


def _otherwise(context, *operands, batch: _Batch, x64: bool):
    with jax.enable_x64(x64):
        return mlir.lower_fun(batch.otherwise, multiple_results=True)(context, *operands)


mlir.register_lowering(_threads, _otherwise)
mlir.register_lowering(_threads, _lowered, platform="cuda")
