"""Methods that are implicit in the forces of joints: order, stability and cost, whatever they know of them."""

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation.solvers import rosj32, rosj43
from jdyn.simulation.state import State
from tests.simulation.rooted_trees import forests

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
PANDA = jdyn.load("panda")
HOLD = jdyn.PD(PANDA, PANDA.neutral() + 0.3, kp=100.0, kd=20.0)


class Loose(jdyn.solvers.ROSJ43):
    """The implicit method that `jdyn.solvers.Automatic` takes for large tolerances."""

    tableau: ClassVar = rosj32.TABLEAU


class Tree(NamedTuple):
    """An elementary differential of f(u) + W(u) z: a node has any number of children by α, and one by γ at most."""

    by_alpha: tuple = ()
    by_gamma: Any = None

    @property
    def children(self):
        return (*self.by_alpha, *([] if self.by_gamma is None else [self.by_gamma]))

    @property
    def order(self) -> int:
        return 1 + sum(child.order for child in self.children)

    @property
    def explicit(self) -> bool:
        return self.by_gamma is None and all(child.explicit for child in self.by_alpha)

    @property
    def density(self) -> int:
        return self.order * math.prod(child.density for child in self.children)

    def weights(self, alpha, gamma):
        """Of the stages."""
        found = math.prod((alpha @ child.weights(alpha, gamma) for child in self.by_alpha), start=np.ones(len(alpha)))
        return found if self.by_gamma is None else found * (gamma @ self.by_gamma.weights(alpha, gamma))

    def wanted(self) -> float:
        return 1 / self.density if self.explicit else 0.0


def trees(order):
    return [
        Tree(forest, one)
        for below in range(order)
        for one in ([None] if below == 0 else trees(below))
        for forest in forests(order - 1 - below, trees)
    ]


METHODS = pytest.mark.parametrize(("method", "highest"), [(rosj43.TABLEAU, 4), (rosj32.TABLEAU, 3)], ids=["43", "32"])


@METHODS
def test_conditions_of_order_for_any_jacobian(method, highest):
    """A sum for every tree: that of explicit methods, and zero where W takes part (Hairer, Wanner 1996, section IV.7,
    and trees with W' beside)."""
    gamma = method.below + np.diag(method.diagonal)
    assert [len(trees(order)) for order in (1, 2, 3, 4)] == [1, 2, 6, 20]
    for order in range(1, highest + 1):
        for tree in trees(order):
            weights = tree.weights(method.alpha, gamma)
            assert abs(method.b @ weights - tree.wanted()) < 1e-15, tree
            if order == highest:
                continue
            # An estimate and dense output of one order less: Σ_m dense_m θ^m = θ^order / density.
            assert abs(method.error @ weights) < 1e-15, tree
            powers = np.where(np.arange(1, len(method.dense) + 1) == order, tree.wanted(), 0)
            np.testing.assert_allclose(method.dense @ weights, powers, atol=1e-14)
    assert any(abs(method.error @ tree.weights(method.alpha, gamma)) > 1e-3 for tree in trees(highest))
    np.testing.assert_allclose(method.dense.sum(0), method.b, atol=1e-14)


def test_both_methods_of_order_4_and_3_end_with_their_last_stages():
    method = rosj43.TABLEAU
    both = method.alpha + method.below + np.diag(method.diagonal)
    np.testing.assert_allclose(method.b, both[-1], atol=1e-15)
    np.testing.assert_allclose(method.b - method.error / rosj43.ESTIMATE, method.alpha[-1], atol=1e-15)


@METHODS
def test_stiff_motion_leaves_nothing_in_either_method(method, highest):
    """1 − b (α + γ)⁻¹ 1 = 0; between, |R| ≤ 1 on the imaginary axis, which is A-stability (Hairer, Wanner 1996, section
    IV.3)."""
    both = method.alpha + method.below + np.diag(method.diagonal)
    one = np.ones(len(both))
    for weights in (method.b, method.b - method.error):
        assert abs(1 - weights @ np.linalg.solve(both, one)) < 1e-13
    for y in np.geomspace(1e-2, 1e4, 400):
        R = 1 + 1j * y * method.b @ np.linalg.solve(np.eye(len(both)) - 1j * y * both, one)
        assert abs(R) <= 1 + 1e-12, y


def cart(stiffness, damping):
    builder = jdyn.Builder("cart", gravity=(0, 0, 0))
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0, stiffness=stiffness, damping=damping)
    return builder.build()


