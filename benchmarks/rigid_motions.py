"""Motions of rigid bodies that slide, roll, leave each other and collide, for any engine, and where they end."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import jdyn

G = 9.81


@dataclasses.dataclass(frozen=True)
class Body:
    """A box or a ball that starts with its axes along those of the world.

    Attributes:
        kind: "box" or "sphere".
        size: Sides, or the radius [m].
        inertia: Principal moments about its middle [kg m²].
        position: [m]
        velocity, spin: Of the middle, along the axes of the world [m/s, rad/s].
        mass: [kg]
    """

    kind: str
    size: tuple[float, ...]
    inertia: tuple[float, float, float]
    position: tuple[float, float, float]
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mass: float = 1.0


@dataclasses.dataclass(frozen=True)
class Motion:
    """A motion of rigid bodies.

    Attributes:
        name, about: For readers.
        bodies: What moves.
        ground: Kind and size of the shape that does not, at the origin: ("plane", ()) or ("sphere", (radius,)).
        friction: μ of all.
        restitution: e of all, 0 or 1.
        t1: End [s].
        gravity: [m/s²]
        end: Pose of each body at the end, (3,) and (3, 3) below each other, shape (bodies, 4, 3); None where nothing
            but a reference tells.
    """

    name: str
    about: str
    bodies: tuple[Body, ...]
    ground: tuple[str, tuple[float, ...]]
    friction: float
    restitution: float
    t1: float
    gravity: tuple[float, float, float] = (0.0, 0.0, -G)
    end: Callable[[], np.ndarray] | None = None

    def told(self) -> dict[str, Any]:
        """All but the end, for another process."""
        return {name: x for name, x in dataclasses.asdict(self).items() if name != "end"}


def model(motion: Motion) -> jdyn.Model:
    builder = jdyn.Builder(motion.name.replace(" ", "_"), gravity=motion.gravity)
    for i, body in enumerate(motion.bodies):
        builder.add_link(f"body{i}", jdyn.Free(), mass=body.mass, inertia=np.array(body.inertia))
        builder.add_shape(f"body{i}", body.kind, _size(body.kind, body.size), role="collision")
    kind, size = motion.ground
    builder.add_shape("world", kind, (0, 0) if kind == "plane" else _size(kind, size), role="collision")
    return builder.build()


def _size(kind: str, size: tuple[float, ...]) -> Any:
    return size[0] if kind == "sphere" else size


def start(motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """q and v of jdyn."""
    q = np.concatenate([[*body.position, 1.0, 0.0, 0.0, 0.0] for body in motion.bodies])
    return q, np.concatenate([[*body.spin, *body.velocity] for body in motion.bodies])


def poses(q: Any) -> np.ndarray:
    """Shape (bodies, 4, 3), of positions and quaternions one after another."""
    rows = np.reshape(np.asarray(q, float), (-1, 7))
    return np.concatenate([rows[:, None, :3], Rotation.from_quat(rows[:, [4, 5, 6, 3]]).as_matrix()], axis=1)


def slides_to_a_stop() -> Motion:
    return Motion(
        "slides to a stop",
        "a box on a floor, μ = 0.3, 1 m/s",
        (Body("box", (0.2, 0.2, 0.2), (4e-3,) * 3, (0.0, 0.0, 0.1), (1.0, 0.0, 0.0)),),
        ("plane", ()), 0.3, 0.0, 1.0, end=lambda: _at((1 / (2 * 0.3 * G), 0, 0.1)),
    )  # fmt: skip


def slides_up_and_back() -> Motion:
    tilt, mu = 0.3, 0.2
    up, down = G * (np.sin(tilt) + mu * np.cos(tilt)), G * (np.sin(tilt) - mu * np.cos(tilt))
    return Motion(
        "up a slope and back",
        "a box that slides up a slope of 0.3 rad and down again, μ = 0.2, 2 m/s",
        (Body("box", (0.2, 0.2, 0.2), (4e-3,) * 3, (0.0, 0.0, 0.1), (-2.0, 0.0, 0.0)),),
        ("plane", ()), mu, 0.0, 1.0, (G * np.sin(tilt), 0.0, -G * np.cos(tilt)),
        lambda: _at((-(2.0**2) / (2 * up) + down * (1 - 2.0 / up) ** 2 / 2, 0, 0.1)),
    )  # fmt: skip


def slides_and_rolls() -> Motion:
    mu, r = 0.2, 0.1
    begin = 2 / (7 * mu * G)
    way = begin - mu * G * begin**2 / 2 + 5 / 7 * (1 - begin)
    angle = 2.5 * mu * G / r * begin**2 / 2 + 5 / 7 / r * (1 - begin)
    c, s = np.cos(angle), np.sin(angle)
    return Motion(
        "slides, then rolls",
        "a ball on a floor, μ = 0.2, 1 m/s",
        (Body("sphere", (r,), (4e-3,) * 3, (0.0, 0.0, r), (1.0, 0.0, 0.0)),),
        ("plane", ()), mu, 0.0, 1.0, end=lambda: _at((way, 0, r), np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])),
    )  # fmt: skip


def leaves_a_ball() -> Motion:
    t1 = 0.9
    return Motion(
        "leaves a ball",
        "a bead that slides down a ball of 1 m without friction, and leaves it, 0.5 m/s",
        (Body("sphere", (0.01,), (1e-3,) * 3, (0.0, 0.0, 1.0), (0.5, 0.0, 0.0)),),
        ("sphere", (0.99,)), 0.0, 0.0, t1, end=lambda: _at(_off_a_ball(0.5, t1)),
    )  # fmt: skip


def _off_a_ball(speed: float, t1: float) -> tuple[float, float, float]:
    """By the pendulum's equation, to where the ball presses no more, and a parabola from there."""

    def presses(t, y):
        return G * np.cos(y[0]) - y[1] ** 2

    presses.terminal = True
    fall = solve_ivp(lambda t, y: (y[1], G * np.sin(y[0])), (0, t1), (0.0, speed), "DOP853", events=presses,
                     rtol=1e-13, atol=1e-14)  # fmt: skip
    t, (theta, rate) = t1 - fall.t[-1], fall.y[:, -1]
    c, s = np.cos(theta), np.sin(theta)
    return s + rate * c * t, 0.0, c - rate * s * t - G * t**2 / 2


