"""Loops, branches and buffers that threads change in place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.execution.threads import loops
from tests.execution.threads.on_host import check, needs_compiler, source

pytestmark = needs_compiler


@pytest.fixture(params=["unrolled", "rolled"])
def rolled(request, monkeypatch):
    """Loops of a known number of turns, in both ways."""
    monkeypatch.setattr(loops, "UNROLLED", 6000 if request.param == "unrolled" else 0)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_lanes_end_when_they_are_done():
    def halved(x, count):
        return jax.lax.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, c[1] / 2, c[1]), (0, x, x))

    check(halved, np.array([1.0, 3.0, 5.0]), np.array([0, 3, 50]))


def test_entries_of_a_carry_change_at_once(rolled):
    """Each becomes another's old value."""

    def turned(a, b, c):
        return jax.lax.fori_loop(0, 4, lambda _, x: (x[1], x[2], x[0] + x[1]), (a, b, c))

    check(turned, *drawn(3, 2))
    check(turned, *drawn(3, 2, 150))


def test_scans_read_and_write_rows(rolled):
    def rows(x, y):
        def step(carry, row):
            carry = jnp.tanh(carry @ row)
            return carry, (carry[0], carry)

        return jax.lax.scan(step, x, y), jax.lax.scan(step, x, y, reverse=True)[1]

    check(rows, drawn(2, 3), drawn(2, 7, 3, 3), rtol=1e-14)


def test_a_table_of_a_loop_is_made_before_it(rolled):
    """What a loop looks up by its turn: of what all lanes share, and of what is computed."""
    shared = drawn(4)

    def looked_up(x, shared):
        def turn(i, total):
            return total + jnp.stack([x, 2 * x, x * x, x + 1])[i] * shared[i] + shared[3 - i]

        return jax.lax.fori_loop(0, 4, turn, 0.0)

    check(looked_up, drawn(3), shared, varies=[True, False], rtol=1e-15)


@pytest.mark.parametrize("size", [5, 300])
def test_what_is_read_later_is_not_changed(size):
    """A buffer is changed in place only where nobody reads it after that."""

    def kept(x, i):
        changed = x.at[i].set(7.0)
        again = changed.at[i + 1].set(8.0)
        looped = jax.lax.fori_loop(0, 3, lambda k, y: y.at[k].add(1.0), x)
        twice = jax.lax.fori_loop(0, 3, lambda k, y: (y[0].at[k].add(1.0), y[1].at[k].add(2.0)), (x, x))
        chosen = jax.lax.cond(i > 1, lambda: x.at[0].set(9.0), lambda: x)
        flat = x.reshape(-1, 1).at[0].set(5.0)
        return x, changed, again, looped, twice, chosen, flat

    check(kept, drawn(2, size), np.array([1, 3]))


@pytest.mark.parametrize("size", [5, 300])
def test_rows_within_loops_within_loops(size):
    """As simulations write theirs: a buffer that goes through an inner loop and stays where it is."""

    def written(x):
        def outer(carry):
            number, rows = carry
            rows, _ = jax.lax.while_loop(
                lambda c: c[1] < number * 2,
                lambda c: (c[0].at[jnp.where(c[1] % 3 == 0, c[1], size)].set(x * c[1], mode="drop"), c[1] + 1),
                (rows, number),
            )
            return number + 1, jnp.where(number == 3, rows, rows)

        return jax.lax.while_loop(lambda c: c[0] < 6, outer, (1, jnp.full(size, jnp.nan)))

    check(written, drawn(3))


def test_a_buffer_that_only_loops_change_is_not_copied():
    """The rows of a simulation are its result from the start."""

    def rows(x):
        return jax.lax.while_loop(
            lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1].at[c[0]].set(x, mode="drop")), (0, jnp.zeros(1000))
        )[1]

    text = source(rows, 4, [True], [np.zeros(4)]).text
    assert text.count("for (int i = 0; i < 1000; ++i)") == 1
    check(rows, drawn(4))


def test_branches():
    def branched(x, i):
        table = [lambda y: y + 1, lambda y: y * x[0], lambda y: jnp.where(y > 0, y, 0)]
        nested = jax.lax.cond(i > 0, lambda: jax.lax.switch(i, table, 2 * x), lambda: x)
        return jax.lax.switch(i, table, x), jax.lax.cond(True, lambda: x, lambda: 2 * x), nested

    check(branched, drawn(5, 3), np.array([-1, 0, 1, 2, 7]))
    check(branched, drawn(5, 200), np.array([-1, 0, 1, 2, 7]))


def test_functions_are_inlined_where_they_are_called():
    square = jax.jit(lambda x: x * x)
    check(lambda x: [square(x) + square(x + 1), square(square(x))], drawn(3, 2))


def test_derivatives_and_batches_within_a_lane():
    def pendulum(x):
        return jnp.sin(x).sum() * x[0]

    check(lambda x: [jax.grad(pendulum)(x), jax.hessian(pendulum)(x), jax.vmap(jnp.exp)(x)], drawn(2, 4), rtol=1e-14)
