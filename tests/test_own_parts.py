"""A joint and a solver of a user, each in one place, without a change of jdyn.

Forces are in elements/test_elements.py, contact in contact/test_own_contact.py, laws of impulses in
impulses/test_rigid_law.py, constraints in simulation/test_prescribed_motion.py.
"""

from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model import FlatJoint
from jdyn.simulation.solver import Work
from jdyn.simulation.solvers.geodesic_solver import GeodesicSolver
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration
from jdyn.spatial import Transform, rotation_about
from tests.errors import tol

pytestmark = pytest.mark.slow

AXIS, ARM = (0.6, 0.0, 0.8), jdyn.pose((0.3, -0.2, 0.5), (0.4, 0.1, 0.2))
BODY = dict(mass=1.7, com=(0.2, 0.1, -0.3), inertia=np.diag([0.3, 0.4, 0.5]))


class Cylindrical(FlatJoint):
    """Sliding along `axis` and turning about it. q: displacement [m], angle [rad]."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    motions: ClassVar[tuple[str, ...]] = ("slide", "turn")
    axis: jax.Array

    def transform(self, q):
        return Transform(rotation_about(self.axis, q[1]), q[0] * self.axis)

    def subspace(self, q):
        none = jnp.zeros_like(self.axis)
        return jnp.stack([jnp.concatenate([none, self.axis]), jnp.concatenate([self.axis, none])], axis=1)


def robot(by_one_joint):
    """A piston on a wheel that carries a ball: with the joint, or with two joints and a link without mass between."""
    builder = jdyn.Builder("piston")
    builder.add_link("wheel", jdyn.Revolute((0, 1, 0)), **BODY)
    if by_one_joint:
        builder.add_link("piston", Cylindrical(jnp.array(AXIS)), parent="wheel", placement=ARM, damping=0.1, **BODY)
    else:
        builder.add_link("slide", jdyn.Prismatic(AXIS), parent="wheel", placement=ARM, damping=0.1)
        builder.add_link("piston", jdyn.Revolute(AXIS), parent="slide", damping=0.1, **BODY)
    builder.add_link("ball", jdyn.Ball(), parent="piston", placement=ARM, **BODY)
    return builder.build()


@pytest.mark.exhaustive
def test_a_joint_of_a_user_is_that_of_two_joints():
    """In dynamics and its derivatives, alone and in batches, in a simulation, and in single precision."""
    one, two = robot(True), robot(False)
    q = jax.vmap(two.random)(jax.random.split(jax.random.key(0), 3))
    v, tau = (jax.random.normal(jax.random.key(seed), (3, two.nv)) for seed in (1, 2))

    def known(model, q, v, tau):
        dynamics = jdyn.forward_dynamics(model, q, v, tau), jdyn.mass_matrix(model, q), jdyn.bias_forces(model, q, v)
        return *dynamics, *jdyn.forward_dynamics_derivatives(model, q, v, tau), jdyn.jacobian(model, q, "ball")

    def end(model, q, v, tau):
        return jdyn.simulate(model, q, v, 0.5, controller=jdyn.control.Constant(tau), saveat=[0.5]).q[-1]

    batch = jax.jit(jax.vmap(known, (None, 0, 0, 0)))
    found, expected = batch(one, q, v, tau), batch(two, q, v, tau)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, atol=tol(jnp.float64, condition=1e4) * np.max(np.abs(y)))
    ends = [end(model, q[0], v[0], tau[0]) for model in (one, two)]
    # Either is as far from the truth as tolerances allow.
    np.testing.assert_allclose(*ends, atol=1e-4)
    alone = jdyn.forward_dynamics(one, q[0], v[0], tau[0])
    np.testing.assert_allclose(alone, expected[0][0], atol=tol(jnp.float64, condition=1e4) * np.max(np.abs(alone)))
    single = [x[0].astype(jnp.float32) for x in (q, v, tau)]
    low = jdyn.forward_dynamics(one.astype(jnp.float32), *single)
    np.testing.assert_allclose(low, expected[0][0], atol=tol(jnp.float32, condition=1e3) * np.max(np.abs(expected[0])))


class Midpoint(GeodesicSolver):
    """The explicit midpoint rule: the forces of half a step act through all of it."""

    model: jdyn.Model | None = None

    def order(self, terms):
        return 2

    def advance(self, terms, t0, t1, y0, args):
        control, middle = terms.contr(t0, t1), t0 + (t1 - t0) / 2
        change = terms.prod(terms.vf(t0, y0, args), control)
        half = displaced(
            self.mechanism, incremented(y0, without_configuration(change), 0.5), terms.prod(y0.v, control) / 2
        )
        y = incremented(y0, without_configuration(terms.prod(terms.vf(middle, half, args), control)))
        displacement = terms.prod(half.v, control)
        return displaced(self.mechanism, y, displacement), displacement, diffrax.RESULTS.successful, Work.of(2)


def test_a_solver_of_a_user_has_its_order_and_derivatives():
    """In constant steps, and by `diffrax.HalfSolver` under error control."""
    model = jdyn.random_tree(3, 2, kinds=(jdyn.Ball, jdyn.Revolute))
    q, v = model.random(jax.random.key(3)), 0.5 * jax.random.normal(jax.random.key(4), (model.nv,))
    along = jnp.arange(1.0, model.nv + 1)

    def end(v, dt, adjoint=None):
        return jdyn.simulate(
            model, q, v, 0.64, saveat=[0.64], solver=Midpoint(), adjoint=adjoint, dt0=dt,
            stepsize_controller=diffrax.ConstantStepSize(),
        ).q[-1]  # fmt: skip

    e, lengths = 1e-6, 0.04 / jnp.array([1.0, 2.0, 4.0, 1.0, 1.0])
    # One program for both.
    all_ends = jax.jit(jax.vmap(end))(jnp.stack([v, v, v, v + e * along, v - e * along]), lengths)
    ends, moved = all_ends[:3], all_ends[3:]
    first, second = jnp.linalg.norm(jnp.diff(ends, axis=0), axis=1)
    np.testing.assert_allclose(first / second, 4, rtol=0.1)
    expected = (moved[0] - moved[1]) / (2 * e)
    forward = jax.jit(lambda v: jax.jvp(lambda v: end(v, 0.04, diffrax.ForwardMode()), (v,), (along,))[1])(v)
    np.testing.assert_allclose(forward, expected, atol=1e-8)
    weights = jnp.arange(1.0, model.nq + 1)
    reverse = jax.jit(jax.grad(lambda v: weights @ end(v, 0.04)))(v)
    np.testing.assert_allclose(reverse @ along, weights @ expected, atol=1e-7)
    halved = jdyn.simulate(model, q, v, 0.64, saveat=[0.64], solver=diffrax.HalfSolver(Midpoint()))
    np.testing.assert_allclose(halved.q[-1], ends[-1] + (ends[-1] - ends[-2]) / 3, atol=1e-3)
