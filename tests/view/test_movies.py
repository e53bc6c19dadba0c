"""Movies show the motion that they were given, in its time."""

import base64
import dataclasses
import re
import shutil
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jdyn
from jdyn.model.shapes import SIZES
from jdyn.view import movie as movie_module
from jdyn.view import movie_files, solids
from jdyn.view.plane import plane_of_motion
from jdyn.view.playback import Poses, played
from jdyn.view.stage import staged
from jdyn.view.steady import SteadyPictures
from jdyn.view.surface import simplified
from tests.view.kept_pictures import FOLDER, PICTURES, motion_through

pytestmark = pytest.mark.fast_compile

SIZE = 96, 72
MODEL = jdyn.load("double_pendulum")
TIMES = jnp.linspace(0, 1.0, 21)


@pytest.fixture(scope="module")
def batch():
    """Three lanes that swing from different angles; the last one fails after 0.5 s."""
    phase = 3 * TIMES[None, :, None] + jnp.array([[0.1, 0.7]])[None]
    width = jnp.array([[1.0, 0.5], [1.5, 0.2], [2.0, 1.0]])[:, None]
    failed = (jnp.arange(3) == 2)[:, None, None] & (TIMES > 0.5)[None, :, None]
    q, v = width * jnp.cos(phase), -3 * width * jnp.sin(phase)
    return motion_through(jnp.tile(TIMES, (3, 1)), jnp.where(failed, jnp.nan, q), v).with_system(MODEL)


@pytest.fixture(scope="module")
def motion(batch):
    return jax.tree.map(lambda leaf: leaf[0], batch)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_those_that_were_looked_at(name):
    """Rounding moves edges by a part of a level, and a pixel whose centre is on an edge by one sample of four."""
    with Image.open(FOLDER / f"{name}.png") as kept:
        difference = np.abs(np.asarray(kept, int) - PICTURES[name]())
    assert np.mean(difference) < 0.25 and np.mean(difference > 64) < 0.002


def test_frames_are_at_their_instants(motion):
    """Poses are those of the interpolated configuration, frames 1/fps apart in slow motion as told."""
    poses = played(motion, None, fps=8, speed=0.5)
    assert poses.frames == 17
    for frame in (0, 5, 16):
        q, _ = motion.interpolate(frame * 0.5 / 8)
        expected = jdyn.forward_kinematics(MODEL, q)
        np.testing.assert_allclose(poses.translation[0, frame], expected.translation, atol=1e-12)
        np.testing.assert_allclose(poses.rotation[0, frame], expected.rotation, atol=1e-12)


def test_a_motion_backward_in_time_plays_from_its_start(batch):
    back = dataclasses.replace(batch, ts=3 - batch.ts, v=-batch.v)
    forward, backward = (played(motion, [0, 2], fps=4, speed=1.0) for motion in (batch, back))
    assert backward.frames == forward.frames == 5
    np.testing.assert_allclose(backward.translation, forward.translation, atol=1e-12)


def test_points_of_trails_are_those_of_frames(motion):
    poses = played(motion, None, fps=4, speed=1.0)
    q, _ = motion.interpolate(0.75)
    tip = jdyn.frame_pose(MODEL, q, "tip").translation
    np.testing.assert_allclose(poses.points(MODEL, "tip")[0, 3], tip, atol=1e-12)


def test_a_lane_that_failed_stays_where_it_failed(batch):
    poses = played(batch, [2, 0], fps=20, speed=1.0)
    last = jdyn.forward_kinematics(MODEL, batch.q[2, 10]).translation
    np.testing.assert_allclose(poses.translation[0, 10:], np.broadcast_to(last, (11, 2, 3)), atol=1e-12)
    assert np.all(np.ptp(poses.translation[1, 10:, 1, [0, 2]], axis=1) > 0.1)


