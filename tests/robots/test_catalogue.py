"""What holds for every bundled robot. Warnings are errors, so each one also builds without any."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.robots import ROBOTS, chain, double_pendulum, panda, prrr, quadruped

pytestmark = pytest.mark.fast_compile


@pytest.mark.parametrize("name", ROBOTS)
def test_every_body_is_physically_possible(name):
    model = ROBOTS[name]()
    assert model.name == name
    assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(model))
    I = jax.tree.map(np.asarray, model.inertias)
    for mass, h, (xx, xy, yy, xz, yz, zz) in zip(I.mass, I.first_moment, I.rotational, strict=True):
        rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        spread = 0.5 * np.trace(rotational) * np.eye(3) - rotational
        pseudo = np.block([[spread, h[:, None]], [h[None, :], mass]])
        moments = np.linalg.eigvalsh(pseudo)
        assert moments[0] >= -1e-15 * moments[-1]


@pytest.mark.parametrize("name", ROBOTS)
def test_maker_documents_where_its_numbers_come_from(name):
    text = inspect.getdoc(ROBOTS[name])
    assert text is not None
    assert "q = 0" in text
    assert "Source" in text or "without a source" in text


def test_dtype_is_that_asked_for():
    model = ROBOTS["cartpole"](dtype=jnp.float32)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype(jnp.float32)}


@pytest.mark.parametrize(
    ("maker", "free", "fixed"), [(chain, 15, 10), (panda, 13, 7), (quadruped, 18, 12)], ids=lambda x: str(x)[:20]
)
def test_base_floats_or_is_held(maker, free, fixed):
    assert maker(floating_base=True).nv == free
    assert maker(floating_base=False).nv == fixed


def test_floating_base_brings_its_own_mass():
    fixed, free = panda(), panda(floating_base=True)
    np.testing.assert_allclose(jnp.sum(fixed.inertias.mass), 16.062132, rtol=1e-12)
    np.testing.assert_allclose(jnp.sum(free.inertias.mass), 16.062132 + 0.629769, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: prrr(0), r"n: expected a positive number of links, got 0"),
        (lambda: prrr(2.5), r"n: expected a positive number of links, got 2\.5"),
        (lambda: prrr(3, lengths=[1, 2]), r"lengths: expected one number or 3 of them"),
        (lambda: prrr(2, widths=[1, -1]), r"widths: expected finite positive numbers"),
        (lambda: chain(3, mass=float("nan")), r"mass: expected finite positive numbers"),
        (lambda: chain(3, joint="hinge"), r"joint: expected 'revolute' or 'ball', got 'hinge'"),
        (lambda: double_pendulum(masses=[1, 2, 3]), r"masses: expected one number or 2 of them"),
        (lambda: ROBOTS["acrobot"]("murray"), r"parameters: expected 'spong' or 'sutton', got 'murray'"),
    ],
)
def test_impossible_sizes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
