"""Actuators against closed forms and SciPy, and in systems."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from jax.test_util import check_grads

import jdyn
from jdyn.actuators import (
    Bristles,
    Cogging,
    DCMotor,
    Delay,
    ElasticDrive,
    Integrator,
    Lag,
    Motor,
    Muscle,
    OrientationServo,
    PIDServo,
    PositionServo,
    SlewLimit,
    Travel,
    VelocityServo,
    Winding,
)  # fmt: skip
from jdyn.transmissions import BallOrientation, FrameOrientation, GearedJoint

pytestmark = pytest.mark.fast_compile

TIGHT = {"stepsize_controller": diffrax.PIDController(rtol=1e-10, atol=1e-12)}
# A body of inertia one about a vertical axis.


def wheel():
    builder = jdyn.Builder("wheel")
    builder.add_link("disk", jdyn.Continuous((0, 0, 1)), joint_name="shaft", mass=1.0, inertia=(1.0, 1.0, 1.0))
    return builder.build()


WHEEL = wheel()
# The velocity of a ramp, beside its position and no force.
FEED = jnp.array([0.0, 0.3, 0.0])


def moved(actuators, command, t1, q0=0.0, model=WHEEL, **options):
    """Motion under constant commands."""
    commands = jdyn.control.Constant(jnp.atleast_1d(jnp.asarray(command, float)))
    system = jdyn.System(model, actuators=actuators, controller=commands)
    start = system.state(jnp.full(model.nq, q0))
    return jdyn.simulate(system, start, t1, saveat=jnp.linspace(0, t1, 11), **(TIGHT | options))


@pytest.mark.slow
def test_a_motor_reaches_its_speed_as_its_differential_equations_say():
    """The response to a step of voltage: two time constants, those of current and of speed, in closed form."""
    R, k, L, N, u = 0.5, 0.05, 0.02, 20.0, 12.0
    motor = DCMotor(GearedJoint("shaft", N), R, k, inductance=L)
    motion = moved([motor], u, 1.0, solver=jdyn.solvers.Rodas5P())
    # x = (i, ω of the wheel) obeys dx/dt = A x + b.
    A, b = np.array([[-R / L, -k * N / L], [k * N, 0.0]]), np.array([u / L, 0.0])
    values, vectors = np.linalg.eig(A)
    rest = -np.linalg.solve(A, b)
    growth = np.exp(np.outer(motion.ts, values))
    expected = rest + np.real((growth * np.linalg.solve(vectors, -rest)) @ vectors.T)
    np.testing.assert_allclose(motion.v[:, 0], expected[:, 1], atol=1e-7)
    np.testing.assert_allclose(motion.parts["controller"].actuators["shaft"][0], expected[:, 0], atol=1e-6)
    # Without an inductance there is one.
    at_once = moved([DCMotor(motor.transmission, R, k)], u, 1.0)
    np.testing.assert_allclose(at_once.v[:, 0], u / (k * N) * (1 - np.exp(-((k * N) ** 2) / R * at_once.ts)), atol=1e-8)


def test_a_stalled_winding_heats_up_to_where_it_loses_as_much():
    """At a constant current's resistance, R i² R_th over ambient; resistance grows by 0.393 % a degree."""
    winding = Winding(capacity=10.0, resistance=2.0, ambient=20.0)
    motor = DCMotor("shaft", 1.0, 1e-9, winding=winding)
    hot = moved([motor], 6.0, 400.0).parts["controller"].actuators["shaft"][1][-1]
    np.testing.assert_allclose(hot - 20, 36 * 2 / (1 + 0.00393 * (hot - 20)), rtol=1e-6)


def test_a_gear_loses_what_its_efficiency_says():
    motor = DCMotor("shaft", 1.0, 1.0, efficiency=0.8, friction_speed=1e-3)
    for speed, share in ((2.0, 0.8), (-2.0, 1.2)):
        command = 10.0 + speed
        assert np.isclose(motor.force(command, Travel(0.0, jnp.array(speed)), None), 10 * share)