def test_ghosts_are_fainter_and_behind(batch):
    """Where the solid lane is, nothing changes; elsewhere, a ghost is lighter than it would be alone."""
    q = batch.q[:2, 0]
    camera = jdyn.Camera(azimuth=-np.pi / 2, elevation=0.1, target=(0.0, 0.0, -0.5), distance=6.0)
    (solid, ghost), both = (
        (jdyn.snapshot(MODEL, x, camera=camera, size=SIZE).astype(int) for x in q),
        (jdyn.snapshot(MODEL, q, camera=camera, size=SIZE).astype(int)),
    )
    colored = np.ptp(solid, axis=2) > 40
    assert np.sum(colored) > 50
    np.testing.assert_allclose(both[colored], solid[colored], atol=1)
    only = (np.ptp(ghost, axis=2) > 40) & (np.ptp(solid, axis=2) == 0)
    assert np.sum(only) > 50
    faded = np.ptp(both, axis=2)[only] / np.ptp(ghost, axis=2)[only]
    assert np.all((faded > 0.15) & (faded < 0.3))


@pytest.mark.parametrize("camera", [None, jdyn.Camera(azimuth=-1.2)])
def test_the_tip_is_where_forward_kinematics_puts_it(camera):
    """The rod's half ball about the tip ends one radius beyond it, which is 1/30 of the mechanism's length."""
    q = jnp.array([0.4, 0.9])
    X = jdyn.forward_kinematics(MODEL, q)
    stage = _stage(MODEL, q, camera)
    picture = stage.picture(0, stage.backgrounds()(0)).astype(int)
    tip = np.asarray(jdyn.frame_pose(MODEL, q, "tip").translation)
    along = tip - np.asarray(X.translation[1])
    for radii, blue in ((-5, True), (0.7, True), (1.3, False)):
        point = tip + along / np.linalg.norm(along) * radii * 2 / 30
        column, row, _ = np.floor(stage.view.project(stage.view.from_world(point))).astype(int)
        red, _, color = picture[row, column]
        assert (color > red + 40) == blue


@pytest.mark.parametrize("placement", [(0, 0, 0.1), jdyn.pose((0, 0, -0.2), (0.0, 0.3, 0.2))])
def test_the_floor_is_the_ground_of_the_model(placement):
    """Also a slope; a wall is none."""
    ball = jdyn.load("ball")
    model = jdyn.with_ground(ball, placement)
    plane = model.shapes.placements
    normal = np.asarray(plane.rotation[-1, :, 2])
    floor = _stage(model, model.neutral(), jdyn.Camera()).renderer.floor
    np.testing.assert_allclose(floor.axes[2], normal, atol=1e-12)
    assert floor.height == pytest.approx(normal @ np.asarray(plane.translation[-1]))
    wall = jdyn.with_ground(ball, jdyn.pose((3, 0, 0), (0.0, -1.5, 0.0)))
    floor = _stage(wall, wall.neutral(), jdyn.Camera()).renderer.floor
    np.testing.assert_allclose(floor.axes[2], [0, 0, 1], atol=1e-12)


def test_planes_that_are_seen_from_their_side_are_lines():
    """Just behind their surface, at which the slabs begin that are drawn."""
    model = jdyn.load("cartpole_with_walls")
    stage = _stage(model, jnp.array([0.0, 0.3]), None)
    picture = stage.picture(0, stage.backgrounds()(0)).astype(int)
    walls = jdyn.contact.distances(model, jnp.zeros(2), [("left_wall", "tip"), ("right_wall", "tip")])
    for surface, out in zip(np.asarray(walls.a), np.asarray(walls.normal), strict=True):
        levels = []
        for pixels in (-1, 2):
            point = surface + pixels * stage.view.pixel(1.0) * out
            column, row, _ = np.floor(stage.view.project(stage.view.from_world(point))).astype(int)
            levels.append(picture[row, column].mean())
        assert levels[0] < 160 < 200 < levels[1]


def _stage(model, q, camera):
    X = jdyn.forward_kinematics(model, q)
    poses = Poses(np.asarray(X.rotation)[None, None], np.asarray(X.translation)[None, None])
    return staged(model, poses, camera, (300, 240), "visual", ())


@pytest.mark.parametrize("fps, frames", [(10, 11), (30, 31)])
def test_a_gif_has_its_frames_and_its_duration(tmp_path, motion, fps, frames):
    movie = jdyn.animate(motion, tmp_path / "motion.gif", fps=fps, size=SIZE)
    assert (len(movie), movie.duration) == (frames, pytest.approx(frames / fps))
    with Image.open(tmp_path / "motion.gif") as gif:
        assert (gif.n_frames, gif.size, gif.info["loop"]) == (frames, SIZE, 0)
        durations = []
        for number in range(gif.n_frames):
            gif.seek(number)
            durations.append(gif.info["duration"])
            shown = np.asarray(gif.convert("RGB"), int)
            difference = np.abs(shown - movie.frame(number))
            assert np.mean(difference) < 1.5 and np.all(difference[movie.frame(number) == 255] < 2)
    assert sum(durations) == pytest.approx(1000 * frames / fps, abs=10)


