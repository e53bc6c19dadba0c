"""The words of the command line. They load neither JAX nor the library, so that help and errors come at once."""

import argparse
import pathlib

from jdyn import __version__
from jdyn.studies.prrr.words import add_sweep_words, add_words
from jdyn.terminal.argument_types import (
    count,
    frequency,
    height,
    movie,
    natural,
    new_file,
    number_or_name,
    part,
    picture,
    port,
    positive,
    seed,
    share_or_file,
)

# The names in `jdyn.ROBOTS`.
ROBOTS = (
    "pendulum",
    "double_pendulum",
    "cartpole",
    "acrobot",
    "prrr",
    "chain",
    "puma560",
    "stanford_arm",
    "panda",
    "quadruped",
    "crane",
    "ball",
    "box",
    "ball_on_plate",
    "cartpole_with_walls",
    "gripper",
    "hopper",
)

# The names in `jdyn.world.scenes.SCENES`.
SCENES = ("cradle", "billiards", "pumas")

# Those of the viewer.
LOOKS = ("visual", "collision", "skeleton")

# Those of `jdyn.cli.common`.
CONTACTS = ("compliant", "convex", "rigid")

# Those of `jdyn.identification`.
PARTS = ("inertias", "damping", "friction", "armature")
# What may be unknown of measured forces.
CHANNELS = ("delay", "offset", "gain")

DESCRIPTION = """Simulate, sweep and tune robots, and look at what rounding does to them.

A ROBOT is the name of a bundled one, or the path of a URDF, an SDF or a MuJoCo file."""

EXAMPLES = """examples:
  jdyn info panda                            what a robot is made of
  jdyn view panda                            look at it in a browser, with sliders of its joints
  jdyn simulate double_pendulum --plot motion.png
  jdyn simulate quadruped --t1 2 --ground --movie fall.gif
  jdyn simulate ant.xml --movie ant.gif      from where the file starts, on its floor
  jdyn simulate quadruped --t1 1 --ground 0 --hold --movie stand.gif \\
    --q0 0 0 .35 1 0 0 0 0 -.8 1.6 0 -.8 1.6 0 -.8 1.6 0 -.8 1.6
  jdyn sweep                                 1024 simulations of a PUMA 560: payload against gain
  jdyn sweep my_arm.urdf --lanes 4096 --kp 10 1000
  jdyn sweep notebooks/sweep.toml --store sweep.zarr
  jdyn replay sweep.zarr --lane 17 --plot motion.png
  jdyn tune notebooks/tune.toml              gains that are good for all of eight payloads
  jdyn identify log.csv my_arm.urdf          masses, inertias and friction from measured forces
  jdyn tune panda                            gains by gradient through the simulation
  jdyn world billiards --movie break.gif     rigid bodies that collide
  jdyn stiffness                             what rounding costs: figure 5.6 of Cloutier's thesis, and float32
  jdyn prrr --interactive                    the thesis' own simulator of planar robots, figure 5.2
  jdyn prrrfdt --vary q2                     the thesis' test of forward dynamics, figure 5.3

Each command explains itself: jdyn sweep --help"""

