"""Tower crane."""

from jdyn.model import Builder, Model, Prismatic, Revolute
from jdyn.robots.links import box_inertia, per_link


def crane(cable: float = 10.0, load: float = 500.0, *, dtype=None) -> Model:
    """Tower crane: a slewing boom, a trolley on it, and a beam that swings on a straight massless cable.

    q = [slew angle, radius of the trolley, swing in the plane of boom and cable, swing across it] [rad, m, rad, rad].
    At q = 0 the boom points along +x at a height of 20 m, the trolley is at the tower (its range is 2 to 19 m), and
    the cable hangs straight down; all link frames are parallel to the world's. A positive q[2] swings the load towards
    the tower; a positive q[3] swings it to the left, the direction in which a positive q[0] turns the boom. Frame
    `hook` is the end of the cable, at the centre of the load. The effort limits of both swings are 0, since they are
    not driven. Swings of ±90 degrees in the plane are singular.

    Links: a boom of 3000 kg, 20 × 0.8 × 0.8 m; a trolley of 200 kg, 1 × 0.6 × 0.4 m; a swivel of 5 kg at the top of
    the cable; a load of 4 × 0.2 × 0.2 m along x.

    The paper simulates a crane that carries building parts, to study and limit the swing of the load, but gives no
    parameters; the layout and all numbers here are plausible choices.

    Args:
        cable: Length of the cable [m].
        load: Mass of the load [kg].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the length or the mass is not a finite positive number.

    Source of the idea: Lee, Ruspini, Khatib, Dynamic simulation of interactive robotic environment, ICRA 1994.
    """
    [cable_length], [load_mass] = per_link(1, cable=cable, load=load)
    builder = Builder("crane")
    builder.add_link(
        "boom",
        Revolute((0, 0, 1)),  # type: ignore[arg-type]
        placement=(0, 0, 20),
        mass=3000.0,
        com=(10, 0, 0),
        inertia=box_inertia(3000.0, (20, 0.8, 0.8)),
        joint_name="slew",
        damping=500.0,
        effort=5e4,
    )
    builder.add_link(
        "trolley",
        Prismatic((1, 0, 0)),  # type: ignore[arg-type]
        parent="boom",
        mass=200.0,
        inertia=box_inertia(200.0, (1, 0.6, 0.4)),
        joint_name="travel",
        damping=100.0,
        lower=2.0,
        upper=19.0,
        effort=5e3,
    )
    builder.add_link(
        "swivel",
        Revolute((0, 1, 0)),  # type: ignore[arg-type]
        parent="trolley",
        mass=5.0,
        inertia=0.05,
        joint_name="swing",
        damping=50.0,
        effort=0.0,
    )
    builder.add_link(
        "load",
        Revolute((1, 0, 0)),  # type: ignore[arg-type]
        parent="swivel",
        mass=load_mass,
        com=(0, 0, -cable_length),
        inertia=box_inertia(load_mass, (4, 0.2, 0.2)),
        joint_name="sway",
        damping=50.0,
        effort=0.0,
    )
    builder.add_frame("hook", "load", (0, 0, -cable_length))
    return builder.build(dtype=dtype)
