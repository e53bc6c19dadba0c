"""Block elimination: all orders agree, forces and accelerations obey Newton's and Euler's laws, costs are as told."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics import passive_forces
from jdyn.dynamics.kinematics import joint_force, joint_kinematics
from jdyn.model.random_tree import ALL_KINDS
from jdyn.studies.formulations.block_elimination import BlockElimination
from tests.errors import relative_error, tol

pytestmark = pytest.mark.fast_compile


def elements(model):
    """Rotors, dampers, friction and springs in every joint."""
    rng = np.random.default_rng(0)
    sizes = {"armature": 0.3, "damping": 0.2, "friction": 0.1, "stiffness": 1.5}
    return dataclasses.replace(
        model, **{name: jnp.asarray(rng.uniform(0, size, len(model.damping))) for name, size in sizes.items()}
    )


def tree_of_all_kinds():
    return elements(jdyn.random_tree(7, 8, kinds=ALL_KINDS))


def coupled_tree():
    """Branches of several kinds, with two joints that follow others."""
    tree = jdyn.Builder("coupled")
    kinds = [jdyn.Free(), jdyn.Revolute((1, 2, 0)), jdyn.Prismatic((0, 1, 0)), jdyn.Ball(), jdyn.Continuous((1, 0, 0))]
    mimics = {2: jdyn.Mimic("b1", -0.7, 0.3), 4: jdyn.Mimic("b2", 2.0)}
    for i, (kind, parent) in enumerate(zip(kinds, ("world", "b0", "b1", "b0", "b1"), strict=True)):
        tree.add_link(f"b{i}", kind, parent=parent, placement=(0.1, 0.2, 0.3), mimic=mimics.get(i), mass=1.0,
                      com=(0.1, -0.05, 0.4), inertia=(0.3, 0.25, 0.2))  # fmt: skip
    return elements(tree.build())


def state(model, seed=0):
    keys = jax.random.split(jax.random.key(seed), 4)
    v, tau = (jax.random.normal(key, (model.nv,)) for key in keys[1:3])
    return model.random(keys[0]), v, tau, jax.random.normal(keys[3], (model.nb, 6))


def any_order(nb, seed):
    """A random order in which each joint acceleration comes after its body's force and acceleration."""
    rng = np.random.default_rng(seed)
    waiting = [[*rng.permutation(2), 2] for _ in range(nb)]
    return tuple(3 * body + waiting[body].pop(0) for body in rng.permutation(np.repeat(range(nb), 3)))


@eqx.filter_jit
def accelerations(model, states, method):
    def one(q, v, tau, f_ext):
        return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)

    return jax.vmap(one)(*states)


@functools.cache
def case(build):
    """Two states of a tree in single precision, and accelerations that are exact for just these numbers."""
    model = build()
    states = jax.tree.map(lambda *x: jnp.stack(x), *(state(model, seed) for seed in range(2)))
    single = jax.tree.map(lambda x: x.astype(jnp.float32), (model, states))
    return single, np.asarray(accelerations(*_double(single), jdyn.ABA()))


def _double(x):
    return jax.tree.map(lambda x: x.astype(jnp.float64), x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "method"),
    [
        pytest.param(tree_of_all_kinds, BlockElimination("aba"), marks=pytest.mark.exhaustive),
        pytest.param(tree_of_all_kinds, BlockElimination("crba"), marks=pytest.mark.exhaustive),
        pytest.param(tree_of_all_kinds, BlockElimination(any_order(8, 0)), marks=pytest.mark.exhaustive),
        pytest.param(coupled_tree, BlockElimination("crba"), marks=pytest.mark.exhaustive),
        (coupled_tree, BlockElimination(any_order(5, 1))),
        pytest.param(coupled_tree, BlockElimination("aba", bias="separate"), marks=pytest.mark.exhaustive),
    ],
)
def test_agrees_with_aba(build, method):
    single, exact = case(build)
    assert relative_error(accelerations(*_double(single), method), exact) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("order", ["crba", "aba"])
def test_single_precision(order):
    single, exact = case(coupled_tree)
    a = accelerations(*single, BlockElimination(order))
    assert a.dtype == jnp.float32
    assert relative_error(a, exact) < tol(jnp.float32, condition=5)


