"""Hulls of meshes that robots touch with, against trimesh's."""

import dataclasses
import warnings

import numpy as np
import pytest
import trimesh

import jdyn
from jdyn.contact import colliders
from jdyn.model import ModelError, ModelWarning

pytestmark = pytest.mark.fast_compile


def _model(*paths, scale=(1, 1, 1)):
    builder = jdyn.Builder("robot")
    for number, path in enumerate(paths):
        builder.add_link(f"link{number}", jdyn.Free(), mass=1.0, inertia=1.0)
        builder.add_shape(f"link{number}", "mesh", scale, role="collision", path=path)
    return builder.build()


def _file(tmp_path, name, mesh):
    mesh.export(tmp_path / name)
    return tmp_path / name


def _volume(vertices, faces):
    """Of a hull, and the outward side of each of its faces."""
    vertices, corners = np.asarray(vertices), np.asarray(vertices)[np.asarray(faces)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.linalg.norm(normals, axis=1)[:, None]
    heights = vertices @ normals.T - np.sum(corners[:, 0] * normals, axis=1)[None]
    return trimesh.Trimesh(vertices).convex_hull.volume, np.max(heights)


@pytest.mark.parametrize("scale", [(1, 1, 1), (0.1, 0.2, -0.3)])
def test_meshes_touch_as_their_hulls(tmp_path, scale):
    # An L, whose hull is a prism with five sides, beside a ball with more vertices.
    ell = trimesh.util.concatenate(
        [trimesh.creation.box(bounds=b) for b in ([[0, 0, 0], [2, 1, 1]], [[0, 1, 0], [1, 2, 1]])]
    )
    paths = _file(tmp_path, "ell.stl", ell), _file(tmp_path, "ball.stl", trimesh.creation.icosphere(1))
    found = colliders(_model(*paths, scale=scale))
    for row, path in enumerate(paths):
        hull = found.shapes(np.array([row]))
        volume, beyond = _volume(hull.vertices[0], hull.faces[0])
        expected = trimesh.load(path).convex_hull.volume * abs(np.prod(scale))
        np.testing.assert_allclose(volume, expected, rtol=1e-6)
        assert beyond < 1e-6
    assert len(np.unique(found.shapes(np.array([0])).vertices[0], axis=0)) == 10


def test_sizes_of_meshes_are_those_of_the_boxes_about_them(tmp_path):
    # In millimetres, mirrored.
    path = _file(tmp_path, "brick.stl", trimesh.creation.box(extents=(300, 200, 100)))
    np.testing.assert_allclose(colliders(_model(path, scale=(1e-3, 1e-3, -1e-3))).least_sizes().min(), 0.1)


def test_a_hull_of_many_vertices_keeps_those_that_stick_out_most(tmp_path):
    fine = _file(tmp_path, "ball.stl", trimesh.creation.icosphere(4))
    with pytest.warns(
        ModelWarning, match=r"ball\.stl: it sticks out of the hull of 64 of its vertices by 0\."
    ) as caught:
        hull = colliders(_model(fine)).hulls
    assert len(caught) == 1 and hull.vertices.shape == (1, 64, 3)
    mesh = trimesh.load(fine)
    proxy = trimesh.Trimesh(hull.vertices[0]).convex_hull
    said = float(str(caught[0].message).rpartition(" by ")[2].split()[0])
    beyond = max(
        np.max((mesh.vertices - o) @ n) for o, n in zip(proxy.triangles[:, 0], proxy.face_normals, strict=True)
    )
    np.testing.assert_allclose(said, beyond, rtol=0.05)
    # 64 caps of equal areas on a sphere are 1/32 high; their centres leave out more.
    assert 1 / 32 < beyond < 3 / 32


def _ball(tmp_path, **options):
    """The hull of a ball of 162 vertices in a URDF file, and what is said of it."""
    _file(tmp_path, "ball.stl", trimesh.creation.icosphere(2))
    urdf = """<robot name="ball"><link name="ball">
        <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
        <collision><geometry><mesh filename="ball.stl"/></geometry></collision></link></robot>"""
    (tmp_path / "ball.urdf").write_text(urdf)
    model = jdyn.load(tmp_path / "ball.urdf", floating_base=True, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return colliders(model).hulls.vertices[0], [str(warning.message) for warning in caught]


def test_hulls_have_as_many_vertices_as_loaders_are_asked_for(tmp_path):
    coarse, said = _ball(tmp_path, hull_vertices=12)
    assert len(coarse) == 12 and "of the hull of 12 of its vertices" in said[0]
    whole, said = _ball(tmp_path, hull_vertices=200)
    assert len(whole) == 162 and not said
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-6)
    with pytest.raises(ModelError, match="hull_vertices is 3, expected a whole number of at least 4"):
        _ball(tmp_path, hull_vertices=3)


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], "within one plane"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], r"n ≥ 4"),
    ],
)
def test_flat_meshes_are_refused(tmp_path, vertices, faces, said):
    path = _file(tmp_path, "flat.stl", trimesh.Trimesh(vertices, faces))
    with pytest.raises(ModelError, match=f"robot: 1 problem\n  - collision shape 'link0' of link 'link0': .*{said}"):
        colliders(_model(path))


def test_all_meshes_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "torn.stl").write_text("solid torn")
    with pytest.raises(ModelError) as error:
        colliders(_model(tmp_path / "gone.stl", tmp_path / "torn.stl", None))
    for said in ("3 problems", "gone.stl: there is no such file", "torn.stl: ", "its mesh has no file"):
        assert said in str(error.value)


@pytest.mark.parametrize("contact", [jdyn.CompliantContact, jdyn.ConvexContact])
def test_more_pairs_of_meshes_than_simulations_should_look_at_are_counted(tmp_path, contact, recwarn):
    found = colliders(_model(*[_file(tmp_path, "box.stl", trimesh.creation.box())] * 15))
    contact(nearest=20).check(found)
    contact().check(dataclasses.replace(found, pairs=found.pairs[:100]))
    assert not recwarn
    with pytest.warns(
        jdyn.contact.ContactWarning, match=r"105 pairs of meshes .* \(contact=\.\.\.\(nearest=20\)\), .*srdf="
    ):
        contact().check(found)


def test_an_open_mesh_is_named(tmp_path):
    box = trimesh.creation.box()
    box.update_faces(np.arange(12) > 0)
    with pytest.warns(ModelWarning, match=r"open\.stl: it is not a closed surface; it touches as this hull") as caught:
        found = colliders(_model(_file(tmp_path, "open.stl", box), tmp_path / "open.stl"))
    assert len(caught) == 1 and found.hulls.vertices.shape == (2, 8, 3)
