"""Every operation of a thread, against the same operation of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.execution.threads.values import Untranslatable
from tests.execution.threads.on_host import check, needs_compiler, on_host

pytestmark = needs_compiler

SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, 0.3, 1e-30, 3e7, np.inf, -np.inf, np.nan]


def drawn(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_one_number(dtype):
    """Libraries of functions differ by some units in the last place; XLA's log1p is off by fifty at −0.4."""
    functions = [
        jnp.sqrt, jax.lax.rsqrt, jnp.cbrt, jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jax.nn.sigmoid, jnp.sin, jnp.cos,
        jnp.tan, jnp.tanh, jnp.arcsin, jnp.arctan, jnp.sinh, jnp.cosh, jax.scipy.special.erf, jnp.square,
    ]  # fmt: skip
    x = np.array([[0.3, 0.7], [-0.4, 0.9], [2.5, -3.0]], dtype)
    check(lambda x: [f(x) for f in functions], x, rtol=64 * np.finfo(dtype).eps)


def test_roundings_signs_and_numbers_that_are_none():
    x = np.array([SPECIAL, SPECIAL[::-1]])
    functions = [jnp.floor, jnp.ceil, jnp.round, jnp.trunc, jnp.abs, jnp.sign, jnp.negative, jnp.isfinite, jnp.isnan]
    check(lambda x: [f(x) for f in functions], x)
    pairs = [
        jnp.add, jnp.multiply, jnp.divide, jnp.maximum, jnp.minimum, jnp.less, jnp.less_equal, jnp.greater, jnp.equal,
        jnp.not_equal, jnp.arctan2, jnp.nextafter,
    ]  # fmt: skip
    y = np.roll(x, 3, axis=1)
    check(lambda x, y: [f(x, y) for f in pairs], x, y, rtol=4e-16)
    check(lambda x, y: [jnp.where(x < y, x, 1.0), jnp.clip(x, -1.0, 2.0), jax.lax.rem(x, 0.7 + 0 * x)], x, y)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint8])
def test_integers(dtype):
    x = np.array([[7, 250, 0, 13], [1, 2, 3, 4]]).astype(dtype)
    y = np.array([[3, 7, 5, 0], [1, 0, 31, 2]]).astype(dtype)
    functions = [
        jnp.add, jnp.subtract, jnp.multiply, jax.lax.div, jax.lax.rem, jnp.bitwise_and, jnp.bitwise_or,
        jnp.bitwise_xor, jax.lax.shift_left, jax.lax.shift_right_logical, jax.lax.shift_right_arithmetic,
        jnp.maximum, jnp.minimum, jnp.less,
    ]  # fmt: skip
    check(lambda x, y: [f(x, y) for f in functions], x, y)
    check(lambda x: [~x, x.astype(jnp.float32), x.astype(jnp.int8), x.astype(bool), x + x, jnp.sum(x)], x)


def test_types_are_changed():
    x = np.array([[1.5, -2.5, 0.0], [300.7, -0.2, np.nan]], np.float32)
    check(lambda x: [x.astype(jnp.int32), x.astype(bool), x.astype(jnp.float64)], x)
    check(lambda x: [jax.lax.bitcast_convert_type(x, jnp.int32), x.view(jnp.uint32)], x)
    truths = np.array([[True, False], [False, False]])
    check(lambda x: [x & ~x, x | x, x ^ True, jnp.any(x), jnp.all(x), x.astype(jnp.int32)], truths)


