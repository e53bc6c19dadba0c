"""Operations of programs, against textbook algorithms that count for themselves, and against XLA."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation import Result
from jdyn.studies.cloutier1995 import (
    Operations,
    Outcome,
    Session,
    Steps,
    UncountableError,
    forward_dynamics_operations,
    operations,
)

REAL = jax.ShapeDtypeStruct((), jnp.float64)

on_a_processor = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="elsewhere XLA counts nothing, and batches are kernels"
)


@dataclasses.dataclass
class Number:
    """A number that counts what is done with it."""

    x: float
    tally: dict

    def _done(self, kind, x):
        self.tally[kind] = self.tally.get(kind, 0) + 1
        return Number(x, self.tally)

    def __add__(self, y):
        return self._done("additions", self.x + y.x)

    def __sub__(self, y):
        return self._done("additions", self.x - y.x)

    def __mul__(self, y):
        return self._done("multiplications", self.x * y.x)

    def __truediv__(self, y):
        return self._done("divisions", self.x / y.x)

    def sqrt(self):
        return self._done("roots", self.x**0.5)

    def sin(self):
        return self._done("functions", np.sin(self.x))

    def cos(self):
        return self._done("functions", np.cos(self.x))


def _numbers(values):
    tally = {}
    entries = np.array([Number(float(x), tally) for x in np.ravel(values)], object)
    return entries.reshape(np.shape(values)), tally


def _definite(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


def _cholesky(A):
    A = A.copy()
    for j in range(len(A)):
        for i in range(j, len(A)):
            for k in range(j):
                A[i, j] = A[i, j] - A[i, k] * A[j, k]
            A[i, j] = A[i, j].sqrt() if i == j else A[i, j] / A[j, j]
    return A


def _lu(A):
    A = A.copy()
    for k in range(len(A)):
        for i in range(k + 1, len(A)):
            A[i, k] = A[i, k] / A[k, k]
            for j in range(k + 1, len(A)):
                A[i, j] = A[i, j] - A[i, k] * A[k, j]
    return A


def _forward_substitution(A, b):
    x = b.copy()
    for i in range(len(A)):
        for k in range(i):
            x[i] = x[i] - A[i, k] * x[k]
        x[i] = x[i] / A[i, i]
    return x


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_factorizations_and_solutions_are_those_of_textbooks(n):
    A, b = _definite(n), np.arange(1.0, n + 1)
    for textbook, ours, values in (
        (_cholesky, lambda A: jax.lax.linalg.cholesky(A, symmetrize_input=False), (A,)),
        (_lu, lambda A: jax.lax.linalg.lu(A)[0], (A,)),
        (_forward_substitution, lambda A, b: jax.scipy.linalg.solve_triangular(A, b, lower=True), (A, b)),
    ):
        tally = {}
        numbers = [np.vectorize(lambda x, tally=tally: Number(x, tally), otypes=[object])(x) for x in values]
        textbook(*numbers)
        assert operations(ours, *values) == Operations(**tally), textbook


@on_a_processor
def test_products_of_matrices():
    a, b = jnp.ones((2, 3)), jnp.ones((3, 5))
    assert operations(jnp.matmul, a, b) == Operations(2 * 3 * 5, 2 * 2 * 5)
    # XLA starts each sum at zero, which is one addition more.
    assert jax.jit(jnp.matmul).lower(a, b).cost_analysis()["flops"] == 2 * 2 * 3 * 5
    assert operations(jax.vmap(jnp.matmul), jnp.ones((7, 2, 3)), jnp.ones((7, 3, 5))) == Operations(210, 140)


def _two_links(sin, cos, q1, q2, v1, v2, l1, l2, m1, m2):
    """Velocities outward, momenta inward: the two joints' momenta of point masses in a plane."""
    s1, c1, s2, c2 = sin(q1), cos(q1), sin(q1 + q2), cos(q1 + q2)
    x1, y1, w = l1 * c1, l1 * s1, v1 + v2
    x2, y2 = l2 * c2, l2 * s2
    dx1, dy1 = y1 * v1, x1 * v1
    dx2, dy2 = dx1 + y2 * w, dy1 + x2 * w
    p2 = m2 * (x2 * dy2 + y2 * dx2)
    p1 = m1 * (x1 * dy1 + y1 * dx1) + m2 * (x1 * dy2 + y1 * dx2) + p2
    return p1, p2, p1 / (m1 + m2)


@on_a_processor
def test_a_recursion_of_two_links_is_counted_as_by_hand_and_by_xla():
    numbers, tally = _numbers(np.arange(1.0, 9.0))
    _two_links(Number.sin, Number.cos, *numbers)
    # By hand: four functions; the sum of angles is written twice.
    assert tally == {"functions": 4, "additions": 11, "multiplications": 17, "divisions": 1}

    def ours(*x):
        return _two_links(jnp.sin, jnp.cos, *x)

    found = operations(ours, *[REAL] * 8)
    assert found == Operations(**tally) and found.total == 28
    analysis = jax.jit(ours).lower(*[REAL] * 8).cost_analysis()
    assert (analysis["flops"], analysis["transcendentals"]) == (found.total + found.divisions, found.functions)


