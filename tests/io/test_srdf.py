"""Pairs of links that SRDF files keep from touching, against Pinocchio's."""

import pathlib

import pinocchio as pin
import pytest

import jdyn
from jdyn.contact import colliders
from jdyn.model import ModelError, ModelWarning

pytestmark = [pytest.mark.fast_compile, pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")]

SHARE = pathlib.Path(pin.__file__).parents[4] / "share"
ROBOTS = SHARE / "example-robot-data/robots"


def pinocchios_pairs(urdf, srdf):
    """Links and numbers of shapes of each pair, but for those of neighbours, which jdyn leaves out as well."""
    model = pin.buildModelFromUrdf(str(urdf))
    geometry = pin.buildGeomFromUrdf(model, str(urdf), pin.GeometryType.COLLISION, package_dirs=str(SHARE))
    geometry.addAllCollisionPairs()
    before = len(geometry.collisionPairs)
    pin.removeCollisionPairs(model, geometry, str(srdf), False)
    assert len(geometry.collisionPairs) < before
    pairs = set()
    for pair in geometry.collisionPairs:
        first, second = geometry.geometryObjects[pair.first], geometry.geometryObjects[pair.second]
        joints = first.parentJoint, second.parentJoint
        if model.parents[joints[0]] != joints[1] and model.parents[joints[1]] != joints[0]:
            pairs.add(frozenset((first.name, second.name)))
    return pairs


@pytest.mark.parametrize(
    ("urdf", "srdf"),
    [
        ("hyq_description/robots/hyq_no_sensors.urdf", "hyq_description/srdf/hyq.srdf"),
        ("anymal_b_simple_description/robots/anymal.urdf", "anymal_b_simple_description/srdf/anymal.srdf"),
        pytest.param("panda_description/urdf/panda.urdf", "panda_description/srdf/panda.srdf", marks=pytest.mark.slow),
        pytest.param("ur_description/urdf/ur5_robot.urdf", "ur_description/srdf/ur5.srdf", marks=pytest.mark.slow),
        pytest.param("talos_data/robots/talos_full_v2.urdf", "talos_data/srdf/talos.srdf", marks=pytest.mark.slow),
    ],
)
def test_pairs_are_pinocchios(urdf, srdf):
    found = colliders(jdyn.load(ROBOTS / urdf, package_dirs=[SHARE], srdf=ROBOTS / srdf))
    names, seen = [], {}
    for entry in found.entries:
        names.append(f"{entry.link}_{seen.setdefault(entry.link, 0)}")
        seen[entry.link] += 1
    ours = {frozenset(names[i] for i in pair) for pair in found.pairs}
    assert ours == pinocchios_pairs(ROBOTS / urdf, ROBOTS / srdf)


ROBOT = """<robot name="r">
<link name="base"/>{links}
</robot>""".format(
    links="".join(
        f"""<link name="{name}"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
        </inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
        <joint name="{name}" type="continuous"><parent link="base"/><child link="{name}"/></joint>"""
        for name in "abcd"
    )
)


def pairs(srdf):
    found = colliders(jdyn.load(ROBOT, srdf=srdf))
    return {"".join(sorted(found.entries[i].link for i in pair)) for pair in found.pairs}


def test_pairs_are_disabled_one_by_one_or_by_default():
    assert pairs('<robot name="r"><disable_collisions link1="b" link2="a" reason="Never"/></robot>') == {
        "ac", "ad", "bc", "bd", "cd"
    }  # fmt: skip
    assert pairs(
        '<robot name="r"><group name="g"/><disable_default_collisions link="a"/>'
        '<enable_collisions link1="a" link2="d"/><disable_collisions link1="c" link2="b"/></robot>'
    ) == {"ad", "bd", "cd"}


@pytest.mark.parametrize(
    ("srdf", "said"),
    [
        ('<robot name="r"><disable_collisions link1="a"/></robot>', "<disable_collisions> (line 1) has no link2"),
        (
            '<robot name="r">\n<disable_default_collisions/></robot>',
            "<disable_default_collisions> (line 2) has no link",
        ),
        ("<mujoco/>", "the root element is <mujoco>, expected <robot>; is this an SRDF file?"),
        ("<robot name='r'>", "not well-formed XML"),
        ("gone.srdf", "gone.srdf: there is no such file; give the path of a SRDF file"),
    ],
)
def test_malformed_files_are_refused_in_words(srdf, said):
    with pytest.raises(ModelError) as error:
        jdyn.load(ROBOT, srdf=srdf)
    assert said in str(error.value)


def test_what_does_not_fit_the_robot_is_named_once():
    srdf = '<robot name="s"><disable_collisions link1="a" link2="arm"/><disable_collision/></robot>'
    with pytest.warns(ModelWarning) as caught:
        jdyn.load(ROBOT, srdf=srdf)
    (warning,) = caught
    for said in ("is of a robot called 's', not 'r'", "ignored, links that the robot lacks: arm",
                 "ignored, unknown to jdyn: <disable_collision> (line 1)"):  # fmt: skip
        assert said in str(warning.message)


def test_only_urdf_files_have_such_files_beside_them():
    with pytest.raises(ValueError, match="srdf: expected a URDF file beside it, got a bundled robot; leave out srdf"):
        jdyn.load("panda", srdf="<robot/>")
    with pytest.raises(ValueError, match="got a MuJoCo file, whose <contact> says what may touch"):
        jdyn.load("<mujoco/>", srdf="<robot/>")