def bounces() -> Motion:
    first = np.sqrt(2 * 0.3 / G)
    # After two bounces.
    late = 1.0 - 3 * first
    high = np.sqrt(2 * G * 0.3) * late - G * late**2 / 2
    return Motion(
        "bounces",
        "a ball that falls 0.3 m on a floor, e = 1, twice",
        (Body("sphere", (0.1,), (4e-3,) * 3, (0.0, 0.0, 0.4)),),
        ("plane", ()), 0.0, 1.0, 1.0, end=lambda: _at((0, 0, 0.1 + high)),
    )  # fmt: skip


def tumbles() -> Motion:
    return Motion(
        "tumbles",
        "a box that turns and falls 0.3 m on a floor, e = 1, without friction",
        (Body("box", (0.2, 0.3, 0.1), (1e-2, 6e-3, 1.2e-2), (0.0, 0.0, 0.5), (0.4, 0.2, 0.0), (1.0, -2.0, 0.5)),),
        ("plane", ()), 0.0, 1.0, 0.8,
    )  # fmt: skip


def rolls() -> Motion:
    r, angle = 0.1, 20.0
    c, s = np.cos(angle), np.sin(angle)
    return Motion(
        "rolls",
        "a ball that rolls on a floor for 2 s, μ = 0.8, 1 m/s",
        (Body("sphere", (r,), (4e-3,) * 3, (0.0, 0.0, r), (1.0, 0.0, 0.0), (0.0, 1.0 / r, 0.0)),),
        ("plane", ()), 0.8, 0.0, 2.0, end=lambda: _at((2.0, 0, r), np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])),
    )  # fmt: skip


def elastic(side: int) -> Motion:
    """Balls in a cube of side³ above a floor, a little off each other's verticals."""
    rng = np.random.default_rng(0)
    places = np.array(list(itertools.product(range(side), repeat=3)), float) * 0.25 + [0, 0, 0.3]
    places += rng.uniform(-0.01, 0.01, places.shape)
    bodies = tuple(Body("sphere", (0.1,), (4e-3,) * 3, tuple(map(float, place))) for place in places)
    return Motion(
        f"elastic {side}{side}{side}",
        f"{side}³ balls that fall on a floor and on each other, e = 1, without friction",
        bodies, ("plane", ()), 0.0, 1.0, 0.5,
    )  # fmt: skip


def _at(position, rotation=None) -> np.ndarray:
    return np.concatenate([[position], np.eye(3) if rotation is None else rotation])[None]


def flies_together() -> Motion:
    """Balls without weight that fly at each other: momentum is all that stays."""
    places = ((-0.5, 0.02, 0.0), (0.5, -0.03, 0.01), (0.03, 0.6, -0.02), (0.0, -0.7, 0.04))
    bodies = tuple(
        Body("sphere", (0.1,), (4e-3,) * 3, (x, y, z), (-2 * x, -2 * y, 0.0), mass=1.0 + i)
        for i, (x, y, z) in enumerate(places)
    )
    return Motion(
        "fly together",
        "four balls of 1 to 4 kg without weight that meet, e = 1, without friction",
        bodies, ("sphere", (0.01,)), 0.0, 1.0, 1.0, (0.0, 0.0, 0.0),
    )  # fmt: skip


MOTIONS = (
    slides_to_a_stop, slides_up_and_back, slides_and_rolls, leaves_a_ball, bounces, tumbles, rolls, flies_together,
    lambda: elastic(2),
)  # fmt: skip
