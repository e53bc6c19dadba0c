"""Mesh files: against Pinocchio's reader, against what the files say, and what cannot be read."""

import os
import pathlib
import warnings

import coal
import mujoco
import numpy as np
import pinocchio as pin
import pytest
import trimesh

from jdyn.io.mesh_files import MeshError, read_mesh, read_meshes
from jdyn.io.mjcf_source import MAX_ASSET_BYTES
from jdyn.model import ModelWarning

ROBOTS = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])

COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset>{asset}</asset>
<library_effects><effect id="paint"><profile_COMMON><technique sid="common"><lambert><diffuse>
<color>0.2 0.4 0.6 1</color></diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="blue"><instance_effect url="#paint"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">0 0 0 1 0 0 0 2 0 0 0 3
</float_array><technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles material="m" count="4">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node>{place}<instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="m" target="#blue"/></technique_common></bind_material>
</instance_geometry></node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene>
</COLLADA>"""


def volume(mesh):
    """By the divergence theorem: negative if the surface is inside out [m³]."""
    a, b, c = (mesh.vertices[mesh.faces[:, i]].astype(float) for i in range(3))
    return np.sum(np.cross(a, b) * c) / 6


def written(folder, suffix):
    path = folder / f"part{suffix}"
    trimesh.Trimesh(CORNERS, FACES, process=False).export(path)
    return path


@pytest.mark.parametrize(
    "file",
    [
        "panda_description/meshes/visual/finger.dae",
        "tiago_description/meshes/arm/arm_1_collision.dae",
        "hyq_description/meshes/leg/hipassembly.dae",
        "icub_description/meshes/upmc/visual/icub_chest.dae",
        "laikago_description/meshes/calf.obj",
        "cassie_description/meshes/shin.stl",
    ],
)
def test_surfaces_reach_as_far_as_pinocchios(file):
    mesh = read_mesh(ROBOTS / file)
    theirs = coal.MeshLoader().load(str(ROBOTS / file), np.ones(3))
    theirs.computeLocalAABB()
    # Both keep vertices in single precision, or nearly.
    np.testing.assert_allclose(mesh.vertices.min(axis=0), theirs.aabb_local.min_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(mesh.vertices.max(axis=0), theirs.aabb_local.max_, rtol=0, atol=1e-7)
    assert len(mesh.faces) == theirs.num_tris
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float32, np.int32)


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".dae", ".glb"])
def test_every_format_has_the_same_triangles(suffix, tmp_path):
    mesh = read_mesh(written(tmp_path, suffix))
    corners = np.sort(mesh.vertices[mesh.faces].reshape(4, 9), axis=0)
    np.testing.assert_allclose(corners, np.sort(CORNERS[FACES].reshape(4, 9), axis=0), atol=1e-6)
    assert volume(mesh) == pytest.approx(1.0, rel=1e-6)
    assert len(mesh.vertices) == 4


@pytest.mark.parametrize(
    ("asset", "metres"),
    [("", 1.0), ('<unit name="millimeter" meter="0.001"/>', 0.001), ('<unit name="inch" meter="0.0254"/>', 0.0254)],
)
@pytest.mark.parametrize("up", ["X_UP", "Y_UP", "Z_UP"])
def test_collada_is_in_its_unit_and_keeps_its_axes(asset, metres, up, tmp_path):
    path = tmp_path / "part.dae"
    path.write_text(COLLADA.format(asset=f"{asset}<up_axis>{up}</up_axis>", place=""))
    mesh = read_mesh(path)
    np.testing.assert_allclose(mesh.vertices.max(axis=0), metres * np.array([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(mesh.colors, [[0.2, 0.4, 0.6]] * 4, atol=0.5 / 255)


def test_parts_of_a_scene_are_placed_and_mirrored_ones_stay_outside_out(tmp_path):
    path = tmp_path / "part.dae"
    path.write_text(COLLADA.format(asset="", place="<translate>1 0 0</translate><scale>-2 1 1</scale>"))
    mesh = read_mesh(path)
    np.testing.assert_allclose(mesh.vertices.min(axis=0), [-1, 0, 0], atol=1e-6)
    assert volume(mesh) == pytest.approx(2.0, rel=1e-6)


OBJ = """mtllib {name}
v 0 0 0
v 1 0 0
v 0 2 0
v 0 0 3
usemtl red
f 1 3 2
f 1 2 4
usemtl green
f 1 4 3
f 2 3 4
"""
MATERIALS = "newmtl red\nKd 1 0 0\nmap_Kd paint.png\nnewmtl green\nKd 0 1 0\n"


def test_colors_of_an_obj_file_come_from_the_materials_beside_it(tmp_path):
    (tmp_path / "part.mtl").write_text(MATERIALS)
    (tmp_path / "part.obj").write_text(OBJ.format(name="part.mtl"))
    mesh = read_mesh(tmp_path / "part.obj")
    assert sorted(mesh.colors.tolist()) == [[0, 1, 0]] * 2 + [[1, 0, 0]] * 2
    # The slanted face, whose corners have no zero in common, is green.
    slanted = ~np.any(np.all(mesh.vertices[mesh.faces] == 0, axis=1), axis=1)
    assert mesh.colors[slanted].tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("name", ["../part.mtl", "part.txt", "{folder}/part.mtl"])
def test_no_other_file_is_opened(name, tmp_path, monkeypatch):
    (tmp_path / "robot").mkdir()
    for file in ("part.mtl", "robot/part.txt"):
        (tmp_path / file).write_text(MATERIALS)
    (tmp_path / "robot/part.obj").write_text(OBJ.format(name=name.format(folder=tmp_path)))
    opened = []
    read_bytes = pathlib.Path.read_bytes
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda path: opened.append(path.name) or read_bytes(path))
    mesh = read_mesh(tmp_path / "robot/part.obj")
    assert (len(mesh.faces), opened) == (4, ["part.obj"])
    assert mesh.colors is None or len(np.unique(mesh.colors, axis=0)) == 1


def test_a_file_is_read_again_when_it_changes(tmp_path):
    path = written(tmp_path, ".stl")
    first = read_mesh(path)
    assert read_mesh(path) is first
    trimesh.Trimesh(2 * CORNERS, FACES, process=False).export(path)
    os.utime(path, (0, 0))
    np.testing.assert_array_equal(read_mesh(path).vertices.max(axis=0), [2, 4, 6])


def mujocos_own():
    """A .msh file, with normals and coordinates of textures."""
    return b"".join([
        np.full(4, 4, "<i4").tobytes(), CORNERS.astype("<f4").tobytes(), np.eye(4, 3, dtype="<f4").tobytes(),
        np.zeros((4, 2), "<f4").tobytes(), FACES.astype("<i4").tobytes(),
    ])  # fmt: skip


def test_mujocos_own_format_is_read_as_mujoco_does(tmp_path):
    path = tmp_path / "part.msh"
    path.write_bytes(mujocos_own())
    source = '<mujoco><asset><mesh name="part" file="part.msh"/></asset></mujoco>'
    m = mujoco.MjModel.from_xml_string(source, {"part.msh": path.read_bytes()})
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, m.mesh_quat[0])
    # MuJoCo moves vertices to the mesh's centre and principal axes.
    theirs = m.mesh_vert @ turn.reshape(3, 3).T + m.mesh_pos[0]
    found = read_mesh(path)
    np.testing.assert_allclose(found.vertices[found.faces], theirs[m.mesh_face], atol=1e-6)
    assert found.colors is None


UNREADABLE = {
    "absent.stl": (None, "there is no such file"),
    "empty.stl": (b"", "holds no triangles, or is no .stl file"),
    "short.stl": (b"\0" * 80 + b"\x09\0\0\0" + b"\0" * 10, "holds no triangles, or is no .stl file"),
    "text.dae": (b"<COLLADA>", "not well-formed XML"),
    "empty.dae": (b"<COLLADA/>", "damaged, or no .dae file"),
    "entity.dae": (
        COLLADA.format(asset="<title>&e;</title>", place="")
        .replace("<", "<!DOCTYPE a [<!ENTITY e 'e'>]><", 1)
        .encode(),
        "document type declaration or entities",
    ),
    "text.glb": (b"glTF of old", "damaged, or no .glb file"),
    "points.obj": (b"v 0 0 0\nv 1 0 0\n", "points.obj: "),
    "part.ply": (b"1234", "expected a file ending in .stl, .obj, .dae, .glb, .msh"),
    "short.msh": (b"1234", "damaged, or no .msh file"),
    "cut.msh": (mujocos_own()[:-4], "its size does not follow from its counts [4, 4, 4, 4]"),
    "negative.msh": (np.array([4, 4, -5, 0], "<i4").tobytes(), "its size does not follow from its counts"),
    "beyond.msh": (mujocos_own()[:-4] + b"\4\0\0\0", "faces of vertices that it does not have"),
    "infinite.obj": (b"v 0 0 inf\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertices that are not finite"),
}


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.stl"
    with path.open("wb") as file:
        file.truncate(MAX_ASSET_BYTES + 1)
    with pytest.raises(MeshError, match="larger than 256 MB"):
        read_mesh(path)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_collada_is_read_in_its_encoding(encoding, tmp_path):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + COLLADA.format(asset="<title>é</title>", place="")
    (tmp_path / "part.dae").write_text(text, encoding=encoding)
    assert len(read_mesh(tmp_path / "part.dae").faces) == 4


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_refused_by_name(name, tmp_path):
    data, reason = UNREADABLE[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(MeshError) as error:
        read_mesh(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name)) and reason in str(error.value)


def test_the_rest_is_read_and_one_warning_names_what_is_not(tmp_path):
    good, absent = str(written(tmp_path, ".stl")), str(tmp_path / "absent.stl")
    with pytest.warns(ModelWarning) as caught:
        found = read_meshes([absent, good, "package://nowhere/a.stl", good])
    assert list(found) == [good] and len(caught) == 1
    for phrase in ("2 meshes are not drawn", absent, "there is no such file", "the package was not found"):
        assert phrase in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(read_meshes([good])) == [good]


def test_textures_are_left_out_without_a_word(tmp_path, caplog):
    surface = '<surface type="2D"><init_from>wood</init_from></surface>'
    parameters = (
        f'<newparam sid="s">{surface}</newparam>'
        '<newparam sid="wood-sampler"><sampler2D><source>s</source></sampler2D></newparam>'
    )
    bump = (
        '<extra><technique profile="FCOLLADA"><bump><texture texture="wood-sampler" texcoord="UV"/></bump></technique>'
        "</extra></technique></profile_COMMON>"
    )
    text = COLLADA.format(asset="", place="").replace("<profile_COMMON>", f"<profile_COMMON>{parameters}")
    text = text.replace("</technique></profile_COMMON>", bump).replace(
        "<library_effects>",
        '<library_images><image id="wood"><init_from>wood.png</init_from></image></library_images><library_effects>',
    )
    path = tmp_path / "part.dae"
    path.write_text(text)
    assert len(read_mesh(path).faces) == 4
    assert caplog.records == []
