"""Joints at the ends of their ranges, against SciPy, closed forms and the laws of impact."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jdyn

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)
WALLS = (-0.5, 1.0)


def slider():
    """A mass of 2 kg on a rail between walls, without gravity."""
    properties = dict(lower=WALLS[0], upper=WALLS[1])
    builder = jdyn.Builder("slider", gravity=(0, 0, 0))
    builder.add_link("mass", jdyn.Prismatic((1, 0, 0)), mass=2.0, inertia=[0.1] * 3, **properties)
    return builder.build()


@pytest.mark.slow
def test_compliant_limits_against_scipy():
    """The slider meets a spring of k = 2 kg (50 rad/s)², c = 0.2 s/m, δ₀ = 3 mm."""
    limits = jdyn.CompliantLimits(frequency=50.0, dissipation=0.2, onset=3e-3)
    ts = jnp.linspace(0, 3, 31)
    found = jdyn.simulate(slider(), [0.0], [1.5], 3.0, joint_limits=limits, stepsize_controller=TIGHT, saveat=ts)

    def rate(t, y):
        over, under = (x**2 / (x + 3e-3) for x in (max(y[0] - WALLS[1], 0), max(WALLS[0] - y[0], 0)))
        return [y[1], 50**2 * (under * max(1 - 0.2 * y[1], 0) - over * max(1 + 0.2 * y[1], 0))]

    exact = scipy.integrate.solve_ivp(
        rate, (0, 3), [0.0, 1.5], method="DOP853", rtol=1e-11, atol=1e-12, max_step=1e-3, t_eval=np.asarray(ts)
    )
    np.testing.assert_allclose(found.q[:, 0], exact.y[0], rtol=0, atol=1e-7)
    # Two springs met, and of a speed u about 1 - 2/3 c u is left each time; the next term is of the order (c u)².
    speed, left = 1.5, abs(float(found.v[-1, 0]))
    expected = speed
    for _ in range(2):
        expected *= 1 - 2 / 3 * 0.2 * expected
    assert abs(left - expected) < speed * (0.2 * speed) ** 2


def test_stops_neither_pull_nor_jump():
    model = slider()
    stops = jdyn.CompliantLimits(frequency=50.0, dissipation=0.5).stops(model)
    depths, speeds = jnp.meshgrid(jnp.linspace(-0.1, 0.1, 21), jnp.linspace(-20, 20, 21))
    force = jax.jit(jnp.vectorize(lambda x, v: stops.generalized(model, 0.0, x[None] + WALLS[1], v[None])[0]))(
        depths, speeds
    )
    assert np.all(force <= 0) and np.all(force[depths <= 0] == 0) and np.any(force < 0)
    slope = jax.jit(jax.jacfwd(lambda q: stops.generalized(model, 0.0, q, jnp.ones(1))))
    for where in (0.0, WALLS[0], WALLS[1]):
        assert slope(jnp.array([where])) == 0


@pytest.fixture(scope="module")
def bounces():
    """The slider between its walls, with the derivatives of its end by its start and the restitution."""

    def run(v0, restitution):
        limits = jdyn.ImpactLimits(restitution=restitution)
        return jdyn.simulate(slider(), [0.0], v0[None], 3.0, joint_limits=limits, max_events=8)

    def end(v0, restitution):
        return run(v0, restitution).q[-1, 0]

    arguments = jnp.array(1.6), jnp.array(0.7)
    return run(*arguments), jax.grad(end, (0, 1))(*arguments)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_impacts_between_walls_in_closed_form(bounces):
    trajectory, gradient = bounces
    v, e, length = 1.6, 0.7, WALLS[1] - WALLS[0]
    first = WALLS[1] / v
    second = first + length / (e * v)
    np.testing.assert_allclose(trajectory.events.ts[:2], [first, second], rtol=1e-12)
    assert trajectory.events.which[:3].tolist() == [0, 0, -1]
    assert trajectory.events.entry[:3].tolist() == [0, 1, -1]  # the upper end, then the lower one
    np.testing.assert_allclose(trajectory.q[-1], WALLS[0] + e**2 * v * (3 - second), rtol=1e-12)
    # By v: e² (3 - second) + e² v (first + length / (e v)) / v; by e likewise.
    by_v = e**2 * (3 - second) + e**2 * second
    by_e = 2 * e * v * (3 - second) + e**2 * v * length / (e**2 * v)
    np.testing.assert_allclose(gradient, [by_v, by_e], rtol=1e-10)


def arm():
    """Two links and a slider that follows the elbow at twice its pace, whose end comes first."""
    builder = jdyn.Builder("arm")
    link = dict(mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), **link, lower=-2.0, upper=2.0)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0, 0, -0.5), **link)
    builder.add_link("probe", jdyn.Prismatic((0, 0, 1)), parent="lower", mass=0.3, lower=-1.0, upper=0.8,
                     mimic=jdyn.Mimic("lower", 2.0, 0.1))  # fmt: skip
    return builder.build()


@pytest.mark.slow
def test_an_impact_obeys_its_laws():
    """At the end of a joint's range its speed turns by e, and the momentum changes along that coordinate only."""
    model, e = arm(), 0.6
    q0, v0 = jnp.array([1.2, -0.3]), jnp.array([0.5, 2.0])
    limits = jdyn.ImpactLimits(restitution=e)

    def run(t1):
        options = dict(joint_limits=limits, solver=diffrax.Tsit5(), stepsize_controller=TIGHT)
        return jdyn.simulate(model, q0, v0, t1, max_events=4, **options)

    trajectory = run(1.0)
    happened = trajectory.events
    assert happened.entry[0] == 2  # coordinates are upper, lower, probe; their upper ends come first
    assert trajectory.success
    t, q, after = happened.ts[0], happened.q[0], happened.v[0]
    just_before = run(t * (1 - 1e-10))
    assert just_before.events.which[0] == -1
    before = just_before.v[-1]
    np.testing.assert_allclose(model.expand(q)[2], 0.8, rtol=1e-12)
    np.testing.assert_allclose(after[1], -e * before[1], rtol=1e-7)
    impulse = jdyn.mass_matrix(model, q) @ (after - before)
    assert abs(impulse[0]) < 1e-7 * abs(impulse[1])


