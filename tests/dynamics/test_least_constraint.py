"""Gauss' principle in the accelerations of all bodies: against ABA, and where there is more than a tree."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.dynamics.closed_loops import Couplings, Motor, acceleration_couplings, constrained_accelerations
from jdyn.dynamics.methods.least_constraint import Constraint, LeastConstraint, least_constraint

pytestmark = pytest.mark.fast_compile

EPS32 = float(np.finfo(np.float32).eps)
AXES = np.eye(3)
MOMENTS = np.array([[0.3, 0.02, 0.01], [0.02, 0.25, -0.03], [0.01, -0.03, 0.2]])
LINK = dict(mass=1.0, com=(0.1, -0.05, 0.4), inertia=MOMENTS)


def elements(model):
    """Rotors, dampers, friction and springs in every joint."""
    rng = np.random.default_rng(0)
    sizes = {"armature": 0.3, "damping": 0.2, "friction": 0.1, "stiffness": 1.5}
    return dataclasses.replace(
        model, **{name: jnp.asarray(rng.uniform(0, size, len(model.damping))) for name, size in sizes.items()}
    )


def state(model, seed=0):
    keys = jax.random.split(jax.random.key(seed), 4)
    v, tau = (jax.random.normal(key, (model.nv,)) for key in keys[1:3])
    return model.random(keys[0]), v, tau, jax.random.normal(keys[3], (model.nb, 6))


def coupled_tree():
    """A tree of all eight kinds, with two joints that follow others."""
    tree = jdyn.Builder("coupled")
    kinds = [
        jdyn.Free(), jdyn.Revolute((1, 2, 0)), jdyn.Universal((1, 0, 0), (0, 1, 1)), jdyn.Prismatic((0, 1, 0)),
        jdyn.Helical((0, 0, 1), 0.1), jdyn.Ball(), jdyn.Planar((0, 0, 1), (1, 0, 0)), jdyn.Continuous((1, 0, 0)),
    ]  # fmt: skip
    mimics = {3: jdyn.Mimic("b1", -0.7, 0.3), 7: jdyn.Mimic("b3", 2.0)}
    for i, (kind, parent) in enumerate(zip(kinds, ("world", 0, 1, 0, 3, 3, 4, 2), strict=True)):
        parent = parent if parent == "world" else f"b{parent}"
        tree.add_link(f"b{i}", kind, parent=parent, placement=(0.1, 0.2, 0.3), mimic=mimics.get(i), **LINK)
    return elements(tree.build())


def relative_error(a, exact):
    return float(np.max(np.abs(np.asarray(a, float) - exact)) / np.max(np.abs(exact)))


# The method.


@pytest.fixture(scope="module")
def cases():
    """Three states of the coupled tree in single precision, and accelerations that are exact for just these numbers."""
    model = coupled_tree()
    states = jax.tree.map(lambda *x: jnp.stack(x), *(state(model, seed) for seed in range(3)))
    single = jax.tree.map(lambda x: x.astype(jnp.float32), (model, states))
    return single, np.asarray(accelerations(*_double(single), jdyn.ABA()))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_agrees_with_aba(cases):
    single, exact = cases
    assert relative_error(accelerations(*_double(single), LeastConstraint()), exact) < 1e-10
    a = accelerations(*single, LeastConstraint())
    assert a.dtype == jnp.float32
    assert relative_error(a, exact) < 100 * EPS32


@eqx.filter_jit
def accelerations(model, states, method):
    def one(q, v, tau, f_ext):
        return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)

    return jax.vmap(one)(*states)


def _double(x):
    return jax.tree.map(lambda x: x.astype(jnp.float64), x)


# The principle, in any coordinates.


def quadratic_problem(n=6, m=3, rows=5, seed=0):
    rng = np.random.default_rng(seed)
    W, R = (X @ X.T for X in (rng.normal(size=(n, n)), rng.normal(size=(m, m))))
    A, B = rng.normal(size=(rows, n)), rng.normal(size=(rows, m))
    force, Q, D = (rng.normal(size=size) for size in (n, m, rows))
    return jax.tree.map(jnp.asarray, (Constraint(W, R, A, B), force, Q, D))


def test_minimum_against_the_null_space_of_the_couplings():
    """Everything that the couplings allow is z0 + Z y; over y there is an unconstrained minimum."""
    constraint, force, Q, D = quadratic_problem()
    H, C = np.asarray(constraint.H), np.asarray(constraint.C)
    *_, Vt = np.linalg.svd(C)
    Z, z0 = Vt[len(D) :].T, np.linalg.lstsq(C, D)[0]
    b = np.concatenate([force, Q])
    z = z0 + Z @ np.linalg.solve(Z.T @ H @ Z, Z.T @ (b - H @ z0))
    found = least_constraint(constraint, force, Q, D)
    assert np.allclose(np.concatenate([found.bodies, found.joints]), z, rtol=0, atol=1e-9 * np.max(np.abs(z)))
    assert np.allclose(C.T @ found.forces, H @ z - b, rtol=0, atol=1e-9 * np.max(np.abs(H @ z - b)))


@pytest.mark.slow
def test_minimum_has_derivatives():
    problem = quadratic_problem()

    def solution(problem):
        return least_constraint(*problem)

    check_grads(jax.jit(solution), (problem,), order=2, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4)


def test_sizes_are_checked():
    constraint, force, Q, D = quadratic_problem()
    with pytest.raises(ValueError, match=r"A: expected shape \(4, 6\) for 6 body and 3 joint coordinates and 4 coup"):
        least_constraint(constraint, force, Q, D[:4])


# Motors.


def geared(turning):
    """A free base, a slide and two hinges with three rotors: bodies of their own that follow joints, or locked."""
    builder = jdyn.Builder("geared")
    kinds = {"base": jdyn.Free(), "slide": jdyn.Prismatic((1, 2, 0)), "arm": jdyn.Revolute((0, 1, 1)),
             "tip": jdyn.Revolute((1, 0, 0))}  # fmt: skip
    parent = "world"
    for name, kind in kinds.items():
        builder.add_link(name, kind, parent=parent, placement=(0.1, 0.2, -0.3), armature=0.01, damping=0.1, **LINK)
        parent = name
    for i, (carrier, joint, axis, ratio) in enumerate(ROTORS):
        u = np.array(axis) / np.linalg.norm(axis)
        inertia = AXIAL * np.outer(u, u) + ACROSS * (np.eye(3) - np.outer(u, u))
        rotor = jdyn.Continuous(axis) if turning else jdyn.Fixed()
        mimic = jdyn.Mimic(joint, ratio) if turning else None
        builder.add_link(f"rotor{i}", rotor, parent=carrier, placement=(0.1 * i, 0.2, 0.05), mass=0.5, inertia=inertia,
                         mimic=mimic)  # fmt: skip
    return builder.build()


AXIAL, ACROSS = 0.02, 0.013
# Carrier, joint, axis, ratio: a motor that drives what its carrier carries, one that drives its own carrier, one that
# sits elsewhere.
ROTORS = [("base", "slide", (0, 1, 1), 60.0), ("arm", "arm", (1, 1, 0), -20.0), ("base", "tip", (1, 0, 0), 35.0)]


@pytest.mark.slow
def test_motors_act_as_rotors_that_are_bodies():
    locked, turning = geared(False), geared(True)
    motors = [Motor(carrier, joint, np.array(axis), AXIAL, ratio) for carrier, joint, axis, ratio in ROTORS]
    q, v, tau, f_ext = state(locked)
    found = constrained_accelerations(locked, q, v, tau, motors=motors, f_ext=f_ext)
    on_rotors = jnp.zeros((len(ROTORS), 6))
    a = jdyn.forward_dynamics(turning, q, v, tau, f_ext=jnp.concatenate([f_ext, on_rotors]))
    assert relative_error(found.a, np.asarray(a)) < 1e-11
    without_spin = jdyn.forward_dynamics(locked, q, v, tau, f_ext=f_ext)
    assert relative_error(without_spin, np.asarray(a)) > 0.1
    rates = jax.jvp(lambda q, v: jdyn.body_velocities(locked, q, v), (q, v), (locked.rate(q, v), a))[1]
    assert relative_error(found.bodies, np.asarray(rates)) < 1e-11


def test_motors_are_checked():
    model = coupled_tree()
    x = state(model)[:3]
    for motor, message in {
        Motor("b1", "b5", (1.0, 0.0, 0.0), 0.1, 10.0): r"joint 'b5' is Ball, with 3 degrees of freedom",
        Motor("b1", "b9", (1.0, 0.0, 0.0), 0.1, 10.0): r"no joint is called 'b9'",
        Motor(12, "b1", (1.0, 0.0, 0.0), 0.1, 10.0): r"body 12 does not exist; 'coupled' has 8 bodies",
        Motor("b1", "b1", (1.0, 0.0), 0.1, 10.0): r"expected axes of shape \(3,\)",
    }.items():
        with pytest.raises(ValueError, match=message):
            constrained_accelerations(model, *x, motors=[motor])


# Couplings.


def held_point(model, body, point, rows):
    """Couplings of velocities that hold a point of a body along some of the world's axes."""
    skew = jnp.cross(jnp.asarray(point), -jnp.eye(3)).T

    def couplings(t, q):
        R = jax.tree.map(lambda x: x[body], jdyn.forward_kinematics(model, q)).rotation
        velocity = (R @ jnp.concatenate([skew, jnp.eye(3)], axis=1))[np.array(rows)]
        A = jnp.zeros((len(rows), model.nb, 6)).at[:, body].set(velocity)
        return A, jnp.zeros((len(rows), model.nv)), jnp.zeros(len(rows))

    return couplings