def test_a_servo_finds_the_voltage_of_its_torque():
    """Without inductance and limits, motor and servo are the servo; at its limit a motor has the current of that."""
    servo = PIDServo("shaft", kp=3.0, ki=0.0, kd=0.5, inputs=("position", "velocity", "force"))
    motor, command = DCMotor("shaft", 2.0, 0.1, servo=servo), jnp.array([0.4, -0.2, 0.7])
    travel = Travel(jnp.array(0.1), jnp.array(0.3))
    wanted = 3 * 0.3 + 0.5 * -0.5 + 0.7
    np.testing.assert_allclose(motor.limited_force(command, travel, motor.start(travel)), wanted, rtol=1e-12)
    weak = DCMotor("shaft", 2.0, 0.1, servo=servo, voltage_range=(-5.0, 5.0))
    np.testing.assert_allclose(
        weak.limited_force(command, travel, weak.start(travel)), 0.1 * (5 - 0.03) / 2, rtol=1e-12
    )
    driven = DCMotor("shaft", 2.0, 0.1, inductance=0.1, servo=servo, winding=Winding(1.0, 1.0), current_rate=3.0)

    def torque(command, length, velocity):
        state = driven.start(Travel(length, velocity))._replace(current=jnp.array(1.3))
        rates = driven.limited_rate(command, Travel(length, velocity), state)
        return driven.limited_force(command, Travel(length, velocity), state) + rates.temperature

    check_grads(torque, (command, 0.1, 0.3), order=1, atol=1e-6, rtol=1e-6)


@pytest.mark.slow
def test_bristles_of_a_motor_are_those_of_its_joint():
    """Stick and slip of a wheel on a slow shaft, by the friction of the motor and by that of the joint."""
    numbers = {"coulomb": 0.5, "static": 0.9, "stribeck_speed": 0.05, "stiffness": 200.0, "damping": 2.0}
    pull = PositionServo("shaft", kp=4.0, activation=Integrator(), name="pull")
    solver = {"solver": jdyn.solvers.Rodas5P(), "max_steps": 20_000}
    motor = DCMotor("shaft", 1.0, 0.1, bristles=Bristles(**numbers))
    of_motor = moved([pull, motor], (0.2, 0.0), 10.0, **solver)
    silent = DCMotor("shaft", 1.0, 0.1, name="shaft")
    system = jdyn.System(
        WHEEL, actuators=[pull, silent], controller=jdyn.control.Constant(jnp.array([0.2, 0.0])),
        elements=[jdyn.elements.LuGreFriction("shaft", **numbers)],
    )  # fmt: skip
    of_joint = jdyn.simulate(system, system.state(), 10.0, saveat=jnp.linspace(0, 10.0, 11), **TIGHT, **solver)
    np.testing.assert_allclose(of_motor.q, of_joint.q, atol=1e-7)
    # It sticks first, and then follows.
    assert of_motor.q[1, 0] < 0.01 and of_motor.q[-1, 0] > 1.0


@pytest.mark.slow
def test_a_motor_cogs_into_its_notches():
    """From rest beside a notch it falls to the depth of that: ½ J ω² is the drop of A cos(n l) / n."""
    motion = moved([DCMotor("shaft", 1.0, 1e-9, cogging=Cogging(-2.0, 3.0))], 0.0, 2.0, q0=0.3)
    energy = 0.5 * motion.v[:, 0] ** 2 - 2 / 3 * jnp.cos(3 * motion.q[:, 0])
    np.testing.assert_allclose(energy, energy[0], atol=1e-8)
    assert jnp.max(jnp.abs(motion.v)) > 0.5


@pytest.mark.slow
def test_a_servo_has_its_bandwidth():
    """kp and kd on a wheel of inertia J: ω₀² = kp / J, and the response to a step of a critically damped one."""
    motion = moved([PositionServo("shaft", kp=25.0, kd=10.0)], 1.0, 2.0)
    np.testing.assert_allclose(motion.q[:, 0], 1 - (1 + 5 * motion.ts) * np.exp(-5 * motion.ts), atol=1e-8)
    slow = moved([VelocityServo("shaft", kd=4.0, activation=Lag(0.5))], 1.0, 2.0)
    # dv/dt = 4 (x − v), x = 1 − exp(−2 t): v = 1 − 2 exp(−2 t) + exp(−4 t).
    np.testing.assert_allclose(slow.v[:, 0], 1 - 2 * np.exp(-2 * slow.ts) + np.exp(-4 * slow.ts), atol=1e-8)


@pytest.mark.slow
def test_an_integral_leaves_no_error_and_a_set_point_slews():
    model = jdyn.load("pendulum")
    servo = PIDServo("joint1", kp=60.0, ki=60.0, kd=15.0)
    np.testing.assert_allclose(moved([servo], 1.0, 15.0, model=model).q[-1], 1.0, atol=1e-7)
    slewing = PIDServo("shaft", kp=1e4, ki=0.0, kd=2e2, slew=SlewLimit(0.5))
    motion = moved([slewing], 1.0, 1.0)
    np.testing.assert_allclose(motion.q[2:, 0], 0.5 * motion.ts[2:], atol=1e-7)


