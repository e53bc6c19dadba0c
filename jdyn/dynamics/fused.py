"""The recursions of `jdyn.dynamics.one_by_one`, each loop a single kernel: for accelerators.

XLA starts a handful of kernels for every body and takes messages through memory between them. Here a program of the
kernel has a few robots to itself, a lane each, goes from body to body in a loop of its own, and has messages at hand
in registers. Tour, packed values and step functions are those of `jdyn.dynamics.one_by_one`; what lies between two
loops stays with XLA.

Kernels are written in Pallas, which takes Triton to CUDA devices; elsewhere they are interpreted, which shows what
they compute and nothing of their speed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jdyn.dynamics import one_by_one
from jdyn.dynamics.one_by_one import each, pack, schedule, unpack

__all__ = ["each", "gathered", "outward", "pack", "schedule", "unpack"]

# Robots of a program: one a thread of a single warp, since robots share nothing and each fills a thread's registers.
_LANES = 32


def _scan(visit: Callable, start: Any, rows: Any, *, reverse: bool = False) -> tuple[Any, Any]:
    """`jax.lax.scan` in one kernel, for a `visit` that is elementwise in all axes of messages (1, *lanes) and of rows
    (bodies, 1, *lanes)."""
    bodies = len(jax.tree.leaves(rows)[0])
    start = jax.tree.map(lambda x: x[None], start)
    shape = jnp.broadcast_shapes(*(x.shape[1:] for x in jax.tree.leaves((start, rows))))
    size = math.prod(shape)
    programs = -(-size // _LANES)
    # Two executors and the question of what shape results have: one trace for all.
    visit = jax.jit(visit)

    def flat(x):
        """Rows of lanes, the last one repeated until the last program has all of its own; numbers that all lanes share
        stay single."""
        if x.size == len(x):
            return x.reshape(-1, 1)
        x = jnp.broadcast_to(x, (len(x), *shape)).reshape(len(x), size)
        return jnp.pad(x, ((0, 0), (0, programs * _LANES - size)), mode="edge")

    def kernel(start, rows, last, ys):
        def turn(k, carry):
            i = bodies - 1 - k if reverse else k
            carry, y = visit(carry, jax.tree.map(lambda x: _loaded(x, i), rows))
            _store(ys, i, y)
            return carry

        first = jax.tree.map(lambda x: jnp.broadcast_to(_loaded(x, 0), _LANES), start)
        _store(last, 0, jax.lax.fori_loop(0, bodies, turn, first))

    start, rows = jax.tree.map(flat, (start, rows))
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct((_LANES,), x.dtype), start)
    row = jax.tree.map(lambda x: jax.ShapeDtypeStruct((_LANES,) if x.shape[1] > 1 else (), x.dtype), rows)
    results = jax.eval_shape(visit, one, row)
    shapes = tuple(
        jax.tree.map(lambda x, n=n: jax.ShapeDtypeStruct((n, programs * _LANES), x.dtype), result)
        for n, result in zip((1, bodies), results, strict=True)
    )
    call = functools.partial(
        pl.pallas_call,
        kernel,
        shapes,
        grid=(programs,),
        in_specs=jax.tree.map(_block, (start, rows)),
        out_specs=jax.tree.map(_block, shapes),
        compiler_params=triton.CompilerParams(num_warps=1),
    )
    results = jax.lax.platform_dependent(start, rows, cuda=call(), default=call(interpret=True))
    last, ys = jax.tree.map(lambda x: x[:, :size].reshape(len(x), *shape), results)
    return jax.tree.map(lambda x: x[0], last), ys


def _block(x) -> pl.BlockSpec:
    """What a program sees of rows of numbers: its own lanes, or what all share."""
    if x.shape[1] == 1:
        return pl.BlockSpec(x.shape, lambda program: (0, 0))
    return pl.BlockSpec((len(x), _LANES), lambda program: (0, program))


def _loaded(ref, i):
    return ref[i] if ref.shape[1] > 1 else ref[i, 0]


def _store(refs, i, numbers):
    for ref, number in zip(jax.tree.leaves(refs), jax.tree.leaves(numbers), strict=True):
        ref[i] = jnp.broadcast_to(number, _LANES)


outward = functools.partial(one_by_one.outward, scan=_scan)
gathered = functools.partial(one_by_one.gathered, scan=_scan)