# What `jdyn COMMAND --help` says.
LESSONS = {
    "info": """What a robot is made of: bodies, joints, masses, limits, doubtful numbers, the condition of its mass
matrix, and what else its file has: actuators, sensors, contact.""",
    "simulate": """Let a robot move, or hold its joints where they start, and print its energy at the start and at the
end. Joints stop at the ends of their ranges, which takes energy. Motors and servos of a file get the commands of
--ctrl. Shapes touch ground and obstacles of a file, and those of --ground.""",
    "view": """Look at a robot in a browser: sliders of joints, a gizmo that drags a body, playing and recording,
simulating from any configuration, centres of mass, inertia ellipsoids, joint axes. Ctrl-C ends it.

In place of a ROBOT, the folder of a sweep's store shows a lane of it, simulated again. With --export no page opens, but
is written, with its motion, to one file that needs no server.""",
    "world": """A scene of rigid bodies that collide: Newton's cradle, a break at billiards, two PUMA 560s of which one
falls onto the other. Prints impacts and the balance of energy.

Where a coordinator has objects take steps of their own until they meet, as of billiards, --merged has one system of all
objects instead.""",
    "sweep": """Many simulations of one motion under PD control, in batches: every combination of payload and
proportional gain. The controller does not know the payload. Writes a labelled dataset (NetCDF, for xarray) and a
heat map.

Without arguments: the PUMA 560, 1024 lanes, 2 s each. In place of a ROBOT, such as panda, a file that ends with .toml
says what to sweep: any numbers of the robot, the controller and the start.

With --store results are kept as they come, in a folder for xarray.open_zarr. After a crash or Ctrl-C the same command
goes on. The exit status is 1 if no lane succeeds.""",
    "replay": """Simulate one lane of a store again, and print what is stored of it beside what comes out.""",
    "tune": """Tune the PD gains of every joint by gradient through the simulation, from poor ones, and draw before and
after.

The loss is the mean over the motion of the squared distance to the target, plus a small share of the squared effort. In
place of a ROBOT, such as panda, a file that ends with .toml says more: start and target, what the loss is made of, and
scenarios, such as payloads, of which the mean, the worst share or the worst is to be good.""",
    "identify": """Estimate masses, inertias, dampers, friction and rotors from the measured forces of a motion, and
write the robot with these as a URDF file. Prints which of them forces tell, alone or combined with others, with 95 %
intervals, and how noisy the forces are. All bodies can exist, and are as near to those of the robot as forces let them.

DATA is a CSV file whose first line names its columns, time [s] and of each joint q_JOINT and tau_JOINT, or i_JOINT for
currents [A]; or a NetCDF file for xarray: time, q (time, q_coordinate), tau or i (time, v_coordinate); or, with pip
install "jdyn[rosbag]", a ROS 1 bag or the folder of a ROS 2 bag with sensor_msgs/JointState. Positions are filtered and
differentiated; the delay of forces, their offsets and the torque constants of currents are estimated, too. Constants
need a known force: --loaded with a robot that carries a known payload, or --parts that leave out what is known.

Where DATA has velocities, v_JOINT or v, and --cutoff is left out, these are taken as they are, and nothing is filtered.
Accelerations are then those of a_JOINT or a, or, where these are left out, slopes of a smoothing spline through v.""",
    "stiffness": """What the rounding of a forward-dynamics method costs an adaptive integrator, which takes rounding
for motion: the number of evaluations of a fall under gravity, by method and floating type, as the mechanism becomes
ill-conditioned. A dash means that the simulation failed.

Without a robot: the ten pairs of links of figure 5.6 in Cloutier's thesis (1995), beside what is printed there. With
one: its joints made frictionless, and the last body of its arm 1 to 10⁶ times as heavy.""",
    "prrr": """The off-line simulator of Cloutier's thesis (1995, section 5.1.3): planar robots of rectangular links,
and the statistics that compare forward dynamics by articulated bodies (ABM) and by composite rigid bodies (CRBM).

Without arguments it runs the session of figure 5.2 and prints its results beside those of the thesis. The thesis does
not print the robot file of that figure; its numbers imply three links of 10 m, 1 kg and 1 m width. The robot starts
from rest, where rounding alone decides the length of the first step, and counts vary by a few with it. So the session
is also run from 201 starts that differ by units in the last place.

With --interactive the program asks the thesis' questions; an empty answer takes the value given as an argument.

A robot FILE is text with one line for each link, base to tip: length [m], mass [kg], width [m]. Empty lines and
comments after a # are ignored.

Statistics are columns of text with the time first, one file for each quantity: ID-positions.txt and so on; the
summary is ID-summary.txt. A row is the first step after each save interval.""",
    "prrrfdt": """The forward dynamics test of Cloutier's thesis (1995, section 5.1.2): accelerations of a planar robot
of rectangular links by articulated bodies (ABM) and by composite rigid bodies (CRBM), while one input takes many
values and all others stay constant; and the difference between the two methods.

An INPUT is q, v, torque, length, mass or width with the number of a link, such as q2 or length2, or it is gravity or
friction. Several inputs take the same values together: --vary length2 mass2 --from 1 --to 1e6 --log.

Without arguments the second joint of figure 5.3's robot turns through a full circle.

Writes columns of text: the value, the condition number of the mass matrix, the accelerations of all joints by each
method, and the relative differences of CRBM's from ABM's where both are asked for.""",
}


