"""Massless inner bodies, and point masses: the mass matrix is regular, though bodies by themselves resist no motion.

Descriptions of humans and hands have them: a joint of several axes is a chain of links without mass.
"""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import random_states

pytestmark = pytest.mark.fast_compile

METHODS = [
    jdyn.ABA(),
    jdyn.ABA(bias="separate"),
    *(jdyn.studies.MatrixABA(form) for form in ("projected", "textbook", "cancelling")),
    jdyn.studies.ModifiedABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    jdyn.ParallelABA(chunk=2),
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    *(jdyn.studies.WalkerOrin(number) for number in (1, 2)),
    *(jdyn.studies.ConjugateGradient(preconditioner=name) for name in (None, "diagonal")),
    *(jdyn.studies.OrthogonalComplement(form) for form in ("normal", "factored")),
    jdyn.studies.GibbsAppell(),
    jdyn.studies.GaussDP(),
    jdyn.ByBatch(),
    *(jdyn.studies.BlockElimination(order) for order in ("aba", "crba")),
    jdyn.studies.LeastConstraint(),
]
# Whose programs others have nearly all of.
OF_OTHERS = jdyn.studies.ModifiedABA, jdyn.ByBatch, jdyn.studies.LeastConstraint, jdyn.ArrayABA
# One of each.
KINDS = list({type(method): method for method in reversed(METHODS)}.values())
# Schedules pad a level of each with an inner body, and each has paths of several bodies.
STRUCTURES = {
    "joints of every width": dict(
        seed=5, nb=11, kinds=(jdyn.Revolute, jdyn.Universal, jdyn.Prismatic, jdyn.Ball), reach=4
    ),
    "fingers": dict(seed=12, nb=9, kinds=(jdyn.Revolute, jdyn.Revolute, jdyn.Prismatic), reach=4),
}
WIDER = "joints of every width"
TREES = 25
LARGEST_CONDITION = 1e4
FOLDER = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"