def test_loops_branches_and_calls():
    x = jnp.ones(3)

    def turns(x):
        return jax.lax.scan(lambda x, _: (x * x + 2.0, x[0] * x[1]), x, None, length=5)

    assert operations(turns, x) == Operations(5 * 4, 5 * 3)
    assert operations(lambda x: turns(x)[0], x) == Operations(5 * 3, 5 * 3)
    assert operations(lambda x: jax.lax.fori_loop(0, 4, lambda i, x: x * x, x), x) == Operations(12)
    chosen = operations(lambda i, x: jax.lax.switch(i, [jnp.sin, lambda x: x * x + x, lambda x: x * x], x), 1, x)
    assert chosen == Operations(3, 3)
    system = jnp.eye(3) * 2
    solved = operations(lambda A, b: jnp.linalg.solve(A, b), system, x)
    # LU: 2² + 1² and two quotients and one; two triangular solutions, one of unit diagonal.
    assert solved == Operations(5 + 3 + 3, 5 + 3 + 3, 3 + 3)

    @jax.custom_jvp
    def double(x):
        return x + x

    double.defjvp(lambda x, dx: (double(*x), 2 * dx[0]))
    assert operations(jax.checkpoint(jax.jit(double)), x) == Operations(0, 3)


def test_elementwise_operations():
    x = jnp.ones(3)
    assert operations(lambda x: x**5, x) == Operations(3 * 3)
    assert operations(lambda x: x**-2, x) == Operations(3, 0, 3)
    assert operations(lambda x: jnp.sqrt(x) / x - jnp.tanh(x), x) == Operations(0, 3, 3, 3, 3)
    assert operations(lambda x: jnp.sum(x) * jnp.prod(x), x) == Operations(3, 2)
    assert operations(lambda x: jnp.cumsum(x), x) == Operations(0, 2)
    assert operations(lambda x: jnp.where(x > 1, -x, jnp.max(x)), x) == Operations()
    assert operations(lambda i: i * i + 2, jnp.arange(3)) == Operations()
    assert operations(lambda x: jnp.zeros(4).at[1:].add(x), x) == Operations(0, 3)


def test_constants_and_what_nothing_needs_are_not_counted():
    x, model = jnp.ones(3), np.array([1.0, 2.0, 3.0])
    assert operations(lambda x: x + jnp.sin(model) * model, x) == Operations(0, 3)
    assert operations(lambda x: (x * jnp.ones(3) + jnp.zeros(3)) / 1.0 * -1.0, x) == Operations()
    # A product with zero is one that is known.
    assert operations(lambda x: x + jnp.zeros(3) * x, x) == Operations()
    # Zeros of the data count, and those among other entries.
    assert operations(lambda x, y: x * y, x, jnp.zeros(3)) == Operations(3)
    assert operations(lambda x: x * np.array([0.0, 1.0, 2.0]), x) == Operations(3)
    assert operations(lambda x: (jnp.sin(x), x * x)[1], x) == Operations(3)


def test_what_cannot_be_counted_says_so():
    x = jnp.ones((3, 3))
    for function, word in (
        (lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x * 2, x), "depends on data"),
        (jnp.linalg.svd, "svd: no rule"),
        (lambda x: jnp.real(jax.lax.complex(x, x) * 2), "complex"),
    ):
        with pytest.raises(UncountableError, match=word):
            operations(function, x)


def _chain(n, executor="auto"):
    return dataclasses.replace(jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1), executor=executor)


def test_the_articulated_body_algorithm_is_linear_in_the_number_of_links():
    for method, executor in ((jdyn.studies.MatrixABA("textbook"), "auto"), (jdyn.ABA(), "lanes")):
        found = [forward_dynamics_operations(_chain(n, executor), method) for n in (2, 3, 9)]
        counts = [np.array(dataclasses.astuple(x)) for x in found]
        np.testing.assert_array_equal(counts[2] - counts[1], 6 * (counts[1] - counts[0]))
        assert np.all(counts[0][:2] > 0)


@on_a_processor
def test_the_cubic_part_of_crba_is_that_of_cholesky():
    """Third differences of n³/6 are one."""

    def count(n):
        x = jax.ShapeDtypeStruct((4, n), jnp.float64)
        forward = jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(_chain(n), q, v, tau, method=jdyn.CRBA()))
        return operations(forward, x, x, x)

    counts = [count(n) for n in (3, 4, 5, 6)]
    for kind in ("multiplications", "additions"):
        assert np.diff([getattr(x, kind) for x in counts], 3) == 4


def test_a_lane_costs_no_more_than_a_configuration():
    """What is deferred until there is a batch is counted, too."""
    model, method = _chain(3, "lanes"), jdyn.ABA()
    x = jax.ShapeDtypeStruct((16, 3), jnp.float64)
    batch = operations(jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method)), x, x, x)
    alone = forward_dynamics_operations(model, method)
    assert 0.95 * 16 * alone.total < batch.total <= 16 * alone.total
    assert batch.functions == 16 * alone.functions


def _outcome(session, tries):
    rows = np.arange(float(len(tries)))
    states = np.zeros((len(tries), 3))
    counts = np.array(tries)
    # Neither system nor statistics are asked for.
    steps = Steps(None, rows, states, states, {}, counts, 6 * counts, Result.success)  # type: ignore[arg-type]
    return Outcome(session, steps, None, 0.0)  # type: ignore[arg-type]


def test_the_operations_of_a_session_are_those_of_an_evaluation_times_the_evaluations():
    """Section 5.2.2 of the thesis: n_total = n_single n_FD."""
    outcome = _outcome(Session(), [0, 1, 3])
    assert outcome.thesis_evaluations == 2 + 5 * 3
    single = forward_dynamics_operations(Session().model(), Session().method)
    assert outcome.operations == single
    assert outcome.total_operations == 17 * (single.multiplications + single.additions)
    assert _outcome(Session(integration="rk"), [0, 1, 3]).total_operations == 18 * single.total
    unknown = _outcome(Session(method=jdyn.studies.ConjugateGradient()), [0, 1])
    assert unknown.operations is None and unknown.total_operations is None
