"""Shapes that robot files state, against Pinocchio's and MuJoCo's, and back into files."""

import collections
import pathlib

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import PIL.Image
import pinocchio as pin
import pytest

import jdyn
from jdyn.geometry import HeightField
from jdyn.io import load_mjcf, load_urdf, save_urdf
from jdyn.model import WORLD, ModelError, ModelWarning

pytestmark = [pytest.mark.fast_compile, pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")]

SHARE = pathlib.Path(pin.__file__).parents[4] / "share"
ROBOTS = SHARE / "example-robot-data/robots"
ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets"
ROLES = {"visual": pin.GeometryType.VISUAL, "collision": pin.GeometryType.COLLISION}


def rows_by_link(shapes):
    """Rows by role, link and number within the link."""
    seen, rows = collections.Counter(), {}
    for row, entry in enumerate(shapes.entries):
        rows[entry.role, entry.link, seen[entry.role, entry.link]] = row
        seen[entry.role, entry.link] += 1
    return rows


# URDF.


def pinocchio_size(geometry):
    """Kind and size of a geometry object, by jdyn's conventions."""
    shape = geometry.geometry
    match type(shape).__name__:
        case "Box":
            return "box", 2 * shape.halfSide
        case "Sphere":
            return "sphere", [shape.radius]
        case "Capsule" | "Cylinder" as kind:
            return kind.lower(), [shape.radius, 2 * shape.halfLength]
        case _:
            return "mesh", geometry.meshScale


def assert_shapes_are_pinocchios(path):
    model, theirs = load_urdf(path, package_dirs=SHARE), pin.buildModelFromUrdf(str(path))
    shapes, rows = model.shapes, rows_by_link(model.shapes)
    bodies = {"universe": WORLD} | {name: body for body, name in enumerate(model.joint_names)}
    for role, kind in ROLES.items():
        geometries = pin.buildGeomFromUrdf(theirs, str(path), kind, package_dirs=str(SHARE)).geometryObjects
        assert len(geometries) == len(shapes.rows(role)) > 0
        for geometry in geometries:
            link, _, number = geometry.name.rpartition("_")
            row = rows[role, link, int(number)]
            entry = shapes.entries[row]
            assert entry.body == bodies[theirs.names[geometry.parentJoint]]
            np.testing.assert_allclose(shapes.placements.rotation[row], geometry.placement.rotation, atol=1e-12)
            np.testing.assert_allclose(shapes.placements.translation[row], geometry.placement.translation, atol=1e-12)
            shape, size = pinocchio_size(geometry)
            assert entry.kind == shape
            np.testing.assert_allclose(shapes.size(row), size, rtol=1e-15)
            if shape == "mesh":
                assert pathlib.Path(entry.path).samefile(geometry.meshPath)
            if role == "visual" and entry.color is not None:
                # Pinocchio's parser reads colours in single precision.
                np.testing.assert_allclose(entry.color, geometry.meshColor, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        "double_pendulum_description/urdf/double_pendulum_simple.urdf",
        "hyq_description/robots/hyq_no_sensors.urdf",
        pytest.param("anymal_b_simple_description/robots/anymal.urdf", marks=pytest.mark.exhaustive),
        pytest.param("panda_description/urdf/panda.urdf", marks=pytest.mark.exhaustive),
        pytest.param("talos_data/robots/talos_full_v2.urdf", marks=pytest.mark.exhaustive),
    ],
)
def test_shapes_are_pinocchios(file):
    assert_shapes_are_pinocchios(ROBOTS / file)


def colored(material, above=""):
    return f"""<robot name="r">{above}<link name="base"/><link name="a"><inertial><mass value="2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><sphere radius="1"/></geometry>{material}</visual></link>
    <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>"""


NAMED = '<material name="red"><color rgba="1 0 0 0.5"/></material>'


@pytest.mark.parametrize(
    ("material", "above", "color"),
    [
        (NAMED, "", (1, 0, 0, 0.5)),
        ('<material name="red"/>', NAMED, (1, 0, 0, 0.5)),
        ('<material name="red"><texture filename="a.png"/></material>', NAMED, (1, 0, 0, 0.5)),
        (NAMED.replace("0.5", "1"), NAMED, (1, 0, 0, 0.5)),
        ('<material name=""><color rgba="0 1 0 1"/></material>', NAMED, (0, 1, 0, 1)),
        ('<material name="blue"/>', NAMED, None),
        ("", NAMED, None),
    ],
)
def test_colors_come_from_materials_of_shapes_or_of_the_robot(material, above, color):
    document = colored(material, above)
    assert load_urdf(document).shapes.entries[0].color == color
    if color is not None:
        theirs = pin.buildModelFromXML(document)
        (geometry,) = pin.buildGeomFromUrdfString(theirs, document, ROLES["visual"]).geometryObjects
        np.testing.assert_array_equal(geometry.meshColor, color)


