"""Arrays that one program computes: the same, bit by bit, and one program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.execution.at_once import at_once


def shared(x):
    """Six results of much the same work, and one of them a second time."""
    sine = jnp.sin(x)
    results = tuple(k * sine * x + jnp.roll(sine, k) for k in range(1, 7))
    return {"all": results, "again": results[0]}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_numbers_stay_what_they_are(dtype):
    info = jnp.finfo(dtype)
    # So many that XLA takes other ways to reduce them, of which those for the largest number lose what is none.
    x = np.tile(np.array([0.0, -0.0, 1.0, -1.0, info.tiny, -info.max, np.inf, -np.inf, np.nan], dtype), 1000)
    y = x[::-1].copy()
    for arrays in (x, (x, [y, x], None)):
        found = jax.jit(at_once)(arrays)
        assert jax.tree.structure(found) == jax.tree.structure(arrays)
        for array, expected in zip(jax.tree.leaves(found), jax.tree.leaves(arrays), strict=True):
            assert array.dtype == dtype
            np.testing.assert_array_equal(np.asarray(array).view(np.uint8), expected.view(np.uint8))


def test_arrays_take_the_shape_that_they_have_together():
    found = at_once((jnp.zeros(()), jnp.ones((3, 1)), jnp.full((1, 2), 2.0)))
    assert [x.shape for x in found] == [(3, 2)] * 3
    assert [float(x[2, 1]) for x in found] == [0, 1, 2]


def test_whole_numbers_stay():
    known = jnp.zeros(3, int)
    x, zero, counts = at_once((jnp.ones((2, 3)), 0, known))
    assert x.shape == (2, 3) and zero == 0 and counts is known
    assert at_once((0, None)) == (0, None)


@pytest.mark.parametrize("count", [15, 16, 31, 40])
def test_more_arrays_than_one_program_takes(count):
    arrays = [jnp.full(4, float(k)) for k in range(count)]
    np.testing.assert_array_equal(jnp.stack(jax.jit(at_once)(arrays)), jnp.stack(arrays))


def test_what_is_there_twice_is_computed_once():
    results = at_once(shared(jnp.ones(3)))
    assert results["again"] is results["all"][0]


def test_derivatives_are_those_of_what_is_computed():
    def total(function):
        return jax.jit(jax.grad(lambda x: sum(k * jnp.sum(y) for k, y in enumerate(jax.tree.leaves(function(x)), 1))))

    x = jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(total(lambda x: at_once(shared(x)))(x), total(shared)(x), rtol=1e-14)
    tangent = jax.jvp(lambda x: at_once(shared(x)), (x,), (jnp.ones(3),))[1]
    jax.tree.map(np.testing.assert_array_equal, tangent, jax.jvp(shared, (x,), (jnp.ones(3),))[1])


def test_batches():
    x = jax.random.normal(jax.random.key(0), (5, 3))
    found = jax.jit(jax.vmap(lambda x: at_once(shared(x))))(x)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-15), found, jax.vmap(shared)(x))


def test_programs_are_lowered_in_the_types_that_they_were_traced_with():
    traced = jax.jit(lambda x: at_once(shared(x))).trace(jnp.ones(3))
    with jax.enable_x64(False):
        assert "f64" in traced.lower().as_text()


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="elsewhere XLA does so by itself")
def test_processors_take_one_program():
    def programs(function):
        return jax.jit(function).lower(jnp.ones(256)).compile().as_text().count(" fusion(")

    elsewhere = jax.jit(lambda x: at_once(shared(x))).trace(jnp.ones(256)).lower(lowering_platforms=("cuda",))
    assert "stablehlo.reduce" not in elsewhere.as_text()

    def slopes(function):
        return lambda x: jax.jvp(function, (x,), (x,))[1]

    assert programs(shared) >= 6
    assert programs(lambda x: at_once(shared(x))) <= 2
    assert programs(slopes(shared)) >= 6
    assert programs(slopes(lambda x: at_once(shared(x)))) <= 2
