"""Scenes of MuJoCo files: forces of actuators, rates of activations, sensors and accelerations are MuJoCo's."""

import ast
import pathlib
import re
import warnings

import diffrax
import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.actuators import Actuators
from jdyn.elements import Elements
from tests.io.test_mjcf import to_mujoco

pytestmark = pytest.mark.fast_compile

KINDS = """<mujoco><option gravity="0 0 -9.81"><flag contact="disable"/></option>
<worldbody>
  <body name="base" pos="0 0 1"><freejoint/><geom size="0.1"/><site name="thruster" pos="0.1 0 0.1" euler="20 30 40"/>
    <body name="a" pos="0.1 0 0"><joint name="a" axis="0 1 0" range="-1 1" actuatorfrcrange="-3 2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="b" pos="0.3 0 0"><joint name="b" axis="0 0 1" ref="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <body name="c" pos="0.3 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size="0.05"/>
          <body name="d" pos="0.1 0 0"><joint name="d" type="ball"/><geom size="0.05" pos="0.1 0 0"/></body>
        </body></body></body></body>
</worldbody>
<actuator>
  <motor name="motor" joint="a" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
  <position name="position" joint="b" kp="20" kv="2" forcerange="-8 9"/>
  <velocity name="velocity" joint="b" kv="3"/>
  <intvelocity name="intvelocity" joint="b" kp="4" actrange="-1 1"/>
  <damper name="damper" joint="c" kv="5" ctrlrange="0 1"/>
  <cylinder name="cylinder" joint="c" timeconst="0.2" area="2" bias="0.1 0.2 0.3"/>
  <muscle name="muscle" joint="c" lengthrange="-0.5 0.5" timeconst="0.02 0.05" tausmooth="0.3"/>
  <muscle name="scaled" joint="b" lengthrange="-0.5 0.5" force="30"/>
  <general name="general" joint="b" gear="0.5" dyntype="filterexact" dynprm="0.1" gaintype="affine" gainprm="2 0.3 0.4"
    biastype="affine" biasprm="0.5 -1 -2"/>
  <motor name="ball" joint="d" gear="0.1 0.2 0.3"/>
  <general name="site" site="thruster" gear="0.1 0.2 0.3 0.4 0.5 0.6"/>
</actuator>
<sensor>
  <actuatorpos actuator="general"/><actuatorvel actuator="general"/><actuatorfrc actuator="position"/>
  <actuatorfrc actuator="muscle"/><jointactuatorfrc joint="b"/><jointactuatorfrc joint="a"/>
</sensor></mujoco>"""


TRANSMISSIONS = """<mujoco><option gravity="0 0 -9.81"><flag contact="disable"/></option>
<worldbody>
  <site name="ground" pos="0.3 -0.2 0.1" euler="40 20 -30"/>
  <body name="base" pos="0 0 1"><freejoint name="base/free"/><geom size="0.1"/>
    <site name="left" pos="0 0.2 0" euler="10 70 30"/>
    <body name="a" pos="0.1 0 0"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="b" pos="0.3 0 0"><joint name="b" type="ball"/><geom size="0.05" pos="0.1 0 0"/>
        <site name="hand" pos="0.1 0.05 0" euler="-20 30 80"/></body></body>
    <body name="c" pos="-0.1 0 0"><joint name="c" axis="0 0 1"/><geom size="0.05" pos="0 0.1 0"/>
      <site name="end" pos="0.05 0.1 0"/></body></body>
</worldbody>
<actuator>
  <motor name="crank" cranksite="end" slidersite="left" cranklength="0.9" gear="2"/>
  <position name="piston" cranksite="hand" slidersite="ground" cranklength="30" kp="3" kv="0.2"/>
  <motor name="short" cranksite="hand" slidersite="end" cranklength="1e-3"/>
  <general name="pulled" site="hand" refsite="end" gear="0.1 0.2 0.3 0.4 0.5 0.6" biastype="affine"
    biasprm="0.3 -2 -0.1"/>
  <position name="placed" site="hand" refsite="ground" gear="0 1 0 0 0 0" kp="4"/>
  <position name="turned" site="hand" refsite="left" gear="0 0 0 0.3 0.8 -0.5" kp="4" kv="0.3"/>
  <intvelocity name="turning" site="end" refsite="hand" gear="0 0 0 0.3 0.8 -0.5" kp="4" actrange="-1 1"/>
  <position name="ball" joint="b" gear="0.4 -0.6 0.9" kp="3" kv="0.1"/>
  <position name="ball in parent" jointinparent="b" gear="0.4 -0.6 0.9" kp="3"/>
  <motor name="torque" joint="base/free" gear="0 0 0 0.1 0.2 0.3"/>
  <motor name="force" joint="base/free" gear="0.4 0.5 0.6 0 0 0"/>
  <motor name="wrench" jointinparent="base/free" gear="0.4 0.5 0.6 0.1 0.2 0.3"/>
</actuator>
<sensor>
  <actuatorpos actuator="crank"/><actuatorvel actuator="crank"/><actuatorpos actuator="piston"/>
  <actuatorvel actuator="piston"/><actuatorpos actuator="pulled"/><actuatorvel actuator="pulled"/>
  <actuatorpos actuator="turned"/><actuatorvel actuator="turned"/><actuatorpos actuator="short"/>
  <actuatorfrc actuator="ball"/><actuatorfrc actuator="turned"/><actuatorvel actuator="ball in parent"/>
</sensor></mujoco>"""