@pytest.mark.parametrize("size", [3, 40])
def test_arrangements(size):
    """Of variables and, beyond 128 entries, of buffers."""
    x = drawn(2, size, 4)
    check(
        lambda x: [
            x.T, x[::-1, ::2], x.reshape(-1), jnp.concatenate([x, 2 * x], 1), jnp.pad(x, ((1, 2), (0, 1))),
            jnp.pad(x, ((0, 0), (2, 0))), jnp.broadcast_to(x[:, None], (size, 3, 4)),
            jnp.stack([x, x]), jnp.roll(x, 1, 0), x[1:, :2], jax.lax.pad(x, x[0, 0], ((0, 0, 1), (1, 0, 0))),
            jnp.arange(size, dtype=x.dtype) + x[:, 0], jnp.tile(x, (1, 2)),
        ],
        x,
    )  # fmt: skip


@pytest.mark.parametrize("size", [3, 40])
def test_places_that_are_computed(size):
    x, i = drawn(3, size, 4), np.array([1, -1, size + 5])
    row = drawn(3, 4, seed=1)
    check(
        lambda x, i, row: [
            jax.lax.dynamic_slice(x, (i, 0), (2, 4)), jax.lax.dynamic_update_slice(x, row[None], (i, 0)), x[i],
            x.at[i].get(mode="fill"), x.at[i].set(row, mode="drop"), x.at[i].add(row, mode="drop"),
            x.at[i, 2].multiply(3.0), x[jnp.array([0, 2]), i % 4], x.at[jnp.array([0, 0])].add(row[:1]),
            x.at[jnp.array([0, 1]), jnp.array([1, i])].set(7.0, mode="drop"), x[:, i % 4],
        ],
        x, i, row,
    )  # fmt: skip


@pytest.mark.parametrize("size", [3, 12])
def test_sums_and_products(size):
    """Sums are in the order of the entries; XLA's may be in another one."""
    x, y = drawn(2, size, size), drawn(2, size, size, seed=1)
    check(
        lambda x, y: [
            x @ y, jnp.einsum("ij,kj->ik", x, y), jnp.einsum("ij,ij->i", x, y), jnp.tensordot(x, y, 2), jnp.sum(x),
            jnp.sum(x, 0), jnp.max(x, 1), jnp.min(x), jnp.prod(x[:3, :3]), jnp.argmax(x, 0), jnp.argmin(x),
            jnp.cumsum(x[:2], 1), jnp.cumprod(x[0]), jax.lax.cummax(x[1]), jnp.linalg.norm(x),
            jnp.einsum("bij,bj->bi", jnp.stack([x, y]), y[:2]),
        ],
        x, y, rtol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("size", [2, 6])
def test_factors_and_triangular_systems(size):
    A, B = drawn(3, 2, size, size), drawn(3, 2, size, 3, seed=1)
    A = A @ A.swapaxes(-1, -2) + np.eye(size)
    check(lambda A: [jnp.linalg.cholesky(A), jnp.linalg.cholesky(A, upper=True)], A, rtol=1e-13)

    def solved(A, B):
        sides = [(left, B if left else B.swapaxes(-1, -2)) for left in (True, False)]
        return [
            jax.lax.linalg.triangular_solve(A, x, left_side=left, lower=lower, transpose_a=turned, unit_diagonal=unit)
            for left, x in sides for lower in (True, False) for turned in (True, False) for unit in (True, False)
        ]  # fmt: skip

    check(solved, A, B, rtol=1e-9)


def test_sorting():
    x = np.array([[3.0, -1.0, np.nan, 2.0, -0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 0.0, -np.inf, np.inf, 5.0]])
    check(lambda x: [jnp.sort(x), jnp.argsort(x), jnp.sort(x.reshape(7, 1), axis=0), jnp.median(x[3:])], x)
    check(lambda x: [jnp.sort(x, axis=0), jnp.argsort(x, axis=1, descending=True)], drawn(2, 3, 5))


def test_what_threads_cannot_do_is_named():
    with pytest.raises(Untranslatable, match="custom_call"):
        on_host(lambda x: jnp.linalg.eigh(x)[0], drawn(2, 3, 3))
    with pytest.raises(Untranslatable, match="f16"):
        on_host(lambda x: x.astype(jnp.float16), drawn(2, 3))
