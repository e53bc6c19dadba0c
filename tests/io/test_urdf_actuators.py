"""Actuators of URDF files: forces and travels by the formulas of ROS, real robots, and what is refused."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.transmissions import Travels
from tests.io.test_malformed_urdf import joint, link, robot
from tests.reference.example_robots import FOLDER

pytestmark = pytest.mark.fast_compile

NAMES = ("a", "b", "c", "d", "e")


def limit(effort="20"):
    return f'<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="{effort}" velocity="3"/>'


def arm(more, in_joint=None):
    """A chain of five revolute joints; what is under test goes in."""
    in_joint = {} if in_joint is None else in_joint
    links = "".join(link(f"link_{name}") for name in ("0", *NAMES))
    pairs = zip(NAMES, ("0", *NAMES[:-1]), strict=True)
    joints = "".join(joint(name, f"link_{p}", f"link_{name}", in_joint.get(name, limit())) for name, p in pairs)
    return robot(links + joints + more)


def simple(of="a", reduction="50", interface="EffortJointInterface", name="motor"):
    return (
        f'<transmission name="t_{name}"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="{of}"><hardwareInterface>{interface}</hardwareInterface></joint>'
        f'<actuator name="{name}"><mechanicalReduction>{reduction}</mechanicalReduction></actuator></transmission>\n'
    )


def control(*joints, more=""):
    return f'<ros2_control name="r" type="system"><hardware/>{"".join(joints)}{more}</ros2_control>\n'


def controlled(of="a", interfaces="", more="", attributes=""):
    return f'<joint name="{of}" {attributes}>{interfaces}{more}<state_interface name="position"/></joint>'


def command(name="effort", more=""):
    return f'<command_interface name="{name}">{more}</command_interface>'


def parameter(name, value):
    return f'<param name="{name}">{value}</param>'


def two(kind, first="a", second="b", roles=("actuator1", "actuator2")):
    """A transmission of two joints, which are listed the other way round."""
    return (
        f'<transmission name="two"><plugin>transmission_interface/{kind}</plugin>'
        f'<joint name="{second}" role="joint2"><mechanical_reduction>-3</mechanical_reduction><offset>1</offset>'
        "</joint>"
        f'<joint name="{first}" role="joint1"><mechanical_reduction>2</mechanical_reduction></joint>'
        f'<actuator name="left" role="{roles[0]}"><mechanical_reduction>5</mechanical_reduction></actuator>'
        f'<actuator name="right" role="{roles[1]}"><mechanical_reduction>7</mechanical_reduction></actuator>'
        "</transmission>"
    )


def warned(text):
    """A system, and the one warning about its file; empty if there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jdyn.ModelWarning)
        system = jdyn.load_system(text)
    # Those about hulls come when collision shapes of real robots are looked at.
    words = [str(each.message) for each in caught if "touches as this hull" not in str(each.message)]
    assert len(words) <= 1
    return system, "".join(words)


def test_forces_and_travels_of_transmissions():
    """Positions and efforts of actuators and joints are those of ROS; both formats and that of the PR2 in one file."""
    of_pr2 = (
        '<transmission type="pr2_mechanism_model/SimpleTransmission" name="t"><actuator name="pr2"/><joint name="e"/>'
        "<mechanicalReduction>-4</mechanicalReduction></transmission>"
    )
    four_bar = two("FourBarLinkageTransmission", "c", "d").replace("left", "near").replace("right", "far")
    blocks = control(*(controlled(name, command()) for name in NAMES[:2]), more=two("DifferentialTransmission"))
    system, words = warned(arm(blocks + four_bar.replace("two", "other") + of_pr2))
    assert [each.name for each in system.actuators] == ["left", "right", "near", "far", "pr2"]
    q = jnp.array([0.1, 0.2, 0.3, 0.4, 0.5])
    travels = jax.jit(lambda q: Travels.at([each.transmission for each in system.actuators], system.model, q, q))(q)
    a, b, c, d, e = np.asarray(q)
    expected = [5 * (2 * a - 3 * b), 7 * (2 * a + 3 * b), 5 * 2 * c, 7 * (c - 3 * d), -4 * e]
    np.testing.assert_allclose(travels.lengths, expected, rtol=1e-12)
    f = np.arange(1.0, 6.0)
    left, right, near, far, pr2 = f
    # ROS 2: joint_effort of differential_transmission.hpp, and of four_bar_linkage_transmission.hpp since 2025.
    torques = [
        2 * (5 * left + 7 * right), -3 * (5 * left - 7 * right), 2 * 5 * near + 7 * far, -3 * 7 * far, -4 * pr2,
    ]  # fmt: skip
    np.testing.assert_allclose(travels.generalized(f), torques, rtol=1e-12)
    assert system.actuators[4].force_range.tolist() == [-5, 5] and system.actuators[0].force_range is None
    assert "limits of effort of joints that several actuators move: 'a', 'b', 'c', 'd'" in words
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jdyn.load(arm(blocks + of_pr2))