@pytest.mark.slow
def test_parallelogram_swings_as_one_pendulum():
    """Cranks of equal length and a coupler that only translates: one degree of freedom in closed form."""
    length, width, theta, omega, torque = 0.7, 1.2, 0.6, 1.3, 0.4
    builder, hinge = jdyn.Builder("parallelogram"), jdyn.Revolute((0, 1, 0))
    moments = {"crank": 0.05, "coupler": 0.3, "rocker": 0.1}
    masses = {"crank": 1.0, "coupler": 2.0, "rocker": 3.0}
    coms = {"crank": (0, 0, -length / 2), "coupler": (width / 2, 0, 0), "rocker": (0, 0, length / 3)}
    joints = {
        "crank": ("world", (0, 0, 0)),
        "coupler": ("crank", (0, 0, -length)),
        "rocker": ("coupler", (width, 0, 0)),
    }
    for name, (parent, placement) in joints.items():
        builder.add_link(name, hinge, parent=parent, placement=placement, mass=masses[name], com=coms[name],
                         inertia=moments[name])  # fmt: skip
    model = builder.build()
    q, v = theta * jnp.array([1.0, -1, 1]), omega * jnp.array([1.0, -1, 1])
    closed = acceleration_couplings(model, q, v, held_point(model, 2, (0.0, 0.0, length), (0, 2)))
    found = constrained_accelerations(model, q, v, jnp.array([torque, 0, 0]), couplings=closed)
    arms = {"crank": length / 2, "coupler": length, "rocker": length - length / 3}
    inertia = sum(masses[name] * arm**2 for name, arm in arms.items()) + moments["crank"] + moments["rocker"]
    weight = 9.81 * sum(masses[name] * arm for name, arm in arms.items())
    a = (torque - weight * np.sin(theta)) / inertia
    assert np.allclose(found.a, a * np.array([1, -1, 1]), rtol=1e-11, atol=0)