def parser() -> argparse.ArgumentParser:
    text = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser("jdyn", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=text)
    whole.add_argument("--version", action="version", version=f"jdyn {__version__}")
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def plain_command(name: str, summary: str):
        words = commands.add_parser(name, help=summary, description=LESSONS[name], formatter_class=text)
        words.set_defaults(command=name)
        words.add_argument(
            "--no-cache", action="store_false", dest="cache", help="compile anew, and keep nothing for the next command"
        )
        return words

    def command(name: str, summary: str, default: str | None = None):
        words = plain_command(name, summary)
        _add_robot(words, default)
        return words

    command("info", "what a robot is made of")

    _add_view(command("view", "look at a robot, or at a lane of a sweep, in a browser"))

    words = command("simulate", "let a robot move, or hold its joints")
    words.add_argument("--t1", type=positive, default=5.0, metavar="S", help="end [s] (default: 5)")
    words.add_argument(
        "--q0", type=number_or_name, nargs="+", metavar="Q",
        help="start: numbers, or the name of a configuration of the robot's MuJoCo file or of --srdf (default: that of "
        "a MuJoCo or SDF file, else drawn within the limits)",
    )  # fmt: skip
    words.add_argument("--v0", type=float, nargs="+", metavar="V", help="velocity at the start (default: at rest)")
    words.add_argument("--seed", type=seed, default=0, help="which start is drawn (default: 0)")
    words.add_argument(
        "--ctrl",
        type=float,
        nargs="+",
        metavar="U",
        help="commands of the file's actuators, in their order (default: 0)",
    )
    words.add_argument(
        "--hold", action="store_true", help="hold joints where they start, by springs and dampers; not a floating base"
    )
    _add_limits(words)
    _add_contact(words)
    words.add_argument(
        "--plot", type=picture, metavar="FILE", help="write energies and coordinates over time to this picture"
    )
    _add_movie(words)

    words = plain_command("world", "a scene of rigid bodies that collide")
    words.add_argument("scene", choices=SCENES, metavar="NAME", help=", ".join(SCENES))
    words.add_argument("--t1", type=positive, metavar="S", help="end [s] (default: that of the scene)")
    words.add_argument("--merged", action="store_true", help="simulate one system of all objects")
    words.add_argument("--plot", type=picture, metavar="FILE", help="write energies and coordinates to this picture")
    words.add_argument("--save", type=new_file, metavar="FILE", help="keep the motion, for jdyn.world.WorldMotion.load")
    _add_movie(words)
    words.set_defaults(dtype="float64")

    words = command("sweep", "many simulations in batches: payload against gain, or what a spec says", "puma560")
    _add_sweep(words)

    words = plain_command("replay", "one lane of a sweep's store again")
    words.add_argument("store", metavar="STORE", help="folder that jdyn sweep --store has filled")
    words.add_argument("--lane", type=natural, required=True, metavar="N", help="number of the lane, from 0")
    words.add_argument("--plot", type=picture, metavar="FILE", help="write energies and coordinates to this picture")
    _add_movie(words)
    words.set_defaults(dtype="float64")

    words = command("tune", "gains by gradient through the simulation", "puma560")
    words.add_argument("--steps", type=count, help="steps of the optimizer (default: 30)")
    words.add_argument("--rate", type=positive, help="learning rate of Adam (default: 0.3)")
    words.add_argument("--t1", type=positive, metavar="S", help="length of the motion [s] (default: 1.5)")
    words.add_argument("--seed", type=seed, help="which target is drawn (default: 0)")
    words.set_defaults(**TUNE_WORDS)
    words.add_argument(
        "--plot", type=picture, metavar="FILE", help="picture of before and after (default: tune-ROBOT.png)"
    )
    words.add_argument(
        "--checkpoint", type=new_file, metavar="FILE", help="keep the state; the same command goes on from there"
    )

    words = plain_command("identify", "masses, inertias and friction from measured forces")
    words.add_argument(
        "data", type=pathlib.Path, metavar="DATA", help="CSV or NetCDF file, or ROS bag, with time, q, and tau or i"
    )
    _add_robot(words, None)
    words.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS, help="what is unknown (default: all)")
    words.add_argument(
        "--spread", type=positive, default=1.0, metavar="S",
        help="how far parameters may be from those of the robot, relative to these (default: 1)",
    )  # fmt: skip
    words.add_argument(
        "--cutoff", type=frequency, metavar="HZ",
        help="cut-off of the filter of positions, or auto (default: four times the highest frequency out of noise)",
    )  # fmt: skip
    words.add_argument(
        "--band",
        type=positive,
        metavar="HZ",
        help="of the filter of forces and regressors (default: twice the cut-off)",
    )
    words.add_argument(
        "--channels", choices=CHANNELS, nargs="*",
        help="what is unknown of measured forces (default: delay and offset where there is a filter, gain of currents)",
    )  # fmt: skip
    words.add_argument(
        "--held-out", type=share_or_file, default=0.2, metavar="SHARE",
        help="end of the motion that the fit does not know, or another file (default: 0.2)",
    )  # fmt: skip
    words.add_argument(
        "--loaded", type=pathlib.Path, nargs=2, action="append", default=[], metavar=("DATA", "ROBOT"),
        help="motion of the same robot with a known payload, and that robot's file; may be repeated",
    )  # fmt: skip
    words.add_argument("--degrees", action="store_true", help="angles are in degrees")
    words.add_argument("--topic", help="of a bag in which several topics have joint states")
    words.add_argument(
        "--report", type=new_file, metavar="FILE", help="write a page with tables and plots to this file"
    )
    words.add_argument("--output", type=new_file, metavar="FILE", help="URDF file (default: identified-ROBOT.urdf)")

    words = command("stiffness", "what the rounding of forward dynamics costs an integrator", "")
    words.add_argument("--t1", type=positive, default=10.0, metavar="S", help="length of the motions [s] (default: 10)")
    words.add_argument("--tolerance", type=positive, default=1e-6, help="of a step (default: 1e-6)")
    words.add_argument("--seed", type=seed, default=0, help="which start is drawn (default: 0)")
    words.add_argument("--plot", type=picture, metavar="FILE", help="picture (default: stiffness-ROBOT.png)")

    add_words(plain_command("prrr", "the simulator of Cloutier's thesis: planar robots and their statistics"))
    add_sweep_words(plain_command("prrrfdt", "the thesis' test of forward dynamics while one input varies"))
    return whole