def test_an_mp4_has_its_frames_and_its_duration(monkeypatch, tmp_path, motion):
    """As FFmpeg counts them; odd sizes are made even."""
    # What counts them forks otherwise, which JAX warns of.
    monkeypatch.setenv("IMAGEIO_FFMPEG_NO_PREVENT_SIGINT", "1")
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    movie = jdyn.animate(motion, tmp_path / "motion.mp4", fps=10, size=(97, 71))
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "motion.mp4"))
    assert frames == len(movie) == 11 and seconds == pytest.approx(1.1, abs=0.02)
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "motion.mp4"))
    assert next(reader)["size"] == (98, 72)
    first = np.frombuffer(next(reader), np.uint8).reshape(72, 98, 3)[:71, :97]
    reader.close()
    assert np.mean(np.abs(first.astype(int) - movie.frame(0))) < 4


def test_a_strip_has_five_frames_side_by_side(tmp_path, motion):
    movie = jdyn.animate(motion, tmp_path / "motion.png", fps=8, size=SIZE)
    with Image.open(tmp_path / "motion.png") as strip:
        pixels = np.asarray(strip)
    assert pixels.shape == (72, 5 * 96, 3)
    np.testing.assert_array_equal(pixels[:, -96:], movie.frame(8))


@pytest.mark.parametrize("kind", ["mp4", "gif"])
def test_a_notebook_shows_the_movie_itself(monkeypatch, motion, kind):
    if kind == "gif":
        monkeypatch.setattr(movie_module, "ffmpeg", lambda: None)
    page = jdyn.animate(motion, fps=5, size=SIZE)._repr_html_()
    data = base64.b64decode(re.search(r'base64,([^"]+)"', page).group(1))
    assert data[:6] == b"GIF89a" if kind == "gif" else data[4:8] == b"ftyp"


def test_without_ffmpeg_it_says_what_to_install(monkeypatch, tmp_path, motion):
    monkeypatch.setattr(movie_files, "ffmpeg", lambda: None)
    with pytest.raises(ImportError, match=r'pip install "jdyn\[view\]"'):
        jdyn.animate(motion, tmp_path / "motion.mp4", size=SIZE)
    assert not list(tmp_path.iterdir())


