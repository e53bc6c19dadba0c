"""What is drawn of a model has its sizes and places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import jdyn
from jdyn.view import solids
from jdyn.view.scene import parts

pytestmark = pytest.mark.fast_compile

BOX, BALL = (solids.box((1.0, 2.0, 3.0)), 6.0), (solids.sphere(0.5), 4 / 3 * np.pi * 0.5**3)
EGG = solids.ellipsoid((0.5, 1.0, 0.2)), 4 / 3 * np.pi * 0.5 * 0.2
CAN = solids.cylinder(0.5, 2.0), np.pi * 0.5**2 * 2
PILL = solids.capsule(0.5, 2.0), np.pi * 0.5**2 * 2 + 4 / 3 * np.pi * 0.5**3
ROD = solids.rod((1.0, 2.0, 3.0), (1.0, 0.0, 3.0), 0.5), PILL[1]
BEAD = solids.rod((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.5), BALL[1]
EVERY = pytest.mark.parametrize(
    "mesh, volume", [BOX, BALL, EGG, CAN, PILL, ROD, BEAD], ids="box ball egg can pill rod bead".split()
)


@EVERY
def test_solids_are_closed(mesh, volume):
    """Every edge is passed once in each direction, along triangles that have an area."""
    vertices, faces = mesh
    edges = [tuple(edge) for face in faces for edge in zip(face, np.roll(face, -1), strict=True)]
    a, b, c = vertices[faces].transpose(1, 0, 2)
    solid = np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0
    edges = [edge for k, edge in enumerate(edges) if solid[k // 3]]
    assert len(set(edges)) == len(edges)
    if np.all(solid):
        assert {(b, a) for a, b in edges} == set(edges)


@EVERY
def test_solids_have_their_volume_and_outward_normals(mesh, volume):
    """By the divergence theorem. A 24-gon has 98.9 % of its circle's area; along meridians balls lose 1.7 %."""
    vertices, faces = mesh
    a, b, c = vertices[faces].astype(float).transpose(1, 0, 2)
    enclosed = np.sum(np.einsum("fi,fi->f", a, np.cross(b, c))) / 6
    assert 0.971 * volume < enclosed < volume * (1 + 1e-6)


def test_a_rod_leads_from_point_to_point():
    start, end, radius = np.array([1.0, -2.0, 0.5]), np.array([0.0, 1.0, 2.0]), 0.1
    vertices, _ = solids.rod(start, end, radius)
    along = (end - start) / np.linalg.norm(end - start)
    heights = (vertices - start) @ along
    assert heights.min() == pytest.approx(-radius, abs=1e-6)
    assert heights.max() == pytest.approx(np.linalg.norm(end - start) + radius, abs=1e-6)
    nearest = np.clip(heights, 0, np.linalg.norm(end - start))
    np.testing.assert_allclose(np.linalg.norm(vertices - start - nearest[:, None] * along, axis=1), radius, rtol=1e-5)


def test_a_height_field_is_drawn_from_above_between_its_heights():
    heights = np.array([[0.0, 1, 3], [2, 1, 0]])
    vertices, faces = solids.surface(heights, (4.0, 1.0))
    np.testing.assert_allclose(vertices[[2, 3]], [[2, -0.5, 3], [-2, 0.5, 2]])
    normals = trimesh.Trimesh(vertices, faces, process=False).face_normals
    # The edge within a cell leads from the corner of least x and y to that of greatest.
    assert len(faces) == 4 and np.all(normals[:, 2] > 0) and [0, 1, 4] in faces.tolist()


def test_a_robot_without_shapes_has_rods_from_joint_to_joint():
    """Centre lines of the rods are where forward kinematics puts the joints, the frame at the tip included."""
    model = jdyn.load("double_pendulum")
    placed = parts(model)
    assert {part.body for part in placed} == {0, 1}
    for part, end in zip(placed, (model.placements.translation[1], model.frames.translation[-1]), strict=True):
        np.testing.assert_allclose((part.vertices.min(0) + part.vertices.max(0)) / 2, np.asarray(end) / 2, atol=1e-6)


@pytest.mark.parametrize("name", jdyn.ROBOTS)
def test_every_bundled_robot_has_parts(name):
    model = jdyn.load(name)
    placed = parts(model)
    assert {part.body for part in placed} >= set(range(model.nb))
    assert all(np.all(np.isfinite(part.vertices)) and part.faces.max() < len(part.vertices) for part in placed)


