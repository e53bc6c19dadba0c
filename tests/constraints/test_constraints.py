"""Constraints beyond the tree: their rows, the accelerations under them, and assembly."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.constraints import StateChange, constraint_distance, constraint_rows, projected
from jdyn.constraints.rows import residuals
from jdyn.model.constraints import Moving, Placed
from jdyn.spatial import Transform
from jdyn.spatial.rotation import quaternion_exp, quaternion_to_matrix
from tests.reference import andrews

pytestmark = pytest.mark.fast_compile

TREE = jdyn.random_tree(3, 7, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Prismatic, jdyn.Universal, jdyn.Free))
B = TREE.body_names
KINDS_OF = dict(zip(TREE.joint_names, TREE.topology.kinds, strict=True))
SINGLE = [name for name, kind in KINDS_OF.items() if kind in (jdyn.Revolute, jdyn.Prismatic)]


def path(t):
    turn = quaternion_to_matrix(quaternion_exp(jnp.stack([0.3 * t, jnp.sin(t), t**2])))
    return Transform(turn, jnp.stack([t, t**2, jnp.cos(t)]))


def coefficients(placed):
    """Of two rows that depend on a pose, on a joint and on time."""
    A = jnp.ones((2, 1, 6)) * placed.frames[0].translation[0]
    return A, jnp.stack([placed.joints[0], placed.t])[:, None], jnp.stack([jnp.sin(placed.t), placed.joints[0] ** 2])


KINDS = [
    jdyn.constraints.Connect(B[-1], B[2], point_a=(0.1, 0.2, 0.3), point_b=(-0.3, 0.1, 0.2)),
    jdyn.constraints.Hinge(B[-2], "world", axis_a=(1, 2, 3), axis_b=(0, 1, 2)),
    jdyn.constraints.Weld(B[3], B[6]),
    jdyn.constraints.Distance(B[1], B[5], length=1.3),
    jdyn.constraints.PointOnPlane(B[2], B[6], point_b=(0.1, -0.2, 0.3), normal=(1, 2, 3), offset=0.2),
    jdyn.constraints.Gear(SINGLE[0], SINGLE[1], (0.1, -2.0, 0.5)),
    jdyn.constraints.JointSum(SINGLE[:2], (0.5, -2.0), 0.3),
    jdyn.constraints.RollingDisk(B[4], 0.3),
    jdyn.constraints.RollingSphere(B[4], 0.3, plane=B[0]),
    jdyn.constraints.PrescribedJoint(SINGLE[0], lambda t: jnp.sin(3 * t)),
    jdyn.constraints.PrescribedFrame(B[2], path),
    jdyn.constraints.VelocityCoupling((B[1],), (SINGLE[0],), coefficients),
    jdyn.constraints.Connect("world", B[0], point_b=(0.5, 0.0, 0.0)),
    jdyn.constraints.Guided(jdyn.constraints.Weld(B[3], "palm"), "hand", path, ("palm",), (path(0.2),)),
    # The plane moves with another body, and beside.
    jdyn.constraints.Guided(jdyn.constraints.RollingDisk(B[5], 0.3, plane="table"), "table", path, base=B[1]),
]


SMALL = jdyn.random_tree(3, 3, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Ball))
HELD = jdyn.constraints.Connect("world", SMALL.body_names[-1], point_a=(0.1, 0.2, 0.3), point_b=(0.3, -0.1, 0.2))


def rows_of(model, constraints, t, q, v):
    return eqx.filter_jit(constraint_rows)(model, constraints, t, q, v)


def state(model, seed=0):
    keys = jax.random.split(jax.random.key(seed), 3)
    return model.random(keys[0]), jax.random.normal(keys[1], (model.nv,)), jax.random.normal(keys[2], (model.nv,))


@pytest.mark.slow
def test_rows_are_the_rates_of_residuals():
    """J v − b is dφ/dt, and J a − γ the rate of J v − b, by differentiation along a motion of the whole tree."""
    q, v, _ = state(TREE)
    t = jnp.asarray(0.4)
    rows = rows_of(TREE, KINDS, t, q, v)

    def along(function):
        return jax.jit(lambda: jax.jvp(lambda s: function(t + s, TREE.integrate(q, s * v)), (0.0,), (1.0,))[1])()

    rates = along(lambda t, q: residuals(TREE, KINDS, t, q))
    np.testing.assert_allclose((rows.J @ v - rows.b)[rows.holonomic], rates, atol=1e-13)

    def speeds(t, q):
        there = constraint_rows(TREE, KINDS, t, q, v)
        return there.J @ v - there.b

    np.testing.assert_allclose(-rows.gamma, along(speeds), atol=1e-12)
    assert len(rows.holonomic) == len(rows.J) - 8


def test_a_guided_plane_moves_as_one_on_a_body_does():
    """Its velocity by differences of its pose, where the base moves too."""
    t, step, rng = 0.4, 1e-5, np.random.default_rng(0)
    base, twist, by_disk = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6)

    def at(motion, s):
        """Pose of a body that moves with a velocity about the world's origin, at first by `base`."""
        turn = Rotation.from_rotvec(s * motion[:3]).as_matrix()
        R = Rotation.from_rotvec(base[:3]).as_matrix()
        return Transform(jnp.asarray(turn @ R), jnp.asarray(turn @ base[3:] + s * motion[3:]))

    before, now, after = (at(twist, s) @ path(t + s) for s in (-step, 0.0, step))
    omega = Rotation.from_matrix(after.rotation @ before.rotation.T).as_rotvec() / (2 * step)
    velocity = (after.translation - before.translation) / (2 * step)
    told = jnp.concatenate([omega, velocity + np.cross(now.translation, omega)])
    disk = jdyn.constraints.RollingDisk("disk", 0.3, plane="table")
    guided = jdyn.constraints.Guided(disk, "table", path, base="body")
    placed = at(by_disk, 1.0)
    found = guided.slip(Placed(jnp.asarray(t), (at(twist, 0.0), placed), ()), Moving((twist, jnp.asarray(by_disk)), ()))
    expected = disk.slip(Placed(jnp.asarray(t), (placed, now), ()), Moving((jnp.asarray(by_disk), told), ()))
    # Differences err by step², and by rounding over the step.
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_names_are_checked():
    q, v, tau = state(TREE)
    with pytest.raises(ValueError, match="no body or frame is called 'hand'"):
        jdyn.constrained_dynamics(TREE, [jdyn.constraints.Weld("hand", "world")], q, v, tau)
    with pytest.raises(ValueError, match="no joint is called 'elbow'"):
        jdyn.constrained_dynamics(TREE, [jdyn.constraints.Gear("elbow", SINGLE[0], (0, 1))], q, v, tau)
    ball = next(name for name, kind in KINDS_OF.items() if kind is jdyn.Ball)
    with pytest.raises(ValueError, match="needs a joint with one coordinate, got a Ball"):
        jdyn.constrained_dynamics(TREE, [jdyn.constraints.PrescribedJoint(ball, jnp.sin)], q, v, tau)