STEP = 0.01
DRIVES = f"""<mujoco><option timestep="{STEP}"><flag contact="disable"/></option>
<worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body pos="0.3 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size="0.05"/></body></body></body>
</worldbody>
<actuator>
  <pid name="plain" joint="a" kp="3" kv="2" input="pos"/>
  <pid name="both" joint="a" kp="3" kv="2" ctrlrange="-1 1" gear="2" forcerange="-4 5"/>
  <pid name="velocity" joint="a" kp="0" kv="2" input="vel"/>
  <pid name="wound" joint="b" kp="3" kv="2" ki="1.5" imax="0.4" input="pos"/>
  <pid name="slewing" joint="b" kp="3" kv="2" ki="1.5" slewmax="60" input="pos ff" forcerange="-9 9"/>
  <pid name="all" joint="c" kp="3" kv="2" ki="1.5" imax="3" slewmax="90" input="pos vel ff"/>
  <dcmotor name="bare" joint="a" motorconst="0.1 0.2" resistance="2" gear="3"/>
  <dcmotor name="limited" joint="a" motorconst="0.1" resistance="2" saturation="0.05 0 0" cogging="0.3 2 1"/>
  <dcmotor name="warm" joint="b" motorconst="0.1" resistance="2" thermal="1.5 2 0 0.05 20 23"/>
  <dcmotor name="slow" joint="b" motorconst="0.1" resistance="2" inductance="0.3" saturation="0.05 0 0.2"/>
  <dcmotor name="rough" joint="c" motorconst="0.1" resistance="2" lugre="11 12 13 14 15"/>
  <dcmotor name="driven" joint="c" motorconst="0.1" resistance="2" controller="1 0 3 0 0 12" input="pos vel ff"
    thermal="1.5 2 0 0.05 20 23"/>
  <dcmotor name="everything" joint="a" motorconst="0.1" resistance="2" controller="1 2 3 70 0.5 60" input="pos"
    inductance="0.3" cogging="0.3 2 1" lugre="11 12 13 14 15"/>
</actuator>
<sensor><actuatorfrc actuator="all"/><actuatorpos actuator="everything"/><actuatorfrc actuator="driven"/></sensor>
</mujoco>"""

ORIENTATIONS = (
    TRANSMISSIONS[: TRANSMISSIONS.index("<actuator>")]
    + """<actuator>
  <orientation name="ball" joint="b" kp="3" kv="0.4"/>
  <motor name="between" joint="a"/>
  <orientation name="hand" site="hand" refsite="end" kp="2" kv="0.3" input="quat"/>
  <orientation name="weak" site="hand" refsite="ground" kp="5" forcerange="0 2"/>
</actuator>
<sensor><jointactuatorfrc joint="a"/><ballangvel joint="b"/><actuatorfrc actuator="weak"/>
  <actuatorpos actuator="hand"/><actuatorvel actuator="between"/></sensor></mujoco>"""
)

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
# Rounding of some tens of bodies, relative to the largest entry.
TOLERANCE = 1e-11


