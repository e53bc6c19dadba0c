"""All forward-dynamics methods: one answer, one derivative, and a sentence where a method cannot do something."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.model.random_tree import ALL_KINDS

METHODS = [
    *(jdyn.ABA(form) for form in ("textbook", "cancelling")),
    jdyn.ABA(bias="separate"),
    jdyn.ModifiedABA(),
    jdyn.ArrayABA(),
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    *(jdyn.WalkerOrin(number) for number in (1, 2)),
    jdyn.ConjugateGradient(),
    jdyn.ConjugateGradient(preconditioner="diagonal"),
    *(jdyn.OrthogonalComplement(form) for form in ("normal", "factored")),
    jdyn.GibbsAppell(),
    jdyn.GaussDP(),
    jdyn.ParallelABA(),
    jdyn.ParallelABA(chunk=2),
]
# Structures: every kind, a chain of every kind, revolute joints alone, a wide tree, a free base.
TREES = {
    "every kind": dict(seed=7, nb=9, kinds=ALL_KINDS),
    "chain": dict(seed=1, nb=8, kinds=ALL_KINDS, reach=1),
    "revolute": dict(seed=2, nb=12, kinds=(jdyn.Revolute,)),
    "bush": dict(seed=3, nb=10, kinds=(jdyn.Revolute, jdyn.Ball, jdyn.Prismatic), reach=9),
    "walker": dict(seed=4, nb=9, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Revolute)),
}
LEAVES = 10
FOLDER = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
ROBOTS = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", None),
    "panda": ("panda_description/urdf/panda.urdf", None),
    "allegro": ("allegro_hand_description/urdf/allegro_left_hand.urdf", None),
    "kinova": ("kinova_description/robots/kinova.urdf", None),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal_b": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True),
    "talos": ("talos_data/robots/talos_full_v2.urdf", True),
}


def varied(model, rng):
    """The same structure with other leaves, and something of everything that a joint can have."""
    scale = jnp.asarray(rng.uniform(0.3, 3, model.nb))
    placements = jdyn.Transform(
        jnp.asarray(Rotation.random(model.nb, rng=rng).as_matrix()),
        jnp.asarray(rng.normal(scale=0.3, size=(model.nb, 3))),
    )
    sizes = {"armature": 0.3, "damping": 0.2, "friction": 0.1, "stiffness": 1.5}
    return dataclasses.replace(
        model,
        placements=placements,
        inertias=jax.tree.map(lambda x: x * scale.reshape(-1, *[1] * (x.ndim - 1)), model.inertias),
        **{name: jnp.asarray(rng.uniform(0, size, len(model.damping))) for name, size in sizes.items()},
    )


def state(model, key):
    keys = jax.random.split(key, 4)
    v, tau = (jax.random.normal(key, (model.nv,)) for key in keys[1:3])
    return model.random(keys[0]), v, tau, jax.random.normal(keys[3], (model.nb, 6))


def accelerations(models, states, model_axis=0):
    """What every method finds: one program for all."""

    def one(model, state):
        q, v, tau, f_ext = state
        return [jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method) for method in methods_for(model)]

    return [np.asarray(a) for a in jax.jit(jax.vmap(one, (model_axis, 0)))(models, states)]


def methods_for(model):
    return [jdyn.ABA(), *(m for m in METHODS if m != jdyn.CRBA("ltl") or not model.topology.mimics)]


def relative_error(a, exact):
    return np.max(np.linalg.norm(a - exact, axis=1) / np.linalg.norm(exact, axis=1))


def assert_agreement(model, found):
    exact, *others = found
    for method, a in zip(methods_for(model)[1:], others, strict=True):
        assert relative_error(a, exact) < 1e-9, method


@pytest.mark.parametrize("name", [pytest.param(t, marks=[pytest.mark.slow] * (t != "every kind")) for t in TREES])
def test_all_methods_agree_on_trees(name):
    """Ten trees of each structure."""
    rng = np.random.default_rng(0)
    model = jdyn.random_tree(**TREES[name])
    models = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(varied(model, rng) for _ in range(LEAVES)))
    states = jax.vmap(lambda key: state(model, key))(jax.random.split(jax.random.key(0), LEAVES))
    assert_agreement(model, accelerations(models, states))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_all_methods_agree_on_robots(name):
    path, floating = ROBOTS[name]
    model = jdyn.load(str(FOLDER / path), floating_base=floating, package_dirs=[FOLDER.parent])
    states = jax.vmap(lambda key: state(model, key))(jax.random.split(jax.random.key(0), 3))
    assert_agreement(model, accelerations(model, states, None))