class Shifted(eqx.Module):
    by: jax.Array
    factor: int = eqx.field(static=True)

    def __call__(self, t):
        return self.factor * t + self.by


def test_constraints_that_differ_in_more_than_numbers_are_told_apart():
    model = jdyn.load("double_pendulum")
    told = [
        jdyn.constraints.PrescribedJoint(name, Shifted(jnp.array(1.0), factor))
        for name, factor in zip(model.joint_names, (1, 2), strict=True)
    ]
    np.testing.assert_allclose(residuals(model, told, jnp.asarray(1.0), jnp.zeros(2)), [-2, -3])


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, pytest.param(jdyn.CRBA(), marks=pytest.mark.exhaustive)], ids=["ABA", "CRBA"])
def test_accelerations_solve_the_equations(method):
    """Against M a + h = τ + Jᵀ λ, J a = γ as one dense system."""
    q, v, tau = state(TREE)
    some = KINDS[:2]
    rows = rows_of(TREE, some, jnp.asarray(0.0), q, v)
    found = jdyn.constrained_dynamics(TREE, some, q, v, tau, method=method)
    M, h, J = jdyn.mass_matrix(TREE, q), jdyn.bias_forces(TREE, q, v), rows.J
    dense = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    expected = np.linalg.solve(dense, np.concatenate([tau - h, rows.gamma]))
    np.testing.assert_allclose(np.concatenate([found.a, found.multipliers]), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.forces, J.T @ found.multipliers, atol=1e-10)


