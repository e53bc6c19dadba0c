"""Mechanisms of the literature with closed loops, each a tree of joints and constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.spatial import Transform

G = 9.81


def four_bars(count):
    """A row of four-bars of rods of 1 m and 1 kg in a vertical plane: count + 1 uprights on the ground, a metre apart,
    and a coupler between each two. The coordinates are the angles of all uprights to the ground, then those of all
    couplers to the uprights that carry them.

    Source: problem A02 of the IFToMM benchmark library, http://lim.ii.udc.es/mbsbenchmark.
    """
    builder = jdyn.Builder("four-bars", gravity=(0, -G, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([1e-3, 1 / 12, 1 / 12])}
    for i in range(count + 1):
        builder.add_link(f"upright{i}", jdyn.Revolute((0, 0, 1)), placement=(i, 0, 0), **rod)
    for i in range(count):
        builder.add_link(f"coupler{i}", jdyn.Revolute((0, 0, 1)), parent=f"upright{i}", placement=(1, 0, 0), **rod)
    loops = [
        jdyn.constraints.Connect(f"coupler{i}", f"upright{i + 1}", point_a=(1, 0, 0), point_b=(1, 0, 0))
        for i in range(count)
    ]
    model = builder.build()
    signs = np.array([1.0 if name.startswith("upright") else -1.0 for name in model.joint_names])
    return model, loops, signs


def slider_crank():
    """A crank about x, a rod between a ball joint on the crank and a universal joint on the slider, and a slider along
    x. The tree has the slider carry the rod; the ball joint closes the loop. The coordinates are the crank's angle from
    where it points up, the slider's place, and the angles of the universal joint. The start is the second result.

    Source: the spatial rigid slider-crank of the IFToMM benchmark library. Its text leaves open where the crank's
    centre of mass is, and how the universal joint sits: in the middle, and with the rod's axis of the cross normal to
    both the rod and the slider's axis, as the solution in `tests.reference.test_mechanisms` has it.
    """
    builder = jdyn.Builder("slider-crank", gravity=(0, 0, -G))
    builder.add_link(
        "crank", jdyn.Revolute((1, 0, 0)), placement=(0, 0.1, 0.12), mass=0.12, com=(0, 0, 0.04),
        inertia=(1e-4, 1e-4, 1e-5),
    )  # fmt: skip
    builder.add_link("slider", jdyn.Prismatic((1, 0, 0)), mass=2.0, inertia=1e-4)
    builder.add_link(
        "rod", jdyn.Universal((1, 0, 0), (0, 1, 0)), parent="slider", mass=0.5, com=(-0.15, 0, 0),
        inertia=(4e-4, 4e-3, 4e-3),
    )  # fmt: skip
    ball = jdyn.constraints.Connect("crank", "rod", point_a=(0, 0, 0.08), point_b=(-0.3, 0, 0))
    return builder.build(), [ball], np.array([0, 0.2, -np.arctan2(1, 2), np.arccos(2 / 3)])


BRICARD_JOINTS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
BRICARD_AXES = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]] * 2, float)


def bricard():
    """Five rods of 1 m and 1 kg with a square section of 0.1 m, along edges of a cube, and six hinges along others: by
    the count of rows it could not move. The last hinge closes the loop.

    Source: problem A04 of the IFToMM benchmark library, http://lim.ii.udc.es/mbsbenchmark.
    """
    builder, parent = jdyn.Builder("bricard", gravity=(0, -G, 0)), "world"
    lengths = np.diff(BRICARD_JOINTS, axis=0)
    for i, rod in enumerate(lengths):
        inertia = (1 + 0.01) / 12 * np.eye(3) + (0.02 / 12 - (1 + 0.01) / 12) * np.outer(rod, rod)
        builder.add_link(
            f"rod{i}", jdyn.Revolute(BRICARD_AXES[i]), parent=parent, mass=1.0, com=rod / 2, inertia=inertia,
            placement=BRICARD_JOINTS[0] if i == 0 else lengths[i - 1],
        )  # fmt: skip
        parent = f"rod{i}"
    last = jdyn.constraints.Hinge(
        parent, "world", axis_a=BRICARD_AXES[5], axis_b=BRICARD_AXES[5], point_a=lengths[4], point_b=BRICARD_JOINTS[5]
    )
    return builder.build(), [last]


def _circle(radius, apart, turn):
    """Three pairs of points [deg]."""
    angles = np.deg2rad([120 * i + turn + side * apart for i in range(3) for side in (-1, 1)])
    return radius * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)


STEWART_BASE = _circle(3.0, 2.5, 0)
# From the sixth point on, so that legs do not cross.
STEWART_TOP = np.roll(_circle(1.0, 10, 60), 1, 0)
STEWART_MASS, STEWART_INERTIA = 50.0, np.array([12.0, 13.0, 25.0])


def stewart(mass=1.0):
    """A platform on six legs: a universal joint on the base, a slider, and a ball joint on the platform. A leg's
    coordinates are two angles and its length.

    Source: geometry of the example "Stewart platform in the home configuration" of Simulink and SimMechanics,
    MathWorks 1998-2002.

    Args:
        mass: Of a leg [kg].
    """
    builder = jdyn.Builder("stewart", gravity=(0, 0, -G))
    builder.add_link("platform", jdyn.Free(), mass=STEWART_MASS, inertia=STEWART_INERTIA)
    for i, base in enumerate(STEWART_BASE):
        builder.add_link(f"turn{i}", jdyn.Universal((1, 0, 0), (0, 1, 0)), placement=base, mass=mass, inertia=mass)
        builder.add_link(
            f"leg{i}", jdyn.Prismatic((0, 0, 1)), parent=f"turn{i}", mass=mass, com=(0, 0, -0.5), inertia=mass
        )
    balls = [jdyn.constraints.Connect(f"leg{i}", "platform", point_b=top) for i, top in enumerate(STEWART_TOP)]
    return builder.build(), balls


def stewart_pose(t):
    """A motion of the platform about its place 2 m above the base."""
    turn = 0.2 * jnp.stack([jnp.sin(2 * t), jnp.cos(3 * t), jnp.sin(t + 0.5)])
    place = jnp.stack([0.2 * jnp.sin(3 * t), 0.15 * jnp.cos(2 * t), 2 + 0.2 * jnp.sin(4 * t)])
    return Transform(jax.scipy.linalg.expm(jnp.cross(turn, -jnp.eye(3))), place)


class LegLength(eqx.Module):
    """|p + R top − base| along `stewart_pose`."""

    base: jax.Array = eqx.field(converter=jnp.asarray)
    top: jax.Array = eqx.field(converter=jnp.asarray)

    def __call__(self, t):
        return jnp.linalg.norm(stewart_pose(t).point_to_parent(self.top) - self.base)


def stewart_drives():
    """All legs have the lengths that `stewart_pose` asks for."""
    return [
        jdyn.constraints.PrescribedJoint(f"leg{i}", LegLength(base, top))
        for i, (base, top) in enumerate(zip(STEWART_BASE, STEWART_TOP, strict=True))
    ]


# Carrier, driven joint, axis, ratio and inertia about the shaft [kg m²] of rotors.
ROTORS = [("upper", "fore", (0, 1, 0), 60.0, 2e-4), ("fore", "wrist", (1, 1, 0), -20.0, 5e-4)]


def geared(turning):
    """An arm of three links with two rotors: links of their own that follow joints, or locked."""
    builder, parent = jdyn.Builder("geared"), "world"
    for name, axis in {"upper": (0, 0, 1), "fore": (0, 1, 0), "wrist": (1, 0, 0)}.items():
        builder.add_link(
            name, jdyn.Revolute(axis), parent=parent, placement=(0.3, 0, 0), mass=1.0, com=(0.15, 0.02, -0.05),
            inertia=(0.02, 0.03, 0.04), damping=0.1,
        )  # fmt: skip
        parent = name
    for i, (carrier, joint, axis, ratio, about) in enumerate(ROTORS):
        u = np.array(axis) / np.linalg.norm(axis)
        inertia = about * (0.6 * np.eye(3) + 0.4 * np.outer(u, u))
        builder.add_link(
            f"rotor{i}", jdyn.Continuous(axis) if turning else jdyn.Fixed(), parent=carrier, placement=(0.1, 0.02, 0),
            mass=0.3, inertia=inertia, mimic=jdyn.Mimic(joint, ratio) if turning else None,
        )  # fmt: skip
    return builder.build()