@pytest.mark.parametrize("rgba", ["1 0 0", "1 0 0 2", "red", "1 0 0 nan"])
def test_a_color_that_is_none_is_named(rgba):
    with pytest.warns(ModelWarning, match="colours that are not four numbers from 0 to 1: of link 'a'"):
        model = load_urdf(colored(NAMED.replace("1 0 0 0.5", rgba)))
    assert model.shapes.entries[0].color is None


def test_pinocchio_finds_the_shapes_that_are_written(tmp_path):
    model = load_mjcf(ASSETS / "ant.xml", floating_base=False)
    with pytest.warns(ModelWarning) as caught:
        save_urdf(model, tmp_path / "ant.urdf")
    assert len(caught) == 1
    for lost in ("plane shapes of 'world'", "contype and conaffinity of 'torso'"):
        assert lost in str(caught[0].message)
    assert_shapes_are_pinocchios(tmp_path / "ant.urdf")
    again = load_urdf(tmp_path / "ant.urdf").shapes
    written = {(entry.role, entry.name): row for row, entry in enumerate(again.entries)}
    kept = [row for row, entry in enumerate(model.shapes.entries) if entry.kind != "plane"]
    read = [written[model.shapes.entries[row].role, model.shapes.entries[row].name] for row in kept]
    what = ("kind", "role", "body", "link", "name", "color")
    assert [[getattr(again.entries[row], key) for key in what] for row in read] == [
        [getattr(model.shapes.entries[row], key) for key in what] for row in kept
    ]
    for ours, theirs in zip(leaves(model.shapes), leaves(again), strict=True):
        # Placements in bodies go by those in links, and rotations by angles.
        np.testing.assert_allclose(theirs[read], ours[kept], atol=1e-14)


def leaves(shapes):
    return [np.asarray(leaf) for leaf in jax.tree.leaves((shapes.sizes, shapes.placements))]


# MJCF.


def mujoco_shape(m, geom):
    """Kind and size of a geom, by jdyn's conventions."""
    size, kinds = m.geom_size[geom], mujoco.mjtGeom
    return {
        kinds.mjGEOM_SPHERE: ("sphere", size[:1]),
        kinds.mjGEOM_BOX: ("box", 2 * size),
        kinds.mjGEOM_ELLIPSOID: ("ellipsoid", size),
        kinds.mjGEOM_PLANE: ("plane", 2 * size[:2]),
        kinds.mjGEOM_CAPSULE: ("capsule", [size[0], 2 * size[1]]),
        kinds.mjGEOM_CYLINDER: ("cylinder", [size[0], 2 * size[1]]),
    }[mujoco.mjtGeom(m.geom_type[geom])]


EVERY_KIND = """<mujoco><compiler angle="degree"/>
<default><geom rgba="0 0 1 1"/><default class="visual"><geom contype="0" conaffinity="0" group="2"/></default>
<default class="collision"><geom group="3" type="capsule"/></default></default>
<asset><material name="red" rgba="1 0 0 0.5"/></asset>
<worldbody><geom name="floor" type="plane" size="0 3 0.1" rgba="0.5 0.5 0.5 1"/>
<body name="a" pos="0 0 1"><joint axis="0 1 0" pos="0.1 0 0"/>
  <geom name="box" type="box" size=".1 .2 .3" pos="1 2 3" euler="10 20 30"/>
  <geom class="visual" size=".1" rgba="0.5 0.5 0.5 1" material="red"/>
  <geom name="rod" class="collision" fromto="0 0 0 0.3 0.4 0" size=".05"/>
  <body name="b" pos="0 0 .5" euler="0 90 0"><geom type="ellipsoid" size=".1 .2 .3" rgba="1 1 0 1"/>
    <body name="c"><joint type="ball"/><geom type="cylinder" size=".1 .4" pos="0 .1 0"/>
    <geom name="helper" size=".1" class="visual" group="4"/><geom name="pad" size=".1" class="visual" group="4"/></body>
  </body>
</body></worldbody>
<contact><pair geom1="pad" geom2="floor"/></contact></mujoco>"""


