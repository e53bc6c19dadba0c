"""What is wrong ten thousand times is said ten times."""

import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

MANY = 2_000


def _joints(name):
    return "".join(
        f'<link name="l{i}"/>'
        f'<joint name="{name(i)}" type="continuous"><parent link="base"/><child link="l{i}"/></joint>'
        for i in range(MANY)
    )


def test_a_urdf_with_many_problems():
    text = f'<robot name="x"><link name="base"/>{_joints(lambda i: f"j{i // 2}")}</robot>'
    with pytest.raises(jdyn.ModelError, match=r"1000 problems(?s:.*)and 990 more$") as raised:
        jdyn.load(text)
    assert len(str(raised.value)) < 2_000


def test_an_mjcf_with_many_problems():
    meshes = "".join(f'<include file="missing{i}.xml"/>' for i in range(MANY))
    with pytest.raises(jdyn.ModelError, match=r"2000 problems(?s:.*)and 1990 more$") as raised:
        jdyn.load(f"<mujoco>{meshes}</mujoco>")
    assert len(str(raised.value)) < 5_000


def test_unknown_names_among_many():
    builder = jdyn.Builder("many")
    for i in range(200):
        builder.add_link(f"part{i}", jdyn.Revolute((0, 0, 1)), parent="world", mass=1.0, inertia=(1.0, 1.0, 1.0))
    model = builder.build()
    for unknown in (lambda: model.topology.body("nothing"), lambda: jdyn.frame_pose(model, model.neutral(), "nothing")):
        with pytest.raises(ValueError, match="called 'nothing'") as raised:
            unknown()
        assert len(str(raised.value)) < 300
    near = model.body_names[123] + "_"
    with pytest.raises(ValueError, match=f"{model.body_names[123]!r}"):
        model.topology.body(near)