# What words are if they are left out; a spec says the same.
ROBOT_WORDS = {"floating_base": None, "package_dir": [], "dtype": "float64"}
SWEEP_WORDS = ROBOT_WORDS | {
    "lanes": 1024, "payload": (0.0, 5.0), "kp": (5.0, 500.0), "kd": 4.0, "t1": 2.0, "seed": 0, "body": None
}  # fmt: skip
TUNE_WORDS = ROBOT_WORDS | {"steps": 30, "rate": 0.3, "t1": 1.5, "seed": 0}


def _add_sweep(words):
    words.add_argument("--lanes", type=count, help="simulations, rounded to a square (default: 1024)")
    words.add_argument(
        "--payload", type=float, nargs=2, metavar=("LOW", "HIGH"),
        help="mass added at the centre of mass of a body [kg] (default: 0 5)",
    )  # fmt: skip
    words.add_argument(
        "--kp", type=positive, nargs=2, metavar=("LOW", "HIGH"),
        help="proportional gain per unit of joint inertia [1/s²], logarithmic (default: 5 500)",
    )  # fmt: skip
    words.add_argument("--kd", type=positive, help="derivative gain per unit of inertia [1/s] (default: 4)")
    words.add_argument("--t1", type=positive, metavar="S", help="length of the motion [s] (default: 2)")
    words.add_argument("--seed", type=seed, help="which target is drawn (default: 0)")
    words.add_argument("--body", metavar="NAME", help="which body carries the payload (default: the last of the arm)")
    words.set_defaults(**SWEEP_WORDS)
    words.add_argument("--chunk", type=count, help="lanes in a batch (default: as fits the device)")
    words.add_argument(
        "--output", type=new_file, metavar="NAME", help="name of the files, without .nc and .png (default: sweep-ROBOT)"
    )
    words.add_argument(
        "--store",
        type=new_file,
        metavar="FOLDER",
        help="keep results as they come; the same command goes on from there",
    )
    words.add_argument("--shard", type=part, metavar="I/N", help="compute the I-th of N parts, with the same --store")
    words.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers compute the lanes")


