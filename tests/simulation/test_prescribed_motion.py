"""Motion that is told, and what it drives: closed forms and SciPy, alone and beside free parts."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jdyn
from jdyn.constraints import constraint_distance

pytestmark = pytest.mark.fast_compile

CRANK, ROD, G = 0.3, 0.9, 9.81
# Masses [kg] and moments of inertia about centres of mass [kg m²] of crank, rod and slider.
MASSES, INERTIAS = (1.0, 1.5, 2.0), (0.01, 0.1)
TOLERANCES = (1e-3, 1e-6, 1e-9)


def accuracy(tolerance):
    return diffrax.PIDController(rtol=tolerance, atol=tolerance)


def misses(model, constraints, motion):
    each = jax.vmap(lambda t, q, v: jnp.stack(constraint_distance(model, constraints, q, v, t=t)))
    return np.max(np.asarray(each(motion.ts, motion.q, motion.v)), axis=0)


class Turning(eqx.Module):
    """A constant speed, which is no part of the program."""

    omega: jax.Array

    def __call__(self, t):
        return self.omega * t


def slider_crank(beside=False):
    """A crank, its rod and the slider that it drives along x; if asked for, a pendulum of 9 m beside."""
    builder = jdyn.Builder("slider-crank")
    builder.add_link("crank", jdyn.Revolute((0, 1, 0)), mass=MASSES[0], com=(CRANK / 2, 0, 0), inertia=INERTIAS[0])
    builder.add_link(
        "rod", jdyn.Revolute((0, 1, 0)), parent="crank", placement=(CRANK, 0, 0), mass=MASSES[1], com=(ROD / 2, 0, 0),
        inertia=INERTIAS[1],
    )  # fmt: skip
    builder.add_frame("pin", "rod", (ROD, 0, 0))
    builder.add_link("slider", jdyn.Prismatic((1, 0, 0)), mass=MASSES[2])
    if beside:
        builder.add_link("pendulum", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(9.0, 0, 0), inertia=0.1)
    return builder.build()


def turned(omega, beside=False):
    """What turns the crank, and where the mechanism starts."""
    told = [
        jdyn.constraints.Connect("pin", "slider"),
        jdyn.constraints.PrescribedJoint("crank", Turning(jnp.asarray(omega))),
    ]
    q, v = jnp.array([0.0, 0.0, CRANK + ROD, 0.5]), omega * jnp.array([1.0, -1 - CRANK / ROD, 0.0, 0.0])
    return told, q[: 3 + beside], v[: 3 + beside]


def slid(angle):
    """Where the slider is."""
    return CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)


def slid_fast(angle, omega):
    """Its velocity."""
    return -CRANK * omega * np.sin(angle) * (1 + CRANK * np.cos(angle) / np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2))


def drive(angle, omega):
    """The torque that turns the crank at a constant speed: the slope of the mechanism's energy by its angle."""

    def energy(angle):
        def places(angle):
            rod = jnp.arcsin(CRANK / ROD * jnp.sin(angle))
            crank = CRANK * jnp.stack([jnp.cos(angle), -jnp.sin(angle)])
            middle = crank + ROD / 2 * jnp.stack([jnp.cos(rod), jnp.sin(rod)])
            return crank / 2, middle, jnp.stack([crank[0] + ROD * jnp.cos(rod), 0]), angle, rod

        (crank, rod, *_), rates = jax.jvp(places, (angle,), (omega,))
        kinetic = sum(m * rate @ rate for m, rate in zip(MASSES, rates, strict=False))
        kinetic += sum(inertia * rate**2 for inertia, rate in zip(INERTIAS, rates[3:], strict=True))
        return kinetic / 2 + G * (MASSES[0] * crank[1] + MASSES[1] * rod[1])

    return jax.vmap(jax.grad(energy))(jnp.asarray(angle))


@pytest.mark.parametrize(
    "beside",
    [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.exhaustive)],
    ids=["alone", "beside"],
)
def test_a_crank_that_is_turned_keeps_its_slider_where_it_belongs(beside):
    """Constraints leave nothing of an error in what is told, so that nothing else would hold its steps."""
    model, end = slider_crank(beside), 10.0
    for omega in (2.0, 20.0):
        told, q, v = turned(omega, beside)
        motion = jdyn.simulate(model, q, v, end, constraints=told)
        angle = omega * np.asarray(motion.ts)
        np.testing.assert_allclose(motion.q[:, 2], slid(angle), atol=1e-12)
        np.testing.assert_allclose(motion.v[:, 2], slid_fast(angle, omega), atol=1e-12 * omega)
        # No polynomial follows more than a quarter of a turn.
        assert int(motion.stats["accepted_steps"]) > end * omega / (2 * np.pi) * 4
        torque = motion.multipliers[:, 3]
        np.testing.assert_allclose(torque, drive(angle, omega), atol=1e-10 * omega**2)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "solver",
    [
        diffrax.Dopri5(),
        jdyn.solvers.ROSJ43(),
        jdyn.solvers.BulirschStoer(),
    ],
    ids=lambda s: type(s).__name__,
)
def test_other_solvers_follow_what_is_told(solver):
    model = slider_crank()
    told, q, v = turned(7.0)
    motion = jdyn.simulate(model, q, v, 5.0, constraints=told, solver=solver)
    np.testing.assert_allclose(motion.q[:, 2], slid(7 * np.asarray(motion.ts)), atol=1e-12)