@pytest.mark.slow
def test_servos_take_several_commands():
    """A servo that knows the velocity of its goal follows a ramp without lag; each command pushes with its gain."""
    servo = PIDServo("shaft", kp=25.0, ki=0.0, kd=10.0, inputs=("position", "velocity", "force"))
    system = jdyn.System(WHEEL, actuators=[servo], controller=lambda t, q, v: jnp.array([0.3, 0.0, 0.0]) * t + FEED)
    motion = jdyn.simulate(system, system.state(jnp.zeros(1), jnp.full(1, 0.3)), 2.0, **TIGHT)
    np.testing.assert_allclose(motion.q[-1], 0.6, atol=1e-8)
    step = system.linearize_step(system.state(), dt=0.01)
    assert step.action_names == ("shaft.position", "shaft.velocity", "shaft.force")
    np.testing.assert_allclose(step.B[1] / step.B[1, 2], [25.0, 10.0, 1.0], rtol=1e-9)


def test_several_commands_have_names_and_limits():
    servo = PIDServo("shaft", kp=25.0, ki=0.0, kd=10.0, inputs=("position", "velocity"))
    limited = PIDServo("shaft", 1.0, 0.0, 1.0, inputs=("position", "velocity"), command_range=((-1.0, 1.0), (0.0, 9.0)))
    np.testing.assert_array_equal(limited.limited_command(jnp.array([2.0, -1.0])), [1.0, 0.0])
    system = jdyn.System(WHEEL, actuators=[servo, Motor("shaft", name="motor")])
    with pytest.raises(ValueError, match=r"expected shape \(3,\), a command for each actuator .* got \(2,\)"):
        system.step(system.state(), jnp.zeros(2))
    with pytest.raises(ValueError, match=r"expected 3 commands, .* shaft\.position, shaft\.velocity, motor, got"):
        system.but(controller=jdyn.control.Constant(jnp.zeros(2))).step(system.state())
    pair = jdyn.merge({"left": system, "right": system})
    with pytest.raises(ValueError, match=r"action: expected shape \(6,\)"):
        pair.step(pair.state(), jnp.zeros(4))
    with pytest.raises(ValueError, match=r'PIDServo\.inputs: expected some of "position", "velocity", "force", got'):
        PIDServo("shaft", 1.0, 0.0, inputs=("force", "position"))


def test_dead_time_is_that_of_many_lags():
    """Erlang's distribution: the mean of the response to a step is the delay, its variance delay² / lags."""
    ts = jnp.linspace(0, 1.0, 401)
    actuator = Motor("shaft", activation=Delay(0.2, lags=16))
    system = jdyn.System(WHEEL, actuators=[actuator], controller=jdyn.control.Constant(jnp.ones(1)))
    arrived = (
        jdyn.simulate(system, system.state(), 1.0, saveat=ts, **TIGHT).parts["controller"].actuators["shaft"][:, -1]
    )
    missing = 1 - np.asarray(arrived)
    np.testing.assert_allclose(np.trapezoid(missing, ts), 0.2, atol=1e-6)
    np.testing.assert_allclose(2 * np.trapezoid(missing * ts, ts) - 0.2**2, 0.2**2 / 16, atol=1e-5)


def test_activations_stay_in_their_range():
    motion = moved([Motor("shaft", activation=Integrator(range=(-1.0, 0.3)))], 1.0, 1.0)
    np.testing.assert_allclose(motion.parts["controller"].actuators["shaft"][-1], 0.3, atol=1e-7)
    np.testing.assert_allclose(motion.tau[-1, 0], 0.3, atol=1e-12)


