"""`jdyn.view`: a robot in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jdyn.model import Model
from jdyn.simulation import System, Trajectory
from jdyn.simulation.parts import Unknown
from jdyn.terminal.messages import one_of
from jdyn.view.lanes import Lanes
from jdyn.view.look import LOOKS, Look
from jdyn.view.playback import one_lane
from jdyn.view.scene import one_model

if TYPE_CHECKING:
    from jdyn.view.viewer.viewer import Viewer


def view(
    shown: Model | System | Trajectory | None = None,
    *,
    controller: Callable[[dict[str, Any]], Any] | None = None,
    gains: Mapping[str, tuple[float, float]] | None = None,
    store: str | os.PathLike | None = None,
    lane: int = 0,
    seconds: float | None = None,
    look: Look = "visual",
    host: str = "127.0.0.1",
    port: int = 8080,
    block: bool = False,
) -> Viewer:
    """Look at a robot, and at a motion of it, in a browser.

    ```
    viewer = jdyn.view(trajectory)  # open viewer.url
    jdyn.view(model, controller=lambda gains: jdyn.PD(model, target, **gains), gains={"kp": (10, 500), "kd": (1, 50)})
    jdyn.view(jdyn.load_system("scene.xml"))  # its contact, constraints and joint limits are simulated
    jdyn.view(store="payloads.zarr", lane=17)
    ```

    The page has sliders of joints, a gizmo that drags a body by inverse kinematics, play, pause, speed and recording,
    plots over time, lanes of a batch one by one or several at once, and frames, centres of mass, inertia ellipsoids and
    joint axes to switch on. Gains are sliders that simulate again, from the start of the trajectory, in one compiled
    program; without a trajectory they begin with one from the neutral configuration.

    >>> with jdyn.view(jdyn.load("double_pendulum"), port=0) as viewer:
    ...     viewer.show([0.5, -0.5])
    ...     page = viewer.export("robot.html")
    >>> page.name
    'robot.html'

    Args:
        shown: A robot; a system, of which simulations of the page are; or a motion of one, or a batch of motions. That
            of the lane, if a store is given.
        controller: Function from gains by name to the controller of simulations of the page, in place of the system's,
            where `gains` are given. Of a motion, a controller that has functions is not known, and left out.
        gains: Least and largest value of each gain.
        store: Folder of a sweep of a spec, whose lanes are simulated again.
        lane: Which lane is shown first, of a batch or a store.
        seconds: Length of simulations [s]: that of the motion if left out, or 5 s without one.
        look: How links look: with visual shapes, collision shapes, or as rods from joint to joint.
        host: Address to listen at; the usual one is reached from this machine alone. Whoever knows `viewer.url` can
            move the robot and start simulations: the address has a random token, as Jupyter's have, without which
            requests are refused, and so are those of other pages, or for other names of this machine. A tunnel such as
            `ssh -L 8080:localhost:8080` keeps that; the page itself is not encrypted.
        port: Port to listen at, or the next one that is free; 0 for any.
        block: Whether to wait until Ctrl-C, as scripts have to; notebooks go on.

    Returns:
        The viewer, with `url`, `show(q)`, `play(trajectory)`, `screenshot()`, `export(path)` and `close()`.

    Raises:
        ImportError: if viser is not installed.
        ValueError: if there is neither something to show nor a store, or both; a model is a batch; the store is of a
            sweep of a function; there is no such lane or look; a range of gains is empty; or there is no function of
            them.
        OSError: if the store cannot be read.
    """
    viewer, experiment, stored_lanes = _modules()
    stored = None
    if store is not None:
        if shown is not None:
            raise ValueError("store: its lanes have models and motions of their own; leave out what is shown")
        stored = stored_lanes.StoredLanes(store)
        one = stored.take(lane)
        shown, lane = one.motion.with_system(one.motion.system.but(model=one.model)), 0
    if shown is None:
        raise ValueError("shown: expected a jdyn.Model (see jdyn.load), a system, a trajectory or store=..., got none")
    trajectory = shown if isinstance(shown, Trajectory) else None
    system = _system_of(shown, lane)
    one_of("look", look, LOOKS)
    simulation = experiment.Experiment(system, gains, controller)
    page = viewer.Viewer(system.model, trajectory, lane, simulation, stored, look, seconds, host, port)
    if system.configurations and trajectory is None:
        page.show(system.state().q)
    if block:
        page.wait_for_interrupt()
    return page


def _system_of(shown: Model | System | Trajectory, lane: int) -> System:
    """The system that simulations of the page are of."""
    if isinstance(shown, Trajectory):
        Lanes.of(shown).check(lane)
        system = one_lane(shown, lane).system
        return system.but(controller=None) if isinstance(system.controller, Unknown) else system
    system = shown if isinstance(shown, System) else System(shown)
    one_model(system.model)
    return system


def _modules():
    """They import what takes long, and viser."""
    try:
        from jdyn.view.viewer import experiment, stored_lanes, viewer
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] == "jdyn":
            raise
        raise ImportError(f'the viewer needs {error.name}, which is not installed; pip install "jdyn[view]"') from error
    return viewer, experiment, stored_lanes
