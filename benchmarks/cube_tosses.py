"""Measured tosses of a cube beside simulated ones: friction and restitution, or stiffness and damping, found on some
tosses, errors on all others, of jdyn's three models of contact and of MuJoCo.

    python -m benchmarks.cube_tosses DATA [--engines rigid,convex,compliant,MuJoCo] [--trials 16]

DATA is a file of NumPy with `rows`, shape (n, 13): position, quaternion wxyz, velocity, angular velocity along the
axes of the cube, in half-widths and seconds, 148 a second; and `lengths`, rows of each toss (ContactNets, Pfrommer,
Halm and Posa 2020). Every engine starts a toss at its first row, where the cube flies, and gets the same mass, inertia,
gravity and height of the table. Velocities of rows are differences to the row before, so that half of an interval of
gravity is added. Gravity and height are what the fitted tosses show in flight and at rest.

All engines are fitted by the same search: `trials` designs a number that is looked for and round, in a box of
logarithms that shrinks around the best. What is minimized is the mean error of all rows up to 0.5 s, position [half
widths] and angle [rad]. `by gradient` is Adam's method through compliant contact, from the middle of the box.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import mujoco.rollout
import numpy as np
import optax
from scipy.stats import qmc

import jdyn

HALF_WIDTH, MASS, INERTIA, RATE = 0.0524, 0.37, 0.295, 148.0
# Of the data's authors.
STATED = {"friction": 0.18, "restitution": 0.125}
ROWS, FIT = 75, 50
AT = (30, 74)
# Rounds of the search, and how much of the width of the box is left after each.
ROUNDS, SHRINKING = 3, 0.35
GRADIENT_STEPS, RATE_OF_LEARNING = 60, 0.05
MUJOCO_STEPS_A_ROW = 20

Numbers = Mapping[str, Any]


class Tosses(NamedTuple):
    """Measured tosses.

    Attributes:
        poses: Of all rows, positions [m] and quaternions.
        velocity: Of the centre at the start [m/s].
        spin: At the start, along the axes of the cube [rad/s].
    """

    poses: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def some(self, rows: slice) -> "Tosses":
        return Tosses(*(x[rows] for x in self))


class Place(NamedTuple):
    """Surroundings of the cube.

    Attributes:
        gravity: [m/s²]
        floor: Height of the table [m].
    """

    gravity: float
    floor: float


class Engine(NamedTuple):
    """A model of contact.

    Attributes:
        box: Least and largest value of each number that is looked for.
        poses: From numbers and tosses to poses of all rows.
    """

    box: Mapping[str, tuple[float, float]]
    poses: Callable[[Numbers, Tosses], np.ndarray]


def read(path: str) -> tuple[Tosses, Place]:
    """All tosses, and the place as the first ones show it."""
    data = np.load(path)
    rows, lengths = data["rows"].astype(float), data["lengths"]
    ends = np.cumsum(lengths)
    starts = ends - lengths
    first = np.stack([rows[start : start + ROWS] for start in starts])
    poses = np.concatenate([first[:, :, :3] * HALF_WIDTH, first[:, :, 3:7]], axis=2)
    falls = [_fall(poses[toss]) for toss in range(FIT)]
    gravity = float(-np.mean([fall for fall in falls if fall is not None]))
    floor = float(np.median(rows[ends[:FIT] - 1, 2]) - 1) * HALF_WIDTH
    velocity = first[:, 0, 7:10] * HALF_WIDTH - [0, 0, gravity / 2 / RATE]
    return Tosses(poses, velocity, first[:, 0, 10:13]), Place(gravity, floor)


def _fall(poses: np.ndarray) -> float | None:
    """Acceleration before any corner can touch [m/s²]; None if there are few rows."""
    high = poses[:, 2] > np.sqrt(3) * HALF_WIDTH
    rows = len(high) if high.all() else int(np.argmin(high))
    return None if rows < 8 else 2 * np.polyfit(np.arange(rows) / RATE, poses[:rows, 2], 2)[0]


def errors(poses: np.ndarray, tosses: Tosses, rows: Any = slice(1, None)) -> tuple[np.ndarray, np.ndarray]:
    """Of positions [half-widths] and angles [rad], of each toss and row."""
    apart = np.linalg.norm(poses[:, rows, :3] - tosses.poses[:, rows, :3], axis=-1) / HALF_WIDTH
    same = np.abs(np.sum(poses[:, rows, 3:] * tosses.poses[:, rows, 3:], axis=-1))
    return apart, 2 * np.arccos(np.minimum(same, 1))


def cube(place: Place) -> jdyn.Model:
    builder = jdyn.Builder("cube", gravity=(0.0, 0.0, -place.gravity))
    builder.add_link("cube", jdyn.Free(), mass=MASS, inertia=INERTIA * HALF_WIDTH**2 * np.ones(3))
    builder.add_shape("cube", "box", 2 * HALF_WIDTH * np.ones(3), role="collision")
    builder.add_shape("world", "plane", (0, 0), placement=jdyn.pose((0, 0, place.floor)), role="collision")
    return builder.build()


def rigid(friction, restitution):
    return jdyn.RigidContact(friction=friction, restitution=restitution)


def convex(friction, stiffness, dissipation):
    return jdyn.ConvexContact(material=jdyn.contact.Material(stiffness, dissipation, friction))


def compliant(friction, stiffness, dissipation):
    return jdyn.CompliantContact(material=jdyn.contact.Material(stiffness, dissipation, friction))


FRICTION = {"friction": (0.05, 0.5)}
SOFT = FRICTION | {"stiffness": (1e3, 1e6), "dissipation": (0.05, 5.0)}
CONTACTS = {
    "rigid": (rigid, FRICTION | {"restitution": (0.02, 0.9)}),
    "convex": (convex, SOFT),
    "compliant": (compliant, SOFT),
}
MUJOCO = "MuJoCo"
BY_GRADIENT = "by gradient"


def starts(model: jdyn.Model, tosses: Tosses) -> tuple[jax.Array, jax.Array]:
    q = jnp.asarray(tosses.poses[:, 0])
    turned = jax.vmap(lambda q: jdyn.frame_pose(model, q, "cube").rotation)(q)
    velocity = jnp.einsum("nji,nj->ni", turned, jnp.asarray(tosses.velocity))
    return q, jnp.concatenate([jnp.asarray(tosses.spin), velocity], axis=1)


def motion(model: jdyn.Model, contact, q, v, rows: int) -> jax.Array:
    """Poses of rows of one toss."""
    times = jnp.arange(rows) / RATE
    return jdyn.simulate(model, q, v, times[-1], contact=contact, saveat=times, max_events=400, throw=False).q


def of_jdyn(name: str, place: Place) -> Engine:
    contact, box = CONTACTS[name]
    model = cube(place)

    @jax.jit
    def program(numbers, q, v):
        return jax.vmap(lambda q, v: motion(model, contact(**numbers), q, v, ROWS))(q, v)

    def poses(numbers, tosses):
        # Lanes of one program, as many a call as there are tosses to fit.
        q, v = starts(model, tosses)
        found = [program(dict(numbers), q[k : k + FIT], v[k : k + FIT]) for k in range(0, len(q), FIT)]
        return np.concatenate(found)

    return Engine(box, poses)


def of_mujoco(place: Place) -> Engine:
    """The same cube, elliptic cones, with a time constant and a damping ratio for stiffness and restitution."""
    file = f"""
    <mujoco>
      <option timestep="{1 / RATE / MUJOCO_STEPS_A_ROW!r}" gravity="0 0 {-place.gravity!r}" cone="elliptic"
              impratio="10"/>
      <worldbody>
        <geom type="plane" size="0 0 1" pos="0 0 {place.floor!r}"/>
        <body>
          <freejoint/>
          <inertial pos="0 0 0" mass="{MASS}" diaginertia="{" ".join([repr(INERTIA * HALF_WIDTH**2)] * 3)}"/>
          <geom type="box" size="{HALF_WIDTH} {HALF_WIDTH} {HALF_WIDTH}"/>
        </body>
      </worldbody>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(file)
    data = mujoco.MjData(model)
    steps = (ROWS - 1) * MUJOCO_STEPS_A_ROW

    def poses(numbers, tosses):
        model.geom_friction[:, 0] = numbers["friction"]
        model.geom_solref[:] = numbers["time_constant"], numbers["damping_ratio"]
        q = tosses.poses[:, 0]
        state = np.concatenate([np.zeros((len(q), 1)), q, tosses.velocity, tosses.spin], axis=1)
        found, _ = mujoco.rollout.rollout(model, data, state, nstep=steps)
        rows = found[:, MUJOCO_STEPS_A_ROW - 1 :: MUJOCO_STEPS_A_ROW, 1:8]
        return np.concatenate([q[:, None], rows], axis=1)

    # MuJoCo itself takes no time constant of less than two steps.
    box = FRICTION | {"time_constant": (2 / RATE / MUJOCO_STEPS_A_ROW, 0.05), "damping_ratio": (0.1, 2.0)}
    return Engine(box, poses)