def test_a_muscle_follows_the_curve_of_hill():
    """Isometric: its largest force at the optimum; isotonic: none at the largest rate of shortening."""
    muscle = Muscle("shaft", (0.0, 1.0), 100.0, operating_range=(0.5, 1.5))

    def at(L, V, x=1.0):
        return float(muscle.force(0.0, Travel(jnp.array(L - 0.5), jnp.array(1.5 * V)), jnp.array(x)))

    assert at(1.0, 0.0) == -100 and at(1.0, -1.0) == 0 and at(0.5, 0.0) == 0
    np.testing.assert_allclose(at(1.0, 5.0), -120)
    np.testing.assert_allclose(at(1.3, 0.0, x=0.0), -65)
    check_grads(lambda L, V: muscle.force(0.0, Travel(L, V), 0.7), (0.9, -0.2), order=1, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_an_elastic_drive_moves_as_two_masses_do(gap):
    """Rotor and wheel with a spring between, and with backlash, against SciPy."""
    drive = ElasticDrive(Motor("shaft"), inertia=0.5, stiffness=40.0, damping=0.3, friction=0.1, gap=gap)
    motion = moved([drive], 1.0, 2.0)

    def rate(t, x):
        (rotor, speed), (q, v) = x[:2], x[2:]
        stretch = rotor - q - np.clip(rotor - q, -gap / 2, gap / 2)
        coupling = 40 * stretch + 0.3 * (speed - v) * (stretch != 0 or gap == 0)
        return [speed, (1.0 - 0.1 * speed - coupling) / 0.5, v, coupling]

    exact = scipy.integrate.solve_ivp(rate, (0, 2), np.zeros(4), t_eval=motion.ts, rtol=1e-9, atol=1e-11, max_step=1e-3)
    np.testing.assert_allclose(motion.q[:, 0], exact.y[2], atol=1e-6 if gap else 1e-8)


def arm(kp, names=("joint1", "joint2"), **options):
    servos = [PositionServo(name, kp=kp, kd=5.0, **options) for name in names]
    return jdyn.System(jdyn.load("double_pendulum"), actuators=servos, controller=jdyn.control.Constant(jnp.ones(2)))


@pytest.mark.slow
def test_systems_with_actuators_are_varied_batched_and_differentiated():
    def end(kp):
        system = jdyn.vary(arm(50.0), {"actuators.joint2.kp": kp})
        return jdyn.simulate(system, system.state(), 0.5, saveat=diffrax.SaveAt(t1=True), **TIGHT).q[-1]

    check_grads(jax.jit(end), (60.0,), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)
    systems = jax.vmap(lambda kp: arm(kp, force_range=(-40.0, 40.0)))(jnp.array([20.0, 60.0]))
    start = arm(1.0).state()
    lanes = jdyn.simulate_batch(systems, start, 0.5, in_axes={"system": 0})
    one = jdyn.simulate(arm(60.0, force_range=(-40.0, 40.0)), start, 0.5)
    np.testing.assert_allclose(lanes.q[1, -1], one.q[-1], atol=1e-8)
    np.testing.assert_allclose(lanes.tau[1, 0], [40.0, 40.0])


@pytest.mark.slow
def test_saved_motions_know_their_actuators(tmp_path):
    system = arm(50.0, activation=Lag(0.1))
    motion = jdyn.simulate(system, system.state(), 0.5)
    motion.save(tmp_path / "motion.npz")
    loaded = jdyn.Trajectory.load(tmp_path / "motion.npz").with_system(system)
    np.testing.assert_allclose(loaded.tau, motion.tau, rtol=1e-12)
    np.testing.assert_allclose(loaded.accelerations, motion.accelerations, rtol=1e-12)
    # From the commands, through states of servos and springs of their own.
    np.testing.assert_allclose(motion.tau[0], 0, atol=1e-12)


def test_stiff_servos_take_few_steps():
    """Solvers are implicit in them, each in its joint."""
    motion = moved([PositionServo("shaft", kp=1e6, kd=1e5)], 0.5, 2.0, stepsize_controller=None)
    assert motion.stats["implicit_steps"] > 0 and motion.stats["accepted_steps"] < 80
    np.testing.assert_allclose(motion.q[-1, 0], 0.5, atol=1e-4)


@pytest.mark.slow
def test_steps_take_commands():
    system = arm(50.0)
    after, _ = system.step(system.state(), [0.5, 0.0], dt=0.01)
    both = system.but(controller=jdyn.control.Constant(jnp.array([1.5, 1.0])))
    expected, _ = both.step(both.state(), dt=0.01)
    np.testing.assert_array_equal(after.q, expected.q)
    free = system.but(controller=None)
    np.testing.assert_array_equal(free.step(free.state(), [1.5, 1.0], dt=0.01)[0].q, expected.q)


@pytest.mark.slow
def test_commands_are_planned():
    cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    final = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 0.5, v]))
    system = jdyn.System(jdyn.load("pendulum"), actuators=[PositionServo("joint1", kp=50.0, kd=10.0)])
    plan = jdyn.ilqr(system, cost, final, system.state(), jnp.zeros((30, 1)), 0.02)
    np.testing.assert_allclose(plan.q[-1], 0.5, atol=1e-3)


