"""Several trees in one model: each is what it is alone, and costs what it costs alone."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn import Free, Helical, Prismatic, Revolute
from jdyn.dynamics.recursion.depth_first import DEPTH_FIRST
from jdyn.model.topology import dof_tree

pytestmark = pytest.mark.fast_compile

LANES = 3


def floating(seed, nb):
    """A random tree on a base that moves freely, with a rotor, a spring and a damper."""
    builder = jdyn.Builder("base")
    builder.add_link(
        "base",
        Free(),
        mass=2.0,
        com=(0.1, 0.2, -0.1),
        inertia=(0.3, 0.2, 0.25),
        armature=0.1,
        stiffness=3.0,
        damping=0.2,
    )
    limbs = jdyn.random_tree(seed, nb, kinds=(Revolute, Prismatic))
    return jdyn.append(builder.build(), limbs, "base", (0.1, 0, 0.2))


PARTS = {
    "walker": floating(0, 4),
    "box": jdyn.load("box").without_shapes(),
    "arm": jdyn.random_tree(1, 5, kinds=(Revolute, Helical), reach=2),
    "swimmer": floating(2, 3),
    "crate": jdyn.load("box").without_shapes().with_joint("box", stiffness=2.0, damping=0.1, armature=0.2),
}
FORESTS = {
    "two bases": ("walker", "swimmer"),
    "ground and bases": ("walker", "box", "arm", "swimmer"),
    "boxes": ("box", "crate"),
}


def placed(i):
    return jdyn.pose((0.3 * i, 0.5, -0.2), (0.1, 0.2 * i, 0.3))


def forest(names):
    return jdyn.merge({name: PARTS[name] for name in names}, {name: placed(i) for i, name in enumerate(names)})


def states(model, lanes=LANES):
    rng = np.random.default_rng(0)
    q = jax.vmap(model.random)(jax.random.split(jax.random.key(0), lanes))
    return q, *(jnp.asarray(rng.normal(size=(lanes, n)), q.dtype) for n in (model.nv, model.nv))


FUNCTIONS = {
    "forward_dynamics": jdyn.forward_dynamics,
    "inverse_dynamics": jdyn.inverse_dynamics,
    "mass_matrix": lambda model, q, v, x: jdyn.mass_matrix(model, q),
    "gravity_forces": lambda model, q, v, x: jdyn.gravity_forces(model, q),
    "forward_dynamics_derivatives": jdyn.forward_dynamics_derivatives,
}


def gradient_of(weights):
    """Closed-form reverse mode of forward dynamics."""

    def pulled_back(model, q, v, x):
        return jax.grad(lambda *state: jdyn.forward_dynamics(model, *state) @ weights, (0, 1, 2))(q, v, x)

    return pulled_back


def jacobians(model, q, v, x):
    """Forward mode of forward dynamics in as many directions as there are coordinates."""
    return jax.jacfwd(lambda q, v: jdyn.forward_dynamics(model, q, v, x), (0, 1))(q, v)


FUNCTIONS["jacobians"] = jacobians
# Of which the gradient has the programs within.
LONG = "jacobians", "forward_dynamics_derivatives"
CASES = [
    *(
        pytest.param("ground and bases", name, marks=[pytest.mark.slow, pytest.mark.exhaustive] * (name in LONG))
        for name in FUNCTIONS
    ),
    pytest.param("ground and bases", "gradient", marks=pytest.mark.slow),
    pytest.param("boxes", "forward_dynamics_derivatives", marks=[pytest.mark.slow, pytest.mark.exhaustive]),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (("two bases", "forward_dynamics"), ("two bases", "mass_matrix"), ("boxes", "gradient"))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("trees, function", CASES)
def test_every_tree_is_what_it_is_alone(trees, function):
    """Batches take recursions on numbers, and a tree alone, in a single configuration, matrices of whole bodies."""
    names, weights = FORESTS[trees], None
    model, lane = forest(names), LANES - 1
    state = states(model)
    weights = jnp.cos(jnp.arange(model.nv, dtype=model.dtype))
    call = FUNCTIONS.get(function) or gradient_of(weights)
    found = [x[lane] for x in jax.tree.leaves(jax.jit(jax.vmap(call, (None, 0, 0, 0)))(model, *state))]
    single = jax.tree.leaves(jax.jit(call)(model, *(x[lane] for x in state)))
    ends_q, ends_v = (np.cumsum([0, *(getattr(PARTS[name], n) for name in names)]) for n in ("nq", "nv"))
    for i, name in enumerate(names):
        part = jdyn.merge({name: PARTS[name]}, {name: placed(i)})
        in_q, in_v = slice(*ends_q[i : i + 2]), slice(*ends_v[i : i + 2])
        call = FUNCTIONS.get(function) or gradient_of(weights[in_v])
        alone = jax.jit(call)(part, state[0][lane, in_q], *(x[lane, in_v] for x in state[1:]))
        for whole, own in zip(found + single, 2 * jax.tree.leaves(alone), strict=True):
            rows = tuple({model.nq: in_q, model.nv: in_v}[n] for n in whole.shape)
            np.testing.assert_allclose(whole[rows], own, rtol=1e-9, atol=1e-10 * np.max(np.abs(own)))
            if whole.ndim == 2:
                others = np.delete(whole[in_v], np.arange(whole.shape[1])[rows[1]], axis=1)
                assert np.max(np.abs(others), initial=0) <= (1e-12 if function == "jacobians" else 0)


def operations(function, model):
    """StableHLO operations of a batch; functions of the program count wherever they are called."""
    state = (jax.ShapeDtypeStruct((8, n), model.dtype) for n in (model.nq, model.nv, model.nv))
    text = jax.jit(jax.vmap(function, (None, 0, 0, 0))).lower(model, *state).as_text()
    own, calls = {}, {}
    for part in text.split("func.func ")[1:]:
        name = re.search(r"@([\w.]+)", part)[1]
        own[name] = len(re.findall(r"(?<![#\w])stablehlo\.\w+", part))
        calls[name] = Counter(re.findall(r"\bcall @([\w.]+)", part))

    def inlined(name):
        return own[name] + sum(times * inlined(called) for called, times in calls[name].items())

    return inlined("main")


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "gravity_forces"])
def test_two_free_robots_are_one_program_with_twice_the_visits(function):
    """Recursions are loops, whose turns are the degrees of freedom beyond the bases: a second robot adds turns and no
    program of its own."""
    robot = jdyn.load("quadruped").without_shapes()
    two, three = (jdyn.merge({name: robot for name in names}) for names in ("ab", "abc"))
    of_two, of_three = (operations(FUNCTIONS[function], model) for model in (two, three))
    assert of_three == of_two <= 1.25 * operations(FUNCTIONS[function], robot)
    visits = [DEPTH_FIRST.schedule(dof_tree(model.topology))[0].bodies.size for model in (robot, two, three)]
    assert visits == [12, 24, 36]


@pytest.mark.slow
@pytest.mark.parametrize("floating_base", [True, False])
def test_far_from_each_other_robots_keep_their_digits(floating_base):
    """In float32, the mass matrix of a robot that is far away is as good beside another one as it is alone."""
    robot = jdyn.load("quadruped", floating_base=floating_base, dtype=jnp.float32).without_shapes()
    far = {"there": (1000.0, 0.0, 0.0)}
    alone, pair = jdyn.merge({"there": robot}, far), jdyn.merge({"here": robot, "there": robot}, far)
    q = jax.vmap(robot.random)(jax.random.split(jax.random.key(1), LANES))
    exact = jax.vmap(jdyn.mass_matrix, (None, 0))(robot.astype(jnp.float64), q.astype(jnp.float64))

    def error(model, q):
        """Of the last robot, in a batch and one by one."""
        together = jax.vmap(jdyn.mass_matrix, (None, 0))(model, q)
        one_by_one = jnp.stack([jdyn.mass_matrix(model, row) for row in q])
        own = (np.asarray(M[:, -robot.nv :, -robot.nv :], float) for M in (together, one_by_one))
        return [np.max(np.abs(M - exact)) for M in own]

    errors = zip(error(pair, jnp.concatenate([q, q], axis=1)), error(alone, q), strict=True)
    assert all(both <= 2 * one + 1e-6 * np.max(exact) for both, one in errors)
