"""The viewer without a browser: what is computed, and what a page that no one visits does."""

import dataclasses
import importlib
import socket
import sys
import time
from urllib.parse import urlsplit

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.model.joints import Ball, Free
from jdyn.view.inertia_ellipsoids import inertia_ellipsoids
from jdyn.view.viewer.coordinates import coordinates, from_sliders, to_sliders
from jdyn.view.viewer.drag import Drag
from jdyn.view.viewer.drawing import Drawing
from jdyn.view.viewer.experiment import Experiment
from jdyn.view.viewer.motion import Motion
from jdyn.view.viewer.page import write_page
from jdyn.view.viewer.panels.joints import JointPanel
from jdyn.view.viewer.panels.plots import PlotPanel, with_cursor
from jdyn.view.viewer.player import Player
from jdyn.view.viewer.posed import posed
from jdyn.view.viewer.recorder import Recorder
from jdyn.view.viewer.server import start_server, stop_server
from jdyn.view.viewer.session import Session
from jdyn.view.viewer.worker import Worker

pytestmark = pytest.mark.fast_compile


TREE = jdyn.random_tree(3, 5, kinds=(Ball, Free, jdyn.Universal, jdyn.Prismatic, jdyn.Helical))
PENDULUM = jdyn.load("double_pendulum")
TARGET = jnp.array([0.5, -0.3])


def _link(mass, com, inertia):
    builder = jdyn.Builder("one")
    builder.add_link("link", jdyn.Ball(), mass=mass, com=com, inertia=inertia)
    return builder.build()


def _recorded(model, times, rows):
    recorder = Recorder()
    recorder.start()
    for t, q in zip(times, rows, strict=True):
        recorder.note(t, q)
    return recorder.stop(model)


def _swing(frequency=1.0, rows=21):
    times = np.linspace(0, 2, rows)
    return _recorded(PENDULUM, times, jnp.asarray(np.stack([np.sin(frequency * times), times**2], axis=1)))


# Mathematics.


@pytest.mark.parametrize("turned", [(0, 0, 0), (0.4, -0.7, 1.1)])
def test_inertia_of_a_solid_ellipsoid_is_drawn_as_this_ellipsoid(turned):
    mass, radii, R = 2.5, np.array([0.1, 0.2, 0.4]), Rotation.from_rotvec(turned).as_matrix()
    squares = radii**2
    inertia = R @ np.diag(mass / 5 * (squares.sum() - squares)) @ R.T
    drawn = inertia_ellipsoids(_link(mass, (0.3, -0.1, 0.2), inertia))
    np.testing.assert_allclose(drawn.radii[0], radii, rtol=1e-12)
    np.testing.assert_allclose(drawn.centers[0], (0.3, -0.1, 0.2), rtol=1e-12)
    axes = Rotation.from_quat(np.roll(drawn.axes[0], -1)).as_matrix()
    np.testing.assert_allclose(axes @ np.diag(squares) @ axes.T, R @ np.diag(squares) @ R.T, atol=1e-12)


def test_inertia_of_a_box_is_drawn_as_an_ellipsoid_with_its_second_moments():
    sides = np.array([0.2, 0.3, 0.6])
    inertia = np.diag(3.0 / 12 * ((sides**2).sum() - sides**2))
    np.testing.assert_allclose(inertia_ellipsoids(_link(3.0, (0, 0, 0), inertia)).radii[0], sides * np.sqrt(5 / 12))


def test_what_has_no_ellipsoid_has_no_size():
    with pytest.warns(jdyn.ModelWarning):
        massless = _link(0.0, (0, 0, 0), (0, 0, 0))
    assert not np.any(inertia_ellipsoids(massless).radii)
    thin = inertia_ellipsoids(_link(1.0, (0, 0, 0), (1.0, 1.0, 0.0))).radii[0]
    np.testing.assert_allclose(thin, (0, 0, np.sqrt(5)), atol=1e-7)