def test_a_free_body_without_lengths_is_the_box_with_its_inertia():
    """A box of one density has the inertia m/12 (b² + c²) about its first axis."""
    a, b, c, mass = 0.3, 0.5, 0.7, 2.0
    inertia = mass / 12 * np.array([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    builder = jdyn.Builder("brick")
    builder.add_link("brick", jdyn.Free(), mass=mass, inertia=inertia)
    (part,) = parts(builder.build())
    np.testing.assert_allclose(np.ptp(part.vertices, axis=0), [a, b, c], rtol=1e-5)


def test_a_batch_of_models_is_refused():
    model = jdyn.load("pendulum")
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model)
    with pytest.raises(ValueError, match=r"model: expected one, got a batch of shape \(2,\)"):
        parts(batch)


def test_an_unknown_look_is_refused():
    with pytest.raises(ValueError, match="look: expected"):
        parts(jdyn.load("pendulum"), "audible")  # type: ignore[arg-type]


def shaped():
    """One shape of each kind, all turned by 90° about x and moved, on a body."""
    builder = jdyn.Builder("shapes")
    builder.add_link("base", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    placement = jdyn.pose((1, 2, 3), (np.pi / 2, 0, 0))
    for kind, size in SIZES.items():
        builder.add_shape("base", kind, size, placement=placement, role="visual", color=(0.1, 0.2, 0.3))
    builder.add_shape("base", "sphere", 0.3, role="visual", name="unseen", color=(0, 0, 0, 0))
    builder.add_shape("base", "plane", (0, 0), role="visual")
    builder.add_shape("world", "sphere", 0.7, role="collision", name="ball")
    return builder.build()


SIZES = {
    "box": (0.2, 0.4, 0.6), "sphere": (0.5,), "ellipsoid": (0.1, 0.2, 0.3), "cylinder": (0.1, 0.8),
    "capsule": (0.1, 0.8),
}  # fmt: skip
# Extents along x, y and z; a turn about x by 90° exchanges y and z.
EXTENTS = {
    "box": (0.2, 0.6, 0.4), "sphere": (1, 1, 1), "ellipsoid": (0.2, 0.6, 0.4), "cylinder": (0.2, 0.8, 0.2),
    "capsule": (0.2, 1.0, 0.2),
}  # fmt: skip


def test_shapes_have_their_sizes_and_places():
    placed = parts(shaped())
    assert [part.body for part in placed] == [0] * len(SIZES)
    for part, extent in zip(placed, EXTENTS.values(), strict=True):
        np.testing.assert_allclose((part.vertices.max(0) + part.vertices.min(0)) / 2, [1, 2, 3], atol=1e-6)
        np.testing.assert_allclose(np.ptp(part.vertices, axis=0), extent, rtol=1e-5)
        np.testing.assert_allclose(part.color, [0.1, 0.2, 0.3], rtol=1e-6)


def test_collision_shapes_are_drawn_when_asked_for_or_where_there_are_no_others():
    model = shaped()
    (ball,) = parts(model, "collision")
    assert (ball.body, ball.name) == (-1, "ball") and np.ptp(ball.vertices[:, 2]) == pytest.approx(1.4, rel=1e-6)
    builder = jdyn.Builder("bare")
    builder.add_link("base", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    builder.add_shape("base", "sphere", 0.3, role="collision")
    # A ground that is not drawn is no other shape.
    builder.add_shape("world", "plane", (0, 0), role="visual", name="floor")
    assert [part.name for part in parts(builder.build())] == ["base"]
    assert [np.ptp(part.vertices[:, 0]) for part in parts(builder.build())] == [pytest.approx(0.6)]
    assert [part.name for part in parts(shaped(), "skeleton")] == ["base"]


def test_shapes_keep_their_opacity():
    builder = jdyn.Builder("glass")
    builder.add_link("base", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    builder.add_shape("base", "sphere", 0.3, role="visual", color=(1, 0, 0, 0.2))
    assert [part.opacity for part in parts(builder.build())] == [0.2]


def test_rods_that_begin_in_one_joint_differ_in_thickness():
    builder = jdyn.Builder("star")
    for name in ("hub", "left", "right"):
        far = {} if name == "hub" else {"parent": "hub", "placement": (0.0, 0.0, 1.0)}
        builder.add_link(name, jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0, com=(0.5, 0, 0), **far)
    thickness = [float(np.ptp(part.vertices[:, 1])) for part in parts(builder.build())]
    assert len({round(x, 6) for x in thickness}) == len(thickness) > 2


def with_mesh(path, **options):
    builder = jdyn.Builder("meshes")
    builder.add_link("base", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    builder.add_shape("base", "mesh", path=str(path), role="visual", **options)
    return builder.build()


def test_meshes_are_scaled_and_a_mirror_image_keeps_its_outside_outside(tmp_path):
    trimesh.creation.icosphere(radius=1.0).export(tmp_path / "ball.stl")
    (part,) = parts(with_mesh(tmp_path / "ball.stl", size=(-1.0, 2.0, 3.0), placement=(0, 0, 5), color=(1, 0, 0)))
    np.testing.assert_allclose(np.ptp(part.vertices, axis=0), [2, 4, 6], rtol=1e-6)
    vertices = part.vertices.astype(float) - [0, 0, 5]
    a, b, c = vertices[part.faces].transpose(1, 0, 2)
    volume = np.sum(np.einsum("fi,fi->f", a, np.cross(b, c))) / 6
    assert volume == pytest.approx(6 * trimesh.creation.icosphere(radius=1.0).volume, rel=1e-5)
    np.testing.assert_array_equal(part.color, [1, 0, 0])


def test_a_mesh_that_cannot_be_read_is_named_and_left_out(tmp_path):
    model = with_mesh(tmp_path / "missing.stl", name="shell")
    with pytest.warns(jdyn.ModelWarning, match=r"(?s)1 mesh is not drawn:.*missing.stl"):
        (rod,) = parts(model)
    assert rod.name == "base"