@pytest.mark.slow
def test_couplings_of_bodies_against_the_jacobian():
    """A point of a tree of every kind moves in a plane at a given acceleration: M a = τ − h + Jᵀλ, J a = D."""
    model, point = coupled_tree(), (0.1, -0.2, 0.3)
    q, v, tau, f_ext = state(model)
    couplings = acceleration_couplings(model, q, v, held_point(model, 6, point, (0, 1)))
    couplings = dataclasses.replace(couplings, D=couplings.D + jnp.array([0.0, 2.0]))
    found = constrained_accelerations(model, q, v, tau, couplings=couplings, f_ext=f_ext)

    def J(q):
        return jdyn.jacobian(model, q, 6, point=jnp.asarray(point), frame="aligned")[3:5]

    Jq, J_rate = jax.jvp(J, (q,), (model.rate(q, v),))
    M, h = jdyn.mass_matrix(model, q), jdyn.bias_forces(model, q, v, f_ext=f_ext)
    K = np.block([[np.asarray(M), -np.asarray(Jq).T], [np.asarray(Jq), np.zeros((2, 2))]])
    x = np.linalg.solve(K, np.concatenate([tau - h, jnp.array([0.0, 2.0]) - J_rate @ v]))
    assert relative_error(found.a, x[:-2]) < 1e-10
    assert relative_error(found.forces, x[-2:]) < 1e-10


def test_couplings_depend_on_time():
    """A joint's speed is told: against the constraint that tells its position."""
    model = jdyn.load("double_pendulum")
    q, v, tau = jnp.array([0.0, 0.4]), jnp.array([0.5, -0.3]), jnp.array([0.0, 0.2])

    def told(t, q):
        return jnp.zeros((1, 2, 6)), jnp.array([[1.0, 0.0]]), 0.5 * jnp.cos(3 * t)[None]

    couplings = acceleration_couplings(model, q, v, told, t=0.7)
    position = jdyn.PrescribedJoint(model.joint_names[0], lambda t: jnp.sin(3 * t) / 6)
    expected = jdyn.constrained_dynamics(model, [position], q, v, tau, t=0.7)
    found = constrained_accelerations(model, q, v, tau, couplings=couplings)
    np.testing.assert_allclose(found.a, expected.a, atol=1e-11)
    np.testing.assert_allclose(found.forces, expected.multipliers, atol=1e-11)