@pytest.mark.slow
def test_single_precision_follows_what_is_told():
    model = slider_crank().astype(jnp.float32)
    told, q, v = turned(7.0)
    motion = jdyn.simulate(model, q.astype(jnp.float32), v.astype(jnp.float32), 60.0, constraints=told)
    # Angles of 420 rad are known to 3e-5, and times likewise.
    np.testing.assert_allclose(motion.q[:, 2], slid(7 * np.asarray(motion.ts, float)), atol=5e-5)


@pytest.mark.exhaustive
def test_events_and_derivatives_of_what_is_told():
    """The slider's way past a mark, and how its rows change with the crank's speed."""
    model, mark, ts = slider_crank(), 0.8, jnp.array([1.03, 2.7, 3.0])

    def run(omega):
        told, q, v = turned(omega)
        passing = jdyn.Event(lambda t, y: y.q[2] - mark, reset=lambda t, y: y)
        motion = jdyn.simulate(model, q, v, 3.0, constraints=told, events=[passing], saveat=ts, throw=False)
        return motion.q[:, 2], motion

    slopes, motion = jax.jit(jax.jacrev(run, has_aux=True))(7.0)
    passed = np.asarray(motion.events.ts[motion.events.which >= 0])
    assert len(passed) == 4
    np.testing.assert_allclose(slid(7 * passed), mark, atol=1e-9)
    expected = np.asarray(ts) * slid_fast(7 * np.asarray(ts), 1)
    # Those of rows within steps are of dense output.
    np.testing.assert_allclose(slopes, expected, atol=1e-4)
    np.testing.assert_allclose(slopes[-1], expected[-1], atol=1e-9)


def follower():
    """A heavy wheel and a light follower on its cam."""
    builder = jdyn.Builder("cam")
    builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=100.0)
    builder.add_link("follower", jdyn.Prismatic((0, 0, 1)), mass=1e-3)
    return builder.build(), [jdyn.constraints.Gear("follower", "wheel", CAM)]