@pytest.mark.slow
def test_forces_and_accelerations_obey_newton_and_euler():
    """Rates of motion and of momentum, differentiated along the path that the solution predicts."""
    model = coupled_tree()
    q, v, tau, f_ext = state(model)
    solution = BlockElimination().solution(model, q, v, tau, f_ext=f_ext)
    for name, (found, expected) in laws(model, q, v, tau, f_ext, solution).items():
        assert relative_error(found, expected) < 1e-11, name


@jax.jit
def laws(model, q, v, tau, f_ext, solution):
    def moving(q, v):
        velocities, X = jdyn.body_velocities(model, q, v), jdyn.forward_kinematics(model, q)
        momenta = jax.vmap(jdyn.SpatialInertia.momentum)(model.inertias, velocities)
        return velocities, jax.vmap(jdyn.Transform.force_to_parent)(X, momenta)

    _, (accelerations, forces) = jax.jvp(moving, (q, v), (model.rate(q, v), solution.a))
    X = jdyn.forward_kinematics(model, q)
    to_world = jax.vmap(jdyn.Transform.force_to_parent)
    transmitted, moving_parents = to_world(X, solution.forces), np.array(model.topology.parents[1:])
    weights = model.inertias.mass[:, None] * model.gravity[None]
    moments = jax.vmap(jdyn.Transform.point_to_parent)(X, model.inertias.first_moment / model.inertias.mass[:, None])
    weights = jnp.concatenate([jnp.cross(moments, weights), weights], axis=1)
    onto_children = jnp.zeros_like(transmitted).at[moving_parents].add(transmitted[1:])
    q_full, v_full, a_full = model.expand(q), model.expand_velocity(v), model.expand_velocity(solution.a)
    along = joint_force(model, joint_kinematics(model, q_full), solution.forces)
    actuators = model.reduce_force(along + model.armature * a_full - passive_forces(model, q_full, v_full))
    return {
        "accelerations": (solution.accelerations, accelerations),
        "momentum": (transmitted - onto_children + to_world(X, f_ext) + weights, forces),
        "joints": (actuators, tau),
        "forward dynamics": (solution.a, jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("order", ["aba", "crba"])
def test_pivots_are_those_of_the_mass_matrix(order):
    """Forces and body accelerations keep the identity as pivot; those of the joints have M's determinant."""
    model = elements(jdyn.random_tree(3, 6, kinds=(jdyn.Revolute, jdyn.Prismatic, jdyn.Universal)))
    q = state(model)[0]
    steps = eqx.filter_jit(lambda q: BlockElimination(order).factor(model, q))(q).tree.steps
    assert [step.unknown % 3 == 2 for step in steps] == [step.pivot is not None for step in steps]
    determinant = np.prod([1 / np.linalg.det(step.pivot) for step in steps if step.pivot is not None])
    assert np.isclose(determinant, np.linalg.det(jdyn.mass_matrix(model, q)), rtol=1e-10)


def test_block_operations_grow_linearly_or_cubically():
    def costs(order):
        chains = [jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1) for n in range(2, 8)]
        return [BlockElimination(order).block_operations(model) for model in chains]

    assert np.all(np.diff(costs("aba")) == 8)
    third = np.diff(costs("crba"), n=3)
    assert np.all(third == third[0]) and third[0] > 0


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("lu", r"order: expected 'aba' or 'crba', got 'lu'"),
        ((0, 1, 2, 2), r"order: expected 'aba', 'crba' or a permutation of range\(3 \* nb\), each number once, got 4"),
        ((0, 1, 1), r"order: expected 'aba', 'crba' or a permutation of range\(3 \* nb\), each number once, got 3"),
        ((0, 1, 2, 4, 5, 3), r"order: 5, the joint acceleration of body 1, must come after the body's force 3 and"),
    ],
)
def test_orders_are_checked(order, message):
    with pytest.raises(ValueError, match=message):
        BlockElimination(order)


def test_order_of_another_size_is_refused():
    model = coupled_tree()
    with pytest.raises(
        ValueError, match=r"permutation of range\(15\), three unknowns for each of the 5 bodies of 'cou"
    ):
        jdyn.forward_dynamics(model, *state(model)[:3], method=BlockElimination(any_order(4, 0)))