def test_sliders_and_configurations_are_the_same_for_all_kinds_of_joints():
    q = TREE.random(jax.random.key(1))
    u = to_sliders(TREE, q)
    np.testing.assert_allclose(jax.jit(TREE.difference)(from_sliders(TREE, u), q), np.zeros(TREE.nv), atol=1e-12)
    for body, kind in enumerate(TREE.topology.kinds):
        numbers = np.array(u[TREE.topology.v_slice(body)])
        if kind in (Ball, Free):
            quaternion = q[TREE.topology.q_slice(body)][-4:]
            rotation = Rotation.from_rotvec(numbers[:3]) * Rotation.from_quat(np.roll(quaternion, -1)).inv()
            assert rotation.magnitude() < 1e-12
        if kind is Free:
            np.testing.assert_allclose(numbers[3:], q[TREE.topology.q_slice(body)][:3])


def test_sliders_end_where_joints_and_those_that_follow_them_do():
    builder = jdyn.Builder("gripper")
    inertial = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    builder.add_link("turn", jdyn.Continuous((0, 0, 1)), **inertial)
    builder.add_link("left", jdyn.Prismatic((1, 0, 0)), parent="turn", lower=-0.5, upper=0.4, **inertial)
    builder.add_link(
        "right", jdyn.Prismatic((-1, 0, 0)), parent="turn", lower=-0.2, upper=0.1, mimic=jdyn.Mimic("left", 0.5, 0.0),
        **inertial,
    )  # fmt: skip
    builder.add_link("lift", jdyn.Prismatic((0, 0, 1)), parent="turn", upper=0.3, **inertial)
    turn, left, lift = coordinates(builder.build())
    np.testing.assert_allclose((turn.lower, turn.upper), (-np.pi, np.pi))
    np.testing.assert_allclose((left.lower, left.upper), (-0.4, 0.2), rtol=1e-12)
    np.testing.assert_allclose((lift.lower, lift.upper), (-1.7, 0.3), rtol=1e-12)
    assert (turn.unit, left.unit, left.name) == ("rad", "m", "left")


def test_axes_are_those_about_which_joints_turn_and_along_which_they_slide():
    q = TREE.random(jax.random.key(2))
    now = posed(TREE, q)
    rotations = np.asarray(jdyn.forward_kinematics(TREE, q).rotation)
    # In each row one degree of freedom moves alone.
    velocities = np.asarray(jax.vmap(lambda v: jdyn.body_velocities(TREE, q, v))(jnp.eye(TREE.nv)))
    motions = [(body, motion) for body, kind in enumerate(TREE.topology.kinds) for motion in kind.motions]
    for i, (body, motion) in enumerate(motions):
        own = velocities[i, body]
        np.testing.assert_allclose(
            now.axes[i], rotations[body] @ (own[3:] if motion == "slide" else own[:3]), atol=1e-12
        )


def test_a_motion_is_interpolated_and_stands_still_where_it_failed():
    whole = _swing()
    failed, nothing = (eqx.tree_at(lambda x: x.q, whole, whole.q.at[rows:].set(jnp.nan)) for rows in (11, 0))
    batch = jax.tree.map(lambda *x: jnp.stack(x), whole, failed)
    motion = Motion.of(batch)
    assert (motion.lanes, motion.end(0), motion.end(1)) == (2, 2.0, 1.0)
    np.testing.assert_allclose(motion.at(PENDULUM, 0, 1.23), whole.interpolate(1.23)[0])
    np.testing.assert_array_equal(motion.at(PENDULUM, 1, 1.9), whole.q[10])
    np.testing.assert_array_equal(motion.at(PENDULUM, 0, 7.0), whole.q[-1])
    assert len(motion.rows(PENDULUM, 1, 300)["t"]) == 11 and len(motion.rows(PENDULUM, 0, 5)["t"]) == 5
    dead = jax.tree.map(lambda *x: jnp.stack(x), whole, nothing)
    assert not len(Motion.of(dead).others(0))
    session = Session(PENDULUM, dead, 0)
    with pytest.raises(ValueError, match="lane 1 has no row of finite numbers"):
        session.choose(1)
    assert session.lane == 0
    with pytest.raises(ValueError, match="lane 1 has no row of finite numbers"):
        Session(PENDULUM, dead, 1)
    with pytest.raises(ValueError, match="expected rows of 1 coordinates"):
        Session(jdyn.load("pendulum"), whole)