def after(model, q0, v0, steps, t1=1.0, controller=None, solver=None, **options):
    return jdyn.simulate(
        model, q0, v0, t1, controller=controller, solver=solver or jdyn.solvers.ROSJ43(), saveat=END, dt0=t1 / steps,
        stepsize_controller=diffrax.ConstantStepSize(), **options,
    )  # fmt: skip


OMEGA = 1e6


@pytest.mark.parametrize(("stiffness", "damping"), [(0.0, 1.0), (1.0, 2.0), (1.0, 0.0)], ids=str)
def test_a_step_of_a_million_time_constants(stiffness, damping):
    """h λ = 10⁶, of a damper, of both, and of a spring alone: an L-stable method leaves a share of 1 / (h λ)."""
    q0, v0 = 0.3, 0.5
    found = after(cart(stiffness * OMEGA**2, damping * OMEGA), jnp.array([q0]), jnp.array([v0]), 1)
    if not stiffness:
        np.testing.assert_allclose(found.q, [[q0 + v0 / OMEGA]], atol=1e-5 * v0 / OMEGA)
    start = np.hypot(stiffness * OMEGA * q0, v0)
    assert np.hypot(stiffness * OMEGA * found.q[0, 0], found.v[0, 0]) < 1e-5 * start


class Misleading(jdyn.Controller):
    """Forces that depend on the state in another way than it says."""

    model: jdyn.Model
    stated: jax.Array

    def __call__(self, t, q, v):
        return jnp.sin(3 * t) - 5 * self.model.difference(self.model.neutral(), q) - v

    def slopes(self, model, t, q, v):
        return self.stated[0], self.stated[1]


@pytest.mark.slow
@pytest.mark.parametrize("largest", [0.0, 10.0], ids=["nothing is known", "what is known is wrong"])
@pytest.mark.parametrize(
    ("solver", "order"),
    [(jdyn.solvers.ROSJ43(), 4), pytest.param(Loose(), 3, marks=pytest.mark.exhaustive)],
    ids=["43", "32"],
)
def test_order_does_not_depend_on_what_is_known(largest, solver, order):
    """On a tree with a ball joint, four with no Jacobian at all, and with one drawn at random."""
    model = jdyn.random_tree(3, 3, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Prismatic)).with_gravity((0, 0, -3))
    # Rotors, so that what is not known is not stiff.
    model = dataclasses.replace(model, armature=jnp.ones(model.nv))
    controller = Misleading(model, jax.random.uniform(jax.random.key(5), (2, model.nv), maxval=largest))
    q0, v0 = model.random(jax.random.key(0)), jax.random.normal(jax.random.key(1), (model.nv,))
    exact = jdyn.simulate(
        model, q0, v0, 0.5, controller=controller, solver=diffrax.Dopri8(), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
    )  # fmt: skip
    errors = []
    for steps in (32, 64, 128):
        found = after(model, q0, v0, steps, 0.5, controller, solver)
        errors.append(np.linalg.norm(np.append(model.difference(exact.q[0], found.q[0]), found.v[0] - exact.v[0])))
    orders = -np.diff(np.log2(errors))
    assert np.all(np.abs(orders - order) < 0.2), orders


@pytest.mark.slow
def test_gains_on_light_links_do_not_limit_the_step():
    """Where Tsit5 takes a thousand steps for stability, whose last digits it has for nothing."""

    def hold(solver, rtol, atol):
        return jdyn.simulate(
            PANDA, PANDA.neutral(), jnp.zeros(PANDA.nv), 0.5, controller=HOLD, solver=solver, saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        )  # fmt: skip

    explicit, implicit = (hold(solver, 1e-3, 1e-6) for solver in (diffrax.Tsit5(), jdyn.solvers.ROSJ43()))
    tries = [int(x.stats["accepted_steps"] + x.stats["rejected_steps"]) for x in (explicit, implicit)]
    assert tries[1] < tries[0] / 15, tries
    np.testing.assert_allclose(implicit.q, explicit.q, atol=3e-4)
    np.testing.assert_allclose(implicit.v, explicit.v, atol=3e-3)


def test_friction_that_holds_does_not_limit_the_step():
    """An arm creeps where friction balances gravity; an explicit method takes 200 000 steps."""
    speed, friction = 1e-2, 60.0
    sticky = dataclasses.replace(
        PANDA, friction=jnp.full_like(PANDA.friction, friction), friction_speed=jnp.asarray(speed)
    )
    q0 = PANDA.neutral() + 0.5
    end = jdyn.simulate(
        sticky, q0, jnp.zeros(PANDA.nv), 0.5, solver=jdyn.solvers.ROSJ43(), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
    )  # fmt: skip
    assert end.stats["accepted_steps"] + end.stats["rejected_steps"] < 50
    creep = -speed * np.arctanh(jdyn.gravity_forces(PANDA, end.q[0]) / friction)
    # What accelerates and damps the creeping arm is a hundredth of its weight.
    np.testing.assert_allclose(end.v[0], creep, atol=1e-2 * np.max(np.abs(creep)))