CAM = (0.0, 0.3, -0.8, 0.1, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_a_cam_that_a_heavy_wheel_turns(tolerance):
    """The wheel feels nothing of its follower, and so does what constraints leave of an error. The follower's energy
    and weight are a hundred thousandth of the wheel's."""
    model, cam = follower()
    motion = jdyn.simulate(
        model, jnp.zeros(2), jnp.array([7.0, 2.1]), 2.0, constraints=cam,
        stepsize_controller=accuracy(jnp.asarray(tolerance)),
    )  # fmt: skip
    wheel, follower_q = np.asarray(motion.q).T
    np.testing.assert_allclose(follower_q, np.polyval(CAM[::-1], wheel), rtol=1e-13, atol=1e-13)
    energy = motion.energy
    np.testing.assert_allclose(energy, energy[0], rtol=100 * tolerance)


BASE = 0.1, 3.0


def moving_base():
    """A free body that moves along a circle, with a pendulum of a point mass of 1 kg that hangs from it by 0.7 m."""
    builder = jdyn.Builder("moving base")
    builder.add_link("base", jdyn.Free(), mass=3.0, inertia=0.1)
    builder.add_link("arm", jdyn.Revolute((0, 1, 0)), parent="base", mass=1.0, com=(0, 0, -0.7))
    radius, omega = BASE

    def pose(t):
        place = radius * jnp.stack([jnp.cos(omega * t), 0 * t, jnp.sin(omega * t)])
        return jdyn.Transform(jnp.eye(3), place)

    def rates(t, y):
        # The hinge's acceleration is −ω² times its place.
        across = -(omega**2) * radius * np.cos(omega * t)
        along = G - omega**2 * radius * np.sin(omega * t)
        return y[1], (across * np.cos(y[0]) - along * np.sin(y[0])) / 0.7

    def right(ts):
        solved = scipy.integrate.solve_ivp(rates, (0, ts[-1]), (0.3, 0.5), "DOP853", ts, rtol=1e-12, atol=1e-12)
        place = np.asarray(jax.vmap(pose)(ts).translation)
        return np.concatenate([place, solved.y[:1].T], 1)

    q = jnp.array([radius, 0, 0, 1, 0, 0, 0, 0.3])
    v = jnp.array([0, 0, 0, 0, 0, radius * omega, 0.5])
    return builder.build(), [jdyn.constraints.PrescribedFrame("base", pose)], q, v, right, np.array([0, 1, 2, 7])


class Reeled(jdyn.constraints.Constraint):
    """A rope from the origin whose length is told."""

    frames, joints = ("world", "point"), ()

    def residual(self, placed):
        apart = placed.frames[1].translation
        return ((apart @ apart - reel(placed.t) ** 2) / 2)[None]


def reel(t):
    return 1 + 0.3 * jnp.sin(4 * t)


def reeled():
    """A point of 2 kg on a rope that is hauled in and let out."""
    builder = jdyn.Builder("reeled")
    builder.add_link("carriage", jdyn.Prismatic((1, 0, 0)), armature=0.0)
    builder.add_link("point", jdyn.Prismatic((0, 0, 1)), parent="carriage", mass=2.0)

    def rates(t, y):
        length, rate = 1 + 0.3 * np.sin(4 * t), 1.2 * np.cos(4 * t)
        return y[1], -(2 * rate * y[1] + G * np.sin(y[0])) / length

    def right(ts):
        solved = scipy.integrate.solve_ivp(rates, (0, ts[-1]), (0.4, 0.2), "DOP853", ts, rtol=1e-12, atol=1e-12)
        return (np.asarray(reel(ts)) * [np.sin(solved.y[0]), -np.cos(solved.y[0])]).T

    down, along = np.array([np.sin(0.4), -np.cos(0.4)]), np.array([np.cos(0.4), np.sin(0.4)])
    return builder.build(), [Reeled()], jnp.asarray(down), jnp.asarray(1.2 * down + 0.2 * along), right, np.arange(2)


def coupled():
    """Two joints whose rates are told from each other, q̇₂ = cos(5 t) q̇₁ + sin(3 t), the first of which is told."""
    builder = jdyn.Builder("coupled")
    for name in ("one", "two"):
        builder.add_link(name, jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=0.3)

    def coefficients(placed):
        return (
            jnp.zeros((1, 0, 6)),
            jnp.stack([-jnp.cos(5 * placed.t), jnp.ones(())])[None],
            jnp.sin(3 * placed.t)[None],
        )

    def right(ts):
        ts = np.asarray(ts)
        return np.stack([2 * ts, 2 / 5 * np.sin(5 * ts) + (1 - np.cos(3 * ts)) / 3], 1)

    told = [
        jdyn.constraints.PrescribedJoint("one", Turning(jnp.asarray(2.0))),
        jdyn.constraints.VelocityCoupling((), ("one", "two"), coefficients),
    ]
    return builder.build(), told, jnp.zeros(2), jnp.array([2.0, 2.0]), right, np.arange(2)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", [moving_base, reeled, coupled])
def test_bases_ropes_and_couplings_that_are_told(case):
    """And what they drive, by SciPy; errors of a pendulum grow with time."""
    model, told, q, v, right, columns = case()
    for tolerance in TOLERANCES:
        motion = jdyn.simulate(
            model, q, v, 10.0, constraints=told, stepsize_controller=accuracy(jnp.asarray(tolerance)),
        )  # fmt: skip
        # Of what is left of an error, nothing is of first order.
        assert max(misses(model, told, motion)) < tolerance**2 + 1e-10
        np.testing.assert_allclose(motion.q[:, columns], right(motion.ts), atol=100 * tolerance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
def test_a_minute_of_cranks_at_any_speed_and_tolerance(beside):
    model, end = slider_crank(beside), 60.0
    inertia = 0.1 + 81.0

    def swung(ts):
        solved = scipy.integrate.solve_ivp(
            lambda _, y: (y[1], 9 * G * np.cos(y[0]) / inertia), (0, end), (0.5, 0.0), "DOP853", ts, rtol=1e-12,
            atol=1e-12,
        )  # fmt: skip
        return solved.y[0]

    @jax.jit
    def run(omega, tolerance):
        told, q, v = turned(omega, beside)
        return jdyn.simulate(
            model, q, v, end, constraints=told, stepsize_controller=accuracy(tolerance), max_steps=2**17, throw=False
        )

    for omega in (1.0, 7.0, 20.0, 100.0):
        for tolerance in TOLERANCES:
            motion = run(omega, tolerance)
            assert motion.success
            errors = [np.max(np.abs(motion.q[:, 2] - slid(omega * np.asarray(motion.ts))))]
            if beside:
                errors.append(np.max(np.abs(motion.q[:, 3] - swung(np.asarray(motion.ts)))))
            assert max(errors) < 100 * tolerance
