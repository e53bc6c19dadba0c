"""Visit one body after another, each loop a single kernel: for accelerators.

In plain XLA every turn of a loop starts kernels of its own, which hand messages on through memory. Here a program of
the one kernel has a few robots to itself, a lane each, and goes from body to body with messages in registers. XLA keeps
what lies between two loops.

Kernels are written in Pallas, which compiles them with Triton for CUDA devices. Elsewhere they are interpreted, which
shows what they compute and nothing of their speed.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jdyn.dynamics.recursion.depth_first import DepthFirst

# Robots of a program: one a thread of a single warp, since robots share nothing and each fills a thread's registers.
_THREADS = 32


class Kernels(DepthFirst):
    """As `DepthFirst`, for functions that are elementwise in the axes of messages, (1, *lanes), and of rows,
    (bodies, 1, *lanes)."""

    def loop(self, visit, step, rows, first, start, last, *, reverse=False):
        # Steps need not be computed at once: a kernel is one program.
        return _kernel_loop(visit, step, rows, first, start, last, reverse=reverse)


KERNELS = Kernels()


def _kernel_loop(visit, step, rows, first, start, last, *, reverse=False):
    bodies = len(jax.tree.leaves(rows)[0])
    start = jax.tree.map(lambda x: x[None], start)
    shape = jnp.broadcast_shapes(*(x.shape[1:] for x in jax.tree.leaves((start, rows))))
    size = math.prod(shape)
    # One at least, for a batch of none.
    programs = -(-max(size, 1) // _THREADS)
    # Traced once, though it is compiled, interpreted, and asked for the shapes of its results.
    visit = jax.jit(functools.partial(visit, step))

    def flat(x):
        """(rows, lanes), the last lane repeated until the last program has all of its own; or (rows, 1) of what all
        lanes share."""
        if x.size == len(x):
            return x.reshape(-1, 1)
        x = jnp.broadcast_to(x, (len(x), *shape)).reshape(len(x), size)
        return jnp.pad(x, ((0, 0), (0, programs * _THREADS - size)), mode="edge" if size > 0 else "constant")

    def whole(x):
        """The result without the lanes that were filled up."""
        return x[:, :size].reshape(len(x), *shape)

    def begun(start):
        return jax.tree.map(lambda x: jnp.broadcast_to(x, _THREADS), first(start))

    def kernel(start, rows, total, ys):
        def turn(k, carry):
            i = bodies - 1 - k if reverse else k
            carry, y = visit(carry, _row(rows, i))
            _store(ys, i, y)
            return carry

        _store(total, 0, last(jax.lax.fori_loop(0, bodies, turn, begun(_row(start, 0)))))

    start, rows = jax.tree.map(flat, (start, rows))
    carry, y = jax.eval_shape(lambda start, rows: visit(begun(_row(start, 0)), _row(rows, 0)), start, rows)
    shapes = tuple(
        jax.tree.map(lambda x, n=n: jax.ShapeDtypeStruct((n, programs * _THREADS), x.dtype), x)
        for n, x in ((1, jax.eval_shape(last, carry)), (bodies, y))
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
    total, ys = jax.tree.map(whole, results)
    return jax.tree.map(lambda x: x[0], total), ys


def _block(x) -> pl.BlockSpec:
    """What a program sees of (rows, lanes): lanes of its own, or what all share."""
    if x.shape[1] == 1:
        return pl.BlockSpec(x.shape, lambda program: (0, 0))
    return pl.BlockSpec((len(x), _THREADS), lambda program: (0, program))


def _row(x, i):
    """A program's row: vectors of lanes, and single numbers that all share."""
    return jax.tree.map(lambda x: x[i, 0] if x.shape[1] == 1 else x[i, :_THREADS], x)


def _store(refs, i, numbers):
    for ref, number in zip(jax.tree.leaves(refs), jax.tree.leaves(numbers), strict=True):
        ref[i] = jnp.broadcast_to(number, _THREADS)