def test_limits_are_those_of_the_actuator():
    limits = parameter("min", "-10") + parameter("max", "30")
    gear = simple(reduction="-10", interface="hardware_interface/EffortJointInterface")
    system, words = warned(arm(control(controlled("a", command(more=limits))) + gear + simple("b", "4", name="second")))
    first, second = system.actuators
    assert not words and (first.name, second.name) == ("motor", "second")
    assert first.transmission.gear == -10 and first.force_range.tolist() == [-2, 2]
    assert first.command_range.tolist() == [-3, 1] and second.command_range is None
    off = control(controlled("a", command(more=limits + '<limits enable="false"/>')))
    free = arm(off, {"a": '<limit lower="-2" upper="2" velocity="3" effort="1e308"/>'})
    (motor,) = warned(free)[0].actuators
    assert motor.command_range is None and motor.force_range is None and motor.name == "a"


def test_interfaces_without_gains_are_named_and_get_motors():
    system, words = warned(
        arm(
            control(controlled("a", command("position") + command("velocity")), controlled("b"))
            + simple("c", "1", "PositionJointInterface", "third")
            + simple("d", "1", "JointStateInterface", "silent")
        )
    )
    assert [(type(each).__name__, each.name) for each in system.actuators] == [("Motor", "a"), ("Motor", "third")]
    assert (
        "without gains, in whose place actuators take forces: position of 'a', velocity of 'a', position of 'c'"
        in words
    )
    assert "without a command interface: 'silent'" in words


def test_gains_make_servos():
    of_a = (
        parameter("pos_kp", 50)
        + parameter("pos_ki", 5)
        + parameter("pos_kd", 2)
        + parameter("pos_max_integral_error", 3)
    )
    of_b = command("position", parameter("p", 40) + parameter("d", 1) + parameter("min", -1) + parameter("max", 1))
    system, words = warned(
        arm(
            control(
                controlled("a", command("position_pid") + command("velocity"), of_a),
                controlled("b", of_b),
                controlled("c", command("velocity"), parameter("vel_kp", 6)),
                controlled("d", command("velocity"), parameter("vel_kp", 6) + parameter("vel_ki", 1)),
            )
            + simple("b", "100", name="geared")
        )
    )
    pid, servo, speed, motor = sorted(system.actuators, key=lambda each: each.transmission.joint)
    assert [type(each).__name__ for each in (pid, servo, speed, motor)] == [
        "PIDServo", "PositionServo", "VelocityServo", "Motor",
    ]  # fmt: skip
    assert (pid.kp, pid.ki, pid.kd, *pid.integral_range) == (50, 5, 2, -3, 3)
    assert (servo.name, servo.transmission.gear, servo.kp, servo.kd, *servo.command_range) == (
        "geared",
        1,
        40,
        1,
        -1,
        1,
    )
    assert speed.kd == 6 and speed.force_range.tolist() == [-20, 20]
    assert "beside those of actuators: velocity of 'a'" in words and "derivative gains of velocities: 'd'" in words


def test_joints_that_follow_others():
    leader, follower = (
        controlled("a", command()),
        controlled("b", "", parameter("mimic", "a") + parameter("multiplier", -2)),
    )
    system, words = warned(arm(control(leader, follower)))
    (gear,) = system.constraints
    assert (gear.follower, gear.leader, *gear.coefficients) == ("b", "a", 0, -2) and len(system.actuators) == 1
    assert not words
    exact = {"b": limit() + '<mimic joint="a" multiplier="-2"/>'}
    also = control(leader, follower.replace("<param", '<command_interface name="position"/><param', 1))
    system, words = warned(arm(also, exact))
    assert not words and not system.constraints and system.model.nv == 4 and len(system.actuators) == 1
    both = warned(arm(control(leader, controlled("b", command())) + simple("b", name="own"), exact))[0]
    assert [each.name for each in both.actuators] == ["a", "own"]
    assert "commands of joints that follow others: 'b'" in warned(arm(control(controlled("b", command())), exact))[1]
    other = control(leader, follower.replace("-2", "3"), controlled("c", attributes='mimic="false"'))
    assert "of joints that have another <mimic>: 'b'" in warned(arm(other, exact))[1]


def test_everything_else_is_named_once():
    text = arm(
        control(controlled("a", command()), more='<sensor name="imu"/><gpio name="lamp"/>')
        + control(controlled("a", command()))
        + '<transmission name="wrist" type="WristTransmission"/>'
        + '<transmission name="cable"><type>company/CableTransmission</type></transmission>'
        + simple("nowhere", name="lost")
        + simple("fixed", name="stuck")
        + simple("b", name="twin").replace("</actuator>", "<motorTorqueConstant>1</motorTorqueConstant></actuator>")
        + simple("c", name="twin")
        + simple("c", name="twin")
        + link("end")
        + joint("fixed", "link_e", "end", "", "fixed")
    )
    system, words = warned(text)
    assert [each.name for each in system.actuators] == ["a", "b", "c", "c1"]
    for phrase in (
        "in <ros2_control>: <sensor> 'imu', <gpio> 'lamp'",
        "joints that are in <ros2_control> again: 'a'",
        "transmissions of type 'WristTransmission': 'wrist'",
        "transmissions of type 'CableTransmission': 'cable'",
        "actuators on joints that the robot lacks: 'nowhere'",
        "actuators on fixed joints: 'fixed'",
        "unknown to jdyn: <motorTorqueConstant> in <actuator>",
        "that transmissions share actuators: 'twin'",
    ):
        assert words.count(phrase) == 1, words


