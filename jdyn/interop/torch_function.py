"""JAX programs that PyTorch's `autograd` differentiates, in all of its modes."""

# pyright: reportMissingImports=false

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

# Numbers of Python among these are traced, so that a program serves every value.
_TRACED = (torch.Tensor, jax.Array, np.ndarray, np.generic, float)


def of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """See `jdyn.interop.to_torch`."""
    programs: dict[Hashable, Program] = {}

    @functools.wraps(function)
    def called(*args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs))
        _check((args, kwargs))
        arrays = [leaf for leaf in leaves if isinstance(leaf, _TRACED)]
        constants = tuple(None if isinstance(leaf, _TRACED) else (type(leaf), leaf) for leaf in leaves)
        key = (structure, constants)
        if key not in programs:
            programs[key] = Program(_of_arrays(function, structure, constants))
        return applied(programs[key], arrays)

    return called


class Program:
    """A compiled function of arrays, and what torch derives from it."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.compiled = function, jax.jit(function)
        self._derived: dict[Hashable, Program] = {}

    def derived(self, rule: Callable[..., Any], *how: Hashable) -> "Program":
        """The program of `rule(function, *how)`."""
        key = (rule, how)
        if key not in self._derived:
            self._derived[key] = Program(rule(self.function, *how))
        return self._derived[key]

    def run(self, args: Sequence[Any]) -> tuple[tuple[torch.Tensor, ...], Any]:
        """Leaves of the result as tensors, and their structure."""
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        # DLPack takes tensors of the current device only.
        with torch.cuda.device_of(tensors[0] if tensors else torch.empty(0)):
            arrays = [_to_jax(x) if isinstance(x, torch.Tensor) else x for x in args]
            device = next((x.device for x, given in zip(arrays, args, strict=True) if given is not x), None)
            with jax.default_device(device):
                leaves, structure = jax.tree.flatten(self.compiled(*arrays))
            # Whoever changes tensors in place must not change what is still being read.
            jax.block_until_ready(leaves)
            return tuple(map(_to_tensor, leaves)), structure


class _Structure:
    """Structure of the result of `_Applied`, left here by its call: `autograd` knows the leaves alone."""

    tree: Any = None


def applied(program: Program, args: Sequence[Any]) -> Any:
    """The result of a program, with the derivatives of `autograd`."""
    structure = _Structure()
    leaves = _Applied.apply(program, structure, *args)
    return jax.tree.unflatten(structure.tree, leaves)


class _Applied(torch.autograd.Function):
    """A program of arrays. Its derivatives are programs that are applied alike, which gives all higher ones."""

    @staticmethod
    def forward(program, structure, *args):
        leaves, structure.tree = program.run(args)
        return leaves

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.program, _, *args = inputs
        ctx.others = [None if isinstance(x, torch.Tensor) else x for x in args]
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.floating = [y.is_floating_point() for y in output]
        ctx.mark_non_differentiable(*[y for y in output if not y.is_floating_point()])

    @staticmethod
    def backward(ctx, *cotangents):
        args = _arguments(ctx)
        wanted = tuple(i for i, needed in enumerate(ctx.needs_input_grad[2:]) if needed)
        cotangents = [x for x, floating in zip(cotangents, ctx.floating, strict=True) if floating]
        found = applied(ctx.program.derived(_pulled_back, len(args), wanted), [*args, *cotangents])
        by_place = dict(zip(wanted, found, strict=True))
        return None, None, *[by_place.get(i) for i in range(len(args))]

    @staticmethod
    def jvp(ctx, _program, _structure, *tangents):
        args = _arguments(ctx)
        moved = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
        program = ctx.program.derived(_pushed_forward, len(args), moved)
        found = iter(applied(program, [*args, *[tangents[i] for i in moved]]))
        return tuple(next(found) if floating else None for floating in ctx.floating)

    @staticmethod
    def vmap(info, in_dims, program, structure, *args):
        leaves = _Applied.apply(program.derived(_batched, info.batch_size, tuple(in_dims[2:])), structure, *args)
        return leaves, (0,) * len(leaves)


def _arguments(ctx):
    tensors = iter(ctx.saved_tensors)
    return [next(tensors) if x is None else x for x in ctx.others]


def _of_arrays(function, structure, constants):
    """The function of the leaves that are arrays."""

    def of_arrays(*arrays):
        given = iter(arrays)
        leaves = [next(given) if constant is None else constant[1] for constant in constants]
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return function(*args, **kwargs)

    return of_arrays


def _pulled_back(function, number, wanted):
    """Cotangents of the `wanted` ones of a function's `number` arguments, by these and the cotangents of its result."""

    def pulled_back(*given):
        args, cotangents = given[:number], given[number:]
        chosen, floating = _in_places(function, args, wanted)
        _, pull = jax.vjp(floating, *chosen)
        return pull(list(cotangents))

    return pulled_back