@pytest.mark.parametrize(
    "source", [EVERY_KIND, ASSETS / "ant.xml", ASSETS / "humanoid.xml"], ids=["all", "ant", "humanoid"]
)
def test_shapes_are_mujocos(source):
    m = mujoco.MjModel.from_xml_string(source if isinstance(source, str) else source.read_text())
    model, d, rng = load_mjcf(source), mujoco.MjData(m), np.random.default_rng(0)
    mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv), 1.0)
    mujoco.mj_kinematics(m, d)
    bodies = jax.tree.map(np.asarray, jdyn.forward_kinematics(model, d.qpos))
    expected = [
        (geom, role)
        for geom in range(m.ngeom)
        for role, there in (("visual", m.geom_group[geom] < 3), ("collision", touches(m, geom)))
        if there
    ]
    shapes = model.shapes
    for row, (geom, role) in enumerate(expected):
        entry = shapes.entries[row]
        (kind, size), body = mujoco_shape(m, geom), m.geom_bodyid[geom]
        assert (entry.role, entry.kind, entry.link) == (role, kind, m.body(body).name or f"body{body}")
        np.testing.assert_array_equal(shapes.size(row), size)
        R, p = np.eye(3), np.zeros(3)
        if entry.body != WORLD:
            R, p = bodies.rotation[entry.body], bodies.translation[entry.body]
        np.testing.assert_allclose(R @ shapes.placements.rotation[row], d.geom_xmat[geom].reshape(3, 3), atol=1e-12)
        np.testing.assert_allclose(p + R @ shapes.placements.translation[row], d.geom_xpos[geom], atol=1e-12)
    assert len(shapes) == len(expected)


def touches(m, geom):
    return m.geom_contype[geom] != 0 or m.geom_conaffinity[geom] != 0 or geom in m.pair_geom1 or geom in m.pair_geom2


def test_colors_of_geoms_are_their_own_or_their_materials():
    shapes = load_mjcf(EVERY_KIND).shapes
    colors = {entry.name: entry.color for entry in shapes.entries}
    # The floor's colour is the grey that MuJoCo gives to geoms without one.
    assert (colors["floor"], colors["box"], colors["a"]) == (None, (0, 0, 1, 1), (1, 0, 0, 0.5))
    assert (colors["b"], colors["pad"]) == ((1, 1, 0, 1), (0, 0, 1, 1))
    assert "helper" not in colors


def test_shapes_that_jdyn_lacks_are_named():
    source = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><body name="a">
    <joint/><geom name="corner" type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    with pytest.warns(ModelWarning, match="shapes corner: meshes without a file or sheared"):
        model = load_mjcf(source)
    assert model.shapes is None


def hills(tmp_path):
    """A height field from a picture, on a tilted body of the world; dark is low, and the first row of pixels is far."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (5, 7), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "hills.png")
    source = tmp_path / "hills.xml"
    source.write_text("""<mujoco><compiler angle="degree"/>
    <asset><hfield name="h" file="hills.png" size="2 1 .5 .1"/></asset><worldbody>
    <geom name="hills" type="hfield" hfield="h" pos="1 2 3" euler="20 0 30"/>
    <body name="ball" pos="0 0 9"><freejoint/><geom size=".1"/></body></worldbody></mujoco>""")
    return source, pixels


def test_height_fields_are_where_rays_of_mujoco_meet_them(tmp_path):
    source, pixels = hills(tmp_path)
    model = load_mjcf(source)
    m = mujoco.MjModel.from_xml_path(str(source))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    (row,) = (row for row in model.shapes.rows("collision") if model.shapes.entries[row].kind == "height field")
    heights, sides = model.shapes.heights_of(row), model.shapes.size(row)
    assert heights.shape == pixels.shape
    field, pose = HeightField(heights, sides), jax.tree.map(lambda leaf: leaf[row], model.shapes.placements)
    for place in np.random.default_rng(1).uniform(-1, 1, (20, 2)) * (1.9, 0.9):
        above = np.array([*place, 5.0])
        start, down = pose.point_to_parent(above), -pose.rotation[:, 2]
        met = np.zeros(1, np.int32)
        fallen = mujoco.mj_ray(m, d, np.array(start), np.array(down), None, 1, -1, met)
        np.testing.assert_allclose(5 - fallen, field.surface(jnp.array(place))[0], atol=1e-6)


def test_pictures_of_height_fields_have_limits(tmp_path):
    source, _ = hills(tmp_path)
    PIL.Image.new("L", (5000, 1)).save(tmp_path / "hills.png")
    with pytest.raises(ModelError, match=r"file 'hills\.png' has more than 4096 rows or columns; scale the picture"):
        load_mjcf(source)