@pytest.mark.slow
def test_a_joint_comes_to_rest_on_its_end():
    """Bounces that become ever smaller end on the spring, not in an endless number of impacts."""
    builder = jdyn.Builder("rod")
    builder.add_link(
        "rod", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=[0.01] * 3, lower=0.5, upper=3.0
    )
    model, limits = builder.build(), jdyn.ImpactLimits(restitution=0.5)
    trajectory = jdyn.simulate(model, [1.5], [0.0], 8.0, joint_limits=limits)
    assert trajectory.success and np.sum(trajectory.events.which >= 0) > 3
    weight, depth = 9.81 * 0.5 * np.sin(0.5), 0.5 - 1e-4 - trajectory.q[-1, 0]
    np.testing.assert_allclose(100**2 * 0.26 * depth**2 / (depth + 1e-3), weight, rtol=1e-2)
    assert abs(trajectory.v[-1, 0]) < 1e-3
    rest = trajectory.accelerations[-1, 0]
    assert abs(rest) < 1e-2 * weight / 0.26


@pytest.mark.slow
def test_a_joint_rests_on_its_end_under_a_force():
    """Rounding of an impact lets it leave with 1e-15 rad/s at most, and a torque brings it back at the same instant."""
    model = jdyn.load("pendulum").with_joint("joint1", lower=-0.2, upper=3.0)

    def rested(restitution, torque, rtol):
        limits = jdyn.ImpactLimits(restitution=restitution)
        steps = diffrax.PIDController(rtol=rtol, atol=rtol / 100)
        motion = jdyn.simulate(
            model, jnp.array([1.0]), jnp.zeros(1), 3.0, controller=jdyn.control.Constant(torque[None]),
            joint_limits=limits,
            stepsize_controller=steps, saveat=diffrax.SaveAt(t1=True), throw=False,
        )  # fmt: skip
        return motion.result, motion.q[0, 0]

    every = jnp.meshgrid(jnp.array([0.0, 1e-18, 0.3]), -3 - jnp.arange(4.0), jnp.array([1e-3, 3e-4, 1e-4]))
    results, ends = jax.jit(jax.vmap(rested))(*(x.reshape(-1) for x in every))
    assert np.all(results == jdyn.Result.success)
    np.testing.assert_allclose(ends, -0.2, atol=5e-3)