def test_a_movie_that_ffmpeg_cannot_write_says_why(monkeypatch, tmp_path, motion):
    script = tmp_path / "ffmpeg"
    script.write_text("#!/bin/sh\necho no codec >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(movie_files, "ffmpeg", lambda: str(script))
    with pytest.raises(OSError, match=r"motion.mp4: FFmpeg failed: no codec"):
        jdyn.animate(motion, tmp_path / "motion.mp4", size=SIZE)


def test_a_camera_follows_a_free_body():
    """A body that falls freely stays in the middle; without following it, it leaves it."""
    builder = jdyn.Builder("brick")
    builder.add_link("brick", jdyn.Free(), mass=1.0, inertia=(0.1, 0.2, 0.25))
    model, fall = builder.build(), jnp.zeros((len(TIMES), 6))
    q = jnp.tile(model.neutral(), (len(TIMES), 1)).at[:, 2].set(20 - 9.81 / 2 * TIMES**2)
    motion = motion_through(TIMES, q, fall.at[:, 5].set(-9.81 * TIMES)).with_system(model)

    def middles(camera):
        movie = jdyn.animate(motion, fps=2, size=SIZE, camera=camera)
        colored = [np.nonzero(np.ptp(movie.frame(k).astype(int), axis=2) > 40) for k in range(3)]
        return np.array([[np.mean(rows), np.mean(columns)] for rows, columns in colored])

    assert np.all(np.abs(middles(jdyn.Camera(follow="brick", distance=8.0, target=(0.0, 0, 0))) - [35.5, 47.5]) < 1.5)
    assert np.ptp(middles(jdyn.Camera())[:, 0]) > 20


def test_steady_pictures_are_taken_from_one_place():
    pictures = SteadyPictures(MODEL, MODEL.neutral(), None, SIZE)
    for q in (np.array([0.5, 0.3]), np.array([2.0, 1.0])):
        picture = pictures.of(q).astype(int)
        colored = np.ptp(picture, axis=2) > 40
        assert np.sum(colored) > 30 and not colored[[0, -1]].any() and not colored[:, [0, -1]].any()
        still = pictures.of(np.zeros(2)).astype(int)
        assert np.mean(np.all(picture == still, axis=2)) > 0.7
    walker = jdyn.load("chain", floating_base=True)
    pictures, away = SteadyPictures(walker, walker.neutral(), None, SIZE), walker.neutral().at[:2].set(40.0)
    here, there = (np.ptp(pictures.of(q).astype(int), axis=2) > 40 for q in (walker.neutral(), away))
    assert np.sum(here) > 50
    assert np.mean(here == there) > 0.99


def test_what_is_smaller_than_a_pixel_is_drawn():
    """A ball within one cube of the grid, and a rod that is thinner than one, both off the grid's planes."""
    vertices, faces = solids.sphere(0.02)
    coarse, kept, _ = simplified(vertices + 0.5, faces, 1.0)
    # A quarter of its diameter at least.
    assert len(kept) and np.all(np.ptp(coarse, axis=0) > 0.01)
    builder = jdyn.Builder("needle")
    builder.add_link("needle", jdyn.Free(), mass=1.0, inertia=1.0)
    where = (0.03, 0.03, 1.5)
    builder.add_shape("needle", "cylinder", (0.012, 2.0), placement=where, role="visual", color=(1, 0, 0))
    model = builder.build()
    q = model.neutral()
    picture = jdyn.snapshot(model, q, size=SIZE).astype(int)
    assert np.sum(np.any(np.ptp(picture, axis=2) > 20, axis=1)) > 50
    assert jdyn.snapshot(model, q, size=SIZE, camera=jdyn.Camera(distance=1e5)).shape == (72, 96, 3)


@pytest.mark.parametrize("kind", ["box", "sphere", "capsule", "cylinder", "ellipsoid"])
def test_visuals_without_a_size_draw_nothing(kind):
    def picture(*shapes):
        # Not planar, so that its shapes are looked at from everywhere.
        builder = jdyn.Builder("ball")
        builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=1.0)
        for number, (kind, size) in enumerate(shapes):
            builder.add_shape("ball", kind, np.full(SIZES[kind][0], size), role="visual", name=f"shape {number}")
        model = builder.build()
        return jdyn.snapshot(model, model.neutral(), size=SIZE)

    box = picture(("box", 0.5))
    np.testing.assert_array_equal(picture(("box", 0.5), (kind, 0.0), (kind, 1e-200)), box)
    assert picture((kind, 0.0)).shape == box.shape


def test_a_ball_of_any_size_fills_the_picture():
    for radius in (1e-5, 0.3):
        builder = jdyn.Builder("ball")
        builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=1.0)
        builder.add_shape("ball", "sphere", radius, role="visual", color=(1, 0, 0))
        model = builder.build()
        picture = jdyn.snapshot(model, model.neutral(), size=SIZE).astype(int)
        assert np.mean(np.ptp(picture, axis=2) > 40) > 0.3


def test_what_is_transparent_lets_the_background_through():
    """A fifth of its colour, and four fifths of what is behind; it casts no shadow."""

    def picture(alpha):
        builder = jdyn.Builder("pane")
        builder.add_link("pane", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
        builder.add_shape("pane", "box", (0.1, 1, 1), placement=(0, 0, 3), role="visual", color=(1, 0, 0, alpha))
        camera = jdyn.Camera(elevation=0.1, azimuth=0.0, target=(0, 0, 3), distance=6.0)
        return jdyn.snapshot(builder.build(), [0.0], size=SIZE, camera=camera).astype(int)

    opaque, pale, nothing = (picture(alpha) for alpha in (1.0, 0.2, 1e-9))
    middle = slice(30, 42), slice(42, 54)
    assert np.min(np.ptp(opaque[middle], axis=2)) > 40 and not np.any(np.ptp(nothing, axis=2))
    np.testing.assert_allclose(pale[middle], 0.2 * opaque[middle] + 0.8 * nothing[middle], atol=1)


def test_a_camera_needs_finite_numbers():
    for wrong in ({"target": (0, 0, np.nan)}, {"distance": np.inf}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected"):
            jdyn.Camera(**wrong)


def test_a_batch_of_models_is_refused_at_once():
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), MODEL)
    with pytest.raises(ValueError, match="model: expected one, got a batch"):
        jdyn.snapshot(batch, jnp.zeros(2))


