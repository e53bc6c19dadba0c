"""Messages about files whose names and values are very long."""

import warnings

import pytest

import jdyn
from jdyn.model.messages import LONGEST, LONGEST_WORD, readable

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