def systems(source):
    """The system and MuJoCo's model of a file, without constraints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        system = jdyn.load_system(source)
    whole = isinstance(source, pathlib.Path)
    compiled = mujoco.MjModel.from_xml_path(str(source)) if whole else mujoco.MjModel.from_xml_string(source)
    compiled.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return system.but(contact=None, joint_limits=None, constraints=()), compiled


@jax.jit
def ours(system, q, v, commands, activations):
    """Generalized forces of actuators, rates of activations by name, accelerations, and values of sensors."""
    system = system.but(controller=jdyn.control.Constant(commands))
    driver, state = system.driver(), system.state(q, v)
    if "controller" in state.parts:
        memory = state.parts["controller"]._replace(actuators=activations)
        state = jdyn.State(q, v, state.parts | {"controller": memory})
    memory = state.parts.get("controller")
    tau, rate = driver.force(0.0, q, v, memory), driver.rate(jnp.zeros(()), q, v, memory)
    total = tau + Elements(system.elements).force(system.model, 0.0, q, v) if system.elements else tau
    a = jdyn.forward_dynamics(system.model, q, v, total)
    return tau, {} if rate is None else rate.actuators, a, system.sense(state)


def assert_as_in_mujoco(source, count=50):
    system, compiled = systems(source)
    assert (len(system.actuators), len(system.sensors)) == (compiled.nactuator, compiled.nsensor)
    data, rng, model = mujoco.MjData(compiled), np.random.default_rng(0), system.model
    names = [compiled.actuator(i).name or f"actuator{i}" for i in np.flatnonzero(compiled.actuator_actnum)]
    for _ in range(count):
        mujoco.mj_resetData(compiled, data)
        mujoco.mj_integratePos(compiled, data.qpos, rng.normal(size=compiled.nv), 1.0)
        data.qvel[:], data.ctrl[:] = rng.normal(size=compiled.nv), 2 * rng.normal(size=compiled.nu)
        data.act[:] = rng.uniform(-0.5, 1, size=compiled.na)
        mujoco.mj_forward(compiled, data)
        T, free = to_mujoco(compiled, data.qpos)
        qacc = data.qacc.copy()
        v = T.T @ data.qvel
        for dof in free:
            qacc[dof : dof + 3] -= T[dof : dof + 3, dof + 3 : dof + 6] @ np.cross(
                v[dof : dof + 3], v[dof + 3 : dof + 6]
            )
        activations = dict(zip(names, jnp.asarray(data.act), strict=True))
        tau, rates, a, seen = ours(system, jnp.asarray(data.qpos), jnp.asarray(v), jnp.asarray(data.ctrl), activations)
        assert_close(tau, T.T @ data.qfrc_actuator, "forces of actuators")
        assert_close([rates[name] for name in names], data.act_dot, "rates of activations")
        assert_close(a, T.T @ qacc, "accelerations")
        for sensor, name in enumerate(sensor.name for sensor in system.sensors):
            start = compiled.sensor_adr[sensor]
            assert_close(seen[name], np.squeeze(data.sensordata[start : start + compiled.sensor_dim[sensor]]), name)
    return model


def assert_close(got, expected, what):
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * scale, err_msg=what)


@pytest.mark.slow
def test_all_kinds():
    assert_as_in_mujoco(KINDS)


def drive_states(actuator, numbers, reached=None):
    """A state as jdyn has it from MuJoCo's numbers: those that a drive has of slew, integral, temperature, bristles and
    current. The set point that slews may have moved on already."""
    motor, left = isinstance(actuator, jdyn.actuators.DCMotor), list(numbers)
    servo = actuator.servo if motor else actuator
    state = None
    if isinstance(servo, jdyn.actuators.PIDServo):
        goal = left.pop(0) if servo.slew is not None else None
        goal = goal if reached is None or goal is None else reached
        state = (servo.ki * left.pop(0) if servo.ki else 0.0, goal)
    if not motor:
        return state
    temperature = left.pop(0) + actuator.winding.ambient if actuator.winding else None
    bending = left.pop(0) if actuator.bristles else None
    current = left.pop(0) if actuator.inductance is not None else None
    state = jdyn.actuators.MotorState(current, temperature, bending, state)
    return state if jax.tree.leaves(state) else None


def drive_rates(actuator, rate):
    """MuJoCo's rates from jdyn's."""
    servo = getattr(actuator, "servo", actuator)
    motor = rate if isinstance(actuator, jdyn.actuators.DCMotor) else jdyn.actuators.MotorState(servo=rate)
    integral, goal = motor.servo if isinstance(servo, jdyn.actuators.PIDServo) else (None, None)
    integral = integral / servo.ki if integral is not None and servo.ki else None
    return [x for x in (goal, integral, motor.temperature, motor.bending, motor.current) if x is not None]


@pytest.mark.slow
def test_all_drives():
    """Servos and motors of MuJoCo 4. Its servos act by the set point at the end of a step, and so do jdyn's here; its
    motors do so by the current there, unless `actearly` is off."""
    system, compiled = systems(DRIVES)
    compiled.actuator_actearly[:] = 0
    data, rng = mujoco.MjData(compiled), np.random.default_rng(0)
    names = [compiled.actuator(i).name for i in range(compiled.nactuator)]
    assert [each.name for each in system.actuators] == names and len(system.sensors) == compiled.nsensor
    for _ in range(50):
        mujoco.mj_resetData(compiled, data)
        data.qpos[:], data.qvel[:] = rng.normal(size=compiled.nq), rng.normal(size=compiled.nv)
        data.ctrl[:], data.act[:] = 2 * rng.normal(size=compiled.nu), rng.uniform(-0.5, 1, size=compiled.na)
        for name, place, limit in (("wound", 0, 0.4), ("everything", 1, 0.5)):
            # Integrals get no farther than to their limits.
            integral = compiled.actuator_actadr[names.index(name)] + place
            data.act[integral] = np.clip(data.act[integral], -limit, limit)
        mujoco.mj_forward(compiled, data)
        begun, moved = {}, {}
        for i, (name, actuator) in enumerate(zip(names, system.actuators, strict=True)):
            first = max(compiled.actuator_actadr[i], 0)
            numbers = data.act[first : first + compiled.actuator_actnum[i]]
            state = drive_states(actuator, numbers)
            if state is not None:
                begun[name] = jax.tree.map(jnp.asarray, state)
                reached = numbers[0] + STEP * data.act_dot[first] if len(numbers) else None
                moved[name] = jax.tree.map(jnp.asarray, drive_states(actuator, numbers, reached))
        q, v, commands = jnp.asarray(data.qpos), jnp.asarray(data.qvel), jnp.asarray(data.ctrl)
        tau, later, a, seen = ours(system, q, v, commands, moved)
        _, rates, _, _ = ours(system, q, v, commands, begun)
        assert_close(tau, data.qfrc_actuator, "forces of actuators")
        assert_close(a, data.qacc, "accelerations")
        assert_close([seen[each.name] for each in system.sensors], data.sensordata, "sensors")
        for i, (name, actuator) in enumerate(zip(names, system.actuators, strict=True)):
            if name in begun:
                slews = getattr(getattr(actuator, "servo", actuator), "slew", None) is not None
                found = drive_rates(actuator, later[name])
                found = [drive_rates(actuator, rates[name])[0], *found[1:]] if slews else found
                first = compiled.actuator_actadr[i]
                assert len(found) == compiled.actuator_actnum[i]
                assert_close(np.array(found), data.act_dot[first : first + len(found)], name)


@pytest.mark.slow
@pytest.mark.parametrize("file", [TRANSMISSIONS, ORIENTATIONS], ids=["lengths", "orientations"])
def test_all_transmissions(file):
    assert_as_in_mujoco(file)


@pytest.mark.slow
@pytest.mark.parametrize("file", [DRIVES, TRANSMISSIONS, ORIENTATIONS], ids=["drives", "lengths", "orientations"])
def test_forces_in_single_precision(file):
    """Forces, and their slopes by commands, beside those in double precision, and rates of states in one type."""

    def pushed(dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jdyn.ModelWarning)
            system = jdyn.load_system(file, dtype=dtype)
        rng, model = np.random.default_rng(0), system.model
        q = model.integrate(model.neutral(), jnp.asarray(rng.normal(size=model.nv), dtype))
        v, count = jnp.asarray(rng.normal(size=model.nv), dtype), len(Actuators(system.actuators).command_names)

        def force(commands):
            driver, t = system.but(controller=jdyn.control.Constant(commands)).driver(), jnp.zeros((), dtype)
            memory = driver.start(t, q, v)
            tau = driver.force(t, q, v, memory)
            return tau, (tau, driver.rate(t, q, v, memory))

        return jax.jit(jax.jacfwd(force, has_aux=True))(jnp.asarray(rng.normal(size=count), dtype))

    (slopes, (force, _)), (single_slopes, single) = pushed(jnp.float64), pushed(jnp.float32)
    assert {x.dtype for x in jax.tree.leaves((single_slopes, single))} == {jnp.dtype(jnp.float32)}
    for got, expected in ((single_slopes, slopes), (single[0], force)):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * max(1, np.max(np.abs(expected))))


@pytest.mark.slow
def test_a_medium_and_carried_weight():
    flow = KINDS.replace('<option gravity="0 0 -9.81">', '<option density="120" viscosity="0.9" wind="1 2 3">')
    lifted = flow.replace('<body name="b"', '<body name="b" gravcomp="0.7"').replace(
        '<body name="d"', '<body name="fixed" gravcomp="1.5"><geom size="0.02" pos="0 0.1 0"/></body><body name="d"'
    )
    with_weight, _ = systems(lifted)
    kinds = [type(element) for element in with_weight.elements]
    assert kinds == [jdyn.elements.CarriedWeight, jdyn.elements.Medium]
    assert_as_in_mujoco(lifted, count=20)


@pytest.mark.parametrize("file", ["swimmer", "ant", "humanoid", pytest.param("walker2d", marks=pytest.mark.slow)])
def test_files_of_gymnasium(file):
    assert_as_in_mujoco(ASSETS / f"{file}.xml", count=10)


@pytest.mark.slow
@pytest.mark.parametrize("file", [KINDS, ASSETS / "humanoid.xml"], ids=["kinds", "humanoid"])
def test_motions_are_those_of_mujoco(file):
    """Half a second under constant commands, without constraints, beside MuJoCo's Runge-Kutta steps of 0.1 ms."""
    system, compiled = systems(file)
    compiled.opt.integrator, compiled.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), 1e-4
    data, commands = mujoco.MjData(compiled), 0.2 * np.cos(np.arange(compiled.nu))
    start, data.ctrl[:] = data.qpos.copy(), commands
    for _ in range(5000):
        mujoco.mj_step(compiled, data)
    system = system.but(controller=jdyn.control.Constant(commands))
    tight = diffrax.PIDController(rtol=1e-9, atol=1e-11)
    motion = jdyn.simulate(system, system.state(jnp.asarray(start)), 0.5, stepsize_controller=tight)
    turns = data.qpos[3:7] * np.sign(data.qpos[3:7] @ motion.q[-1, 3:7])
    expected = np.concatenate([data.qpos[:3], turns, data.qpos[7:]])
    # Where a limit begins to hold, a step of h = 0.1 ms is wrong by some h² times the jump of the acceleration's rate.
    np.testing.assert_allclose(motion.q[-1], expected, atol=1e-6)