def test_a_wheel_without_its_program_leaves_ffmpeg_to_the_system(monkeypatch):
    def get_ffmpeg_exe():
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", types.SimpleNamespace(get_ffmpeg_exe=get_ffmpeg_exe))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert movie_files.ffmpeg() == "/bin/ffmpeg"


def test_a_motion_of_one_row_is_one_frame(motion):
    one = dataclasses.replace(motion, ts=motion.ts[:1], q=motion.q[:1], v=motion.v[:1])
    assert jdyn.animate(one, size=SIZE).frames == 1


PLANAR = {"pendulum", "double_pendulum", "cartpole", "acrobot", "prrr", "chain", "cartpole_with_walls", "hopper"}


@pytest.mark.parametrize("name", jdyn.ROBOTS)
def test_robots_that_move_in_a_plane_are_seen_from_the_front(name):
    plane = plane_of_motion(jdyn.load(name))
    assert (plane is not None) == (name in PLANAR)
    if plane is not None:
        normal, up = plane
        np.testing.assert_allclose([normal @ normal, up @ up, normal @ up], [1, 1, 0], atol=1e-12)
        assert np.max(np.cross(up, normal)) == pytest.approx(1)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"fps": 0}, "fps: expected a positive number"),
        ({"speed": np.nan}, "speed: expected a positive number"),
        ({"size": (640,)}, "size: expected width and height"),
        ({"lanes": [3]}, "lanes: expected numbers from 0 to 2, got 3"),
        ({"lanes": []}, "lanes: expected at least one"),
        ({"look": "audible"}, "look: expected"),
        ({"trails": ["tipp"]}, "tipp"),
        ({"path": "motion.avi"}, "expected a name that ends with .gif"),
    ],
)
def test_what_cannot_be_is_refused(batch, wrong, message):
    with pytest.raises(ValueError, match=message):
        jdyn.animate(batch, **{"size": SIZE} | wrong)


def test_a_lane_without_a_finite_row_is_refused_or_left_out(batch):
    nothing = dataclasses.replace(batch, q=batch.q.at[1].set(jnp.nan))
    with pytest.raises(ValueError, match="lane 1 has no row of finite numbers"):
        jdyn.animate(nothing, lanes=[1, 0])
    assert len(played(nothing, None, 5, 1.0).rotation) == 2


@pytest.mark.parametrize(
    ("seconds", "options"), [(1e12, {}), (1.0, {"fps": 1e12}), (1.0, {"speed": 1e-12}), (1.0, {"fps": 1e300})]
)
def test_a_movie_of_very_many_frames_is_refused_at_once(motion, seconds, options):
    long = dataclasses.replace(motion, ts=seconds * motion.ts)
    with pytest.raises(ValueError, match=r"at most 250000 frames, .* smaller fps, a larger speed or a shorter motion"):
        jdyn.animate(long, size=SIZE, **options)


def test_frames_of_two_hours_are_not_too_many(motion):
    assert played(dataclasses.replace(motion, ts=7200 * motion.ts), None, 30, 1.0).frames == 216_001


def test_a_motion_of_another_mechanism_is_refused(motion):
    with pytest.raises(ValueError, match="expected 2 coordinates, those of the rows, but 'pendulum' has 1"):
        motion.with_system(jdyn.load("pendulum"))


@pytest.mark.parametrize("q", [[1.0], [[1.0]], np.zeros((0, 2)), [np.nan, 0.0]])
def test_a_picture_needs_a_configuration(q):
    with pytest.raises(ValueError, match="q: expected"):
        jdyn.snapshot(MODEL, q)


def test_single_precision_draws_the_same():
    q = [0.4, 0.9]
    double, single = (jdyn.snapshot(MODEL.astype(dtype), q, size=SIZE).astype(int) for dtype in ("float64", "float32"))
    assert np.mean(np.abs(double - single)) < 0.25
