"""Worlds of balls and arms: seconds by objects and by islands, as one system and coordinated.

    python -m benchmarks.worlds [--objects 1,4,16,64,256] [--merged 4] [--islands 1,4] [--lanes 1024] [--picture FILE]

Each row is of one motion of 1 s in float64, run again after the run that compiles, in seconds of the processor.
`--merged` is up to how many objects one system is simulated, whose program grows with all pairs.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

RADIUS, END = 0.1, 1.0


def balls(count: int, islands: int = 0) -> jdyn.World:
    """Balls far from each other without weight, of which so many pairs collide head on, all at 0.4 s."""
    world = jdyn.World(contact=jdyn.RigidContact(restitution=0.8, friction=0.1), gravity=(0.0, 0.0, 0.0))
    ball = jdyn.load("ball")
    for i in range(count):
        pair, second = divmod(i, 2)
        near = pair < islands
        place = (10.0 * pair + second * (1.0 if near else 5.0), 0.0, 0.0)
        speed = 2.0 if near and not second else 0.0
        world = world.with_object(f"ball{i}", ball, placement=place, v=[0, 0, 0, speed, 0.0 if near else 0.3, 0])
    return world


def arms(count: int, stiff: bool) -> jdyn.World:
    """Arms that swing, and a stiff one that is held by a servo."""
    world, arm = jdyn.World(), jdyn.load("pendulum")
    for i in range(count):
        world = world.with_object(f"arm{i}", arm, placement=(3.0 * i, 0.0, 0.0), q=[0.3 + 0.005 * i])
    if stiff:
        servo = jdyn.actuators.PositionServo("joint1", kp=1e6, kd=50.0)
        held = jdyn.System(arm, controller=jdyn.control.Constant(jnp.array([0.4])), actuators=[servo])
        solver = jdyn.solvers.CashKarp()
        world = world.with_object("stiff", held, placement=(-3.0, 0.0, 0.0), q=[0.41], solver=solver)
    return world


def timed(simulate) -> tuple[float, float, jdyn.world.WorldMotion]:
    """Seconds of the processor for the first run, and for the second."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        motion = simulate()
        jax.block_until_ready(motion.q)
        seconds.append(time.process_time() - began)
    return *seconds, motion


def row(name: str, world: jdyn.World, coordinator: jdyn.world.Coordinator | None) -> float:
    """Print a row; seconds of the second run."""
    saveat = jnp.linspace(0.0, END, 11)
    first, second, motion = timed(lambda: world.simulate(END, saveat=saveat, coordinator=coordinator))
    count = int(motion.trajectory.stats["accepted_steps"])
    way = "one system" if coordinator is None else "coordinated"
    print(f"| {name} | {way} | {first:.1f} | {second:.3f} | {count} |", flush=True)
    return second


def many_worlds(lanes: int, picture: str | None) -> None:
    """A batch over restitution and friction: two balls off centre."""
    side, ball = int(np.sqrt(lanes)), jdyn.load("ball")
    e, mu = map(jnp.ravel, jnp.meshgrid(jnp.linspace(0.0, 1.0, side), jnp.linspace(0.0, 0.15, side)))
    world = jdyn.World(gravity=(0.0, 0.0, 0.0)).with_object("left", ball, v=[0, 0, 0, 1.0, 0, 0])
    world = world.with_object("right", ball, placement=(1.0, 0.05, 0.0))

    def deflected(e, mu):
        bounce = world.but(contact=jdyn.RigidContact(restitution=e, friction=mu))
        motion = bounce.simulate(2.0, saveat=jnp.array([2.0]), max_events=8)
        return motion["left"].v[-1, 2], jnp.sum(motion.impacts.energy)

    run, seconds = jax.jit(jax.vmap(deflected)), []
    for _ in range(2):
        began = time.process_time()
        spin, lost = jax.block_until_ready(run(e, mu))
        seconds.append(time.process_time() - began)
    print(f"| {side * side} worlds over e and μ | one batch | {seconds[0]:.1f} | {seconds[1]:.3f} | - |", flush=True)
    if picture:
        from jdyn.view.plots import Picture

        figure = Picture(figsize=(9, 3.6), layout="constrained")
        for axes, name, values in zip(
            figure.subplots(1, 2), ("energy lost [J]", "spin of the left ball [rad/s]"), (-lost, spin), strict=True
        ):
            image = axes.pcolormesh(*(x.reshape(side, side) for x in (e, mu)), np.reshape(values, (side, side)))
            axes.set(xlabel="restitution", ylabel="friction", title=name)
            figure.colorbar(image, ax=axes)
        figure.savefig(picture, dpi=100)


def _numbers(word: str) -> list[int]:
    return [int(each) for each in word.split(",") if each]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--objects", type=_numbers, default=[1, 4, 16, 64, 256])
    words.add_argument("--merged", type=int, default=4)
    words.add_argument("--islands", type=_numbers, default=[1, 4])
    words.add_argument("--lanes", type=int, default=1024)
    words.add_argument("--picture")
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    coordinator = jdyn.world.Coordinator(window=0.1)
    print("| world | | first run [s] | again [s] | steps |\n|---|---|---|---|---|")
    for count in options.objects:
        row(f"{count} balls apart", balls(count), coordinator)
        if 1 < count <= options.merged:
            row(f"{count} balls apart", balls(count), None)
    for islands in options.islands:
        row(f"64 balls, {islands} pairs collide", balls(64, islands), coordinator)
    for slow, stiff in ((0, True), (100, False), (100, True)):
        row(f"{slow} slow arms{', one stiff' if stiff else ''}", arms(slow, stiff), coordinator)
    row("100 slow arms, one stiff", arms(100, True), None)
    if options.lanes:
        many_worlds(options.lanes, options.picture)


if __name__ == "__main__":
    main()