def test_what_does_not_fit_is_said():
    with pytest.raises(ValueError, match=r"actuators: several are called joint1; give each a name=\.\.\. of its own"):
        arm(1.0, names=("joint1", "joint1"))
    with pytest.raises(ValueError, match=r"expected 2 commands, one for each of the actuators joint1, joint2, got .*3"):
        system = arm(1.0).but(controller=jdyn.control.Constant(jnp.zeros(3)))
        jdyn.simulate(system, arm(1.0).state(), 0.1)
    with pytest.raises(ValueError, match=r"action: expected shape \(2,\), a command for each actuator .* got \(1,\)"):
        arm(1.0).step(arm(1.0).state(), [1.0])
    with pytest.raises(ValueError, match="elbow"):
        jdyn.simulate(arm(1.0, names=("joint1", "elbow")), arm(1.0).state(), 0.1)
    for wrong, expected in (
        (
            lambda: Motor("shaft", force_range=(1.0, -1.0)),
            r"force_range: expected a lower limit and an upper one, .* got",
        ),
        (lambda: GearedJoint("shaft", 0.0), "a gear of zero moves nothing, got 0.0 for joint 'shaft'"),
        (lambda: Lag(-0.1), "Lag.time_constant: expected a positive number, got -0.1"),
        (lambda: DCMotor("shaft", 0.0, 1.0), "DCMotor.resistance: expected a positive number, got 0.0"),
        (lambda: PositionServo("shaft", np.nan), "PositionServo.kp: expected finite numbers, got nan"),
    ):
        with pytest.raises(ValueError, match=expected):
            wrong()
    with pytest.raises(ValueError, match="actuators: expected a list of them, such as"):
        jdyn.System(WHEEL, actuators=Motor("shaft"))
    with pytest.raises(ValueError, match="transmission: expected the name of a joint"):
        Motor(3.0)


def top():
    """A body on a ball joint that would turn about any axis as easily."""
    builder = jdyn.Builder("top", gravity=(0.0, 0.0, 0.0))
    builder.add_link("body", jdyn.Ball(), joint_name="ball", mass=1.0, inertia=(2.0, 2.0, 2.0))
    return builder.build()


@pytest.mark.slow
def test_an_orientation_is_reached_by_the_shortest_way():
    """About one axis: J d²α/dt² = −kp α − kd dα/dt, critically damped; a command of 3π/2 is one of −π/2."""
    servo = OrientationServo(BallOrientation("ball"), kp=50.0, kd=20.0)
    axis = np.array([2.0, -1.0, 2.0]) / 3
    aligned = jdyn.System(top(), actuators=[servo], controller=jdyn.control.Constant(jnp.asarray(1.5 * np.pi * axis)))
    turns = jdyn.simulate(aligned, aligned.state(), 2.0, saveat=jnp.linspace(0, 2, 11), **TIGHT)
    angle = -0.5 * np.pi * (1 - (1 + 5 * turns.ts) * np.exp(-5 * turns.ts))
    half = np.concatenate([np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None] * axis], axis=1)
    np.testing.assert_allclose(np.abs(np.sum(turns.q * half, axis=1)), 1, atol=1e-12)


def test_orientations_have_finite_slopes():
    """At the goal, half a turn away, and without a command; limits keep the direction."""
    servo = OrientationServo(BallOrientation("ball"), kp=3.0, kd=1.0, largest=2.0)
    given = OrientationServo(FrameOrientation("body"), kp=3.0, command="quaternion")

    def torque(command, length, actuator):
        return actuator.limited_force(command, Travel(length, jnp.zeros(3)), None)

    zero, half = jnp.zeros(3), jnp.array([0.0, np.pi, 0.0])
    for command, length, actuator in ((zero, zero, servo), (half, zero, servo), (jnp.zeros(4), zero, given)):
        slopes = jax.jit(jax.jacfwd(lambda *at, actuator=actuator: torque(*at, actuator), (0, 1)))(command, length)
        assert all(np.isfinite(x).all() for x in slopes)
    np.testing.assert_allclose(torque(half, zero, servo), [0, 2, 0], atol=1e-12)
    with pytest.raises(ValueError, match=r"OrientationServo\.transmission: expected an orientation"):
        OrientationServo(GearedJoint("ball"), kp=1.0)
    with pytest.raises(ValueError, match=r"BallOrientation: expected a ball joint, got 'shaft', a Continuous"):
        wrong = jdyn.System(WHEEL, actuators=[OrientationServo(BallOrientation("shaft"), kp=1.0)])
        wrong.step(wrong.state())


def test_a_printed_motion_says_that_nobody_commanded():
    servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=10.0, name="servo")
    system = jdyn.System(jdyn.load("pendulum"), actuators=[servo])
    told = system.but(controller=jdyn.control.Constant(jnp.zeros(1)))
    silent, commanded, bare = (
        repr(jdyn.simulate(each, each.state(), 0.01)) for each in (system, told, system.but(actuators=()))
    )
    assert silent.endswith("coordinates; no controller, so the commands of servo are zero>")
    assert commanded.endswith("coordinates>") and bare.endswith("coordinates>")