@pytest.mark.slow
def test_couplings_of_joints_are_gears():
    """B q̈ = 0 makes of three hinges what a following joint makes of them; its force drives both ends."""

    def arm(mimic):
        builder = jdyn.Builder("arm")
        for i in range(3):
            builder.add_link(
                f"b{i}", jdyn.Revolute(AXES[i]), parent=f"b{i - 1}" if i else "world", placement=(0.1, 0.2, 0.3),
                mimic=mimic if i == 2 else None, armature=0.1, damping=0.2, **LINK,
            )  # fmt: skip
        return builder.build()

    free, geared = arm(None), arm(jdyn.Mimic("b0", -2.0))
    q, v, tau, _ = state(geared)
    gear = Couplings(None, jnp.array([[2.0, 0.0, 1.0]]), jnp.zeros(1))
    q, v, tau_free = geared.expand(q), geared.expand_velocity(v), jnp.append(tau, 0.0)
    found = constrained_accelerations(free, q, v, tau_free, couplings=gear)
    a = jdyn.forward_dynamics(geared, q[:2], v[:2], tau)
    assert relative_error(found.a, np.asarray(geared.expand_velocity(a))) < 1e-12
    residual = jdyn.inverse_dynamics(free, q, v, found.a) - tau_free
    assert relative_error(found.forces[0] * np.array([2.0, 0, 1]), np.asarray(residual)) < 1e-11


def test_couplings_are_checked():
    model = coupled_tree()
    wrong = Couplings(jnp.zeros((2, 3, 6)), None, jnp.zeros(2))
    with pytest.raises(ValueError, match=r"expected A of shape \(rows, 8, 6\).*got \(2, 3, 6\)"):
        constrained_accelerations(model, *state(model)[:3], couplings=wrong)


@pytest.mark.slow
def test_couplings_that_depend_on_each_other_are_never_silently_wrong():
    constraint, force, Q, D = quadratic_problem()

    @jax.jit
    def z(first, last):
        """The first two couplings, and half their sum as a third one that demands `last`."""
        A, B = (jnp.concatenate([X[:2], X[:1] / 2 + X[1:2] / 2]) for X in (constraint.A, constraint.B))
        D = jnp.concatenate([first, last])
        found = least_constraint(Constraint(constraint.W, constraint.R, A, B), force, Q, D)
        return jnp.concatenate([found.bodies, found.joints])

    alone = Constraint(constraint.W, constraint.R, constraint.A[:2], constraint.B[:2])
    right = least_constraint(alone, force, Q, D[:2])
    right = np.concatenate([right.bodies, right.joints])
    repeated = z(D[:2], jnp.mean(D[:2])[None])
    assert np.all(np.isnan(repeated)) or relative_error(repeated, right) < 1e-9
    assert np.all(np.isnan(z(D[:2], jnp.mean(D[:2])[None] + 1)))


@pytest.mark.slow
def test_more_than_a_tree_in_a_batch_with_derivatives():
    """Under vmap and jit, in both modes, with respect to the state, the rotor and what the couplings demand."""
    model = geared(False)
    states = jax.tree.map(lambda *x: jnp.stack(x), *(state(model, seed)[:3] for seed in range(2)))

    @jax.jit
    def a(x, inertia, demand):
        q, v, tau = x
        motors = [Motor("base", "slide", jnp.array([0.0, 1.0, 1.0]), inertia, 60.0)]
        couplings = Couplings(None, jnp.eye(model.nv)[-1:], demand[None])
        return constrained_accelerations(model, q, v, tau, couplings=couplings, motors=motors).a

    batch = jax.vmap(a, (0, None, None))(states, jnp.array(0.02), jnp.array(3.0))
    for lane in range(2):
        single = a(jax.tree.map(lambda x, lane=lane: x[lane], states), jnp.array(0.02), jnp.array(3.0))
        assert relative_error(batch[lane], np.asarray(single)) < 1e-12
    assert np.allclose(batch[:, -1], 3.0, rtol=1e-12)
    found = constrained_accelerations(
        *(x.astype(jnp.float32) for x in (model, *(x[0] for x in states))),
        couplings=Couplings(None, np.eye(model.nv)[-1:], np.array([3.0])),
        motors=[Motor("base", "slide", (0.0, 1.0, 1.0), 0.02, 60.0)],
    )
    assert found.a.dtype == jnp.float32
    assert relative_error(found.a, np.asarray(batch[0])) < 100 * EPS32
    q, v, tau = jax.tree.map(lambda x: x[0], states)
    check_grads(
        lambda v, tau, inertia, demand: a((q, v, tau), inertia, demand),
        (v, tau, jnp.array(0.02), jnp.array(3.0)), order=1, modes=["fwd", "rev"], atol=1e-5, rtol=1e-5,
    )  # fmt: skip
