"""Small mechanisms that touch the ground."""

import numpy as np

import jdyn


def on_the_ground(kind, size, inertia, mass=1.0):
    """One body with one shape, which moves freely above the ground z = 0."""
    builder = jdyn.Builder(kind)
    builder.add_link("body", jdyn.Free(), mass=mass, inertia=inertia)
    builder.add_shape("body", kind, size, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def ball(mass=1.0, radius=0.1):
    return on_the_ground("sphere", radius, 0.4 * mass * radius**2 * np.ones(3), mass)


def box(mass=1.0, sides=(0.2, 0.3, 0.4)):
    squares = np.square(sides)
    return on_the_ground("box", sides, mass / 12 * (squares.sum() - squares), mass)


def bouncing(mass=1.0, radius=0.1):
    """A ball on a vertical rail, above the ground."""
    builder = jdyn.Builder("bouncing")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=mass, inertia=0.4 * mass * radius**2 * np.ones(3))
    builder.add_shape("ball", "sphere", radius, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def tilted(model, angle):
    """The same on a slope that falls along x."""
    return model.with_gravity(9.81 * np.array([np.sin(angle), 0, -np.cos(angle)]))


def block(mass=1.0):
    """A box that slides and rises, and does not turn."""
    builder = jdyn.Builder("block")
    builder.add_link("rail", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("block", jdyn.Prismatic((0, 0, 1)), parent="rail", mass=mass, inertia=mass * np.full(3, 0.04 / 6))
    builder.add_shape("block", "box", (0.2, 0.2, 0.2), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def stack(count, side):
    """Boxes of 1 kg, not quite above each other, and where they start, a row each."""
    builder = jdyn.Builder("stack")
    for i in range(count):
        builder.add_link(f"box{i}", jdyn.Free(), mass=1.0, inertia=side**2 / 6 * np.ones(3))
        builder.add_shape(f"box{i}", "box", side * np.ones(3), role="collision")
        for j in range(i - 1):
            builder.exclude(f"box{i}", f"box{j}")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    model = builder.build()
    q = model.neutral().reshape(count, 7).at[:, 2].set(side * (np.arange(count) + 0.5))
    return model, q.at[:, 0].set(0.002 * np.sin(np.arange(count)))