def search(engine: Engine, tosses: Tosses, trials: int) -> dict[str, float]:
    """The best numbers."""
    low, high = np.log(np.array(list(engine.box.values()))).T
    center, width = (low + high) / 2, high - low
    best, least = center, np.inf
    designs = qmc.LatinHypercube(len(low), seed=0)
    for _ in range(ROUNDS):
        for share in designs.random(trials * (len(low) - 1)):
            at = np.clip(center + width * (share - 0.5), low, high)
            found = loss(engine.poses(_named(engine, at), tosses), tosses)
            if found < least:
                best, least = at, found
        center, width = best, SHRINKING * width
    return _named(engine, best)


def _named(engine: Engine, logarithms: np.ndarray) -> dict[str, float]:
    return dict(zip(engine.box, map(float, np.exp(logarithms)), strict=True))


def loss(poses: np.ndarray, tosses: Tosses) -> float:
    """Mean of all errors; what did not reach its end counts as two half-widths and π."""
    apart, angle = errors(poses, tosses)
    return float(np.mean(np.nan_to_num(apart, nan=2.0)) + np.mean(np.nan_to_num(angle, nan=np.pi)))


def by_gradient(place: Place, tosses: Tosses) -> dict[str, float]:
    """Numbers of compliant contact by Adam's method. A toss whose gradient is long counts as one of length one: cubes
    that come to lie on another face tell nothing."""
    model = cube(place)
    goal = jnp.asarray(tosses.poses)

    def of_toss(logs, q, v, goal):
        numbers = jax.tree.map(jnp.exp, logs)
        poses = motion(model, compliant(**numbers), q, v, ROWS)
        apart = jnp.sqrt(jnp.sum((poses[1:, :3] - goal[1:, :3]) ** 2, axis=1) + 1e-12) / HALF_WIDTH
        # Half of the angle's sine squared is smooth.
        turned = 2 * jnp.sqrt(1 - jnp.sum(poses[1:, 3:] * goal[1:, 3:], axis=1) ** 2 + 1e-12)
        return jnp.mean(apart) + jnp.mean(turned)

    @jax.jit
    def gradient(logs, q, v):
        slopes = jax.vmap(jax.grad(of_toss), in_axes=(None, 0, 0, 0))(logs, q, v, goal)
        length = jnp.sqrt(sum(x**2 for x in jax.tree.leaves(slopes)))
        kept = jnp.where(jnp.isfinite(length), 1 / jnp.maximum(length, 1), 0)
        return jax.tree.map(lambda x: jnp.mean(jnp.where(kept > 0, x, 0) * kept), slopes)

    logs = {name: jnp.mean(jnp.log(jnp.array(ends))) for name, ends in SOFT.items()}
    method = optax.adam(RATE_OF_LEARNING)
    state = method.init(logs)
    q, v = starts(model, tosses)
    for _ in range(GRADIENT_STEPS):
        change, state = method.update(gradient(logs, q, v), state)
        logs = optax.apply_updates(logs, change)
    return {name: float(jnp.exp(x)) for name, x in logs.items()}