@functools.cache
def light_trees(name):
    """Trees of one structure, states, directions and what they must give, stacked."""
    rng = np.random.default_rng(5)
    trees = [light_tree(jdyn.random_tree(**STRUCTURES[name]), rng) for _ in range(TREES)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def light_tree(model, rng):
    """One with other numbers, some inner bodies without mass, others without extent, and a regular mass matrix."""
    inner = sorted({parent for parent in model.topology.parents if parent >= 0})
    while True:
        massless, point = (np.isin(np.arange(model.nb), rng.choice(inner, count)) for count in (len(inner) // 2, 1))
        key = jax.random.key(int(rng.integers(1 << 30)))
        tree = _light_tree(model, massless, point & ~massless, key)
        condition = np.linalg.cond(tree["M"])
        if condition < LARGEST_CONDITION:
            exact = np.linalg.solve(tree["M"], tree["unbalanced"])
            return tree | {"condition": condition, "exact": exact}


@jax.jit
def _light_tree(model, massless, point, key):
    keys = iter(jax.random.split(key, 12))
    massive, extended = jnp.where(massless, 0.0, 1.0), jnp.where(point, 0.0, 1.0)
    size = jax.random.uniform(next(keys), (model.nb,), minval=0.3, maxval=3) * massive
    inertias = jax.tree.map(lambda x: x * size.reshape(-1, *[1] * (x.ndim - 1)), model.inertias)
    inertias = dataclasses.replace(
        inertias,
        first_moment=inertias.first_moment * extended[:, None],
        rotational=inertias.rotational * extended[:, None],
    )
    shift = 0.3 * jax.random.normal(next(keys), (model.nb, 3))
    placements = jdyn.Transform(model.placements.rotation, model.placements.translation + shift)
    model = dataclasses.replace(model, inertias=inertias, placements=placements)
    q, dq = model.random(next(keys)), jax.random.normal(next(keys), (model.nq,))
    v, a, dv, dtau, weights = (jax.random.normal(next(keys), (model.nv,)) for _ in range(5))
    f_ext = jax.random.normal(next(keys), (model.nb, 6))

    def forces(q, v):
        return jdyn.inverse_dynamics(model, q, v, a, f_ext=f_ext)

    tau, moved = jax.jvp(forces, (q, v), (dq, dv))
    state, directions = (q, v, tau, f_ext), (dq, dv, dtau)
    return {
        "given": (model, state, directions, weights),
        "a": a,
        "M": jdyn.mass_matrix(model, q),
        "unbalanced": dtau - moved,
    }


def found(method, model, state, directions, weights):
    """Accelerations, their change along the directions, and the gradient of their weighted sum along them."""
    q, v, tau, f_ext = state

    def accelerations(q, v, tau):
        return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)

    a, along = jax.linearize(accelerations, q, v, tau)
    gradient = jax.linear_transpose(along, q, v, tau)(weights)
    return a, along(*directions), sum(jnp.vdot(x, dx) for x, dx in zip(gradient, directions, strict=True))


def assert_right(method, trees, a, change, slope):
    """Forces are rounded to 1e-14 of themselves, differences of energies to 1e-13, and iterations stop at 1e-12.
    Solving magnifies that by the condition number of the mass matrix; of derivatives, which are solved for with such
    accelerations, once more."""
    *_, weights = trees["given"]
    iterates = isinstance(method, jdyn.studies.ConjugateGradient)
    digits = 1e-12 if iterates else 1e-13 if isinstance(method, jdyn.studies.GibbsAppell) else 1e-14
    slack = trees["condition"] * digits
    length = functools.partial(np.linalg.norm, axis=1)
    np.testing.assert_array_less(length(a - trees["a"]), slack * length(trees["a"]))
    slack, size = slack * trees["condition"], length(trees["exact"])
    np.testing.assert_array_less(length(change - trees["exact"]), slack * size)
    exact = np.sum(weights * trees["exact"], axis=1)
    np.testing.assert_array_less(np.abs(slope - exact), slack * size * length(weights))


# `auto` takes lanes for batches, and levels for one configuration: these would compute the same again.
BATCHED, ALONE = (jdyn.ABA(), "levels"), (jdyn.ABA(), "lanes")


def given_to(executor, trees):
    model, *rest = trees["given"]
    return dataclasses.replace(model, executor=executor), *rest


def by_structure(method, executor, name):
    """Most kinds of methods that are no study, on the wider of the two structures alone, unless all is tried."""
    study = type(method).__module__.startswith("jdyn.studies")
    option = study or method not in KINDS or name != WIDER or executor != "auto" or isinstance(method, OF_OTHERS)
    return pytest.param(
        method, executor, name, marks=[pytest.mark.exhaustive] * option, id=f"{method}-{executor}-{name}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "executor", "name"),
    [by_structure(*case, name) for case in [*((m, "auto") for m in METHODS), BATCHED] for name in STRUCTURES],
)
def test_every_method_and_derivative(method, executor, name):
    """Fifty trees, in batches."""
    trees = light_trees(name)
    trees = trees | {"given": given_to(executor, trees)}
    assert_right(method, trees, *jax.jit(jax.vmap(functools.partial(found, method)))(*trees["given"]))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("method", "executor", "name"),
    [
        by_structure(*case, name)
        for case in [*((method, "auto") for method in (jdyn.ABA(), jdyn.CRBA(), jdyn.studies.LeastConstraint())), ALONE]
        for name in STRUCTURES
    ],
)
def test_one_tree_at_a_time(method, executor, name):
    """Single configurations have programs of their own for these methods, and for the derivatives of all."""
    trees = light_trees(name)
    trees = trees | {"given": given_to(executor, trees)}
    single = jax.jit(functools.partial(found, method))
    each = [single(*jax.tree.map(lambda x, i=i: x[i], trees["given"])) for i in range(TREES)]
    assert_right(method, trees, *map(np.stack, zip(*each, strict=True)))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_kind_of_method():
    """Single configurations of one structure: levels are padded there, and not in batches."""
    trees = light_trees("fingers")
    model, (q, v, tau, f_ext) = jax.tree.map(lambda x: x[0], trees["given"][:2])
    for method in KINDS:
        a = jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)
        error = np.linalg.norm(a - trees["a"][0]) / np.linalg.norm(trees["a"][0])
        assert error < 1e-12 * trees["condition"][0], method


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["levels", "lanes"])
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_a_human_of_massless_links(executor):
    """Nineteen of thirty-six bodies are massless; Pinocchio agrees."""
    path = FOLDER / "human_description/robots/human.urdf"
    model = jdyn.load(str(path), floating_base=True, package_dirs=[FOLDER.parent])
    model = dataclasses.replace(model, executor=executor)
    assert np.sum(np.asarray(model.inertias.mass) == 0) == 19
    peer = PinocchioValues(pin, model, pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()))
    state = jax.tree.map(lambda x: x[0], random_states(peer.model, 1, 0))
    a = jdyn.forward_dynamics(peer.model, state.q, state.v, state.tau, f_ext=state.f_ext)
    exact = peer.acceleration(state)
    condition = np.linalg.cond(jdyn.mass_matrix(peer.model, state.q))
    assert np.linalg.norm(a - exact) < 1e-14 * condition * np.linalg.norm(exact)