def test_what_is_not_read_is_named():
    text = KINDS.replace(
        "</actuator>",
        """
        <adhesion name="glue" body="a" ctrlrange="0 1"/>
        <general name="late" joint="a" dyntype="integrator" actearly="true"/>
        <motor name="root" joint="base/free" gear="1 0 0 0 1 0"/><motor name="idle" joint="a" gear="0"/>
        <general name="shifted" joint="d" gear="1 0 0" gainprm="2" biastype="affine" biasprm="1 -2 0"/></actuator>""",
    )
    text = text.replace("<freejoint/>", '<freejoint name="base/free"/>')
    with pytest.warns(jdyn.ModelWarning) as said:
        system = jdyn.load_system(text)
    message = str(said[0].message)
    assert "actuators root (a force along axes of the world with a torque about those of the" in message
    assert "idle (GearedJoint: a gear of zero moves nothing" in message
    assert "shifted (a bias beside a set point that repeats" in message
    assert "actearly of actuators late" in message
    # Two act on joint a, so that its limit is no longer that of one.
    assert "limits of the force of all actuators of joints a" in message
    assert len(system.actuators) == 13
    with pytest.warns(jdyn.ModelWarning, match=r"more; jdyn\.load_system reads them"):
        jdyn.load(KINDS)
    drives = DRIVES.replace(
        "</actuator>",
        """
        <dcmotor name="short" joint="b" motorconst="1" resistance="1" input="none"/>
        <dcmotor name="hot" joint="b" motorconst="1" resistance="1" inductance="1" thermal="1 2 0 0.05 20 20"/>
        <general name="made up" joint="b" gaintype="pid" gainprm="0" biastype="affine" biasprm="1 -2 -3"/>
        </actuator>""",
    )
    named = (
        r"short \(no command\), hot \(the inductance of a winding that heats\), made up \(a constant force of a servo\)"
    )
    with pytest.warns(jdyn.ModelWarning, match=named):
        jdyn.load_system(drives)


