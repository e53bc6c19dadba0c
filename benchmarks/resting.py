"""Ten scenes that come to rest, and with what forces: in single precision as in double precision, with both models.

    python -m benchmarks.resting [--scenes cube,stack] [--contact convex,compliant] [--dtypes float32] [--seconds 600]

For each scene, model of contact and precision: by how much the forces of all others on each part differ from what bears
it, at most in any row after the first seconds, as a share of the weight of all parts; and steps.
"""

import argparse
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np

import jdyn

G = 9.81
# Until all have come to rest [s].
SETTLED = 10.0
CONTACT = {"convex": jdyn.ConvexContact, "compliant": jdyn.CompliantContact}


@dataclasses.dataclass(frozen=True)
class Resting:
    """A scene that comes to rest.

    Attributes:
        model: The mechanism.
        q0: Where it begins, at rest.
        loads: By shape, what all others bear of it [N].
        controller: PD, or None.
    """

    model: jdyn.Model
    q0: jax.Array
    loads: dict[str, np.ndarray]
    controller: jdyn.Controller | None = None

    def run(self, contact: jdyn.contact.Contact, seconds: float) -> jdyn.Trajectory:
        still = jnp.zeros(self.model.nv, self.q0.dtype)
        return jdyn.simulate(self.model, self.q0, still, seconds, contact=contact, controller=self.controller)

    def worst(self, motion: jdyn.Trajectory, settled: float = SETTLED) -> float:
        """The largest error of a force after some time, as a share of the weight of all."""
        touching, late = motion.contacts, np.asarray(motion.ts) >= settled
        errors = [np.asarray(touching.force(name))[late] - load for name, load in self.loads.items()]
        return float(np.max(np.abs(errors)) / sum(np.linalg.norm(load) for load in self.loads.values()))


def _bodies(name, shapes, base=None, slope=0.0, turned=(0.0, 0.0)):
    """Bodies of a kind, size, mass and place each, on a plane or a fixed box whose top is at that height."""
    builder = jdyn.Builder(name)
    places, loads = [], {}
    gravity = G * np.array([np.sin(slope), 0, -np.cos(slope)])
    for i, (kind, size, mass, place) in enumerate(shapes):
        sides = np.broadcast_to(2 * np.array(size) if kind == "sphere" else np.array(size), 3)
        inertia = mass * (sides @ sides - sides**2) / 12
        builder.add_link(f"part{i}", jdyn.Free(), mass=mass, inertia=inertia)
        builder.add_shape(f"part{i}", kind, size, role="collision", name=f"part{i}")
        places.append([*place, np.cos(turned[0] / 2), np.sin(turned[0] / 2), np.sin(turned[1] / 2), 0])
        loads[f"part{i}"] = -mass * gravity
    if base is None:
        builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    else:
        builder.add_shape("world", "box", (1.0, 1.0, 2 * base), role="collision", name="ground")
    model = builder.build().with_gravity(gravity)
    return Resting(model, model.normalize(jnp.array(np.concatenate(places))), loads)


def cube():
    """On the ground."""
    return _bodies("cube", [("box", (0.2, 0.2, 0.2), 1.0, (0, 0, 0.101))])


def tilted_cube():
    """Let go tilted on a fixed block."""
    return _bodies("tilted_cube", [("box", (0.2, 0.2, 0.2), 1.0, (0, 0, 0.3))], base=0.2, turned=(0.02, 0.0))


def raised_cube():
    """On a block a metre high, where single precision knows heights to 0.1 µm."""
    return _bodies("raised_cube", [("box", (0.2, 0.2, 0.2), 1.0, (0.3, 0.2, 1.1))], base=1.0)


def ball():
    """On the ground, where nothing holds it from rolling."""
    return _bodies("ball", [("sphere", 0.1, 1.0, (0, 0, 0.11))])


def cube_on_a_slope():
    """Held by friction, at 0.3 rad."""
    return _bodies("cube_on_a_slope", [("box", (0.2, 0.2, 0.2), 1.0, (0, 0, 0.1))], slope=0.3)


def stack():
    """Five cubes, not quite above each other."""
    parts = [("box", (0.2,) * 3, 1.0, (0.002 * np.sin(i), 0, 0.2 * i + 0.1)) for i in range(5)]
    return _bodies("stack", parts)


