"""Numbers that no mechanism can have: refused by name on the host, a code where simulations are traced."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

PENDULUM = jdyn.load("double_pendulum")
TEXT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="{radius}"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="{x} 0 0"/></joint></robot>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, value, message",
    [
        ("body:link2.mass", -5.0, r"body 'link2': mass is -5.0, expected a number that is not negative"),
        ("body:link2.com", [0, 0, np.nan], r"body 'link2': com is .* expected finite numbers"),
        ("body:link2.inertia", -np.eye(3), r"body 'link2': principal moments of inertia are -1, -1, -1"),
        ("body:link2.inertia", np.triu(np.ones((3, 3))), r"body 'link2': the inertia matrix is not symmetric"),
        ("joint:joint1.damping", -1.0, r"joint 'joint1': damping is -1.0, expected a number that is not negative"),
        ("joint:joint1.friction_speed", 0.0, r"joint 'joint1': friction_speed is 0.0, expected a positive number"),
        ("joint:joint1.axis", np.zeros(3), r"joint 'joint1': axis is zero, expected a direction"),
        ("joint:joint1.effort", -1.0, r"joint 'joint1': effort is -1.0, .* or infinity"),
        ("joint:joint1.translation", [np.inf, 0, 0], r"joint 'joint1': translation is .* expected finite numbers"),
        ("gravity", [0, 0, np.nan], r"^gravity is .* expected finite numbers"),
    ],
)
def test_changed_copies_refuse_numbers_by_name(name, value, message):
    with pytest.raises(ValueError, match=message):
        jdyn.vary(PENDULUM, {name: value})


def test_a_body_refuses_a_negative_mass_by_name():
    with pytest.raises(ValueError, match=r"body 'link2': mass is -5, expected a number that is not negative"):
        PENDULUM.with_body("link2", mass=-5)


def test_shapes_refuse_numbers_by_name():
    model = jdyn.with_ground(jdyn.load("quadruped"))
    shape = next(entry.name for entry in model.shapes.entries if entry.role == "collision" and entry.kind == "sphere")
    for what, value in (("size", -0.1), ("friction", -0.5), ("translation", [0, np.inf, 0])):
        with pytest.raises(ValueError, match=f"collision '{shape}': {what} is .* expected"):
            jdyn.vary(model, {f"collision:{shape}.{what}": value})


def test_a_range_moves_beyond_the_old_one_and_stays_in_order():
    moved = jdyn.vary(jdyn.load("cartpole"), {"joint:rail.lower": 5.0, "joint:rail.upper": 6.0})
    assert moved.limits.lower[0] == 5 and moved.limits.upper[0] == 6
    with pytest.raises(ValueError, match=r"joint 'rail': lower limit \[7.\] is above the upper limit \[6.\]"):
        moved.with_joint("rail", lower=7.0)


@pytest.mark.parametrize(
    "values, name", [(("1e39", "0.1"), "joint:j.translation"), (("0", "1e39"), "collision:b.size")]
)
def test_numbers_that_single_precision_cannot_hold_are_refused_at_loading(values, name):
    text = TEXT.format(x=values[0], radius=values[1])
    jdyn.load(text, dtype=jnp.float64)
    with pytest.raises(jdyn.ModelError, match=f"in float32, {name} is inf, expected"):
        jdyn.load(text, dtype=jnp.float32)


@pytest.mark.slow
def test_traced_numbers_end_simulations_at_once_with_a_code():
    @jax.vmap
    def run(mass, damping, lower):
        model = jdyn.vary(PENDULUM, {"body:link2.mass": mass, "joint:joint1.damping": damping})
        model = jdyn.vary(model, {"joint:joint2.lower": lower, "joint:joint2.upper": 1.0})
        motion = jdyn.simulate(model, PENDULUM.neutral(), jnp.zeros(2), 0.1, throw=False)
        return motion.result, motion.stats["accepted_steps"] + motion.stats["rejected_steps"]

    bad = jdyn.Result.bad_model
    result, tries = run(
        jnp.array([1.0, -5.0, jnp.nan, 1.0, 1.0]),
        jnp.array([0.0, 0.0, 0.0, -1.0, 0.0]),
        jnp.array([-1.0, -1.0, -1.0, -1.0, 2.0]),
    )
    assert result.tolist() == [jdyn.Result.success, bad, bad, bad, bad]
    assert np.all(tries[1:] == 0)


@pytest.mark.slow
def test_failed_simulations_name_what_is_wrong():
    bad = dataclasses.replace(PENDULUM, armature=PENDULUM.armature.at[1].set(-2.0))
    with pytest.raises(jdyn.SimulationError, match=r"no mechanism has these numbers.*joint:joint2.armature is -2.0"):
        jdyn.simulate(bad, bad.neutral(), jnp.zeros(2), 0.1)
    builder = jdyn.Builder("brick")
    builder.add_link("brick", jdyn.Free(), mass=1.0, inertia=(1.0, 1.0, 1.0))
    brick = builder.build()
    with pytest.raises(jdyn.SimulationError, match=r"q0 is no configuration.*Look at brick\[3\], brick\[4\]"):
        jdyn.simulate(brick, jnp.zeros(7), jnp.zeros(6), 0.1)


@pytest.mark.parametrize("name", jdyn.ROBOTS)
def test_all_bundled_robots_are_possible(name):
    from jdyn.model.values import impossible, possible

    model = jdyn.load(name)
    assert impossible(model) == [] and possible(model.without_shapes(), model.shapes)


def test_a_speed_that_is_no_number_has_its_own_code():
    motion = jdyn.simulate(PENDULUM, PENDULUM.neutral(), jnp.array([0.0, jnp.nan]), 0.1, throw=False)
    assert motion.result == jdyn.Result.nonfinite and motion.stats["rejected_steps"] == 0
