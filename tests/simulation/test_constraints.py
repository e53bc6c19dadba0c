"""Simulations under constraints: published mechanisms, closed forms, no drift, derivatives."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.constraints import constraint_distance
from tests.constraints.test_constraints import four_bar
from tests.reference import andrews

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
STEPS = diffrax.SaveAt(t0=True, steps=True)


def accuracy(rtol, atol=None):
    return diffrax.PIDController(rtol=rtol, atol=rtol / 100 if atol is None else atol)


def misses(model, constraints, motion):
    """Of rows that were reached."""
    rows = jnp.isfinite(motion.ts)
    each = jax.vmap(lambda t, q, v: jnp.stack(constraint_distance(model, constraints, q, v, t=t)))
    return np.max(np.asarray(each(motion.ts[rows], motion.q[rows], motion.v[rows])), axis=0)


@pytest.mark.slow
def test_andrews_squeezer():
    """The published solution; its velocities, and so its angles β and Θ, are off by 1e-12 s of phase themselves."""
    model, loops, order = andrews.mechanism()
    q0 = jnp.zeros(7).at[np.array(order)].set(andrews.START)
    motion = jdyn.simulate(
        model, q0, jnp.zeros(7), andrews.END, controller=andrews.forces, constraints=loops, saveat=END,
        stepsize_controller=accuracy(1e-10),
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[-1][np.array(order)], andrews.REFERENCE, atol=1e-8)
    np.testing.assert_allclose(motion.v[-1][np.array(order)], andrews.REFERENCE_V, rtol=1e-7)
    assert misses(model, loops, motion)[0] < 1e-14


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_pendulum_that_a_rod_holds():
    """The simple pendulum of the IFToMM library, problem A01, with its printed coordinates: a point on a plane, at a
    fixed distance."""
    builder = jdyn.Builder("point", gravity=(0, -9.81, 0))
    builder.add_link("carriage", jdyn.Prismatic((1, 0, 0)), armature=0.0)
    builder.add_link("point", jdyn.Prismatic((0, 1, 0)), parent="carriage", mass=1.0)
    model, rod = builder.build(), [jdyn.constraints.Distance("world", "point", length=1.0)]
    printed = {
        0.5: (-3.91049e-01, -9.20370e-01), 1.0: (9.86292e-01, -1.65011e-01), 2.0: (-7.93566e-01, -6.08484e-01),
        3.0: (1.76652e-01, -9.84273e-01), 5.0: (-9.42305e-01, -3.34754e-01), 10.0: (-2.75087e-01, -9.61419e-01),
    }  # fmt: skip
    motion = jdyn.simulate(
        model, jnp.array([-1.0, 0.0]), jnp.zeros(2), 10.0, constraints=rod, saveat=jnp.array(list(printed)),
        stepsize_controller=accuracy(1e-9),
    )  # fmt: skip
    np.testing.assert_allclose(motion.q, list(printed.values()), atol=1e-6)
    # The rod pulls with m (v² − g·x) towards the origin; half of (d² − l²) / l grows outwards.
    pull = -(jnp.sum(motion.v**2, 1) + motion.q @ jnp.array([0, -9.81]))
    np.testing.assert_allclose(motion.multipliers[:, 0], pull, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("solver", [None, jdyn.solvers.ROSJ43(), diffrax.Dopri5()], ids=["default", "ROSJ43", "Dopri5"])
def test_order_under_constraints_with_stiff_joints(solver):
    """A four-bar with dampers and a spring, by constant steps: the order of the method without constraints."""
    model, loop = four_bar()
    model = dataclasses.replace(model, damping=jnp.array([2.0, 0.5, 1.0]), stiffness=jnp.array([5.0, 0.0, 3.0]))
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([2.0, 0.0, 0.0]))
    exact = jdyn.simulate(
        model, start.q, start.v, 0.5, constraints=loop, stepsize_controller=accuracy(1e-12), saveat=END,
        solver=diffrax.Dopri8(),
    )  # fmt: skip
    run = jax.jit(
        lambda h: jdyn.simulate(
            model, start.q, start.v, 0.5, constraints=loop, stepsize_controller=diffrax.ConstantStepSize(), dt0=h,
            saveat=END, solver=solver,
        ).q[-1]
    )  # fmt: skip
    errors = [np.linalg.norm(run(0.5 / steps) - exact.q[-1]) for steps in (20, 40)]
    order = {None: 4, jdyn.solvers.ROSJ43: 4, diffrax.Dopri5: 5}[None if solver is None else type(solver)]
    assert np.log2(errors[0] / errors[1]) > order - 0.3, errors


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_minute_of_a_four_bar_neither_drifts_nor_loses_energy():
    model, loop = four_bar()
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([2.0, 0.0, 0.0]))
    motion = jdyn.simulate(
        model, start.q, start.v, 60.0, constraints=loop, stepsize_controller=accuracy(1e-11), max_steps=40000,
        saveat=diffrax.SaveAt(t0=True, steps=50),
    )  # fmt: skip
    position, velocity = misses(model, loop, motion)
    assert position < 1e-13 and velocity < 1e-12
    energy = motion.energy[jnp.isfinite(motion.ts)]
    scale = 9.81 * 4.5
    assert np.max(np.abs(energy - energy[0])) < 1e-8 * scale


def rolling_disk(radius=0.3):
    builder = jdyn.Builder("disk")
    mass = 2.0
    across, about = mass * radius**2 / 4, mass * radius**2 / 2
    builder.add_link("disk", jdyn.Free(), mass=mass, inertia=np.diag([across, across, about]))
    return builder.build(), [jdyn.constraints.RollingDisk("disk", radius)]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_disk_that_rolls_in_a_circle():
    """Steady precession at an inclination θ, by (C + m a²) Ω ω_n sin θ − A Ω² sin θ cos θ + m g a cos θ = 0, with
    A = m a² / 4 and C = 2 A: the centre runs along a circle of radius −a ω_n / Ω about the axis of precession."""
    a, theta, Omega, g = 0.3, 1.0, 3.0, 9.81
    spin = (Omega**2 * np.sin(theta) * np.cos(theta) / 4 - g / a * np.cos(theta)) / (1.5 * Omega * np.sin(theta))
    radius = -a * spin / Omega
    model, rolls = rolling_disk(a)
    axis, down = np.array([np.sin(theta), 0, np.cos(theta)]), np.array([np.cos(theta), 0, -np.sin(theta)])
    center = np.array([radius, 0, a * np.sin(theta)])
    # The disk's frame has its axis along z.
    R = np.stack([-down, np.cross(axis, -down), axis], 1)
    q0 = jnp.concatenate([center, jdyn.spatial.rotation.matrix_to_quaternion(jnp.asarray(R))])
    omega = spin * axis - Omega * np.sin(theta) * down
    velocity = np.cross([0, 0, Omega], center)
    order = free_velocity(model, q0, omega, velocity)
    period = 2 * np.pi / Omega
    motion = jdyn.simulate(
        model,
        q0,
        order,
        period,
        constraints=rolls,
        saveat=jnp.linspace(0, period, 9),
        stepsize_controller=accuracy(1e-10),
    )
    height = center[2]
    angles = Omega * np.asarray(motion.ts)
    expected = np.stack([center[0] * np.cos(angles), center[0] * np.sin(angles), np.full(9, height)], 1)
    poses = motion.poses
    np.testing.assert_allclose(poses.translation[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(poses.rotation[:, 0, 2, 2], np.cos(theta), atol=1e-6)


def free_velocity(model, q0, omega, velocity):
    """v of a free body for velocities in world axes at its origin."""
    J = jdyn.jacobian(model, q0, 0, frame="aligned")
    return jnp.linalg.solve(J, jnp.concatenate([omega, velocity]))


@pytest.mark.slow
def test_a_joint_that_is_told_moves_the_rest():
    """Of a chain whose first joint is told, the second follows the partitioned equations, and the row's force is what
    inverse dynamics asks of the first."""
    model = jdyn.load("double_pendulum")
    told = [jdyn.constraints.PrescribedJoint(model.joint_names[0], lambda t: 0.3 * jnp.sin(2 * t))]
    q, v = jnp.array([0.3 * np.sin(0.8), 0.4]), jnp.array([0.6 * np.cos(0.8), -0.5])
    tau, first = jnp.array([0.0, 0.2]), -1.2 * np.sin(0.8)
    M, h = jdyn.mass_matrix(model, q), jdyn.bias_forces(model, q, v)
    second = (tau[1] - h[1] - M[1, 0] * first) / M[1, 1]
    found = jdyn.constrained_dynamics(model, told, q, v, tau, t=0.4)
    np.testing.assert_allclose(found.a, [first, second], atol=1e-12)
    asked = jdyn.inverse_dynamics(model, q, v, found.a)
    np.testing.assert_allclose(found.multipliers, asked[:1] - tau[:1], atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_base_that_is_told():
    """A prescribed frame under an arm against the arm alone on an accelerating world."""

    def height(t):
        return 0.2 * jnp.sin(3 * t)

    def pose(t):
        return jdyn.spatial.Transform(jnp.eye(3), jnp.stack([0 * t, 0 * t, height(t)]))

    def arm(base):
        builder = jdyn.Builder("arm")
        parent = "world"
        if base:
            builder.add_link("base", jdyn.Free(), mass=3.0, inertia=0.1)
            parent = "base"
        for i in range(2):
            builder.add_link(
                f"link{i}", jdyn.Revolute((0, 1, 0)), parent=parent, placement=(0.5 * (i > 0), 0, 0), mass=1.0,
                com=(0.25, 0, 0), inertia=0.02,
            )  # fmt: skip
            parent = f"link{i}"
        return builder.build()

    moving, alone = arm(True), arm(False)
    q, v = jnp.array([0.3, -0.4]), jnp.array([1.0, 0.5])
    t = 0.7
    q0 = moving.neutral().at[moving.topology.q_slice(1).start :].set(q)
    start = jdyn.assemble(
        moving, [jdyn.constraints.PrescribedFrame("base", pose)], q0, jnp.append(jnp.zeros(6), v), t=t
    )
    found = jdyn.constrained_dynamics(
        moving, [jdyn.constraints.PrescribedFrame("base", pose)], start.q, start.v, jnp.zeros(8), t=t
    )
    up = jax.jvp(jax.grad(height), (t,), (1.0,))[1]
    falling = alone.with_gravity((0, 0, -9.81 - float(up)))
    expected = jdyn.forward_dynamics(falling, start.q[7:], start.v[6:], jnp.zeros(2))
    np.testing.assert_allclose(found.a[6:], expected, atol=1e-12 * np.max(np.abs(expected)) + 1e-11)


@pytest.mark.slow
def test_a_start_off_the_constraints_is_refused_in_words():
    arm = jdyn.load("double_pendulum")
    geared = [jdyn.constraints.Gear(*arm.joint_names, (0.0, 2.0))]
    with pytest.raises(jdyn.SimulationError, match=r"constraints are not met; jdyn\.assemble finds a start"):
        jdyn.simulate(arm, jnp.ones(2), jnp.zeros(2), 1.0, constraints=geared, solver=diffrax.Heun(), saveat=END)
    model, loop = four_bar()
    with pytest.raises(ValueError, match="Rodas5P: its Jacobians are those of a tree"):
        jdyn.simulate(model, jnp.zeros(3), jnp.zeros(3), 1.0, constraints=loop, solver=jdyn.solvers.Rodas5P())


@pytest.mark.slow
def test_a_singular_start_has_a_code():
    """Stretched rods stay where they are; those that lie flat and move fold on as they move."""
    model, loop = four_bar(0.5, 0.5, 0.4, 1.4)
    line, still = jnp.array([0.0, 0.0, np.pi]), jnp.zeros(3)
    motion = jdyn.simulate(model, line, still, 1.0, constraints=loop, saveat=END, throw=False)
    assert motion.result == jdyn.Result.singular
    assert motion.stats["accepted_steps"] + motion.stats["rejected_steps"] == 0
    model, loop = four_bar(1.0, 2.0, 1.0, 2.0)
    flat, way = jnp.zeros(3), jnp.array([3.0, -3.0, 3.0])
    moving = jdyn.simulate(model, flat, way, 0.1, constraints=loop, saveat=END)
    np.testing.assert_allclose(moving.q[-1] / moving.q[-1, 0], way / 3, atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gradients_through_a_simulation():
    """By the rocker's length and a mass, in reverse mode through assembly and motion, against differences."""
    model, loop = four_bar()

    def end(x):
        heavier = model.with_body("coupler", mass=x[1])
        longer = [dataclasses.replace(loop[0], point_b=x[0] * jnp.array([1.0, 0.0, 0.0]))]
        # The crank begins where it is told.
        told = jdyn.constraints.PrescribedJoint("crank", lambda t: 1.0 + 2.0 * t)
        start = jdyn.assemble(heavier, [*longer, told], jnp.array([1.0, -0.2, 1.6]), throw=False)
        motion = jdyn.simulate(
            heavier, start.q, start.v, 2.0, constraints=longer, saveat=END, throw=False,
            stepsize_controller=accuracy(1e-11), max_steps=4096,
        )  # fmt: skip
        return jnp.sum(jnp.sin(motion.q[-1]))

    x, h = jnp.array([1.5, 2.0]), 1e-4
    # One program for both.
    value_and_gradient = jax.jit(jax.value_and_grad(end))
    gradient = value_and_gradient(x)[1]
    for i, step in enumerate(h * jnp.eye(2)):
        values = [float(value_and_gradient(x + many * step)[0]) for many in (-2, -1, 1, 2)]
        expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
        np.testing.assert_allclose(gradient[i], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_of_lengths():
    """A lane whose start misses its loop says so, and no other suffers."""
    model, loop = four_bar()
    lengths = jnp.array([1.4, 1.5, 9.0, 1.6])

    def start(length):
        here = [dataclasses.replace(loop[0], point_b=length * jnp.array([1.0, 0.0, 0.0]))]
        return here, jdyn.assemble(model, here, jnp.array([1.0, -0.2, 1.6]), throw=False)

    loops, starts = jax.vmap(start)(lengths)
    motion = jdyn.simulate_batch(
        model, starts.q, starts.v, 0.5, constraints=loops, saveat=END,
        in_axes={"q0": 0, "v0": 0, "constraints": 0},
    )  # fmt: skip
    expected = np.where(lengths < 5, jdyn.Result.success, jdyn.Result.constraints)
    np.testing.assert_array_equal(motion.result, expected)
    alone = jdyn.simulate(model, starts.q[1], starts.v[1], 0.5, constraints=loop, saveat=END)
    np.testing.assert_allclose(motion.q[1], alone.q, atol=1e-9)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_loop_bounces_off_a_joint_limit():
    """The crank's speed is turned round by e, and the loop holds after the impact as before."""
    model, loop = four_bar(lower=0.4)
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([-3.0, 0.0, 0.0]))
    motion = jdyn.simulate(
        model, start.q, start.v, 0.5, constraints=loop, joint_limits=jdyn.ImpactLimits(restitution=0.5), saveat=STEPS,
        stepsize_controller=accuracy(1e-9), max_steps=400,
    )  # fmt: skip
    hit = int(jnp.nanargmin(jnp.abs(motion.ts - motion.events.ts[0])))
    assert motion.events.which[0] >= 0
    np.testing.assert_allclose(motion.events.q[0, 0], 0.4, atol=1e-9)
    before, after = motion.v[hit], motion.events.v[0]
    np.testing.assert_allclose(after[0], -0.5 * before[0], rtol=1e-6)
    assert max(constraint_distance(model, loop, motion.events.q[0], after)) < 1e-9
    assert misses(model, loop, motion)[0] < 1e-12


