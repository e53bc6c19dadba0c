"""Forward dynamics by associative scans: agreement with the serial recursion, associativity, depth."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

import jdyn
from jdyn.dynamics.methods import ParallelABA
from jdyn.dynamics.methods.parallel_aba import Segment, combine
from jdyn.dynamics.recursion.heavy_paths import path_ranks
from jdyn.model import WORLD
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import drawn_states


def _error(model, method, dtype=jnp.float64):
    """Against the serial recursion in float64 on the same rounded data, relative to the largest acceleration."""
    model, state = model.astype(dtype), drawn_states(model, dtype=dtype)
    found = _forward(model, *state, method)
    model, state = jax.tree.map(lambda x: x.astype(jnp.float64), (model, state))
    exact = _forward(model, *state, jdyn.ABA())
    return float(jnp.max(jnp.abs(found.astype(jnp.float64) - exact)) / jnp.max(jnp.abs(exact)))


def _forward(model, q, v, tau, f_ext, method):
    return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)


def _with_rotors(model, share):
    """Rotors in a share of the joints."""
    rng = np.random.default_rng(0)
    n = len(model.armature)
    return dataclasses.replace(model, armature=jnp.asarray(rng.uniform(0, 0.3, n) * (rng.uniform(size=n) < share)))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_chunks_side_by_side():
    """Paths of several chunks, some filled up."""
    model = _with_rotors(jdyn.random_tree(5, 40, kinds=(jdyn.Revolute, jdyn.Prismatic), reach=3), 0.5)
    assert any(rank.cut and len(rank.heads) > 1 for rank in path_ranks(model.topology, 3))
    assert _error(model, ParallelABA(chunk=3)) < 1e-12


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("reach", [1, 3, None])
def test_a_thousand_bodies(reach):
    """In float64, with and without rotors. Without them the mass matrix is the worse conditioned."""
    model = jdyn.random_tree(11, 1000, kinds=ALL_KINDS, reach=reach)
    for share in (0, 1):
        assert _error(_with_rotors(model, share), ParallelABA()) < 1e-10


@pytest.mark.slow
@pytest.mark.exhaustive
def test_float32():
    """Chains of a hundred links, at last with links of 1e-3 and a tip of 1e3 times their mass.

    `ABA` is near 4e-3 with the heavy tip; solving with 1 + C J would lose every digit there.
    """
    model = jdyn.random_tree(5, 100, kinds=(jdyn.Revolute,), reach=1)
    assert _error(model, ParallelABA(), jnp.float32) < 2e-5
    unlike = np.where(np.arange(model.nb) < model.nb - 1, 1e-3, 1e3)
    inertias = jax.tree.map(lambda x: jnp.einsum("n,n...->n...", unlike, x), model.inertias)
    assert _error(dataclasses.replace(model, inertias=inertias), ParallelABA(chunk=2), jnp.float32) < 2e-2


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_reuse_the_factors():
    """A batch of right-hand sides, and joints that follow others, by way of the derivative and of couplings."""
    builder = jdyn.Builder("fingers")
    body = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": (0.05, 0.06, 0.07)}
    for i in range(5):
        mimic = jdyn.Mimic("b1", -0.7, 0.3) if i == 4 else None
        builder.add_link(f"b{i}", jdyn.Revolute((1, 0.1 * i, 0.5)), parent=f"b{i - 1}" if i else "world",
                         placement=(0.1, 0.2, 0.3), mimic=mimic, **body)  # fmt: skip
    model = builder.build()
    q, v, tau, f_ext = drawn_states(model)

    def jacobian(method):
        return jax.jit(jax.jacfwd(lambda q: _forward(model, q, v, tau, f_ext, method)))(q)

    exact = jacobian(jdyn.ABA())
    np.testing.assert_allclose(jacobian(ParallelABA(chunk=2)), exact, rtol=0, atol=1e-12 * np.max(np.abs(exact)))


@jax.jit
@jax.vmap
def _both_orders(a, b, c):
    return combine(combine(c, b), a), combine(c, combine(b, a))


@pytest.mark.slow
def test_combination_is_associative():
    """On segments of every rank: C of one with few joints is singular, and so is J of one without rotors."""
    rng = np.random.default_rng(0)

    def segments(count=50):
        factors = rng.normal(size=(2, count, 6, 6)) * (np.arange(6) < rng.integers(0, 7, size=(2, count, 1, 1)))
        C, J = factors @ np.swapaxes(factors, 2, 3)
        return Segment(*map(jnp.asarray, (rng.normal(size=(count, 6, 6)), C, J)))

    left, right = _both_orders(segments(), segments(), segments())
    for x, y in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * float(jnp.max(jnp.abs(y))))


def test_empty_segment_is_the_identity():
    rng = np.random.default_rng(1)
    A, C, J = rng.normal(size=(3, 6, 6))
    segment = Segment(*map(jnp.asarray, (A, C @ C.T, J @ J.T)))
    for found in (combine(Segment.empty(), segment), combine(segment, Segment.empty())):
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(segment), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-14 * float(jnp.max(jnp.abs(y))))


def _depth(jaxpr, within) -> int:
    """Operations on the longest path from an input to a result; those of a loop count once an iteration."""
    depth = {}
    for eqn in jaxpr.eqns:
        assert eqn.primitive.name != "while", "how often it runs is not known"
        cost = max((_depth(inner, within) for inner in within(eqn)), default=1) * eqn.params.get("length", 1)
        start = max((depth.get(x, 0) for x in eqn.invars if not isinstance(x, core.Literal)), default=0)
        depth.update({x: start + cost for x in eqn.outvars})
    return max(depth.values(), default=0)


@pytest.mark.slow
def test_depth_grows_with_the_logarithm(programs_within):
    """The whole of forward dynamics, velocities included, on chains."""

    def depth(links, method):
        model = jdyn.random_tree(0, links, kinds=(jdyn.Revolute,), reach=1)
        program = jax.make_jaxpr(lambda *x: _forward(model, *x, method))(*drawn_states(model))
        return _depth(program.jaxpr, programs_within)

    short, middle, long = (depth(links, ParallelABA()) for links in (64, 256, 1024))
    assert long - middle == middle - short
    # Sixteen times the links: each doubling adds the same, and a longest path that grew with n would be far longer.
    assert long < 2 * short
    # The serial recursion's path grows with n: over twice as many links it is twice as far behind.
    assert depth(2048, jdyn.ABA()) > 15 * depth(2048, ParallelABA())


@pytest.mark.parametrize("nb, reach, chunk", [(1, None, 4), (100, None, 1), (100, 2, 4), (100, 1, 16)])
def test_paths_cover_the_tree(nb, reach, chunk):
    topology = jdyn.random_tree(nb, nb, kinds=(jdyn.Revolute,), reach=reach).topology
    ranks = path_ranks(topology, chunk)
    assert len(ranks) <= math.log2(nb + 1)
    seen = {}
    for number, rank in enumerate(ranks):
        assert len(rank.rows) <= chunk
        for head, tail, carrier in zip(rank.heads, rank.tails, rank.attachments, strict=True):
            path = [int(body) for body in rank.rows[:, head : tail + 1].T.ravel() if body < nb]
            parents = [WORLD if carrier == nb else int(carrier), *path[:-1]]
            assert parents == [topology.parents[body] for body in path]
            seen.update(dict.fromkeys(path, number))
    assert sorted(seen) == list(range(nb))
    assert sum(int(np.sum(rank.rows < nb)) for rank in ranks) == nb
    assert all(p == WORLD or seen[p] >= seen[body] for body, p in enumerate(topology.parents))


def test_chunks_have_bodies():
    with pytest.raises(ValueError, match="at least one body, got 0"):
        ParallelABA(chunk=0)
