"""Programs of one lane as few kernels: the same numbers, and what kernels cannot hold beside them."""

import re

import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest

import jdyn
from jdyn.execution import few_kernels
from jdyn.execution.few_kernels import in_few_kernels

LARGE = few_kernels.LARGEST + 1


def calls(function, *arguments):
    """How many kernels a function has."""
    return len(re.findall(r"call @kernel", jax.jit(in_few_kernels(function)).lower(*arguments).as_text()))


def twenty(x):
    for _ in range(10):
        x = jnp.sin(x) + 0.5 * x
    return x


def loops(x):
    """Loops within each other, whose numbers of rounds depend on data."""

    def inner(carry):
        return carry[0] + 1, jnp.where(carry[1] > 1, carry[1] / 2, carry[1] * 3)

    def step(x, row):
        _, x = jax.lax.while_loop(lambda carry: carry[0] < jnp.abs(row), inner, (0.0, x))
        return jax.lax.cond(row > 2, twenty, jnp.cos, x), x.sum()

    return jax.lax.scan(step, x, jnp.arange(5.0))


def library(x):
    """LAPACK between two kernels."""
    A = twenty(jnp.outer(x, x)) + 10 * jnp.eye(len(x))
    return twenty(jnp.linalg.cholesky(A))


def solved(x):
    """An operation of another library, which has programs of its own."""
    A = twenty(jnp.outer(x, x)) + 10 * jnp.eye(len(x))
    operator = lineax.FunctionLinearOperator(lambda y: A @ y, jax.eval_shape(lambda: x))
    return twenty(lineax.linear_solve(operator, x).value)


def sorted_twice(x):
    return twenty(jnp.sort(twenty(x))[jnp.argsort(x)])


def scattered(x):
    return twenty(jnp.zeros(8).at[jnp.array([1, 5, 1])].add(twenty(x)[:3]).at[2].set(x[0]))


def large(x):
    return twenty(jnp.zeros(LARGE).at[jnp.int32(x[0])].set(x[1])).sum() + twenty(x)


def nothing_of_it(x):
    """Numbers that do not depend on what they are made of."""
    return twenty(jnp.zeros_like(x)), jnp.zeros((0, 3)), x


def within_loops(x):
    """A loop that no kernel can hold, but for what is in it."""

    def step(x, _):
        return jnp.sort(twenty(x)) + twenty(x), None

    return jax.lax.while_loop(lambda x: x[0] < 1, lambda x: jax.lax.scan(step, x + 1, length=2)[0], x)


CASES = [loops, library, solved, sorted_twice, scattered, large, nothing_of_it, within_loops]


@pytest.mark.parametrize("function", CASES)
def test_results_are_those_of_the_function(function):
    x = jnp.array([0.3, -1.2, 2.5, 0.7])
    expected, found = jax.jit(function)(x), jax.jit(in_few_kernels(function))(x)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    # Kernels contract and order sums in their own way.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13), found, expected)


def test_what_fits_is_one_kernel_and_the_rest_is_between_kernels():
    x = jnp.ones(4)
    assert calls(loops, x) == 1
    assert calls(library, x) == 2
    assert calls(sorted_twice, x) == 2
    assert calls(within_loops, x) >= 1
    # Too few operations for a kernel.
    assert calls(jnp.sin, x) == 0


def test_kernels_have_a_size(monkeypatch):
    monkeypatch.setattr(few_kernels, "PIECE", 30)
    assert calls(lambda x: twenty(twenty(twenty(x))), jnp.ones(3)) == 3


def test_what_prints_does_so_in_order(capfd):
    def function(x):
        for i in range(3):
            x = twenty(x)
            jax.debug.print("{}", i, ordered=True)
        return x

    jax.jit(in_few_kernels(function))(jnp.ones(3)).block_until_ready()
    jax.effects_barrier()
    assert capfd.readouterr().out.split() == ["0", "1", "2"]


def test_sizes_may_be_symbols():
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(in_few_kernels(twenty)))(jax.ShapeDtypeStruct((n,), jnp.float64))
    x = jnp.linspace(-1, 1, 5)
    np.testing.assert_allclose(exported.call(x), twenty(x), rtol=1e-13)


def test_simulations_are_few_kernels():
    model = jdyn.load("puma560")
    q0, v0 = model.neutral(), jnp.zeros(model.nv)
    assert "xla_cpu_small_call" in jax.jit(lambda q0: jdyn.simulate(model, q0, v0, 0.1).q).lower(q0).as_text()


def test_other_platforms_have_no_such_calls():
    lowered = jax.jit(in_few_kernels(twenty)).trace(jnp.ones(3)).lower(lowering_platforms=("cuda",))
    assert "small_call" not in lowered.as_text()


def test_a_kernel_gives_back_an_operand_that_has_numbers():
    """XLA ends the process where a kernel uses nothing of its operands but empty arrays."""

    def both(x, none):
        return twenty(x), twenty(none)

    text = jax.jit(in_few_kernels(both)).lower(jnp.ones(3), jnp.zeros(0)).as_text()
    results = re.findall(r"func\.func private @kernel.*-> \((.*)\) \{", text)
    assert results and not any(types.split(", ")[-1].startswith("tensor<0x") for types in results)
