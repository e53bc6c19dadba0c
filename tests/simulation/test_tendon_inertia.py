"""Inertia along tendons, against MuJoCo, a mechanism that has it as a body, and dense equations."""

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.control.controller import with_memory
from jdyn.elements import Elements
from jdyn.simulation.vector_field import VectorField
from tests.io.test_mjcf import to_mujoco
from tests.io.test_mjcf_tendons import ROBOT, seen_by_mujoco, sites

pytestmark = pytest.mark.fast_compile

FIXED = '<fixed armature="1.3"><joint joint="s" coef="1.5"/><joint joint="e" coef="-.4"/></fixed>'
ON_A_CHAIN = ROBOT.format(FIXED + f'<spatial armature=".7">{sites("a", "c", "d", "b")}</spatial>')
ACROSS = ROBOT.format(f'<spatial armature=".7">{sites("a", "c", "d", "g")}</spatial>{FIXED}')
RATIOS, MASS = np.array([1.0, -0.5]), 3.0


def field_of(system, constraints=()):
    return VectorField(
        system.model, with_memory(None), None, constraints=constraints, elements=Elements(system.elements)
    )


@jax.jit
def accelerations(field, q, v):
    return field.accelerations(field.model, jnp.zeros(()), jdyn.State(q, v), jnp.zeros_like(v))[0]


def states(m, count):
    """States of MuJoCo, where jdyn's velocities are T v, and what its accelerations are in jdyn's coordinates."""
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    for _ in range(count):
        mujoco.mj_resetData(m, data)
        mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
        data.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_forward(m, data)
        T, (free,) = to_mujoco(m, data.qpos)
        v, linear, angular = T.T @ data.qvel, slice(free, free + 3), slice(free + 3, free + 6)
        a = data.qacc.copy()
        a[linear] -= T[linear, angular] @ np.cross(v[linear], v[angular])
        yield data, T, v, T.T @ a


def test_accelerations_on_a_chain_are_mujocos():
    system, m = jdyn.load_system(ON_A_CHAIN), mujoco.MjModel.from_xml_string(ON_A_CHAIN)
    assert [type(element) for element in system.elements] == [jdyn.elements.TendonInertia] * 2
    for data, _, v, expected in states(m, 50):
        found = accelerations(field_of(system), jnp.asarray(data.qpos), jnp.asarray(v))
        # Rounding of some tens of operations, by condition numbers of some hundreds.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_inertia_couples_branches():
    """MuJoCo's mass matrix has no entries of two branches; the equations with its moments have."""
    system, m = jdyn.load_system(ACROSS), mujoco.MjModel.from_xml_string(ACROSS)

    @jax.jit
    def equations(q, v):
        field, y = field_of(system), jdyn.State(q, v)
        a, _ = field.accelerations(field.model, jnp.zeros(()), y, jnp.zeros_like(v))
        return field.mass_matrix(y) - jdyn.mass_matrix(system.model, q), field.mass_matrix(y) @ a, field.bias_forces(y)

    for data, T, v, _ in states(m, 5):
        added, forces, bias = equations(jnp.asarray(data.qpos), jnp.asarray(v))
        J = seen_by_mujoco(m, data.qpos)[1] @ T
        np.testing.assert_allclose(added, J.T @ np.diag([0.7, 1.3]) @ J, atol=1e-12)
        np.testing.assert_allclose(forces, -bias, atol=1e-10 * np.max(np.abs(bias)))


def cranks(elements=(), counterweight=False):
    """A double pendulum above a floor that is out of reach; if asked for, with a slider of 3 kg for q1 − q2 / 2."""
    builder = jdyn.Builder("cranks", gravity=(0, 0, -9.81))
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.01)}
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), **rod)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0, 0, -1), **rod)
    builder.add_frame("tip", "lower", (0, 0, -1))
    builder.add_shape("tip", "sphere", 0.05)
    builder.add_shape("world", "plane", (0, 0), placement=(0, 0, -9))
    if counterweight:
        builder.add_link("slider", jdyn.Prismatic((1, 0, 0)), mass=MASS)
    return jdyn.System(builder.build(), elements=elements)