@pytest.mark.slow
@pytest.mark.exhaustive
def test_energy_that_a_drive_supplies():
    """A joint that is told does work, which the balance of energy counts."""
    model, loop = four_bar()
    told = jdyn.constraints.PrescribedJoint("crank", lambda t: 1.0 + jnp.sin(2 * t))
    start = jdyn.assemble(model, [*loop, told], jnp.array([1.0, -0.2, 1.6]))
    motion = jdyn.simulate(
        model, start.q, start.v, 1.0, constraints=[*loop, told], solver=jdyn.solvers.EnergyError(diffrax.Dopri8()),
        stepsize_controller=accuracy(1e-10), saveat=jnp.linspace(0, 1, 5), max_steps=20000,
    )  # fmt: skip
    energy = motion.energy
    assert np.ptp(energy) > 1
    np.testing.assert_allclose(motion.parts["supplied"], energy, atol=1e-6)
    np.testing.assert_allclose(motion.q[:, 0], 1 + np.sin(2 * np.asarray(motion.ts)), atol=1e-8)


@pytest.mark.slow
def test_there_and_back():
    model, loop = four_bar()
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([2.0, 0.0, 0.0]))

    def run(q, v, t0, t1):
        return jdyn.simulate(
            model, q, v, t1, t0=t0, constraints=loop, saveat=END, stepsize_controller=accuracy(1e-10), max_steps=2000
        )

    there = run(start.q, start.v, 0.0, 0.6)
    back = run(there.q[-1], there.v[-1], 0.6, 0.0)
    np.testing.assert_allclose(back.q[-1], start.q, atol=1e-7)
