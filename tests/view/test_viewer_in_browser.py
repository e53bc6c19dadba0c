"""The viewer as a person meets it: in Chromium, without a window and without a GPU."""

import shutil
import time

import imageio.v3 as iio
import jax.numpy as jnp
import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.view.viewer.recorder import Recorder

pytestmark = [pytest.mark.slow, pytest.mark.fast_compile]

MODEL = jdyn.load("double_pendulum")
BROWSERS = "chromium", "chromium-browser", "google-chrome"
# WebGL by the processor.
FLAGS = "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"
WIDTH, HEIGHT = 900, 560
PATIENCE = 60_000
HARM = '<img src="data:," onerror="window.harmed=1">'


def swing():
    recorder = Recorder()
    recorder.start()
    for t in np.linspace(0, 4, 81):
        recorder.note(t, jnp.array([np.sin(2 * t), 1 - np.cos(3 * t)]))
    return recorder.stop(MODEL)


@pytest.fixture(scope="module")
def browser():
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is installed; apt-get install chromium, or deselect these tests")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page, and what went wrong on it or left the machine."""

    def __init__(self, context, address):
        self.page = context.new_page()
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: self.errors.extend([message.text] * (message.type == "error")))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def picture(self):
        """The middle of the scene, without the panel and notifications, as an array."""
        clip = {"x": 0.36 * WIDTH, "y": 0.1 * HEIGHT, "width": 0.24 * WIDTH, "height": 0.7 * HEIGHT}
        return iio.imread(self.page.screenshot(clip=clip, timeout=PATIENCE))[..., :3].astype(int)


@pytest.fixture(scope="module")
def viewer():
    with jdyn.view(swing(), port=0) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def visit(browser, viewer):
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    visit = Visit(context, viewer.url)
    visit.page.get_by_role("tab", name="Joints").wait_for(timeout=PATIENCE)
    until(lambda: colored(visit.picture()) > 200)
    yield visit
    context.close()


def until(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def colored(picture):
    """How many pixels are neither white nor grey, as background and ground are: those of the robot."""
    return int(np.sum(np.ptp(picture, axis=-1) > 40))


def still(visit):
    """A picture, once two in a row are the same."""
    before, after = visit.picture(), visit.picture()
    while np.any(before != after):
        before, after = after, visit.picture()
    return after


# Before the other page is open: two pages share one processor.


def test_an_exported_page_plays_without_a_server_and_a_network(browser, viewer, tmp_path):
    path = viewer.export(tmp_path / "motion.html", frames_per_second=10)
    assert path.stat().st_size < 2_000_000
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)
    visit = Visit(context, path.as_uri())
    until(lambda: colored(visit.picture()) > 200)
    before = visit.picture()
    until(lambda: np.sum(np.ptp(visit.picture() - before, axis=-1) > 40) > 100)
    assert not visit.errors
    assert all(url.split(":")[0] in ("file", "data", "blob") for url in visit.requests)
    # Nor does it run what got into it, or ask for anything.
    visit.page.evaluate(f"document.body.insertAdjacentHTML('beforeend', `{HARM}`)")
    until(lambda: any("Content Security Policy" in error for error in visit.errors))
    assert not visit.page.evaluate("window.harmed")
    context.close()


def test_the_robot_is_there_and_nothing_goes_wrong(visit, viewer):
    assert colored(still(visit)) > 200
    assert colored(viewer.screenshot(width=320, height=240).astype(int)) > 100
    assert not visit.errors


def test_play_moves_the_robot_and_pause_stops_it(visit, viewer):
    before = still(visit)
    visit.page.get_by_role("button", name="Play").click()
    until(lambda: viewer.time > 0.2)
    visit.page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer._session.player.playing)
    q, after = viewer.q, still(visit)
    np.testing.assert_allclose(q[0], np.sin(2 * viewer.time), atol=1e-3)
    assert np.sum(np.ptp(after - before, axis=-1) > 40) > 100
    assert np.array_equal(viewer.q, q) and np.array_equal(still(visit), after)


def test_a_slider_that_is_moved_in_the_page_moves_the_joint(visit, viewer):
    visit.page.get_by_role("tab", name="Joints").click()
    name = viewer._session.model.joint_names[0]
    number = visit.page.get_by_text(f"{name} [rad]").locator("xpath=ancestor::*[.//input][1]//input").last
    number.fill("0.7")
    number.press("Enter")
    until(lambda: abs(viewer.q[0] - 0.7) < 0.01)


def test_a_gizmo_that_is_drawn_takes_the_body_along(visit, viewer):
    visit.page.get_by_role("tab", name="Joints").click()
    visit.page.get_by_label("drag with a gizmo").check()
    said = visit.page.get_by_text(f"{MODEL.body_names[-1]}: reached")
    said.wait_for(timeout=PATIENCE)
    still(visit)
    camera = next(iter(viewer._server.get_clients().values())).camera
    before = jdyn.forward_kinematics(MODEL, viewer.q).translation[-1]
    # The arrow of the gizmo along z, whose length is its scale, drawn downwards.
    arrow = np.array(before) + np.array([0, 0, 0.09 * viewer._drawing.size])
    visit.page.mouse.move(*on_screen(camera, arrow))
    visit.page.mouse.down()
    for step in np.linspace(0, -0.1, 6):
        visit.page.mouse.move(*on_screen(camera, arrow + np.array([0, 0, step])))
    visit.page.mouse.up()
    until(lambda: np.linalg.norm(jdyn.forward_kinematics(MODEL, viewer.q).translation[-1] - before) > 0.05)
    visit.page.get_by_label("drag with a gizmo").uncheck()
    assert not visit.errors


def test_words_of_an_error_are_shown_and_not_run(visit, viewer, capsys):
    def fail():
        raise ValueError(HARM)

    viewer.ask("fail", fail)
    visit.page.get_by_text(HARM).first.wait_for(timeout=PATIENCE)
    viewer.ask("mend", lambda: None)
    until(lambda: not viewer._errors.visible)
    assert not visit.page.evaluate("window.harmed") and not visit.errors
    capsys.readouterr()


def on_screen(camera, x):
    """Where a point of the world is on the page [pixels], by the pinhole camera."""
    sideways, down, away = Rotation.from_quat(np.roll(camera.wxyz, -1)).inv().apply(x - camera.position)
    focal = HEIGHT / 2 / np.tan(camera.fov / 2)
    return WIDTH / 2 + focal * sideways / away, HEIGHT / 2 + focal * down / away