REFUSED = {
    "reduction in words": (simple(reduction="fifty"), ["actuator 'motor' (line 13)", "'fifty'", "other than zero"]),
    "no reduction": (simple(reduction="0"), ["actuator 'motor'", "'0'", "other than zero"]),
    "infinite reduction": (simple(reduction="1e400"), ["actuator 'motor'", "1e400"]),
    "no type": ('<transmission name="t"><joint name="a"/></transmission>', ["transmission 't' (line 13)", "no type"]),
    "two joints": (
        simple().replace("<actuator", '<joint name="b"/><actuator'),
        ["transmission 't_motor'", "has 2 <joint>, expected 1"],
    ),
    "no actuator": (
        '<transmission name="t"><type>SimpleTransmission</type><joint name="a"/></transmission>',
        ["has 0 <actuator>, expected 1"],
    ),
    "actuator without a name": (simple(name=" "), ["its <actuator> on line 13 has no name"]),
    "roles": (
        two("DifferentialTransmission", roles=("left", "actuator2")),
        ["'left'", "expected actuator1 and actuator2"],
    ),
    "one role": (two("DifferentialTransmission", roles=("actuator1",) * 2), ["expected actuator1 and actuator2"]),
    "one joint twice": (two("FourBarLinkageTransmission", "a", "a"), ["transmission 'two'", "joint 'a' twice"]),
    "products of reductions": (
        two("DifferentialTransmission").replace(">5<", ">1e200<").replace(">2<", ">1e200<"),
        ["transmission 'two'", "zero or infinite"],
    ),
    "joint without a name": (control("<joint/>"), ["joint '' (line 13)", "has no name"]),
    "limits in words": (
        control(controlled("a", command(more=parameter("min", "{-pi}")))),
        ["command_interface 'effort'", "parameter min of joint 'a' is '{-pi}'"],
    ),
    "limits the wrong way round": (
        control(controlled("a", command(more=parameter("min", 1) + parameter("max", -1)))),
        ["min, 1, is above max, -1"],
    ),
    "gains in words": (
        control(controlled("a", command("position"), parameter("pos_kp", "stiff"))),
        ["kp of joint 'a'"],
    ),
    "negative gains": (
        control(controlled("a", command("position_pid", parameter("kp", -1)))),
        ["kp of joint 'a' is neg"],
    ),
    "nobody to follow": (control(controlled("a", "", parameter("mimic", "z"))), ["joint 'a' (line 13)", "mimics 'z'"]),
    "itself to follow": (control(controlled("a", "", parameter("mimic", "a"))), ["mimics 'a'"]),
    "a ratio in words": (
        control(controlled("a", "", parameter("mimic", "b") + parameter("multiplier", "half"))),
        ["parameter multiplier is 'half'"],
    ),
    "mimic of nothing": (control(controlled("a", attributes='mimic="true"')), ["joint 'a'", "has no <mimic>"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name, tmp_path):
    text, phrases = REFUSED[name]
    file = tmp_path / "robot.urdf"
    file.write_text(arm(text))
    with pytest.raises(jdyn.ModelError) as caught:
        jdyn.load_system(file)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert jdyn.load(file).nv == 5


# Numbers of actuators, and gears; those of Talos' head are of a type that only PAL Robotics documents.
ROBOTS = {
    "talos_data/robots/talos_full_v2.urdf": (30, {1.0}),
    "pr2_description/urdf/pr2.urdf": (14, {-52143.33, 6.0, -6.05, -36.167452007}),
    "tiago_pro_description/robots/tiago_pro.urdf": (23, {1.0}),
    "xarm_description/urdf/xarm7.urdf": (7, {100.0}),
    "kinova_description/robots/kinova.urdf": (6, {160.0}),
}


@pytest.mark.parametrize("file", ROBOTS)
def test_real_robots(file):
    count, gears = ROBOTS[file]
    system, _ = warned(FOLDER / file)
    assert len(system.actuators) == count
    found = {float(each.transmission.gear) for each in system.actuators if hasattr(each.transmission, "gear")}
    assert gears <= found
    limited = [each for each in system.actuators if each.force_range is not None]
    assert all(0 < each.force_range[1] < 1e4 for each in limited) and len(limited) > count / 2


def described():
    """Files that say something of actuators."""
    texts = {file: file.read_text(errors="replace") for file in sorted(FOLDER.rglob("*.urdf"))}
    return [file for file, text in texts.items() if "<transmission" in text or "<ros2_control" in text]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("file", described(), ids=lambda file: file.stem)
def test_all_real_robots(file):
    system, _ = warned(file)
    assert system.actuators and all(each.name for each in system.actuators)