@pytest.mark.slow
def test_andrews_squeezer_starts_as_published():
    model, loops, order = andrews.mechanism()
    q = jnp.zeros(7).at[np.array(order)].set(andrews.START)
    found = jdyn.constrained_dynamics(model, loops, q, jnp.zeros(7), andrews.forces(0.0, q, None))
    np.testing.assert_allclose(found.a[np.array(order)], andrews.START_A, atol=1e-8 * 14222)
    assert max(constraint_distance(model, loops, q, jnp.zeros(7))) < 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.3, 0.5, 0.7), (-1.0, 0.2, 2.0)])
def test_a_plane_mechanism_moves_alike_in_any_plane(turn):
    """A third of its rows is zero, up to rounding where its plane is not one of the axes: a row of rounding says
    nothing, however large it is beside itself."""
    R = quaternion_to_matrix(quaternion_exp(jnp.array(turn)))
    builder = jdyn.Builder("four-bar", gravity=tuple(R @ jnp.array([0, -9.81, 0])))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([1e-3, 1 / 12, 1 / 12])}
    builder.add_link("base", jdyn.Fixed(), placement=Transform(R, jnp.zeros(3)), mass=1.0)
    for name, parent, place in [("crank", "base", 0), ("rocker", "base", 1), ("coupler", "crank", 1)]:
        builder.add_link(name, jdyn.Revolute((0, 0, 1)), parent=parent, placement=(place, 0, 0), **rod)
    loop = jdyn.constraints.Connect("coupler", "rocker", point_a=(1, 0, 0), point_b=(1, 0, 0))
    signs, angle = jnp.array([1.0, 1.0, -1.0]), 1.2
    found = jdyn.constrained_dynamics(builder.build(), [loop], angle * signs, -signs, jnp.zeros(3))
    # The parallelogram is a pendulum: 2/3 + 1 of inertia about the pivots, and 2 of mass times arm.
    np.testing.assert_allclose(found.a, -9.81 * 2 / (5 / 3) * np.cos(angle) * signs, rtol=1e-12)


@pytest.mark.slow
def test_repeated_rows_share_their_force_and_change_no_motion():
    q, v, tau = state(SMALL)
    once, twice = (jdyn.constrained_dynamics(SMALL, many * [HELD], q, v, tau) for many in (1, 2))
    np.testing.assert_allclose(twice.a, once.a, rtol=1e-10, atol=1e-10)
    # The least norm shares evenly.
    np.testing.assert_allclose(twice.multipliers, np.tile(once.multipliers / 2, 2), rtol=1e-8, atol=1e-10)


STRETCHED, FLAT = jnp.array([0, 0, np.pi]), jnp.array([1.0, -1.0, 1.0])


def is_singular(mechanism, q, v):
    model, loop = mechanism
    return jdyn.constrained_dynamics(model, loop, q, v, jnp.zeros_like(v)).singular


@pytest.mark.slow
def test_singular_constraints_have_a_flag():
    """Stretched rods are one line, and nothing can move; flat, a parallelogram may fold two ways."""
    stretched, parallelogram = four_bar(0.5, 0.5, 0.4, 1.4), four_bar(1.0, 2.0, 1.0, 2.0)
    assert is_singular(stretched, STRETCHED, 0 * FLAT)
    assert is_singular(parallelogram, 0 * FLAT, 0 * FLAT)
    assert is_singular(parallelogram, 0 * FLAT, 3 * FLAT)
    assert not is_singular(parallelogram, 0.5 * FLAT, 3 * FLAT)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_redundant_constraints_are_not_singular(dtype):
    """The same rows twice, or three that follow from the others, agree with all motions."""
    model, loop = four_bar(1.0, 2.0, 1.0, 2.0)
    model = model.astype(dtype)
    hinge = jdyn.constraints.Hinge(
        "coupler", "rocker", axis_a=(0, 1, 0), axis_b=(0, 1, 0), point_a=(2, 0, 0), point_b=(1, 0, 0)
    )
    flat, way = 0 * FLAT.astype(dtype), FLAT.astype(dtype)
    for rows in (loop, 2 * loop, [hinge]):
        assert not is_singular((model, rows), 0.5 * way, 3 * way)
        assert is_singular((model, rows), flat, 3 * way)


