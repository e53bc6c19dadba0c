"""Published mechanisms with closed loops against closed forms, printed numbers and dense equations."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jdyn
from jdyn.constraints import constraint_distance, constraint_rows
from tests.constraints.test_constraints import four_bar
from tests.reference import mechanisms
from tests.reference.mechanisms import G

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)


def accuracy(rtol):
    return diffrax.PIDController(rtol=rtol, atol=rtol / 100)


def exact(field, start, times):
    """By SciPy."""
    return scipy.integrate.solve_ivp(
        field, (0, times[-1]), start, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times
    ).y  # fmt: skip


def largest(x):
    return np.max(np.abs(np.asarray(x)))


def misses(model, constraints, motion):
    """Of the last position and velocity. Between steps, rows are as far off as dense output."""
    return constraint_distance(model, constraints, motion.q[-1], motion.v[-1], t=motion.ts[-1])


def dense(model, constraints, q, v, tau, t=0.0):
    """Accelerations and the smallest multipliers by NumPy's pseudo-inverse, and J."""
    rows = eqx.filter_jit(constraint_rows)(model, constraints, jnp.asarray(t), q, v)
    J, inverse = np.asarray(rows.J), np.linalg.inv(jdyn.mass_matrix(model, q))
    free = inverse @ (tau - jdyn.bias_forces(model, q, v))
    force = np.linalg.pinv(J @ inverse @ J.T, rcond=1e-10, hermitian=True) @ (rows.gamma - J @ free)
    return free + inverse @ J.T @ force, force, J


# N four-bars.


def swing(count, times):
    """The angle and its rate while all uprights stay parallel: θ̈ = −g k cos θ."""
    k = ((count + 1) / 2 + count) / ((count + 1) / 3 + count)
    return exact(lambda t, y: [y[1], -G * k * np.cos(y[0])], [np.pi / 2, -1.0], times)


def simulated_four_bars(count, times, rtol, dt0=None):
    model, loops, signs = mechanisms.four_bars(count)
    motion = jdyn.simulate(
        model, jnp.asarray(signs * np.pi / 2), jnp.asarray(-signs), times[-1], constraints=loops, dt0=dt0,
        saveat=jnp.asarray(times), stepsize_controller=accuracy(rtol), max_steps=4000, throw=dt0 is None,
    )  # fmt: skip
    return model, loops, signs, motion


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10, 1e-11])
def test_two_four_bars_pass_singular_configurations(rtol):
    """Ten seconds. Wherever the uprights lie flat, the bars could leave their parallel motion.

    At an angle δ to there, rounding of the rows makes an error of eps/δ² in the velocity that leaves it, and of eps/δ³
    in the acceleration. First steps of many lengths have steps end everywhere; none may end where that is too much. The
    tightest tolerance forbids it within a hundredth of a radian, and in the stages of a step: there a code will do.
    """
    times = np.arange(0, 10.01, 0.5)
    model, loops, signs = mechanisms.four_bars(2)
    motions = jax.vmap(lambda dt0: simulated_four_bars(2, times, rtol, dt0)[-1])(jnp.linspace(1e-3, 1e-2, 32))
    good = motions.result == jdyn.Result.success
    assert np.all(good | ((rtol < 1e-10) & np.isin(motions.result, [jdyn.Result.constraints, jdyn.Result.singular])))
    motions = jax.tree.map(lambda x: x[good], motions)
    assert len(motions.q) >= 8
    assert np.all(2 * motions.stats["rejected_steps"] < motions.stats["accepted_steps"])
    angle, rate = swing(2, times)
    dense_times = np.linspace(0, 10, 2001)
    assert np.sum(np.diff(np.sign(np.sin(swing(2, dense_times)[0]))) != 0) == 10
    # Errors grow with time, those of the phase with a hundred steps' errors of the speed.
    q, v = (np.broadcast_to(np.outer(x, signs), motions.q.shape) for x in (angle, rate))
    np.testing.assert_allclose(motions.q, q, rtol=0, atol=1e3 * rtol)
    np.testing.assert_allclose(motions.v, v, rtol=0, atol=1e4 * rtol)
    # None leaves the parallel motion; rows between steps are those of dense output.
    np.testing.assert_allclose(motions.q, np.asarray(motions.q[..., :1]) * signs, atol=10 * rtol)
    assert largest(jax.vmap(lambda motion: misses(model, loops, motion)[0])(motions)) < 1e-13