def test_without_the_option_joints_pass_their_limits():
    motion = jdyn.simulate(slider(), [0.0], [1.5], 3.0, solver=diffrax.Tsit5())
    assert motion.q[-1, 0] == pytest.approx(4.5)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_infinite_ranges_and_quaternions_are_left_alone():
    """A free body with a hinge: springs act on the hinge if it has an end."""
    builder = jdyn.Builder("body", gravity=(0, 0, 0))
    builder.add_link("hull", jdyn.Free(), mass=2.0, inertia=(0.03, 0.07, 0.09))
    builder.add_link("arm", jdyn.Revolute((1, 0, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    model = builder.build()
    q0, v0 = model.neutral(), jnp.ones(model.nv)
    plain = jdyn.simulate(model, q0, v0, 1.0)
    for limits in (jdyn.CompliantLimits(), jdyn.ImpactLimits()):
        np.testing.assert_allclose(jdyn.simulate(model, q0, v0, 1.0, joint_limits=limits).q, plain.q, atol=1e-12)
    limited = model.with_joint("arm", upper=0.2)
    held = jdyn.simulate(limited, q0, v0, 1.0, joint_limits=jdyn.CompliantLimits())
    assert jnp.max(held.q[:, -1]) < 0.25 < jnp.max(plain.q[:, -1])


def two_sliders(**second):
    """Two masses on rails of their own, with walls for the first."""
    builder = jdyn.Builder("rails", gravity=(0, 0, 0))
    for name, ends in (("a", dict(lower=WALLS[0], upper=WALLS[1])), ("b", second)):
        builder.add_link(name, jdyn.Prismatic((1, 0, 0)), mass=2.0, inertia=[0.1] * 3, **ends)
    return builder.build()


@pytest.mark.slow
def test_joints_that_arrive_at_once_all_bounce():
    model, limits = two_sliders(lower=WALLS[0], upper=WALLS[1]), jdyn.ImpactLimits(restitution=0.5)
    motion = jdyn.simulate(model, jnp.zeros(2), jnp.full(2, 1.6), 1.0, joint_limits=limits, solver=diffrax.Tsit5())
    np.testing.assert_allclose(motion.v[-1], [-0.8, -0.8], rtol=1e-12)
    np.testing.assert_allclose(motion.q[-1], 1 - 0.8 * (1 - 1 / 1.6), rtol=1e-12)
    assert sorted(motion.events.entry[:2].tolist()) == [0, 1] and motion.events.which[2] == -1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_lane_without_an_impact_and_a_joint_without_an_end_have_gradients():
    """Steps of at most 0.05 s make those of both lanes coincide."""
    model, limits = two_sliders(), jdyn.ImpactLimits(restitution=0.5)
    steps = diffrax.PIDController(rtol=1e-6, atol=1e-8, dtmax=0.05)

    def end(v0):
        motion = jdyn.simulate(model, jnp.zeros(2), v0, 1.0, joint_limits=limits, stepsize_controller=steps)
        return jnp.sum(motion.q[-1])

    gradients = jax.jit(jax.vmap(jax.grad(end)))(jnp.array([[1.6, 0.1], [0.3, 0.1]]))
    # q = 1 - e v (1 - 1 / v) after the bounce.
    np.testing.assert_allclose(gradients, [[-0.5, 1], [1, 1]], rtol=1e-10)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: jdyn.ImpactLimits(restitution=2.0), "restitution: expected a number from 0 to 1, got 2.0"),
        (lambda: jdyn.ImpactLimits(restitution=jnp.ones(2)), "restitution: expected a number from 0 to 1"),
        (lambda: jdyn.ImpactLimits(resting_speed=-1.0), "resting_speed: expected a number that is not negative"),
        (lambda: jdyn.CompliantLimits(frequency=-100.0), "frequency: expected a positive number, got -100.0"),
        (lambda: jdyn.CompliantLimits(dissipation=-0.1), "dissipation: expected a number that is not negative"),
        (lambda: jdyn.CompliantLimits(onset=0.0), "onset: expected a positive number, got 0.0"),
        (lambda: jdyn.CompliantLimits(onset=float("nan")), "onset: expected a positive number, got nan"),
        (lambda: jdyn.simulate(slider(), [0.0], [1.0], 1.0, joint_limits="impact"), "joint_limits: expected jdyn.Com"),
        (
            lambda: jdyn.simulate(slider(), [0.0], [1.0], -1.0, joint_limits=jdyn.ImpactLimits()),
            "joint_limits: impacts happen forwards in time, expected t1 after t0 = 0.0, got -1.0",
        ),
    ],
)
def test_bad_limits_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.slow
def test_a_mechanism_without_ranges_has_nothing_to_hold():
    builder = jdyn.Builder("body", gravity=(0, 0, 0))
    builder.add_link("hull", jdyn.Free(), mass=2.0, inertia=(0.03, 0.07, 0.09))
    model = builder.build()
    arguments = model, model.neutral(), jnp.ones(6), 0.2
    plain = jdyn.simulate(*arguments)
    for limits in (jdyn.CompliantLimits(), jdyn.ImpactLimits()):
        # Another program may round otherwise.
        np.testing.assert_allclose(jdyn.simulate(*arguments, joint_limits=limits).q, plain.q, rtol=0, atol=1e-14)