def wound():
    return jdyn.transmissions.FixedTendon(["upper", "lower"], RATIOS)


@pytest.mark.slow
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])
def test_it_is_that_of_a_body_that_moves_along(constrained):
    """The force that it exerts, with that of constraints, is that of the sum which moves the body."""
    along = jdyn.constraints.JointSum(("upper", "lower", "slider"), (*RATIOS, -1.0))
    held = jdyn.constraints.Distance("tip", "world", length=1.5, point_b=(0.3, 0.0, 0.0))
    constraints, body = (held,) if constrained else (), cranks(counterweight=True).model
    q, v, tau = jnp.array([0.4, -0.9]), jnp.array([1.0, 2.0]), jnp.array([3.0, -2.0])

    @jax.jit
    def both(inertia):
        system = cranks([jdyn.elements.TendonInertia(wound(), inertia)])
        found = field_of(system, constraints).accelerations(system.model, jnp.zeros(()), jdyn.State(q, v), tau)
        Q, V = (jnp.append(x, RATIOS @ x) for x in (q, v))
        heavy = body.with_body("slider", mass=inertia)
        a = jdyn.constrained_dynamics(heavy, [along, *constraints], Q, V, jnp.append(tau, 0.0))
        return jnp.stack(found), jnp.stack([a.a[:2], a.forces[:2]])

    (found, expected), (change, expected_change) = jax.jvp(both, (MASS,), (1.0,))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(change, expected_change, rtol=1e-9)


@pytest.mark.slow
def test_motions_keep_their_energy():
    """Stiff and not: solvers that are implicit in the spring know the inertia."""
    rope = jdyn.transmissions.SpatialTendon(
        [jdyn.transmissions.PathPoint("world", jnp.array([0.5, 0.0, 0.5])), jdyn.transmissions.PathPoint("tip")]
    )
    system = cranks([jdyn.elements.TendonInertia(rope, MASS), jdyn.elements.TendonSpring(rope, 30.0)])
    start = system.state(jnp.array([1.0, -0.5]), jnp.zeros(2))
    control = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    motion = jdyn.simulate(system, start, 1.0, stepsize_controller=control)
    # Each of some hundred steps may err by the tolerance.
    assert np.ptp(motion.energy) < 1e-6 * motion.energy[0]
    assert np.max(np.abs(motion.q[-1] - start.q)) > 0.5
    # The trajectory computes accelerations anew.
    q, v, a = motion.q[50], motion.v[50], motion.accelerations[50]
    field, y = field_of(system), jdyn.State(q, v)
    force = system.elements[1].generalized(system.model, 0.0, q, v)
    np.testing.assert_allclose(field.mass_matrix(y) @ a, force - field.bias_forces(y), atol=1e-9)
    with pytest.raises(ValueError, match="elements: expected none that add inertia"):
        jdyn.simulate(system, start, 1.0, solver=jdyn.solvers.Rodas5P())


@pytest.mark.slow
def test_impulses_move_it_as_forces_do():
    """In steps of convex contact, and where one blow changes velocities."""
    system = cranks([jdyn.elements.TendonInertia(wound(), MASS)])
    start = system.state(jnp.array([1.0, -0.5]), jnp.zeros(2))
    exact = jdyn.simulate(system, start, 1.0, stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-9))
    control = diffrax.PIDController(rtol=1e-6, atol=1e-6)
    convex = jdyn.simulate(system.but(contact=jdyn.ConvexContact()), start, 1.0, stepsize_controller=control)
    np.testing.assert_allclose(convex.q, exact.q, atol=1e-4)
    # An impulse on the first joint alone changes M v by itself.
    field, y = field_of(system), jdyn.State(exact.q[-1], exact.v[-1])
    change = jax.jit(lambda y: field.mass_matrix(y) @ field.response(jnp.zeros(()), y, jnp.array([1.0, 0.0])))(y)
    np.testing.assert_allclose(change, [1, 0], atol=1e-12)