def line(name: str, numbers: Numbers, poses: np.ndarray, tosses: Tosses) -> str:
    """A row of the table: mean and median of errors, [% of the width of the cube] and degrees."""
    cells = [name, ", ".join(f"{key.replace('_', ' ')} {x:.3g}" for key, x in numbers.items())]
    for row in AT:
        apart, angle = (x[:, 0] for x in errors(poses, tosses, slice(row, row + 1)))
        lost = int(np.sum(~np.isfinite(apart)))
        sizes = 50 * apart, np.rad2deg(angle)
        cells += [f"{np.nanmean(x):.1f} ({np.nanmedian(x):.1f})" for x in sizes]
        if lost:
            cells[-1] += f", {lost} not reached"
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--engines", default=",".join([*CONTACTS, BY_GRADIENT, MUJOCO]))
    parser.add_argument("--trials", type=int, default=16)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    tosses, place = read(options.data)
    fitted, others = tosses.some(slice(FIT)), tosses.some(slice(FIT, None))
    print(f"gravity {place.gravity:.3f} m/s², table at {1e3 * place.floor:.2f} mm")
    times = " | ".join(f"position at {row / RATE:.2f} s | angle" for row in AT)
    print(f"{len(others.poses)} tosses, means (medians): % of the width of the cube, degrees")
    print(f"| | numbers | {times} |\n|{'---|' * (2 + 2 * len(AT))}")
    for name in options.engines.split(","):
        engine = of_mujoco(place) if name == MUJOCO else of_jdyn("compliant" if name == BY_GRADIENT else name, place)
        began = time.process_time()
        if name == BY_GRADIENT:
            numbers = by_gradient(place, fitted)
        else:
            numbers = search(engine, fitted, options.trials)
        seconds, least = time.process_time() - began, loss(engine.poses(numbers, fitted), fitted)
        print(line(name, numbers, engine.poses(numbers, others), others), flush=True)
        if name == "rigid":
            print(line("rigid, as stated", STATED, engine.poses(STATED, others), others), flush=True)
        print(f"  {name}: mean error {least:.4f} on {FIT} tosses, in {seconds:.0f} s of the processor", flush=True)


if __name__ == "__main__":
    main()