def _pushed_forward(function, number, moved):
    """Tangents of a function's result, by its `number` arguments and the tangents of those that are `moved`."""

    def pushed_forward(*given):
        args, tangents = given[:number], given[number:]
        chosen, floating = _in_places(function, args, moved)
        return jax.jvp(floating, chosen, tangents)[1]

    return pushed_forward


def _in_places(function, args, places):
    """The arguments in some places, and the floating-point leaves of the result as a function of them."""

    def floating(*chosen):
        by_place = dict(zip(places, chosen, strict=True))
        leaves = jax.tree.leaves(function(*[by_place.get(i, x) for i, x in enumerate(args)]))
        return [jnp.asarray(y) for y in leaves if jnp.issubdtype(jnp.result_type(y), jnp.floating)]

    return tuple(args[i] for i in places), floating


def _batched(function, size, axes):
    return jax.vmap(function, in_axes=axes, axis_size=size)


def _to_jax(tensor):
    try:
        return jax.dlpack.from_dlpack(tensor.detach().contiguous())
    except RuntimeError as error:
        raise RuntimeError(
            f"{error} (JAX takes tensors and those of torch.func, not the batches of is_grads_batched=True and "
            "vectorize=True)"
        ) from error


def _to_tensor(array):
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"function: expected arrays of numbers as its result, got {array.dtype}; jax.random.PRNGKey makes keys of "
            "numbers"
        )
    return torch.from_dlpack(array)


def _check(given):
    """Refuse arguments that a program cannot take, by name."""
    device = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(given):
        if isinstance(leaf, torch.Tensor):
            device = device or leaf.device
            problem = _problem(leaf, device)
        else:
            problem = None if isinstance(leaf, _TRACED) or _is_hashable(leaf) else f"got {type(leaf).__name__}"
        if problem:
            raise ValueError(f"{_name(path)}: expected tensors, arrays, numbers or what is hashable, {problem}")


def _problem(tensor, device):
    """The reason for which a program cannot take a tensor, or None."""
    if tensor.layout != torch.strided:
        return f"got a tensor of layout {tensor.layout}"
    if tensor.is_complex():
        return f"got {tensor.dtype}, for which derivatives of JAX and PyTorch differ"
    if tensor.dtype.itemsize > 4 and not jax.config.read("jax_enable_x64"):
        return f'got {tensor.dtype}, which JAX has after jax.config.update("jax_enable_x64", True)'
    if tensor.device != device:
        return f"got tensors on {device} and on {tensor.device}"
    if device.type not in _platforms():
        return f"got one on {device}, where JAX does not run"
    return None


@functools.cache
def _platforms():
    """Names that torch has for devices of JAX."""
    return {"cpu", "cuda"} if jax.default_backend() == "gpu" else {"cpu"}


def _is_hashable(x):
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _name(path):
    """The name of an argument, its place or keyword, and the path to the leaf within it."""
    _, argument, *rest = path
    return f"argument {jax.tree_util.keystr((argument,), simple=True)}{jax.tree_util.keystr(tuple(rest))}"