def _add_limits(words):
    words.add_argument("--no-limits", action="store_false", dest="limits", help="let joints pass their limits")


def _add_contact(words):
    words.add_argument(
        "--contact", choices=[*CONTACTS, "none"],
        help="how shapes touch (default: compliant, of a file with ground or obstacles and with --ground)",
    )  # fmt: skip
    words.add_argument(
        "--ground", type=height, nargs="?", const="lowest", metavar="Z",
        help="put level ground at this height [m] (default: under the lowest shape of the start)",
    )  # fmt: skip
    words.add_argument(
        "--srdf", metavar="FILE", help="SRDF file beside a URDF file: which links may not touch, and configurations"
    )


def _add_movie(words):
    words.add_argument(
        "--movie",
        type=movie,
        metavar="FILE",
        help="write a movie to this .gif or .mp4, or five pictures of it to a .png",
    )


def _add_view(words):
    words.add_argument("--lane", type=natural, metavar="N", help="number of the store's lane (default: 0)")
    words.add_argument(
        "--t1", type=positive, metavar="S",
        help="let it move without motors first, so long [s], from a start drawn within the limits (default: it stands)",
    )  # fmt: skip
    words.add_argument("--seed", type=seed, default=0, help="which start is drawn (default: 0)")
    _add_limits(words)
    _add_contact(words)
    words.set_defaults(q0=None)
    words.add_argument("--look", choices=LOOKS, default="visual", help="how links look (default: visual)")
    words.add_argument("--export", type=new_file, metavar="FILE", help="write a page, such as motion.html, and end")
    words.add_argument("--port", type=port, default=8080, help="of the page, or the next free one (default: 8080)")
    words.add_argument("--no-browser", action="store_false", dest="browser", help="print the address, open nothing")


def _add_robot(words, default):
    names = ", ".join(ROBOTS)
    words.add_argument(
        "robot", metavar="ROBOT", default=default, nargs=None if default is None else "?",
        help=f"{names}, or the path of a URDF, SDF or MuJoCo file" + (f" (default: {default})" if default else ""),
    )  # fmt: skip
    base = words.add_mutually_exclusive_group()
    base.add_argument("--floating-base", action="store_true", default=None, help="the base is free to move")
    base.add_argument("--fixed-base", action="store_false", dest="floating_base", help="the base is bolted down")
    words.add_argument(
        "--package-dir", action="append", default=[], metavar="DIR", help="where package:// files are; may be repeated"
    )
    words.add_argument(
        "--dtype", choices=("float32", "float64"), default="float64", help="precision (default: float64)"
    )