# Time, and coordinates of the first joint above ground [m].
PRINTED = np.array([
    (0.05, 5.02096e-02, 9.98739e-01), (0.5, 6.87926e-01, 7.25781e-01), (0.7, 9.94885e-01, 1.01019e-01),
    (0.75, 9.90062e-01, -1.40633e-01), (1.0, -1.15357e-01, -9.93324e-01), (2.0, 3.44663e-02, 9.99406e-01),
    (3.0, -3.38518e-01, -9.40960e-01), (4.0, 6.93421e-02, 9.97593e-01),
])  # fmt: skip


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("rtol", "more"), [(1e-8, []), (1e-6, [20.0])], ids=["four", "twenty"])
def test_forty_four_bars_as_printed(rtol, more):
    """81 bodies and 120 rows, for four seconds as the library's solution with six digits has them, and for its twenty.
    The closed form agrees with it."""
    times, place = np.append(PRINTED[:, 0], more), PRINTED[:, 1:]
    angle, _ = swing(40, times)
    model, loops, signs, motion = simulated_four_bars(40, times, rtol)
    first = np.asarray(motion.q[:, 0])
    for angles, atol in ((angle, 1.5e-6), (first, 3e-6 if rtol == 1e-8 else 1e3 * rtol)):
        np.testing.assert_allclose(np.stack([np.cos(angles), np.sin(angles)], 1)[: len(place)], place, atol=atol)
    # The phase errs by hundreds of steps' errors of the speed.
    np.testing.assert_allclose(motion.q, np.outer(angle, signs), rtol=0, atol=1e3 * rtol)
    np.testing.assert_allclose(motion.q, np.outer(first, signs), atol=10 * rtol)
    assert misses(model, loops, motion)[0] < 1e-12


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forty_four_bars_are_right_or_have_a_code():
    """Where there are many rows, rounding is known where a step begins, and too late: one in ten of these goes on next
    to a singular configuration, and must not end with a number."""
    times = np.array([4.0, 8.0, 12.0, 16.0, 20.0])
    angle, _ = swing(40, times)
    run = jax.jit(lambda dt0: simulated_four_bars(40, times, 1e-8, dt0)[-1])
    right = 0
    for dt0 in np.linspace(1e-3, 1e-2, 10):
        motion = run(dt0)
        if motion.result == jdyn.Result.success:
            right += 1
            np.testing.assert_allclose(motion.q[:, 0], angle, rtol=0, atol=1e4 * 1e-8)
        else:
            assert motion.result == jdyn.Result.singular
    assert right >= 5


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_linkage_that_turns_fast_is_not_taken_for_singular():
    """A four-bar whose rows stay independent, at speeds and tolerances with which float32 has few digits to spare."""
    model, loop = four_bar(0.75, 1.0, 1.0, 0.9)
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.5, 1.5]), jnp.array([1.0, 0.0, 0.0]))
    speeds = np.array([6.0, 12.0, 30.0])

    def motions(dtype):
        robot, loops, q0, turn = jax.tree.map(
            lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, (model, loop, start.q, start.v / start.v[0])
        )
        return jax.vmap(
            lambda speed: jdyn.simulate(
                robot, q0, speed * turn, 1.0, constraints=loops, saveat=END, solver=diffrax.Tsit5(),
                stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6), throw=False,
            )
        )(jnp.asarray(speeds, dtype))  # fmt: skip

    single, double = motions(jnp.float32), motions(jnp.float64)
    assert np.all(double.result == jdyn.Result.success) and np.all(single.result == jdyn.Result.success)
    np.testing.assert_allclose(single.q, double.q, atol=1e-3)
    steps = [np.asarray(motion.stats["accepted_steps"] + motion.stats["rejected_steps"]) for motion in (single, double)]
    assert np.all(steps[0] < 1.2 * steps[1])