def test_a_motion_backward_in_time_plays_from_its_start():
    whole = _swing()
    back = dataclasses.replace(whole, ts=-whole.ts, v=-whole.v)
    session = Session(PENDULUM, back)
    assert (session.player.start, session.player.end) == (0.0, 2.0)
    session.jump(1.23)
    np.testing.assert_allclose(session.q, whole.interpolate(1.23)[0], rtol=1e-12)
    np.testing.assert_array_equal(session.motion.rows(PENDULUM, 0, 300)["t"], whole.ts)


def test_recorded_velocities_are_exact_for_motions_of_constant_acceleration():
    times = np.array([0.0, 0.1, 0.25, 0.3, 0.5])
    recorded = _recorded(PENDULUM, times + 7, jnp.asarray(np.stack([times**2, 1 - 3 * times], axis=1)))
    np.testing.assert_allclose(recorded.ts, times, atol=1e-14)
    np.testing.assert_allclose(recorded.v[1:-1], np.stack([2 * times, -3 + 0 * times], axis=1)[1:-1], rtol=1e-10)
    assert bool(recorded.success)
    with pytest.raises(ValueError, match="nothing was recorded: move the robot"):
        Recorder().stop(PENDULUM)


def test_recorded_rotations_have_the_angular_velocity_of_their_axis():
    model = _link(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    times, spin = np.linspace(0, 1, 5), np.array([0.3, -1.0, 2.0])
    quaternions = np.roll(Rotation.from_rotvec(times[:, None] * spin).as_quat(), 1, axis=1)
    recorded = _recorded(model, times, jnp.asarray(quaternions))
    np.testing.assert_allclose(recorded.v, np.tile(spin, (5, 1)), rtol=1e-12)


def test_a_line_at_the_present_time_does_not_move_the_curves():
    t = np.linspace(0, 1, 5)
    x, y, line = with_cursor(t, [2 * t + 1], 0.4)
    np.testing.assert_allclose(y, 2 * x + 1)
    assert (np.diff(x) >= 0).all()
    np.testing.assert_array_equal(line[x == 0.4], (1, 3, 1))
    assert (line[x != 0.4] == 1).all()


# What happens as time passes.


def test_a_player_begins_again_or_stops_at_the_end():
    player = Player(speed=2.0)
    player.load(1.0, 3.0)
    assert player.time == 1.0 and not player.advance(1.0)
    player.play()
    assert player.advance(0.75) and player.time == 2.5
    player.advance(0.5)
    assert player.time == 1.5 and player.playing
    player.looping = False
    player.advance(5.0)
    assert player.time == 3.0 and not player.playing
    player.play()
    assert player.time == 1.0
    # A motion that failed at its start.
    player.load(0.0, 0.0)
    assert not player.playing and not player.advance(1.0)


def test_what_sliders_do_is_recorded_and_plays():
    session = Session(PENDULUM)
    session.recorder.start()
    for angle in (0.0, 0.1, 0.3):
        session.take(jnp.array([angle, 0.0]))
        session.tick(0.5)
    session.finish_recording()
    assert session.player.end == 1.0
    np.testing.assert_array_equal(session.q, (0, 0))
    session.player.play()
    session.tick(0.5)
    np.testing.assert_allclose(session.q, (0.1, 0), atol=1e-15)
    session.take(jnp.ones(2))
    assert not session.player.playing


def test_ghosts_are_the_other_lanes_at_the_same_time():
    batch = jax.tree.map(lambda *x: jnp.stack(x), *(_swing(frequency) for frequency in (1.0, 1.1, 1.2, 1.3)))
    session = Session(PENDULUM, batch, 2)
    session.ghosts = 2
    session.jump(1.0)
    np.testing.assert_array_equal(session.other_lanes(), (0, 3))
    np.testing.assert_allclose(session.ghost_configurations()[:, 0], np.sin([1.0, 1.3]), rtol=1e-12)
    with pytest.raises(ValueError, match="lane: expected 0 to 3, got 4"):
        Session(PENDULUM, batch, 4)


def test_a_drag_begins_with_the_frame_that_holds_things_or_with_the_deepest_body():
    assert Drag(PENDULUM).hand == PENDULUM.body_names[-1]
    builder = jdyn.Builder("gripper")
    for name, parent in (("arm", "world"), ("hand", "arm"), ("left_finger", "hand"), ("right_finger", "hand")):
        builder.add_link(name, jdyn.Prismatic((1, 0, 0)), parent=parent, mass=1.0, inertia=(1.0, 1.0, 1.0))
    assert Drag(builder.build()).hand == "left_finger"
    builder.add_frame("panda_hand_tcp", "hand", (0.0, 0.0, 0.1))
    assert Drag(builder.build()).hand == "panda_hand_tcp"


def test_a_drag_ends_where_it_should_or_says_how_far_away():
    drag, q = Drag(PENDULUM), jnp.array([0.3, 0.4])
    name, goal = PENDULUM.body_names[-1], jnp.array([1.0, 0.7])
    position, _ = drag.place(PENDULUM, goal, name)
    reached, said = drag.to(PENDULUM, q, name, position, None)
    np.testing.assert_allclose(drag.place(PENDULUM, reached, name)[0], position, atol=1e-4)
    assert said.endswith("reached")
    far, said = drag.to(PENDULUM, q, name, 3 * position, None)
    link = np.linalg.norm(position)
    assert f"out of reach, {2 * link * np.abs(position).max() / link:.3g}" in said
    np.testing.assert_allclose(drag.place(PENDULUM, far, name)[0], position, atol=1e-3)


def test_of_each_kind_only_the_newest_wish_is_done_and_errors_end_nothing():
    done, errors = [], []
    worker = Worker(lambda seconds: None, errors.append, True)
    worker.post("slider", lambda: done.append(1))
    worker.post("slider", lambda: done.append(2))
    worker.post("broken", lambda: 1 / 0)
    worker.post("button", lambda: done.append((3, jnp.zeros(()).dtype)))
    worker.start()
    assert worker.answer(lambda: done[-1][0]) == 3
    with pytest.raises(ZeroDivisionError):
        worker.answer(lambda: 1 / 0)
    assert worker.finish(10)
    worker.stop()
    assert worker.answer(lambda: "ended") == "ended"
    assert done == [2, (3, jnp.float64)] and isinstance(errors[0], ZeroDivisionError)
    # There is nothing to wait for once it has ended.
    worker.post("late", lambda: done.append(4))
    assert worker.finish(0)


# Pages that no one visits.


@pytest.mark.parametrize(("stretch", "frames_per_second"), [(1e12, 30.0), (1.0, 1e12), (1e300, 1e300)])
def test_a_page_of_very_many_frames_is_refused_at_once(tmp_path, stretch, frames_per_second):
    long = dataclasses.replace(_swing(), ts=stretch * np.asarray(_swing().ts, float))
    path, motion = tmp_path / "page.html", Motion.of(long)
    with pytest.raises(ValueError, match=r"at most 250000 frames, .* smaller frames_per_second or a shorter motion"):
        write_page(path, PENDULUM, TARGET, motion, frames_per_second=frames_per_second)
    assert not path.exists()


@pytest.mark.parametrize("frames_per_second", [0.0, -1.0, np.nan, np.inf])
def test_frames_of_a_page_have_a_positive_rate(tmp_path, frames_per_second):
    with pytest.raises(ValueError, match="frames_per_second: expected a positive number"):
        write_page(tmp_path / "page.html", PENDULUM, TARGET, None, frames_per_second=frames_per_second)


def test_a_page_moves_bodies_to_where_they_are_at_each_frame(tmp_path, monkeypatch):
    placed, motion = [], Motion.of(_swing())
    monkeypatch.setattr(Drawing, "move_bodies", lambda self, positions, rotations: placed.append(positions))
    write_page(tmp_path / "page.html", PENDULUM, TARGET, motion, frames_per_second=4.0)
    # The first one is where the robot stands before it moves.
    for t, positions in zip(np.linspace(0, 2, 9), placed, strict=True):
        expected = jdyn.forward_kinematics(PENDULUM, motion.at(PENDULUM, 0, t)).translation
        np.testing.assert_allclose(positions, expected, atol=1e-6)


@pytest.mark.slow
def test_gains_are_sliders_that_simulate_again_in_one_program():
    traced = []

    def controller(gains):
        traced.append(gains)
        return jdyn.PD(PENDULUM, TARGET, kp=gains["kp"], kd=gains["kd"])

    gains = {"kp": (10, 200), "kd": (1, 9)}
    with jdyn.view(_swing(), controller=controller, gains=gains, seconds=1.0, port=0) as viewer:
        for kp in (50.0, 100.0):
            viewer._simulation._gains["kp"].value = kp
            viewer.simulate()
            assert viewer.wait()
            alone = jdyn.simulate(
                PENDULUM, _swing().q[0], _swing().v[0], 1.0, controller=jdyn.PD(PENDULUM, TARGET, kp=kp, kd=5.0)
            )
            np.testing.assert_allclose(viewer.trajectory.q[-1], alone.q[-1], atol=1e-5)
            assert viewer._simulation._says.content.startswith("success, 1 s of motion in ")
        # Another motion brings its own start, and plays from there.
        other = _swing(1.3)
        viewer.play(other)
        assert viewer.wait() and viewer.time < 0.5
        viewer.simulate()
        assert viewer.wait()
        np.testing.assert_array_equal(viewer.trajectory.q[0], other.q[0])
        np.testing.assert_array_equal(viewer.trajectory.v[0], other.v[0])
    assert len(traced) == 1


@pytest.mark.slow
def test_lanes_of_a_store_are_shown_with_their_own_model(tmp_path):
    varied = {"payload": {"of": f"body:{PENDULUM.body_names[1]}.mass", "by": "plus", "low": 0.0, "high": 2.0}}
    entries = {
        "robot": "double_pendulum", "horizon": 0.3, "controller": {"kp": 30.0, "kd": 10.0},
        "design": {"kind": "sobol", "lanes": 4, "parameters": varied},
    }  # fmt: skip
    jdyn.Spec.of(entries, "a test").sweep(store=tmp_path / "store", progress=False)
    with jdyn.view(store=tmp_path / "store", lane=1, port=0) as viewer:
        lanes = {lane: jdyn.replay(tmp_path / "store", lane) for lane in (1, 2)}
        for lane, expected in lanes.items():
            viewer.ask("lane", lambda lane=lane: viewer._panels[0]._take(lane))
            assert viewer.wait()
            np.testing.assert_array_equal(viewer.trajectory.q, expected.motion.q)
            np.testing.assert_array_equal(viewer._session.model.inertias.mass, expected.model.inertias.mass)
        assert "lane 2" in viewer._panels[0]._says.content and not viewer._errors.visible


@pytest.fixture(scope="module")
def viewer():
    batch = jax.tree.map(lambda *x: jnp.stack(x), _swing(1.0), _swing(1.5))
    with jdyn.view(batch, lane=1, port=0) as viewer:
        yield viewer


def test_bodies_are_drawn_where_forward_kinematics_says(viewer):
    q = jnp.array([0.4, -1.0])
    viewer.show(q)
    assert viewer.wait()
    np.testing.assert_array_equal(viewer.q, q)
    poses = jdyn.forward_kinematics(PENDULUM, q)
    for body, handle in enumerate(viewer._drawing._bodies):
        np.testing.assert_allclose(handle.position, poses.translation[body], atol=1e-6)
        R = Rotation.from_quat(np.roll(handle.wxyz, -1)).as_matrix()
        np.testing.assert_allclose(R, poses.rotation[body], atol=1e-6)


def test_a_motion_that_plays_moves_the_robot(viewer):
    viewer.play()
    deadline = time.monotonic() + 10
    while viewer.time < 0.1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert viewer.time >= 0.1
    viewer.ask("pause", viewer._session.player.pause)
    assert viewer.wait()
    t = viewer.time
    np.testing.assert_allclose(viewer.q, viewer._session.motion.at(PENDULUM, 1, t))
    assert viewer._session.motion.at(PENDULUM, 1, t)[0] == pytest.approx(np.sin(1.5 * t), abs=1e-4)


def test_sliders_and_pasted_numbers_move_the_robot(viewer):
    joints = next(panel for panel in viewer._panels if isinstance(panel, JointPanel))
    viewer.ask("paste", lambda: joints._read("[0.5, -1.25]"))
    assert viewer.wait()
    np.testing.assert_array_equal(viewer.q, (0.5, -1.25))
    viewer.ask("slide", lambda: joints._take(0, 0.25))
    assert viewer.wait()
    np.testing.assert_array_equal(viewer.q, (0.25, -1.25))
    with pytest.raises(ValueError, match=r"q: expected 2 numbers for 'double_pendulum', got '1, x'"):
        joints._read("1, x")


def test_a_page_is_written_of_what_was_asked_for_before(viewer, monkeypatch):
    written = []
    module = sys.modules[type(viewer).__module__]
    monkeypatch.setattr(module, "write_page", lambda path, model, q, *_, **__: written.append(q))
    viewer.ask("slow", lambda: time.sleep(0.1))
    viewer.show([0.75, -0.25])
    viewer.export("page.html")
    np.testing.assert_array_equal(written, [(0.75, -0.25)])


def test_plots_say_what_they_leave_out(viewer, monkeypatch):
    monkeypatch.setattr(sys.modules[PlotPanel.__module__], "CURVES", 1)
    plots = next(panel for panel in viewer._panels if isinstance(panel, PlotPanel))
    viewer.ask("draw", plots._draw)
    assert viewer.wait()
    plot, curves, _ = plots._plots[0]
    assert (plot.title, len(curves), len(plot.series)) == ("q [rad, m]: the first 1 of 2", 1, 3)


def test_every_look_and_mark_can_be_switched_on_and_off(viewer):
    drawing = viewer._drawing
    for look in ("collision", "skeleton", "visual"):
        drawing.show_links(look)
        shown = {name for name, handles in drawing._links.items() if all(handle.visible for handle in handles)}
        assert shown == {look}
    drawing.fade(0.5)
    drawing.show_links("skeleton")
    assert {handle.opacity for handle in drawing._links["skeleton"]} == {0.5}
    drawing.fade(1.0)
    drawing.show_links("visual")
    for mark in drawing.marks.values():
        before = mark.shown
        mark.show(not before)
        assert mark.shown is not before
        mark.show(before)


def test_shapes_keep_their_opacity_when_links_fade():
    builder = jdyn.Builder("glass")
    builder.add_link("glass", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    builder.add_shape("glass", "sphere", 0.3, role="visual", color=(1, 0, 0, 0.5))
    server = start_server("127.0.0.1", 0)
    try:
        drawing = Drawing(server.scene, builder.build(), jnp.zeros((1, 1)))
        (ball,) = drawing._links["visual"]
        assert ball.opacity == 0.5
        drawing.fade(0.5)
        assert ball.opacity == 0.25
    finally:
        stop_server(server)


def test_the_grid_lies_on_the_ground_of_the_model():
    """Its quaternion takes z to the normal."""
    slope = jdyn.pose((0, 0, -0.5), (0.0, 0.3, 0.0))
    server = start_server("127.0.0.1", 0)
    try:
        drawing = Drawing(server.scene, jdyn.with_ground(jdyn.load("ball"), slope), jnp.zeros((1, 7)).at[0, 3].set(1.0))
        (grid,) = drawing.marks["ground"]._handles
    finally:
        stop_server(server)
    out = np.array([np.sin(0.3), 0, np.cos(0.3)])
    np.testing.assert_allclose(grid.wxyz, [np.cos(0.15), 0, np.sin(0.15), 0], atol=1e-6)
    np.testing.assert_allclose(grid.position, out * (out @ [0, 0, -0.5]), atol=1e-6)


@pytest.mark.slow
def test_a_simulation_of_the_page_feels_the_ground():
    """A mass of 1 kg on a rail falls through it where it is not told to touch."""
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0, inertia=4e-3)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    model, ends = jdyn.with_ground(builder.build()), []
    for contact in (None, jdyn.CompliantContact()):
        motion, _ = Experiment(jdyn.System(model, contact=contact)).run(model, jnp.array([0.2]), jnp.zeros(1), 1.0, {})
        ends.append(float(motion.q[-1, 0]))
    assert ends[0] == pytest.approx(0.2 - 9.81 / 2, abs=1e-5) and ends[1] == pytest.approx(0.1, abs=2e-4)


def test_a_system_is_simulated_with_all_its_parts():
    """From the start that its file has, to where its joint stops."""
    model = jdyn.load("pendulum").with_joint("joint1", lower=-0.2, upper=3.0)
    system = jdyn.System(model, joint_limits=jdyn.CompliantLimits(), configurations={"qpos0": jnp.array([1.0])})
    with jdyn.view(system, port=0, seconds=2.0) as viewer:
        viewer.ask("simulate", viewer._simulation._from_here)
        assert viewer.wait()
        motion = viewer._session.motion
    assert motion is not None and motion.q[0, 0, 0] == 1.0 and -0.25 < motion.q.min() < -0.2


def test_errors_are_shown_on_the_page(viewer, capsys):
    def break_something():
        raise ValueError("the spring is broken")

    viewer.ask("broken", break_something)
    assert viewer.wait()
    assert viewer._errors.visible and "the spring is broken" in viewer._errors.content
    assert "the spring is broken" in capsys.readouterr().err
    viewer.ask("mended", lambda: None)
    assert viewer.wait() and not viewer._errors.visible
    viewer.ask("broken", break_something)
    assert viewer.wait() and "the spring is broken" in capsys.readouterr().err


def test_the_page_computes_in_the_precision_of_its_model():
    with jax.enable_x64(False), jdyn.view(PENDULUM, port=0) as viewer:
        viewer.show(jnp.array([0.1, 0.2]))
        assert viewer.wait() and viewer.q.dtype == np.float64


def test_a_picture_needs_a_browser(viewer):
    with pytest.raises(RuntimeError, match=r"no browser shows http://127\.0\.0\.1:"):
        viewer.screenshot()


def test_a_closed_viewer_gives_its_port_back():
    viewer = jdyn.view(PENDULUM, port=0)
    port = urlsplit(viewer.url).port
    viewer.close()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def test_wrong_arguments_are_refused_before_a_page_opens(monkeypatch):
    monkeypatch.setattr(importlib.import_module("jdyn.view.viewer.viewer"), "start_server", None)
    with pytest.raises(ValueError, match=r"expected a jdyn.Model .* got none"):
        jdyn.view()
    with pytest.raises(ValueError, match=r"model: expected one, got a batch of shape \(2,\)"):
        jdyn.view(jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), PENDULUM))
    with pytest.raises(ValueError, match="leave out what is shown"):
        jdyn.view(PENDULUM, store="nowhere")
    with pytest.raises(ValueError, match=r"gains\['kp'\]: expected a range such as \(10, 1000\), got \(3, 1\)"):
        jdyn.view(PENDULUM, gains={"kp": (3, 1)}, controller=lambda gains: None)
    with pytest.raises(ValueError, match="controller: expected a function of the gains"):
        Experiment(jdyn.System(PENDULUM), {"kp": (1, 2)})
    with pytest.raises(ValueError, match="controller: expected a function of the gains"):
        Experiment(jdyn.System(PENDULUM), {"kp": (1, 2)}, jdyn.PD(PENDULUM, TARGET, kp=1.0, kd=1.0))


def test_without_viser_it_says_what_to_install(monkeypatch):
    package = sys.modules["jdyn.view.viewer"]
    for name in ("viewer", "page", "server"):
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}")
        monkeypatch.delattr(package, name)
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r'needs viser, which is not installed; pip install "jdyn\[view\]"'):
        jdyn.view(PENDULUM)