class Counted(jdyn.Controller):
    """Commands that grow with the number of steps, each at its rate."""

    step: float

    def __call__(self, t, q, v):
        return (1 + jnp.round(t / self.step)) * jnp.arange(1.0, 5.0)


def test_commands_are_as_late_as_in_mujoco_if_held_as_the_warning_says():
    step, histories = 0.002, ('delay="0.01" nsample="9"', "", 'delay="0.005" nsample="9"', 'delay="0.004" nsample="2"')
    joints = "".join(f'<body><joint name="j{i}" type="slide"/><geom size="0.1"/></body>' for i in range(4))
    motors = "".join(f'<motor name="m{i}" joint="j{i}" {history}/>' for i, history in enumerate(histories))
    text = f"""<mujoco><option timestep="{step}"/><worldbody>{joints}</worldbody><actuator>{motors}</actuator>
      <default><geom contype="0"/></default></mujoco>"""
    with pytest.warns(jdyn.ModelWarning, match="delay of actuators m0, m2, m3; ") as said:
        system = jdyn.load_system(text)
    advice = re.search(r"ZeroOrderHold\(\.\.\., period=(.+?), delay=(\(.+?\))\) delays", str(said[0].message))
    assert advice is not None
    period, delay = map(ast.literal_eval, advice.groups())
    held = jdyn.control.ZeroOrderHold(Counted(step), period, delay)
    ts = step * (0.5 + jnp.arange(20.0))
    motion = jdyn.simulate(system.but(controller=held), system.state(), 20 * step, saveat=ts)
    m, forces = mujoco.MjModel.from_xml_string(text), []
    d = mujoco.MjData(m)
    for k in range(20):
        d.ctrl[:] = (1 + k) * np.arange(1.0, 5.0)
        mujoco.mj_step(m, d)
        forces.append(d.actuator_force.copy())
    # Until the first command arrives it acts here, and none in MuJoCo.
    np.testing.assert_array_equal(motion.tau[5:], forces[5:])
    with pytest.raises(ValueError, match="expected one for each of 4 outputs"):
        jdyn.simulate(
            system.but(controller=jdyn.control.ZeroOrderHold(Counted(step), step, (1, 2))), system.state(), 0.1
        )
    with pytest.raises(ValueError, match="expected a number of periods, or one for each output"):
        jdyn.control.ZeroOrderHold(Counted(step), step, (1, -2))