# The slider-crank.


def slider_crank_energy(angle):
    """Half of the inertia that the crank's angle moves, the potential energy, and the slider's place."""
    s, c = np.sin(angle), np.cos(angle)
    B, rate = np.array([0 * s, 0.1 - 0.08 * s, 0.12 + 0.08 * c]), 0.08 * np.array([0 * s, -c, -s])
    x = np.sqrt(0.09 - B[1] ** 2 - B[2] ** 2)
    slide = -(B[1] * rate[1] + B[2] * rate[2]) / x
    C, speed = np.array([x, 0 * x, 0 * x]), np.array([slide, 0 * x, 0 * x])
    along, X = (C - B) / 0.3, np.eye(3)[0]
    omega = np.cross(along, (speed - rate) / 0.3)
    # The universal joint lets the rod turn neither about its own axis nor about the normal of its cross.
    normal = np.cross(X, np.cross(along, X))
    omega = omega - (omega @ normal) / (along @ normal) * along
    mean, about = (rate + speed) / 2, omega @ along
    inertia = (
        1e-4 + 0.12 * 0.04**2 + 2 * slide**2 + 0.5 * mean @ mean + 4e-3 * (omega @ omega - about**2) + 4e-4 * about**2
    )
    return inertia / 2, G * (0.5 * B[2] / 2 + 0.12 * 0.04 * c), x


def slider_crank_field(t, y):
    """From d/dt (c θ̇) = ½ c' θ̇² − V', with slopes by complex steps."""
    half, _, _ = slider_crank_energy(y[0])
    half_slope, slope = (x.imag / 1e-30 for x in slider_crank_energy(y[0] + 1e-30j)[:2])
    return [y[1], -(half_slope * y[1] ** 2 + slope) / (2 * half)]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_spatial_slider_crank():
    """Five seconds against F. González' solution of the library's problem, and against the equation of its one degree
    of freedom. Submitted solutions agree to about 1e-4 m with each other.

    Source: github.com/jgerstmayr/EXUDYN, docs/verification/Slidercrank3DiftommBenchmark.
    """
    submitted = {
        0.1: 0.226785384, 0.2: 0.263034975, 0.27: 0.290058606, 0.5: 0.184952803, 1.0: 0.211754668, 1.43: 0.290153333,
        2.0: 0.289063554, 3.0: 0.228450093, 4.0: 0.188208161, 5.0: 0.240761815,
    }  # fmt: skip
    times = np.array(list(submitted))
    model, loop, start = mechanisms.slider_crank()
    begin = jdyn.assemble(model, loop, jnp.asarray(start), jnp.array([6.0, 0.24, 0.0, 0.0]))
    np.testing.assert_allclose(begin.q, start, atol=1e-14)
    # The crank's speed is told; the nearest velocity has another one.
    v0 = begin.v * 6.0 / begin.v[0]
    np.testing.assert_allclose(v0[1], 0.24, atol=1e-12)
    motion = jdyn.simulate(
        model, begin.q, v0, 5.0, constraints=loop, saveat=jnp.asarray(times), stepsize_controller=accuracy(1e-11),
        solver=diffrax.Dopri8(), max_steps=20000,
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[:, 1], list(submitted.values()), atol=1e-4)
    angle, rate = exact(slider_crank_field, [0.0, 6.0], times)
    np.testing.assert_allclose(motion.q[:, 0], angle, atol=1e-8)
    np.testing.assert_allclose(motion.v[:, 0], rate, atol=1e-7)
    np.testing.assert_allclose(motion.q[:, 1], [slider_crank_energy(x)[2] for x in angle], atol=1e-9)
    assert misses(model, loop, motion)[0] < 1e-13


# Bricard's mechanism.


