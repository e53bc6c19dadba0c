"""All forward-dynamics methods: one answer, one derivative, and a sentence where a method cannot do something."""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.model.random_tree import ALL_KINDS

pytestmark = pytest.mark.fast_compile

METHODS = [
    *(jdyn.studies.MatrixABA(form) for form in ("projected", "textbook", "cancelling")),
    jdyn.ABA(bias="separate"),
    jdyn.studies.ModifiedABA(),
    jdyn.ArrayABA(),
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    *(jdyn.studies.WalkerOrin(number) for number in (1, 2)),
    jdyn.studies.ConjugateGradient(),
    jdyn.studies.ConjugateGradient(preconditioner="diagonal"),
    *(jdyn.studies.OrthogonalComplement(form) for form in ("normal", "factored")),
    jdyn.studies.GibbsAppell(),
    jdyn.studies.GaussDP(),
    jdyn.ParallelABA(),
    jdyn.ParallelABA(chunk=2),
    *(jdyn.studies.BlockElimination(order) for order in ("aba", "crba")),
    jdyn.studies.LeastConstraint(),
]
# One of each: options are tested in `test_massless.py`, and on the trees of every kind where all is tried.
KINDS = list({type(method): method for method in reversed(METHODS)}.values())
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


def accelerations(method, models, states, model_axis=0):
    def one(model, state):
        q, v, tau, f_ext = state
        return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)

    return np.asarray(jax.jit(jax.vmap(one, (model_axis, 0)))(models, states))


def worst_lane(a, exact):
    """Its relative error."""
    return np.max(np.linalg.norm(a - exact, axis=1) / np.linalg.norm(exact, axis=1))


@pytest.fixture(autouse=True)
def forget_programs():
    """Not only after all tests of this file, which has hundreds."""
    yield
    jax.clear_caches()


def assert_agreement(methods, models, states, model_axis=0):
    """One program a method: several batched LAPACK calls that wait for nothing can stall jaxlib on few processors."""
    exact = accelerations(jdyn.ABA(), models, states, model_axis)
    refused = [jdyn.CRBA("ltl")] if models.topology.mimics else []
    # Block operations are many when the order fills the matrix, and the program is as long.
    endless = [jdyn.studies.BlockElimination("crba")] if models.nb > 20 else []
    for method in [method for method in methods if method not in refused + endless]:
        assert worst_lane(accelerations(method, models, states, model_axis), exact) < 1e-9, method


def trees(name):
    """Ten trees of a structure, and a state of each."""
    rng = np.random.default_rng(0)
    model = jdyn.random_tree(**TREES[name])
    models = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(varied(model, rng) for _ in range(LEAVES)))
    return models, jax.vmap(lambda key: state(model, key))(jax.random.split(jax.random.key(0), LEAVES))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    TREES,
)
def test_all_methods_agree_on_trees(name):
    models, states = trees(name)
    assert_agreement(KINDS, models, states)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_all_options_agree_on_trees():
    models, states = trees("every kind")
    assert_agreement([method for method in METHODS if method not in KINDS], models, states)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_all_methods_agree_on_robots(name):
    path, floating = ROBOTS[name]
    model = jdyn.load(str(FOLDER / path), floating_base=floating, package_dirs=[FOLDER.parent])
    states = jax.vmap(lambda key: state(model, key))(jax.random.split(jax.random.key(0), 3))
    assert_agreement(KINDS, model, states, None)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "method",
    KINDS,
    ids=str,
)
def test_derivatives_are_those_of_aba(method):
    """In both modes, with respect to the state, the forces and every leaf of the model."""
    model = varied(jdyn.random_tree(11, 4, kinds=(jdyn.Free, jdyn.Revolute)), np.random.default_rng(1))
    arguments = model, *state(model, jax.random.key(0))
    for found, exact in zip(_derivatives(method, *arguments), _derivatives(jdyn.ABA(), *arguments), strict=True):
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.max(np.abs(y), initial=0))


@functools.partial(jax.jit, static_argnums=0)
def _derivatives(method, *arguments):
    def forward(model, q, v, tau, f_ext):
        return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)

    along = jax.tree.map(jnp.cos, arguments)
    _, pull = jax.vjp(forward, *arguments)
    return jax.jvp(forward, arguments, along)[1], pull(jnp.cos(jnp.arange(arguments[3].size, dtype=float)))


def test_what_a_method_cannot_do_is_refused():
    for make, sentence in (
        (
            lambda: jdyn.studies.MatrixABA("texbook"),
            r"form: expected 'projected' or 'textbook' or 'cancelling', got 'texbook'",
        ),
        (lambda: jdyn.ABA(bias="apart"), "bias: expected 'within' or 'separate', got 'apart'"),
        (lambda: jdyn.ArrayABA(-1), "refine: expected a number of steps, got -1"),
        (lambda: jdyn.CRBA("qr"), "solver: expected 'cholesky' or .*, got 'qr'"),
        (lambda: jdyn.studies.WalkerOrin(3), "number: expected 1 or 2, got 3; their method 3 is CRBA"),
        (lambda: jdyn.studies.ConjugateGradient(tol=0.0), "tol: expected a positive number, got 0.0"),
        (lambda: jdyn.studies.ConjugateGradient(max_steps=0), "max_steps: expected at least 1, got 0"),
        (lambda: jdyn.studies.ConjugateGradient(preconditioner="ssor"), "preconditioner: expected 'diagonal' or None"),
        (lambda: jdyn.studies.OrthogonalComplement("qr"), "form: expected 'normal' or 'factored', got 'qr'"),
        (lambda: jdyn.studies.BlockElimination("outward"), "order: expected 'aba' or 'crba', got 'outward'"),
        (lambda: jdyn.ParallelABA(chunk=0), "chunk: expected at least one body, got 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            make()


def test_ltl_refuses_joints_that_follow_others():
    builder = jdyn.Builder("gripper")
    for name, mimic in (("left", None), ("right", jdyn.Mimic("left", -1.0))):
        builder.add_link(
            name, jdyn.Prismatic((1, 0, 0)), mass=1.0, com=(0, 0, 0), inertia=0.1, joint_name=name, mimic=mimic
        )
    model = builder.build()
    x = jnp.zeros(1)
    with pytest.raises(ValueError, match="needs the zeros of a tree, and joints of 'gripper' that follow others"):
        jdyn.forward_dynamics(model, x, x, x, method=jdyn.CRBA("ltl"))


def test_iterations_that_do_not_converge_say_so():
    model, x = jdyn.load("puma560"), jnp.ones(6)
    assert np.all(np.isnan(jdyn.forward_dynamics(model, x, x, x, method=jdyn.studies.ConjugateGradient(max_steps=2))))


def test_a_good_guess_saves_iterations():
    model, x = jdyn.load("puma560"), jnp.ones(6)
    a = jdyn.forward_dynamics(model, x, x, x)
    started = jdyn.studies.ConjugateGradient(tol=1e-6, max_steps=1, guess=a * (1 + 1e-7))
    np.testing.assert_allclose(jdyn.forward_dynamics(model, x, x, x, method=started), a, rtol=1e-5)
