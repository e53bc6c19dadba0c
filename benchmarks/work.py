"""Operations and bytes of a program, and the most a device does of either in a second."""

import math
import time

import jax
import jax.numpy as jnp

# Free, or moving data, which bytes count.
_NO_ARITHMETIC = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice", "dynamic_update_slice",
    "gather", "iota", "pad", "reshape", "rev", "scatter", "slice", "split", "squeeze", "stop_gradient", "transpose",
    "optimization_barrier", "at_once",
}  # fmt: skip


def counted(function, arguments, compiled) -> dict:
    """Floating-point operations of a call, and the bytes that it cannot do without: what goes in and comes out.

    XLA's own analysis counts the body of a loop once, whatever the number of turns; it is kept beside ours, which
    multiplies. Loops whose number of turns depends on the data have no count.
    """
    shapes = jax.eval_shape(function, *arguments)
    moved = sum(x.size * x.dtype.itemsize for x in (*arguments, *jax.tree.leaves(shapes)))
    analysis = compiled.cost_analysis() or {}
    analysis = analysis[0] if isinstance(analysis, list) else analysis
    flops = _flops(jax.make_jaxpr(function)(*arguments).jaxpr)
    return {
        "flops": None if math.isnan(flops) else flops,
        "bytes": moved,
        "xla_flops": analysis.get("flops"),
        "xla_bytes": analysis.get("bytes accessed"),
    }


def _flops(jaxpr) -> float:
    return float(sum(_of_equation(equation) for equation in jaxpr.eqns))


def _of_equation(equation) -> float:
    name, params = equation.primitive.name, equation.params
    if name in _NO_ARITHMETIC:
        return 0
    size = sum(math.prod(x.aval.shape) for x in equation.outvars if jnp.issubdtype(x.aval.dtype, jnp.inexact))
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return 2 * size * math.prod(shape[axis] for axis in contracted)
    if name == "scan":
        return params["length"] * _flops(params["jaxpr"].jaxpr)
    if name == "while":
        return math.nan
    if name == "cond":
        return max(_flops(branch.jaxpr) for branch in params["branches"])
    if name == "custom_linear_solve":
        return _flops(params["jaxprs"].solve.jaxpr)
    if name == "deferred":
        # One of jdyn's, which peers do without.
        from jdyn.execution.deferred import program_of

        return _flops(program_of(equation))
    if name == "threads":
        # A batch of jdyn on a GPU of NVIDIA.
        from jdyn.execution.threads.lane import one_of_many

        batch = params["batch"]
        with one_of_many(), jax.enable_x64(params["x64"]):
            return batch.lanes * _flops(jax.make_jaxpr(batch.function)(*batch.operands).jaxpr)
    if name == "cholesky":
        return size * equation.outvars[0].aval.shape[-1] / 3
    if name == "triangular_solve":
        return size * equation.invars[0].aval.shape[-1]
    if name.startswith(("reduce", "cum", "scatter-add", "scatter_add")):
        return math.prod(equation.invars[0 if name.startswith(("reduce", "cum")) else 2].aval.shape)
    inner = [x for leaf in params.values() for x in (leaf if isinstance(leaf, tuple | list) else (leaf,))]
    inner = [getattr(x, "jaxpr", x) for x in inner]
    inner = [x for x in inner if hasattr(x, "eqns")]
    return sum(map(_flops, inner)) if inner else size


def peaks(dtype, side: int, elements: int) -> dict:
    """Operations a second of a large matrix product, and bytes a second of a large copy: the best of five of each."""
    a = jnp.ones((side, side), dtype)
    # Full precision: the products of forward dynamics run without the shortcuts of tensor cores.
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    b = jnp.ones(elements, dtype)
    copy = jax.jit(lambda b: b + 1)
    return {
        "flops_per_s": 2 * side**3 / _best(product, a),
        "bytes_per_s": 2 * b.nbytes / _best(copy, b),
    }


def _best(call, argument):
    jax.block_until_ready(call(argument))
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(call(argument))
        seconds.append(time.perf_counter() - began)
    return min(seconds)