@pytest.mark.slow
@pytest.mark.exhaustive
def test_bricard_moves():
    """It has one degree of freedom, so that its loop and its energy determine its motion. By its symmetry, every
    second hinge turns alike."""
    model, loop = mechanisms.bricard()
    times = np.linspace(0, 5, 11)
    motion = jdyn.simulate(
        model, jnp.zeros(5), jnp.zeros(5), 5.0, constraints=loop, saveat=jnp.asarray(times),
        stepsize_controller=accuracy(1e-10), max_steps=20000,
    )  # fmt: skip
    position, velocity = misses(model, loop, motion)
    assert position < 1e-13 and velocity < 1e-12
    energy = np.asarray(motion.energy)
    np.testing.assert_allclose(energy, energy[0], atol=1e-7 * 5 * G)
    assert largest(motion.q) > 1
    np.testing.assert_allclose(motion.q, motion.q[:, np.array([0, 1, 0, 1, 0])], atol=1e-8)
    for q, v in zip(motion.q, motion.v, strict=True):
        a, multipliers, J = dense(model, loop, q, v, jnp.zeros(5))
        found = jdyn.constrained_dynamics(model, loop, q, v, jnp.zeros(5))
        assert J.shape == (5, 5) and np.linalg.matrix_rank(J, 1e-9) == 4
        np.testing.assert_allclose(found.a, a, atol=1e-9 * largest(a))
        np.testing.assert_allclose(found.multipliers, multipliers, atol=1e-9 * largest(multipliers))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_bricard_without_a_redundant_row():
    """Accelerations are those of any four independent rows of five; multipliers are the least."""
    model, loop = mechanisms.bricard()
    first = jdyn.constrained_dynamics(model, loop, jnp.zeros(5), jnp.zeros(5), jnp.zeros(5))
    np.testing.assert_allclose(first.a, 1.95808383 * np.array([1, -1, 1, -1, 1]), rtol=1e-8)
    start = jdyn.assemble(
        model, loop, 0.2 * jnp.array([1.0, -1, 1, -1, 1]), jnp.array([1.0, -1, 1, -1, 1]),
    )  # fmt: skip
    tau = jnp.array([0.3, -2.0, 1.0, 0.5, -0.7])
    found = jdyn.constrained_dynamics(model, loop, start.q, start.v, tau)
    rows = eqx.filter_jit(constraint_rows)(model, loop, jnp.zeros(()), start.q, start.v)
    M, h = np.asarray(jdyn.mass_matrix(model, start.q)), np.asarray(jdyn.bias_forces(model, start.q, start.v))
    assert largest(start.v) > 0.5
    dropped = 0
    for i in range(5):
        J, gamma = np.delete(rows.J, i, 0), np.delete(rows.gamma, i)
        if np.linalg.matrix_rank(J, 1e-9) < 4:
            continue
        dropped += 1
        whole = np.block([[M, -J.T], [J, np.zeros((4, 4))]])
        x = np.linalg.solve(whole, np.concatenate([tau - h, gamma]))
        np.testing.assert_allclose(found.a, x[:5], atol=1e-10)
        np.testing.assert_allclose(found.forces, J.T @ x[5:], atol=1e-9)
        assert np.linalg.norm(found.multipliers) <= np.linalg.norm(x[5:]) * (1 + 1e-12)
    assert dropped > 1
    least = np.linalg.pinv(np.asarray(rows.J).T, 1e-10) @ found.forces
    np.testing.assert_allclose(found.multipliers, least, atol=1e-9 * largest(least))


# A Stewart platform.


def leg_lengths(t):
    return jnp.stack([drive.position(t) for drive in mechanisms.stewart_drives()])


def legs(model):
    """Places of legs among coordinates and among velocities."""
    topology = model.topology
    joints = [topology.joint(f"leg{i}") for i in range(6)]
    return np.array([topology.q_offsets[i] for i in joints]), np.array([topology.v_offsets[i] for i in joints])