@pytest.mark.slow
def test_followers_friction_and_time_that_runs_backwards():
    """A finger that follows another, with dampers, friction and a spring, there and back."""
    builder = jdyn.Builder("gripper", gravity=(0, 0, 0))
    properties = dict(mass=0.1, damping=3.0, friction=0.2, armature=0.01, stiffness=5.0)
    builder.add_link("left", jdyn.Prismatic((1, 0, 0)), joint_name="left", **properties)
    builder.add_link("right", jdyn.Prismatic((1, 0, 0)), mimic=jdyn.Mimic("left", -0.5, 0.1), **properties)
    gripper, steps = builder.build(), diffrax.PIDController(rtol=1e-8, atol=1e-10)
    exact, there = (
        jdyn.simulate(gripper, jnp.array([0.2]), jnp.array([1.0]), 0.1, solver=solver, stepsize_controller=steps,
                      saveat=END)
        for solver in (diffrax.Dopri8(), jdyn.solvers.ROSJ43())
    )  # fmt: skip
    np.testing.assert_allclose(there.q, exact.q, atol=1e-7)
    np.testing.assert_allclose(there.v, exact.v, atol=1e-6)
    back = jdyn.simulate(
        gripper,
        there.q[0],
        there.v[0],
        0.0,
        t0=0.1,
        solver=jdyn.solvers.ROSJ43(),
        stepsize_controller=steps,
        saveat=END,
    )
    np.testing.assert_allclose([back.q[0, 0], back.v[0, 0]], [0.2, 1.0], atol=1e-4)


@pytest.mark.slow
def test_single_precision():
    """Gains on light links leave the digits that the type has."""
    controller = HOLD + jdyn.GravityCompensation(PANDA)
    ends = []
    for dtype in (jnp.float64, jnp.float32):
        model, control = (jax.tree.map(lambda x, t=dtype: x.astype(t), each) for each in (PANDA, controller))
        start = model.neutral(), jnp.zeros(model.nv, dtype)
        ends.append(after(model, *start, 64, 0.5, control))
    assert ends[1].q.dtype == jnp.float32
    np.testing.assert_allclose(ends[1].q, ends[0].q, atol=1e-5)
    np.testing.assert_allclose(ends[1].v, ends[0].v, atol=1e-4)


def test_other_equations_are_refused():
    def rate(t, y, args):
        return State(PANDA.rate(y.q, y.v), jnp.zeros_like(y.v))

    start = State(PANDA.neutral(), jnp.zeros(PANDA.nv))
    for solver, message in (
        (jdyn.solvers.OnManifold(jdyn.solvers.ROSJ43(), PANDA), "implicit in joint forces must know them: use it in"),
        (jdyn.solvers.ROSJ43(), "it works in local coordinates"),
    ):
        with pytest.raises(ValueError, match=message):
            diffrax.diffeqsolve(diffrax.ODETerm(rate), solver, 0.0, 1.0, 0.1, start)


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [pytest.param(jdyn.solvers.Automatic(), marks=pytest.mark.exhaustive), jdyn.solvers.ROSJ43()],
    ids=["Automatic", "ROSJ43"],
)
def test_stiff_springs_of_a_free_joint_do_not_limit_steps_however_it_is_turned(solver):
    """Velocities are along the body's axes, and charts along the world's: at 90 degrees one took 1123 steps, not 77."""
    builder = jdyn.Builder("free")
    builder.add_link("body", jdyn.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = builder.build()

    @jax.vmap
    def steps(angle):
        q0 = model.neutral().at[3:].set(jnp.array([jnp.cos(angle / 2), jnp.sin(angle / 2), 0, 0]))
        held = jdyn.PD(model, q0.at[:3].set(jnp.array([0.1, 0.2, 0.3])), kp=1e6, kd=1e4)
        motion = jdyn.simulate(model, q0, jnp.zeros(6), 5.0, controller=held, solver=solver, throw=False)
        return motion.stats["accepted_steps"]

    taken = steps(jnp.array([0, np.pi / 2, np.pi]))
    assert 20 * taken.max() <= 21 * taken.min()