def light_under_heavy():
    """Ten times as heavy as what bears it."""
    return _bodies("light_under_heavy", [("box", (0.2,) * 3, mass, (0, 0, z)) for mass, z in ((1.0, 0.1), (10.0, 0.3))])


def box_on_arms():
    """On two arms, capsules that PD holds."""
    builder = jdyn.Builder("box_on_arms")
    for side, y in (("left", 0.15), ("right", -0.15)):
        builder.add_link(
            side, jdyn.Revolute((0, 1, 0)), placement=(0, y, 0.5), mass=1.0, inertia=(1e-3, 0.02, 0.02), com=(0.2, 0, 0)
        )
        builder.add_shape(
            side,
            "capsule",
            (0.03, 0.5),
            role="collision",
            name=side,
            placement=jdyn.pose((0.25, 0, 0), (0, np.pi / 2, 0)),
        )
    builder.add_link("box", jdyn.Free(), mass=0.69, inertia=0.69 / 6 * np.array([0.05, 0.02, 0.05]))
    builder.add_shape("box", "box", (0.2, 0.5, 0.1), role="collision", name="box")
    model = builder.build()
    q0 = model.neutral().at[2:5].set(jnp.array([0.25, 0.0, 0.581]))
    kp, kd = (jnp.zeros(model.nv).at[:2].set(gain) for gain in (2000.0, 40.0))
    return Resting(model, q0, {"box": np.array([0, 0, 0.69 * G])}, jdyn.PD(model, q0, kp=kp, kd=kd))


def quadruped():
    """Mini Cheetah under PD."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros(model.nv))
    q0 = model.neutral().at[2].set(0.2925).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (100.0, 8.0))
    weight = np.array([0, 0, G * float(model.inertias.mass.sum())])
    return Resting(model, q0, {"ground": -weight}, jdyn.PD(model, q0, kp=kp, kd=kd))


def gripper():
    """Two fingers that hold a cube in the air."""
    model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    raised = model.neutral().at[:3].set(jnp.array([0.1, 0.035, 0.035]))
    kp, kd = (jnp.zeros(model.nv).at[:3].set(jnp.array(gains)) for gains in ([1000.0] * 3, [60.0, 20.0, 20.0]))
    held = next(entry.name for entry in model.shapes.entries if entry.role == "collision" and entry.link == "cube")
    load = {held: np.array([0, 0, 0.5 * G])}
    return Resting(model, model.neutral(), load, jdyn.PD(model, raised, kp=kp, kd=kd))


SCENES = (
    cube, tilted_cube, raised_cube, ball, cube_on_a_slope, stack, light_under_heavy, box_on_arms, quadruped, gripper
)  # fmt: skip


def astype(scene: Resting, dtype) -> Resting:
    """The same scene in another floating type."""
    arrays = jax.tree.map(lambda x: x.astype(dtype), (scene.q0, scene.controller))
    return dataclasses.replace(scene, model=scene.model.astype(dtype), q0=arrays[0], controller=arrays[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default=",".join(scene.__name__ for scene in SCENES))
    parser.add_argument("--contact", default="convex,compliant")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--seconds", type=float, default=600.0)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    by_name = {scene.__name__: scene for scene in SCENES}
    print(f"{'scene':18} {'contact':10} {'precision':10} {'error':>8} {'steps':>7} {'failed':>7} {'s':>6}   ends")
    for name in options.scenes.split(","):
        scene = by_name[name]()
        for kind in options.contact.split(","):
            contact = CONTACT[kind]()
            for dtype in options.dtypes.split(","):
                each, began = astype(scene, dtype), time.process_time()
                motion = jdyn.simulate(
                    each.model, each.q0, jnp.zeros(each.model.nv, dtype), options.seconds, contact=contact,
                    controller=each.controller, throw=False,
                )  # fmt: skip
                error, stats = each.worst(motion), motion.stats
                counts = " ".join(f"{int(stats[key]):7}" for key in ("accepted_steps", "rejected_steps"))
                took = time.process_time() - began
                end = jdyn.Result(int(motion.result)).name
                print(f"{name:18} {kind:10} {dtype:10} {error:8.1e} {counts} {took:6.1f}   {end}", flush=True)


if __name__ == "__main__":
    main()