def at_home(model):
    """The platform 2 m above the base, the legs near where they lead to it."""
    places, _ = legs(model)
    apart = mechanisms.STEWART_TOP + np.array([0, 0, 2.0]) - mechanisms.STEWART_BASE
    lengths = np.linalg.norm(apart, axis=1)
    u = apart / lengths[:, None]
    q = model.neutral().at[2].set(2.0).at[places].set(lengths)
    return q.at[places - 2].set(np.arctan2(-u[:, 1], u[:, 2])).at[places - 1].set(np.arcsin(u[:, 0]))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stewart_platform_inverse_kinematics():
    """Leg lengths are |p + R top − base| of the pose that the platform is told, and their rates u·(ṗ + ω × R top)."""
    model, balls = mechanisms.stewart()
    places, rates = legs(model)
    told = [*balls, jdyn.constraints.PrescribedFrame("platform", mechanisms.stewart_pose)]
    for t in (0.0, 0.4):
        found = jdyn.assemble(model, told, at_home(model), t=t)
        lengths, speeds = jax.jvp(leg_lengths, (t,), (1.0,))
        np.testing.assert_allclose(found.q[places], lengths, atol=1e-11)
        np.testing.assert_allclose(found.v[rates], speeds, atol=1e-11)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stewart_platform_forward_kinematics():
    """Six lengths lead to the pose, from the home configuration."""
    model, balls = mechanisms.stewart()
    for t in (0.0, 0.4):
        found = jdyn.assemble(model, [*balls, *mechanisms.stewart_drives()], at_home(model), t=t)
        pose, expected = jdyn.forward_kinematics(model, found.q), mechanisms.stewart_pose(t)
        np.testing.assert_allclose(pose.translation[0], expected.translation, atol=1e-11)
        np.testing.assert_allclose(pose.rotation[0], expected.rotation, atol=1e-11)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stewart_platform_leg_forces():
    """Of legs almost without mass: Σ u F = m (p̈ − g), Σ R top × u F = I ω̇ + ω × I ω."""
    model, balls = mechanisms.stewart(mass=1e-7)
    told = [*balls, *mechanisms.stewart_drives()]
    t = 0.4
    start = jdyn.assemble(model, told, at_home(model), t=t)
    found = jdyn.constrained_dynamics(model, told, start.q, start.v, jnp.zeros(model.nv), t=t)

    def motion(t):
        pose, rate = jax.jvp(mechanisms.stewart_pose, (t,), (1.0,))
        turn = rate.rotation @ pose.rotation.T
        return jnp.stack([turn[2, 1], turn[0, 2], turn[1, 0]]), rate.translation

    (omega, _), (turning, a) = jax.jvp(motion, (t,), (1.0,))
    pose = mechanisms.stewart_pose(t)
    R = np.asarray(pose.rotation)
    arms = mechanisms.STEWART_TOP @ R.T
    apart = arms + np.asarray(pose.translation) - mechanisms.STEWART_BASE
    u = apart / np.linalg.norm(apart, axis=1, keepdims=True)
    omega, turning, a = (np.asarray(x) for x in (omega, turning, a))
    inertia = R @ np.diag(mechanisms.STEWART_INERTIA) @ R.T
    moment = inertia @ turning + np.cross(omega, inertia @ omega)
    force = mechanisms.STEWART_MASS * (a + np.array([0, 0, G]))
    expected = np.linalg.solve(np.concatenate([u.T, np.cross(arms, u).T]), np.concatenate([force, moment]))
    np.testing.assert_allclose(found.multipliers[-6:], expected, rtol=1e-5)
    speeding = jax.jvp(lambda t: jax.jvp(leg_lengths, (t,), (1.0,))[1], (t,), (1.0,))[1]
    np.testing.assert_allclose(found.a[legs(model)[1]], speeding, atol=1e-6)


# Where rank is lost, and contradictions.


class Turn(eqx.Module):
    """A steady turn."""

    start: jax.Array = eqx.field(converter=jnp.asarray)
    rate: jax.Array = eqx.field(converter=jnp.asarray)

    def __call__(self, t):
        return self.start + self.rate * t


