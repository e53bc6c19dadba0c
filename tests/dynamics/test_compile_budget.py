"""Compile time, by what it is made of: operations of the lowered program, which no machine's load changes."""

import pathlib
import re
import warnings
from collections import Counter

import jax
import jax.numpy as jnp
import pinocchio as pin
import pytest

import jdyn
from tests.contact.scenes import ball

ANYMAL = pathlib.Path(pin.__file__).parents[4] / (
    "share/example-robot-data/robots/anymal_b_simple_description/robots/anymal.urdf"
)
LANES = 2


def _simulated(model, q, v):
    return jnp.sum(jdyn.simulate(model, q, v, 0.1, throw=False).q[-1] ** 2)


def _stepped(model, q, v):
    def step(state, _):
        q, v = state
        v = v + 0.01 * jdyn.forward_dynamics(model, q, v, jnp.zeros_like(v))
        return (model.integrate(q, 0.01 * v), v), None

    return jnp.sum(jax.lax.scan(step, (q, v), length=10)[0][0] ** 2)


# Function of a model and as many of q, v and a third vector; operations as they were found for a chain, and for ANYmal
# on its floating base. What costs more must be worth it; what costs less lowers the figure here. Forward and inverse
# dynamics and the mass matrix go number by number, an operation each, which makes a batch three to ten times as fast as
# operations on matrices do. Friction and springs of a free base are counted, though compilers leave them out where
# there are none. The figures are from before many numbers were computed at once, which takes some five operations for
# each of them and saves most of the programs that XLA would make: up to a quarter more, and no more than that.
# Gradients of simulations also have a step with a tangent, for motions that rest: without it they were wrong there.
BUDGETS = {
    "forward dynamics": (jdyn.forward_dynamics, 3, 2364, 3455),
    "inverse dynamics": (jdyn.inverse_dynamics, 3, 1438, 2405),
    "mass matrix": (jdyn.mass_matrix, 1, 1480, 1782),
    "gradient of steps": (jax.grad(_stepped, (1, 2)), 2, 5640, 10480),
    "simulation": (_simulated, 2, 4464, 8762),
    "gradient of a simulation": (jax.grad(_simulated, (0, 1)), 2, 26000, 50000),
}
# Versions of JAX differ a little in how they lower a program.
SLACK = 1.25
LENGTHS = {name: (8, 128, 1024) if name == "forward dynamics" else (8, 128) for name in BUDGETS}


def _operations(model, function, count):
    """Of a batch."""
    batch = [jax.ShapeDtypeStruct((LANES, size), model.dtype) for size in (model.nq, model.nv, model.nv)[:count]]
    return _operations_of(jax.jit(jax.vmap(function, (None, *(0,) * count))).lower(model, *batch))


def _operations_of(lowered):
    """StableHLO operations; functions of the program count wherever they are called, as XLA inlines them."""
    own, calls = {}, {}
    for text in lowered.as_text().split("func.func ")[1:]:
        name = re.search(r"@([\w.]+)", text)[1]
        own[name] = len(re.findall(r"(?<![#\w])stablehlo\.\w+", text))
        calls[name] = Counter(re.findall(r"\bcall @([\w.]+)", text))

    def inlined(name):
        return own[name] + sum(times * inlined(called) for called, times in calls[name].items())

    return inlined("main")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * ("simulation" in name)) for name in BUDGETS]
)
def test_chains_of_any_length_are_one_loop_within_budget(name):
    function, count, budget, _ = BUDGETS[name]
    chains = [jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1) for n in LENGTHS[name]]
    operations = [_operations(chain, function, count) for chain in chains]
    assert len(set(operations)) == 1
    assert operations[0] <= SLACK * budget


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * ("simulation" in name)) for name in BUDGETS]
)
def test_branches_and_a_free_base_stay_within_budget(name):
    function, count, _, budget = BUDGETS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        anymal = jdyn.load(ANYMAL, floating_base=True)
    assert _operations(anymal, function, count) <= SLACK * budget


# Simulations with contact, as they were found: of a ball on ground, and of two fingers with a cube. Compliant contact
# looks for points at two places of the program: at the start of a step and at its stages; convex contact too, in a
# step, with rates, and for the depth at the start. Those of boxes are some 2800 operations a place, and one more does
# not pass. To judge all numbers of a model takes 100, turns of free bodies 140, ways of boxes along screws 700.
CONTACT_SLACK = 1.1
CONTACTS = {
    "compliant": (jdyn.CompliantContact(), 10064, 19620),
    "convex": (jdyn.ConvexContact(), 12372, 18700),
}


def _contact_operations(model, contact):
    def simulated(model, q, v):
        return jdyn.simulate(model, q, v, 0.1, contact=contact, throw=False)

    state = (jax.ShapeDtypeStruct((size,), model.dtype) for size in (model.nq, model.nv))
    return _operations_of(jax.jit(simulated).lower(model, *state))


@pytest.mark.parametrize("kind", CONTACTS)
def test_a_ball_on_ground_stays_within_budget(kind):
    contact, budget, _ = CONTACTS[kind]
    assert _contact_operations(ball(), contact) <= CONTACT_SLACK * budget


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTACTS)
def test_boxes_stay_within_budget(kind):
    contact, _, budget = CONTACTS[kind]
    gripper = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    assert _contact_operations(gripper, contact) <= CONTACT_SLACK * budget