@pytest.mark.slow
def test_derivatives_in_both_modes_by_every_leaf():
    model, connect = SMALL, HELD
    q, v, tau = state(model)
    told = jdyn.constraints.PrescribedJoint(model.joint_names[model.topology.kinds.index(jdyn.Revolute)], jnp.sin)

    def energy(model, connect, v, tau):
        found = jdyn.constrained_dynamics(model, [connect, connect, told], q, v, tau, t=0.4)
        return jnp.sum(found.a**2) + found.multipliers @ found.multipliers

    point = model, connect, v, tau
    arrays, rest = eqx.partition(point, eqx.is_inexact_array)

    def of(arrays):
        return energy(*eqx.combine(arrays, rest))

    keys = iter(jax.random.split(jax.random.key(1), 100))
    way = jax.tree.map(lambda x: 0.1 * jax.random.normal(next(keys), x.shape, x.dtype), arrays)
    _, slope = jax.jit(lambda arrays: jax.jvp(of, (arrays,), (way,)))(arrays)
    gradient = jax.jit(jax.grad(of))(arrays)
    pulled = sum(jnp.vdot(g, w) for g, w in zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True))
    np.testing.assert_allclose(pulled, slope, rtol=1e-10)
    h = 1e-5
    along = jax.jit(lambda s: of(jax.tree.map(lambda x, w: x + s * h * w, arrays, way)))
    moved = [along(s) for s in (-2.0, -1.0, 1.0, 2.0)]
    differences = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * h)
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


def test_the_gradient_by_forces_alone_is_that_of_two_joints_as_one():
    """A gear makes one joint of two, with the inertia gᵀ M g: ∂a/∂τ = g gᵀ / gᵀ M g."""
    model, q, v = jdyn.load("double_pendulum"), jnp.array([0.5, -0.5]), jnp.zeros(2)
    together = [jdyn.constraints.Gear("joint2", "joint1", (0.0, -1.0))]

    def a(tau):
        return jdyn.constrained_dynamics(model, together, q, v, tau).a[0]

    g = jnp.array([1.0, -1.0])
    expected = g / (g @ jdyn.mass_matrix(model, q) @ g)
    np.testing.assert_allclose(jax.grad(a)(jnp.ones(2)), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_second_derivatives():
    q, v, tau = state(TREE)

    def a(x):
        return jnp.sum(jdyn.constrained_dynamics(TREE, KINDS[:1], TREE.integrate(q, x[0]), v + x[1], tau).a ** 2)

    zero, way = jnp.zeros((2, TREE.nv)), jnp.stack([v, tau])
    slopes = jax.jit(lambda x: jax.jvp(jax.grad(a), (x,), (way,)))
    h, (_, product) = 1e-5, slopes(zero)
    np.testing.assert_allclose(product, (slopes(h * way)[0] - slopes(-h * way)[0]) / (2 * h), rtol=1e-5, atol=1e-3)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_batches_and_single_precision():
    q, v, tau = state(TREE)
    lengths = jnp.array([1.0, 1.3, 2.0])

    def a(length, model, q, v, tau):
        return jdyn.constrained_dynamics(model, [KINDS[0], dataclasses.replace(KINDS[3], length=length)], q, v, tau).a

    together = jax.vmap(lambda length: a(length, TREE, q, v, tau))(lengths)
    alone = jnp.stack([a(length, TREE, q, v, tau) for length in lengths])
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-9)
    single = a(lengths[1], *jax.tree.map(lambda x: x.astype(jnp.float32), (TREE, q, v, tau)))
    assert single.dtype == jnp.float32
    # The rows' system has a condition of 1e5.
    np.testing.assert_allclose(single, alone[1], atol=5e-3 * np.max(np.abs(alone[1])))