@pytest.mark.slow
def test_a_start_at_a_singular_configuration():
    """A four-bar whose rods all lie on the ground: rows lose a rank, and from there the bars go on in parallel."""
    model, loop, signs = mechanisms.four_bars(1)
    found = jdyn.constrained_dynamics(model, loop, jnp.zeros(3), jnp.asarray(-signs), jnp.zeros(3))
    np.testing.assert_allclose(found.a, -1.2 * G * signs, rtol=1e-12)
    assert np.all(np.isfinite(found.multipliers))
    motion = jdyn.simulate(
        model, jnp.zeros(3), jnp.asarray(-signs), 0.3, constraints=loop, saveat=END, stepsize_controller=accuracy(1e-8),
    )  # fmt: skip
    angle, _ = exact(lambda t, y: [y[1], -1.2 * G * np.cos(y[0])], [0.0, -1.0], np.array([0.3]))
    np.testing.assert_allclose(motion.q[-1], angle[0] * signs, atol=1e-7)


@pytest.mark.slow
def test_a_drive_beyond_reach_ends_where_reach_ends():
    """A crank is told to turn on until coupler and rocker are stretched, where cos φ = 1/4."""
    model, loop = four_bar(coupler=1.0, rocker=1.0)
    told = [*loop, jdyn.constraints.PrescribedJoint("crank", Turn(1.25, 1.0))]
    start = jdyn.assemble(model, told, jnp.array([1.25, -1.5, 2.4]))
    motion = jdyn.simulate(
        model, start.q, start.v, 3.0, constraints=told, saveat=END, stepsize_controller=accuracy(1e-8), throw=False,
        max_steps=2000,
    )  # fmt: skip
    assert motion.result == jdyn.Result.constraints
    # Processors that round differently end 1e-8 or 1e-4 s after that: with a step whose end cannot be met.
    np.testing.assert_allclose(motion.stats["t_reached"], np.arccos(0.25) - 1.25, atol=1e-3)


@pytest.mark.slow
def test_contradictions_are_refused():
    """Two drives tell one joint different speeds: accelerations are finite, and a simulation does not begin."""
    model, loop = four_bar()
    start = jdyn.assemble(model, loop, jnp.array([1.0, -0.2, 1.6]), jnp.array([1.0, 0.0, 0.0]))
    told = [*loop, *(jdyn.constraints.PrescribedJoint("crank", Turn(start.q[0], rate)) for rate in (1.0, 2.0))]
    found = jdyn.constrained_dynamics(model, told, start.q, start.v, jnp.zeros(3))
    assert all(np.all(np.isfinite(x)) for x in found)
    motion = jdyn.simulate(model, start.q, start.v, 1.0, constraints=told, saveat=END, throw=False)
    assert motion.result == jdyn.Result.constraints


# Motors.


@pytest.mark.slow
@pytest.mark.exhaustive
def test_motors_along_a_motion():
    """Rotors that are links with mass and follow joints, against `jdyn.with_rotors` of the arm with locked ones."""
    locked, turning = mechanisms.geared(False), mechanisms.geared(True)
    motors = {
        f"motor{i}": jdyn.Rotor(carrier, joint, np.array(axis, float), inertia, ratio)
        for i, (carrier, joint, axis, ratio, inertia) in enumerate(mechanisms.ROTORS)
    }

    def drive(t, q, v):
        return jnp.stack([jnp.sin(t), 2 * jnp.cos(3 * t), 0.5 * jnp.sin(5 * t)])

    def moved(model):
        return jdyn.simulate(
            model, jnp.array([0.2, -0.4, 0.3]), jnp.array([1.0, -2.0, 3.0]), 2.0, controller=drive,
            saveat=jnp.linspace(0, 2, 21), stepsize_controller=accuracy(1e-9),
        )  # fmt: skip

    expected, found = moved(turning), moved(jdyn.with_rotors(locked, motors))
    a = expected.accelerations
    np.testing.assert_allclose(found.accelerations, a, rtol=0, atol=1e-7 * largest(a))
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-8)
    without = jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(locked, q, v, tau))(found.q, found.v, found.tau)
    assert largest(without - a) > 0.1 * largest(a)
