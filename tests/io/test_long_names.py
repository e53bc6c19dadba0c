"""Messages about files whose names and values are very long."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.terminal.messages import LONGEST, LONGEST_WORD, MOST, known, readable, unknown

NAME = "x" * 300_000
LIST = "1 " * 150_000
LINKS = '<link name="a"/><link name="b"/>'
JOINT = '<joint name="{}" type="fixed"><parent link="a"/><child link="{}"/>{}</joint>'


@pytest.mark.parametrize(
    "robot",
    [
        LINKS + JOINT.format(NAME, "c", ""),
        LINKS + JOINT.format("j", NAME, ""),
        LINKS + JOINT.format("j", "b", f'<origin xyz="{LIST}"/>'),
        f'<link name="a"/><{NAME}/>',
        f'<link name="a" {NAME}="1"/>',
        f'<link name="a"><visual><geometry><mesh filename="{NAME}"/></geometry></visual></link>',
        f'<link name="{NAME}"><inertial><mass value="-1"/></inertial></link>',
    ],
)
def test_messages_stay_short(tmp_path, robot):
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{robot}</robot>')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jdyn.load(path)
            messages = []
        except jdyn.ModelError as error:
            messages = [str(error)]
    messages += [str(warning.message) for warning in caught]
    assert messages and max(map(len, messages)) < 2 * LONGEST_WORD


def test_readable_messages_keep_both_ends():
    assert readable("a short message of two lines:\n  - one") == "a short message of two lines:\n  - one"
    assert readable(f"body '{NAME}y': wrong").endswith("xy': wrong")
    assert len(readable(LIST)) <= LONGEST


ARM = jdyn.load("double_pendulum")
LEGS = jdyn.with_ground(jdyn.load("quadruped"))
PAIR = jdyn.designs.Grid(m=[1.0, 2.0])


def _constrained(constraint):
    return jdyn.constrained_dynamics(ARM, [constraint], ARM.neutral(), jnp.zeros(2), jnp.zeros(2))


def _touching(materials):
    contact = jdyn.CompliantContact(materials=materials)
    return jdyn.simulate(LEGS, LEGS.neutral(), jnp.zeros(LEGS.nv), 0.01, contact=contact)


def _swept(fn, over=PAIR, **options):
    return jdyn.sweep(fn, over, progress=False, **options)


@pytest.mark.parametrize(
    "use",
    [
        lambda: jdyn.load(NAME),
        lambda: ARM.with_body(NAME, mass=1.0),
        lambda: ARM.with_joint(NAME, damping=1.0),
        lambda: ARM.with_joint("joint1", **{NAME: 1.0}),
        lambda: jdyn.vary(ARM, {NAME: 1.0}),
        lambda: jdyn.vary(ARM, {f"body:{NAME}.mass": 1.0}),
        lambda: jdyn.vary(ARM, {f"body:link1.{NAME}": 1.0}),
        lambda: jdyn.vary(ARM, {f"frame:{NAME}.translation": 1.0}),
        lambda: jdyn.vary(ARM, {f"collision:{NAME}.size": 1.0}),
        lambda: jdyn.frame_pose(ARM, ARM.neutral(), NAME),
        lambda: jdyn.snapshot(ARM, ARM.neutral(), look=NAME),
        lambda: _constrained(jdyn.constraints.Connect("world", NAME)),
        lambda: _constrained(jdyn.constraints.PrescribedJoint(NAME, jnp.sin)),
        lambda: jdyn.contact.distances(LEGS, LEGS.neutral(), [("ground", NAME)]),
        lambda: jdyn.contact.distances(LEGS, LEGS.neutral(), [NAME]),
        lambda: _touching({NAME: jdyn.contact.Material()}),
        lambda: _touching({NAME: 1.0}),
        lambda: jdyn.designs.Grid(**{NAME: ["a"]}),
        lambda: jdyn.designs.Grid(**{NAME: []}),
        lambda: jdyn.designs.Grid(**{NAME: np.ones((2, 2))}),
        lambda: jdyn.designs.Samples(**{NAME: [1.0], "m": [1.0, 2.0]}),
        lambda: jdyn.designs.Sobol(4, **{NAME: (2.0, 1.0)}),
        lambda: _swept(lambda p: {NAME: p["m"]}, store="store"),
        lambda: _swept(lambda p: {NAME: p[NAME]}, jdyn.designs.Grid(**{NAME: [1.0, 2.0]})),
        lambda: _swept(lambda p: {NAME: "text"}),
        lambda: _swept(lambda p: {"y": p["m"]}, attrs={NAME: {}}),
        lambda: jdyn.Spec.of({"robot": "pendulum", "horizon": 1.0, "outputs": [NAME]}, "spec"),
    ],
)
def test_messages_about_names_given_from_python_stay_short(tmp_path, monkeypatch, use):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as caught:
        use()
    assert len(str(caught.value)) < 1000


def test_known_names_are_listed_without_most_of_long_ones():
    assert known("c", [f"{i}{NAME}" for i in range(MOST)]).startswith("there are 0xxx")
    assert len(known("c", [f"{i}{NAME}" for i in range(MOST)])) < 1000
    assert len(known(f"5{NAME}y", [f"{i}{NAME}" for i in range(2 * MOST)])) < 1000
    assert unknown("body", "hand", ["arm"]) == "no body is called 'hand'; there are arm"