@pytest.mark.slow
def test_nearest_states():
    """The correction is orthogonal to the manifold in the metric of the mass matrix, and of fourth order."""
    model, loops, order = andrews.mechanism()
    exact = jnp.zeros(7).at[np.array(order)].set(andrews.START)
    away = 1e-3 * jax.random.normal(jax.random.key(2), (2, 7))
    near = projected(jdyn.ABA(), model, loops, jnp.asarray(0.0), exact + away[0], away[1])
    assert near.converged and min(near.distance) > 1e-6
    assert max(constraint_distance(model, loops, near.q, near.v)) < 1e-11
    rows = rows_of(model, loops, jnp.asarray(0.0), near.q, near.v)
    _, _, across = np.linalg.svd(rows.J)
    free = across[np.linalg.matrix_rank(rows.J) :]
    along, change = free @ jdyn.mass_matrix(model, near.q), near.v - away[1]
    # The first correction is one from where the state was.
    np.testing.assert_allclose(along @ change, 0, atol=1e-2 * np.linalg.norm(along) * np.linalg.norm(change))


# Assembly.


@pytest.mark.slow
def test_what_constraints_leave_of_small_changes():
    """Those that they allow remain, and what goes is orthogonal to these in kinetic energy."""
    model, loop = four_bar()
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([1.0, 0.0, 0.0]))
    J = rows_of(model, loop, 0.0, start.q, start.v).J
    allowed = np.linalg.svd(J)[2][-1]
    changes = jnp.array([0.3, -0.7, 0.2]), jnp.array([1.0, 2.0, -0.5])

    @jax.jit
    def left(*change):
        return projected(jdyn.ABA(), model, loop, jnp.zeros(()), start.q, start.v, StateChange(*change)).change

    M = np.asarray(jdyn.mass_matrix(model, start.q))
    for change, kept in zip(changes, left(*changes), strict=True):
        expected = allowed * (allowed @ M @ change) / (allowed @ M @ allowed)
        np.testing.assert_allclose(kept, expected, atol=1e-13)


def four_bar(crank=1.0, coupler=2.0, rocker=1.5, ground=2.0, lower=-np.inf):
    """Rods with their lengths as masses, in the plane of x and z; angles are from the x-axis of what carries them."""
    builder = jdyn.Builder("four-bar")
    for name, parent, place, length in [
        ("crank", "world", (0, 0, 0), crank),
        ("coupler", "crank", (crank, 0, 0), coupler),
        ("rocker", "world", (ground, 0, 0), rocker),
    ]:
        builder.add_link(
            name, jdyn.Revolute((0, -1, 0)), parent=parent, placement=place, mass=length, com=(length / 2, 0, 0),
            inertia=np.diag([1e-3, length**3 / 12, length**3 / 12]), lower=lower if name == "crank" else -np.inf,
        )  # fmt: skip
    return builder.build(), [
        jdyn.constraints.Connect("coupler", "rocker", point_a=(coupler, 0, 0), point_b=(rocker, 0, 0))
    ]


def closed_form(angle, crank=1.0, coupler=2.0, rocker=1.5, ground=2.0):
    """Angles of coupler and rocker for the crank's, with the coupler's end above the line from the crank to the
    ground."""
    end = crank * np.array([np.cos(angle), np.sin(angle)])
    apart = np.array([ground, 0]) - end
    d = np.linalg.norm(apart)
    along = (coupler**2 - rocker**2 + d**2) / (2 * d)
    meeting = end + (along * apart + np.sqrt(coupler**2 - along**2) * np.array([-apart[1], apart[0]])) / d
    to_end, to_ground = meeting - end, meeting - np.array([ground, 0])
    return np.arctan2(to_end[1], to_end[0]) - angle, np.arctan2(to_ground[1], to_ground[0])


