"""Structures are PyTrees, each class of its own."""

import itertools

import jax
import jax.numpy as jnp
import pytest

import jdyn
from jdyn.array import Structure
from jdyn.geometry import Capsule, Cylinder

pytestmark = pytest.mark.fast_compile


def _classes(base=Structure):
    """All that are derived from a class, so far as they are imported."""
    return {base}.union(*map(_classes, base.__subclasses__())) - {Structure}


@pytest.mark.slow
def test_jax_tells_all_structures_from_each_other():
    """It compares dataclasses that it is told of by `register_dataclass` by their numbers of leaves alone."""
    empty = [object.__new__(kind) for kind in sorted(_classes(), key=lambda kind: kind.__qualname__)]
    for structure in empty:
        structure.__dict__.update(dict.fromkeys(structure.__dataclass_fields__, 0.0))
    trees = [jax.tree.structure(structure) for structure in empty]
    assert len(trees) > 50
    for first, second in itertools.combinations(trees, 2):
        assert first != second


def test_branches_must_return_the_same_kind():
    def cylinder_or_capsule(x):
        return jax.lax.cond(x > 0, lambda: Cylinder(x, x), lambda: Capsule(x, x))

    with pytest.raises(TypeError, match="Cylinder"):
        cylinder_or_capsule(jnp.array(1.0))


def test_leaves_have_the_names_of_fields():
    model = jdyn.load("puma560")
    rows, tree = jax.tree.flatten_with_path(model)
    assert tree == jax.tree.structure(model)
    for path, leaf in rows:
        found = model
        for key in path:
            found = getattr(found, key.name) if hasattr(key, "name") else found[key.idx]
        assert found is leaf
    again = jax.tree.unflatten(tree, [leaf for _, leaf in rows])
    assert again.topology is model.topology and again.executor == model.executor
    assert jax.tree.leaves(again) == jax.tree.leaves(model)
