"""Pixels that triangles cover, surfaces that are drawn, and where cameras see them."""

import numpy as np
import pytest
from matplotlib.path import Path
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from jdyn.view import solids
from jdyn.view.camera import Camera, facing, perspective
from jdyn.view.floor import Floor, round_length
from jdyn.view.rasterizer import nearest
from jdyn.view.renderer import Lane, Renderer
from jdyn.view.scene import Part
from jdyn.view.surface import corner_normals, simplified, surfaces
from jdyn.view.winding import turned_outward

SIZE = 60, 40
UP = np.array([0.0, 0, 1])
AT_REST = Lane(np.zeros((0, 3, 3)), np.zeros((0, 3)))


def triangles(points, faces, nearness=1.0):
    """Triangles in a picture, as the rasterizer takes them."""
    points = np.column_stack([points, np.broadcast_to(nearness, len(points))])
    return points[faces].transpose(2, 1, 0).astype(np.float32)


def centers(pixels):
    return np.column_stack([pixels % SIZE[0], pixels // SIZE[0]]) + 0.5


@pytest.mark.parametrize("seed", range(8))
def test_a_triangle_covers_the_pixels_whose_centers_are_in_it(seed):
    """By matplotlib; some corners are outside the picture."""
    corners = np.random.default_rng(seed).uniform([-20, -20], [80, 60], (3, 2))
    seen = nearest(triangles(corners, np.array([[0, 1, 2]])), np.zeros((3, 1), np.float32), SIZE)
    inside = Path(corners).contains_points(centers(np.arange(SIZE[0] * SIZE[1])))
    np.testing.assert_array_equal(seen.pixels, np.flatnonzero(inside))


def test_triangles_side_by_side_leave_no_pixel_out_and_take_none_twice():
    corners = np.array([[0, 0], [SIZE[0], 0], [0, SIZE[1]], SIZE])
    points = np.concatenate([corners, np.random.default_rng(0).uniform(0, SIZE, (40, 2))])
    faces = Delaunay(points).simplices
    counts = np.zeros(SIZE[0] * SIZE[1], int)
    for face in faces:
        counts[nearest(triangles(points, face[None]), np.zeros((3, 1), np.float32), SIZE).pixels] += 1
    assert np.all(counts == 1)


def test_nearness_and_values_are_linear_in_the_picture():
    """By SciPy. Single precision has seven digits, and a sliver's edges a few less."""
    rng = np.random.default_rng(1)
    points, near, value = rng.uniform(0, SIZE, (12, 2)), rng.uniform(1, 2, 12), rng.uniform(-1, 1, 12)
    mesh = Delaunay(points)
    seen = nearest(triangles(points, mesh.simplices, near), value[mesh.simplices].T, SIZE)
    for found, given in ((seen.nearness, near), (seen.values, value)):
        np.testing.assert_allclose(found, LinearNDInterpolator(mesh, given)(centers(seen.pixels)), atol=2e-5)


def test_what_is_nearer_hides_what_is_farther():
    """Two rectangles that run through each other are parted by a straight line, wherever they are in the list."""
    points = np.array([[0, 0], [60, 0], [60, 40], [0, 40]] * 2, float)
    near = np.array([1, 3, 3, 1, 2, 2, 2, 2], float)
    faces = np.array([[0, 1, 2], [4, 5, 6], [0, 2, 3], [4, 6, 7]])
    seen = nearest(triangles(points, faces, near), np.zeros((3, 4), np.float32), SIZE)
    assert len(seen.pixels) == SIZE[0] * SIZE[1]
    np.testing.assert_array_equal(np.isin(seen.triangles, [0, 2]), centers(seen.pixels)[:, 0] > 30)


def test_what_has_no_area_covers_nothing():
    points = np.array([[10.0, 10], [30, 20], [50, 30], [20, 20]])
    faces = np.array([[0, 0, 1], [0, 2, 2], [1, 1, 1]])
    assert not len(nearest(triangles(points, faces), np.zeros((3, 3), np.float32), SIZE).pixels)


def picture(parts, view):
    floor = Floor(np.eye(3), -100.0, 1.0, 1.0)
    drawn = surfaces(parts, view.pixel(view.depth) / 4)
    renderer = Renderer(drawn, drawn, floor, UP, None)
    return renderer.picture(view, np.ones(view.size[::-1], np.float32), [AT_REST])


def ball(center, radius, color=(0.1, 0.1, 0.1)):
    vertices, faces = solids.sphere(radius)
    return Part(-1, "ball", vertices + np.asarray(center, np.float32), faces, np.array(color, np.float32))


def test_a_ball_is_a_disc_of_known_size_where_it_is():
    """The cone that touches a ball of radius r at the distance d has the slope r / √(d² − r²). The ball has corners,
    which take up to 1.7 % of its radius; the other direction is half a pixel wide."""
    radius, distance, angle = 0.4, 5.0, 0.5
    camera = Camera(azimuth=0.0, elevation=0.0, distance=distance, target=(0.0, 0.0, 0.0), field_of_view=angle)
    view = perspective(camera, UP, np.zeros((1, 3)), (200, 160))
    dark = picture([ball((0, 0, 0), radius)], view)[:, :, 0] < 128
    rows, columns = np.nonzero(dark)
    expected = 80 / np.tan(angle / 2) * radius / np.sqrt(distance**2 - radius**2)
    assert np.mean(columns) + 0.5 == pytest.approx(100, abs=0.5) and np.mean(rows) + 0.5 == pytest.approx(80, abs=0.5)
    assert np.sqrt(np.sum(dark) / np.pi) == pytest.approx(expected, abs=0.5 + 0.017 * expected)
    # From x = 5, y is to the right and z is up.
    slope = 80 / np.tan(angle / 2) / distance
    rows, columns = np.nonzero(picture([ball((0, 0.5, 0.3), 0.05)], view)[:, :, 0] < 128)
    assert np.mean(columns) + 0.5 == pytest.approx(100 + 0.5 * slope, abs=0.5)
    assert np.mean(rows) + 0.5 == pytest.approx(80 - 0.3 * slope, abs=0.5)


def test_a_nearer_ball_hides_a_farther_one():
    both = [ball((0.6, 0, 0), 0.3, (1, 0, 0)), ball((-0.6, 0, 0), 0.3, (0, 0, 1))]
    for azimuth, channel in ((0.0, 0), (np.pi, 2)):
        camera = Camera(azimuth=azimuth, elevation=0.0, distance=4.0, target=(0.0, 0.0, 0.0))
        center = picture(both, perspective(camera, UP, np.zeros((1, 3)), (80, 80)))[40, 40]
        assert np.argmax(center) == channel and np.sum(center) == center[channel]


def test_a_fitted_view_shows_everything_and_no_more():
    points = np.random.default_rng(2).normal(size=(50, 3))
    for view in (perspective(Camera(), UP, points, (90, 70)), facing(UP, np.array([0, 1.0, 0]), points, (90, 70))):
        x, y, nearness = view.project(view.from_world(points.T))
        assert np.all(nearness > 0)
        shares = [2 * np.max(np.abs(place - size / 2)) / size for place, size in ((x, 90), (y, 70))]
        assert max(shares) == pytest.approx(0.88, abs=1e-6)


def test_a_camera_straight_above_sees_the_azimuth_below():
    """What lies in the direction of the camera's azimuth is towards the lower edge."""
    camera = Camera(azimuth=0.3, elevation=np.pi / 2, distance=2.0, target=(0.0, 0.0, 0.0))
    view = perspective(camera, UP, np.zeros((1, 3)), (80, 80))
    x, y, _ = view.project(view.from_world(np.array([np.cos(0.3), np.sin(0.3), 0.0])))
    assert x == pytest.approx(40) and y > 41


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"field_of_view": 0.0}, "field_of_view: expected"),
        ({"elevation": 2.0}, "elevation: expected"),
        ({"azimuth": np.nan}, "azimuth: expected"),
        ({"distance": -1.0}, "distance: expected"),
        ({"target": (0.0, 1.0)}, "target: expected"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Camera(**wrong)


def test_normals_of_what_is_round_are_smooth_and_those_of_edges_are_not():
    """A corner of 24-gons is seen along directions that differ by up to half of 15°."""
    vertices, faces = solids.sphere(2.0)
    normals = corner_normals(vertices, faces)
    assert np.min(np.einsum("fci,fci->fc", normals, vertices[faces] / 2)) > np.cos(np.radians(7.5))
    vertices, faces = solids.box((1.0, 2.0, 3.0))
    a, b, c = vertices[faces].transpose(1, 0, 2)
    flat = np.cross(b - a, c - a)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose(corner_normals(vertices, faces), np.repeat(flat[:, None], 3, axis=1), atol=1e-6)


def test_a_coarser_mesh_keeps_its_shape_within_its_detail():
    vertices, faces = solids.sphere(1.0)
    fewer, coarse, kept = simplified(vertices, faces, 0.4)
    assert len(coarse) < len(faces) / 2 and np.all(np.diff(kept) > 0)
    assert np.max(np.abs(np.linalg.norm(fewer, axis=1) - 1)) < 0.4
    same, all_faces, _ = simplified(vertices, faces, 1e-5)
    np.testing.assert_allclose(same[all_faces], vertices[faces])


def test_meshes_are_turned_outward():
    for vertices, faces in (solids.box((1, 2, 3)), solids.capsule(0.5, 1.0)):
        for given in (faces, faces[:, ::-1]):
            turned, closed = turned_outward(vertices, given)
            assert closed and np.array_equal(turned, faces)
    vertices, faces = solids.box((1, 2, 3))
    turned, closed = turned_outward(vertices, faces[2:])
    assert not closed and np.array_equal(turned, faces[2:])


def test_lengths_are_rounded_down_to_one_two_or_five():
    assert [round_length(x) for x in (1.0, 1.9, 3.0, 7.0, 0.0499, 250.0)] == pytest.approx([1, 1, 2, 5, 0.02, 200])


def test_shadows_fall_away_from_the_light():
    """A ball at the height 1 under a light at 45° darkens the ground at a distance of 1, and not below itself."""
    floor = Floor(np.eye(3), 0.0, 20.0, 10.0)
    camera = Camera(azimuth=-np.pi / 2, elevation=np.pi / 2, distance=10.0, target=(0.0, 0.0, 0.0))
    view = perspective(camera, UP, np.zeros((1, 3)), (120, 120))
    (surface,) = surfaces([ball((0, 0, 1), 0.3)], 0.01)
    factor = floor.shadow(surface.corners, np.array([-1, 0, 1]) / np.sqrt(2), view)
    x, y = np.meshgrid(np.arange(120) + 0.5, np.arange(120) + 0.5)
    darkness = (1 - factor) / np.sum(1 - factor)
    place = view.project(view.from_world(np.array([1.0, 0.0, 0.0])))[:2]
    assert [np.sum(x * darkness), np.sum(y * darkness)] == pytest.approx(place, abs=0.5)
    assert factor[60, 60] == 1