@pytest.mark.slow
def test_assembly_of_a_four_bar():
    model, loop = four_bar()
    found = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]))
    assert found.result == jdyn.constraints.Assembly.met and found.missed < 1e-11
    np.testing.assert_allclose(found.q[1:], closed_form(float(found.q[0])), atol=1e-11)
    np.testing.assert_allclose(found.v, 0, atol=1e-12)
    moving = jdyn.assemble(model, loop, found.q, jnp.array([1.0, 0.0, 0.0]))
    assert constraint_distance(model, loop, found.q, moving.v)[1] < 1e-12 and moving.v[0] > 0.1


def test_assembly_that_cannot_be():
    model, loop = four_bar(coupler=0.2, rocker=0.2)
    with pytest.raises(jdyn.constraints.AssemblyError, match="no step from there brings them nearer"):
        jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]))
    # Stretched along one line, the ends are as near to each other as they get.
    found = jdyn.assemble(model, loop, jnp.array([0.1, 0.1, 3.0]), throw=False)
    assert found.result == jdyn.constraints.Assembly.stuck
    np.testing.assert_allclose(np.linalg.norm(residuals(model, loop, 0.0, found.q)), 2 - 1.4, rtol=3e-2)


@pytest.mark.slow
def test_assembly_of_velocities_alone_leaves_the_configuration():
    """The nearest velocity by its kinetic energy is that without the part along M⁻¹ Jᵀ."""
    model, q, v = jdyn.load("double_pendulum"), jnp.array([0.3, 0.5]), jnp.array([1.0, 0.0])
    J = jnp.array([[1.0, 1.0]])
    coupled = [
        jdyn.constraints.VelocityCoupling((), ("joint1", "joint2"), lambda _: (jnp.zeros((1, 0, 6)), J, jnp.zeros(1)))
    ]
    found = jdyn.assemble(model, coupled, q, v)
    response = np.linalg.solve(jdyn.mass_matrix(model, q), J.T)
    np.testing.assert_allclose(found.v, v - response @ np.linalg.solve(J @ response, J @ v), atol=1e-12)
    assert jnp.array_equal(found.q, q) and found.result == jdyn.constraints.Assembly.met


def test_assembly_keeps_joints_within_their_limits():
    free, loop = four_bar()
    without = jdyn.assemble(free, loop, jnp.array([0.5, 0.5, 1.0]))
    held, loop = four_bar(lower=float(without.q[0]) + 0.3)
    found = jdyn.assemble(held, loop, jnp.array([0.9, 0.5, 1.0]))
    assert found.q[0] >= held.limits.lower[0]
    assert found.missed < 1e-11
    stuck, loop = four_bar(coupler=0.9, rocker=0.5, lower=1.5)
    with pytest.raises(jdyn.constraints.AssemblyError, match="joints are at their limits"):
        jdyn.assemble(stuck, loop, jnp.array([1.6, 0.0, 1.6]))


@pytest.mark.slow
def test_lanes_that_cannot_be_assembled_say_so():
    lengths = jnp.array([0.3, 1.0, 2.0, 9.0])

    def lane(length):
        model, loop = four_bar()
        loop = [dataclasses.replace(loop[0], point_b=jnp.array([length, 0.0, 0.0]))]
        return jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]))

    results = jax.vmap(lane)(lengths).result
    np.testing.assert_array_equal(results == jdyn.constraints.Assembly.met, [True, True, True, False])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_of_an_assembly():
    """By the rocker's length, with the crank held by a row of its own."""
    model, _ = four_bar()

    def angles(length):
        loop = jdyn.constraints.Connect(
            "coupler", "rocker", point_a=(2.0, 0, 0), point_b=jnp.stack([length, 0 * length, 0 * length])
        )
        hold = jdyn.constraints.PrescribedJoint(model.joint_names[0], lambda t: 1.0)
        return jdyn.assemble(model, [loop, hold], jnp.array([1.0, -0.2, 1.6]), throw=False).q

    h = 1e-6
    expected = (np.array(closed_form(1.0, rocker=1.5 + h)) - closed_form(1.0, rocker=1.5 - h)) / (2 * h)
    for slope in (jax.jacfwd(angles), jax.jacrev(angles)):
        np.testing.assert_allclose(slope(1.5), np.append(0, expected), atol=1e-7)
