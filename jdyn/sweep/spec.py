"""Sweeps that are written down: a robot, a controlled motion, what varies, and what is kept of each lane."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.contact import CompliantContact, ConvexContact, RigidContact
from jdyn.io import toml
from jdyn.io.plain_file import expect_file
from jdyn.io.toml import Table
from jdyn.model import BY_COORDINATE, units_of, with_ground
from jdyn.robots import ROBOTS, load
from jdyn.simulation import CompliantLimits, System, parameters, vary
from jdyn.sweep.controlled_move import CONTROLLERS, ControlledMove
from jdyn.sweep.design import Design, Grid
from jdyn.sweep.drawn import LatinHypercube, Log, Sobol
from jdyn.sweep.outputs import OUTPUTS, USUAL, Lane, Output
from jdyn.sweep.sweep import sweep
from jdyn.terminal.messages import known, short

if TYPE_CHECKING:
    import xarray

DRAWN = {"latin_hypercube": LatinHypercube, "sobol": Sobol}
# Numbers that are none of the model's, and their units.
GAINS = {"controller.kp": "1/s²", "controller.kd": "1/s"}
CONTACTS = {"compliant": CompliantContact, "convex": ConvexContact, "rigid": RigidContact}
STARTS = {"q0": "rad or m", "v0": "rad/s or m/s", "target": "rad or m"}
USUAL_GAINS = {"kp": 100.0, "kd": 20.0}
# The tolerance of `simulate`; the absolute one is this share of it.
RTOL, ABSOLUTE = {"float64": 1e-6, "float32": 1e-5}, {"float64": 1e-2, "float32": 1e-1}
# Most that a file may ask for: more lanes or rows than fit a memory.
MOST_LANES, MOST_ROWS = 2**31, 10**5


class Varied(NamedTuple):
    """A number that varies.

    Attributes:
        of: Its name: that of `jdyn.parameters`, `controller.kp`, `controller.kd`, `rtol`, or `q0:JOINT`, `v0:JOINT`,
            `target:JOINT` of a joint with one coordinate.
        by: `"is"`, `"plus"` or `"times"`: how the parameter changes it.
        units, long_name: In words.
    """

    of: str
    by: str
    units: str
    long_name: str


class Spec:
    """A sweep as a file says it, `jdyn sweep spec.toml`.

    >>> design = {"parameters": {"body:link1.mass": {"values": [0.5, 1.0]}}}
    >>> spec = jdyn.Spec.of({"robot": "pendulum", "horizon": 0.5, "design": design}, "example")
    >>> spec.design.size, spec.horizon
    (2, 0.5)

    Attributes:
        entries: The whole of it, as JSON can say it; the path of the robot is absolute.
        model: The robot.
        system: The robot, with contact and joint limits if they are asked for.
        move: The motion.
        design: What varies; None if nothing does.
        horizon: Length of the motion [s].
        store: Folder for the results, or None.
        chunk: Lanes of a chunk, or None.
        title: Of the dataset.
        tune: Table of which `jdyn tune` makes something.
    """

    def __init__(self, table: Table, folder: pathlib.Path, most_lanes: int = MOST_LANES):
        """Read a table.

        Args:
            table: Its entries.
            folder: Where paths begin.
            most_lanes: Most that the design may have.

        Raises:
            ValueError: naming line, entry and reason of every problem: first those of the file alone, then what the
                robot says to it.
        """
        self.entries = dict(table.entries)
        self.horizon = table.take("horizon", toml.positive)
        self.rows = table.take("rows", _rows, 101)
        self.dtype = table.take("dtype", toml.choice(tuple(RTOL)), "float64")
        self.outputs = table.take("outputs", _outputs, USUAL)
        self.store = table.take("store", lambda path: str(folder.joinpath(toml.path(path))), None)
        self.chunk = table.take("chunk", toml.count, None)
        self.scheduler = table.take("scheduler", toml.text, None)
        robot = {
            "robot": table.take("robot", toml.path), "package_dirs": table.take("package_dirs", toml.paths, []),
            "floating_base": table.take("floating_base", toml.flag, None),
        }  # fmt: skip
        rtol, title = table.take("rtol", toml.positive, None), table.take("title", toml.text, None)
        motion, controller, design = table.table("motion"), table.table("controller"), table.table("design")
        starts = {name: motion.take(name, toml.numbers, None) for name in ("q0", "v0", "target")}
        seed = motion.take("seed", toml.whole, 0)
        kind = controller.take("kind", toml.choice(CONTROLLERS), CONTROLLERS[0])
        gains = {f"controller.{gain}": controller.take(gain, toml.positive, x) for gain, x in USUAL_GAINS.items()}
        touch = table.take("contact", toml.choice(tuple(CONTACTS)), None)
        ground, stops = table.take("ground", toml.number, None), table.take("limits", toml.flag, False)
        self.tune = table.table("tune")
        plan = _Plan.read(design, most_lanes)
        for read in (motion, controller, table):
            read.close()
        table.check()
        with self.precision():
            self.model = self._load(folder, **robot)
            if ground is not None:
                self.model = with_ground(self.model, (0, 0, ground))
            try:
                self.move = ControlledMove(self.model, seed, **starts, kind=kind)
            except ValueError as error:
                raise ValueError(f"{motion.where(motion.path)}: motion: {error}") from error
            self.system = System(
                self.model,
                contact=None if touch is None else CONTACTS[touch](),
                joint_limits=CompliantLimits() if stops else None,
            )
            try:
                self.system.touching()
            except ValueError as error:
                raise ValueError(f"{table.where(('contact',))}: {error}") from error
            self._nominal = {
                **parameters(self.system), **_starts(self.move), "rtol": rtol or RTOL[self.dtype], **gains,
            }  # fmt: skip
        self.title = title or self.name
        self._varied: dict[str, Varied] = {}
        self.design = self._design(plan, design)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return pathlib.Path(self.entries["robot"]).stem

    def precision(self):
        """A context in which JAX computes as the spec says."""
        return jax.enable_x64(self.dtype == "float64")

    @property
    def gains(self) -> dict[str, float]:
        """Gains of the controller, kp and kd, where they do not vary."""
        return {gain: self._nominal[f"controller.{gain}"] for gain in USUAL_GAINS}

    @property
    def varied(self) -> list[str]:
        """Parameters."""
        return list(self._varied)

    @property
    def varied_gains(self) -> list[str]:
        """Parameters that change a gain."""
        return [name for name, varied in self._varied.items() if varied.of in GAINS]

    def scenarios(self) -> dict[str, Array]:
        """The parameters of all lanes, by name; none if nothing varies."""
        if self.design is None:
            return {}
        return {name: jnp.asarray(x) for name, x in self.design.lanes(np.arange(self.design.size)).items()}

    def sweep(self, **options: Any) -> xarray.Dataset:
        """Run it, with the options of `jdyn.sweep`."""
        if self.design is None:
            raise ValueError(f"{self.title}: nothing varies; a sweep needs [design.parameters]")
        with self.precision():
            own = {"chunk": self.chunk, "store": self.store, "attrs": self.attrs}
            return sweep(self, self.design, **{**own, **options}).assign_attrs(title=self.title)

    @classmethod
    def read(cls, path: str | os.PathLike) -> Spec:
        """The spec in a TOML file; paths in it begin at its folder."""
        path = pathlib.Path(path)
        return cls(Table.read(path), path.parent)

    @classmethod
    def of(cls, entries: Mapping[str, Any], source: str) -> Spec:
        """The spec of these entries, for which errors name a source."""
        return cls(Table.of(entries, source), pathlib.Path.cwd())

    @classmethod
    def from_json(cls, text: str, source: str, most_lanes: int = MOST_LANES) -> Spec:
        try:
            entries = toml.mapping(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source}: expected the text of a spec: {error}") from error
        return cls(Table.of(entries, source), pathlib.Path.cwd(), most_lanes)

    def to_json(self) -> str:
        return json.dumps(self.entries, ensure_ascii=False)

    def lane(self, values: Mapping[str, Any], gains: Mapping[str, Any] | None = None) -> Lane:
        """The motion of one lane, with other gains if they are given."""
        chosen = {}
        for name, varied in self._varied.items():
            nominal, value = self._nominal[varied.of], values[name]
            chosen[varied.of] = {"is": value, "plus": nominal + value, "times": nominal * value}[varied.by]
        moved = [name for name in chosen if name.partition(":")[0] in STARTS]
        move = self.move.moved({name: chosen.pop(name) for name in moved})
        own = {gain: chosen.pop(f"controller.{gain}", usual) for gain, usual in self.gains.items()}
        gains = own if gains is None else dict(gains)
        rtol = chosen.pop("rtol", self._nominal["rtol"])
        system = vary(self.system, chosen)
        motion = move.run(
            system, **gains, t1=self.horizon, saveat=jnp.linspace(0, self.horizon, self.rows, dtype=system.model.dtype),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=ABSOLUTE[self.dtype] * rtol),
        )  # fmt: skip
        return Lane(dict(values), system.model, move, gains, motion)

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Array]:
        return self.kept(self.lane(values))

    def kept(self, lane: Lane) -> dict[str, Array]:
        """Outputs that are kept of a lane."""
        return {name: OUTPUTS[name].of(lane) for name in self.outputs} | {"result": lane.motion.result}

    @property
    def attrs(self) -> dict[str, dict[str, str]]:
        """Units and meanings of the dataset's variables."""
        named: dict[str, Output | Varied] = {name: OUTPUTS[name] for name in self.outputs} | self._varied
        words = {name: {"long_name": x.long_name, "units": x.units} for name, x in named.items()}
        return {name: {key: word for key, word in both.items() if word} for name, both in words.items()}

    def _load(self, folder, robot, package_dirs, floating_base):
        if robot not in ROBOTS:
            path = folder.joinpath(robot).resolve()
            if path.exists():
                expect_file(path)
            self.entries["robot"] = robot = str(path)
        packages = [str(folder.joinpath(path).resolve()) for path in package_dirs]
        if packages:
            self.entries["package_dirs"] = packages
        return load(robot, floating_base=floating_base, package_dirs=packages)

    def _design(self, plan: _Plan, table: Table) -> Design | None:
        if not plan.ranges:
            return None
        values = {}
        for name, given in plan.ranges.items():
            self._varied[name] = varied = self._varied_by(name, given)
            values[name] = given.interval if plan.kind in DRAWN else given.axis()
            if varied.of in (*GAINS, "rtol") and varied.by != "plus" and np.min(values[name]) <= 0:
                table.complain("parameters", f"{name}: expected positive numbers, got {np.min(values[name]):g}")
        for name in sorted({"n", "seed", "self"} & set(values) if plan.kind in DRAWN else ()):
            table.complain("parameters", f"{name!r} says something of the design, call the parameter otherwise")
        table.check()
        try:
            if plan.kind in DRAWN:
                return DRAWN[plan.kind](plan.lanes, seed=plan.seed, **values)
            return Grid(**values)
        except ValueError as error:
            table.complain("parameters", str(error))
            table.check()
            raise

    def _varied_by(self, name, given: _Range) -> Varied:
        of, by = given.of, given.by
        units = "1"
        if of not in self._nominal:
            given.table.complain("of", f"there is no number called {short(of)}; {known(of, list(self._nominal))}")
        else:
            shape = np.shape(self._nominal[of])
            if by != "times" and shape and of.rpartition(".")[2] not in BY_COORDINATE:
                given.table.complain("by", f"{of!r} has shape {shape}, which a number can only change by 'times'")
            if by != "times":
                units = GAINS.get(of) or STARTS.get(of.partition(":")[0]) or units_of(of)
        for other, varied in self._varied.items():
            if varied.of == of:
                given.table.complain("of", f"{other!r} changes {of!r} already")
        return Varied(of, by, given.units or units, given.long_name)


class _Range(NamedTuple):
    """Range of a number that varies, in a spec.

    Attributes:
        of, by, units, long_name: As in `Varied`.
        values: One by one; None where ends are given.
        low, high: Ends.
        log: Whether what is between is even in the logarithm.
        count: How many values.
        table: Where it stands.
    """

    of: str
    by: str
    units: str | None
    long_name: str
    values: list[float] | None
    low: float
    high: float
    log: bool
    count: int
    table: Table

    @classmethod
    def read(cls, name: str, table: Table, drawn: bool, most: int) -> _Range:
        of = table.take("of", toml.text, name)
        by = table.take("by", toml.choice(("is", "plus", "times")), "is")
        units, long_name = table.take("units", toml.text, None), table.take("long_name", toml.text, of)
        values = None if drawn else table.take("values", toml.numbers, None)
        ends = values is None
        low, high = (table.take(end, toml.number) if ends else 0.0 for end in ("low", "high"))
        log = ends and table.take("scale", toml.choice(("linear", "log")), "linear") == "log"
        count = table.take("count", toml.at_most(most)) if ends and not drawn else 0
        if log and None not in (low, high) and min(low, high) <= 0:
            table.complain("low", f"the logarithm needs positive numbers, got {low:g} and {high:g}")
        table.close()
        return cls(of, by, units, long_name, values, low, high, log, count, table)

    @property
    def interval(self):
        return Log(self.low, self.high) if self.log else (self.low, self.high)

    def axis(self) -> Any:
        """Values along an axis of a grid."""
        if self.values is not None:
            return self.values
        return (np.geomspace if self.log else np.linspace)(self.low, self.high, self.count)


class _Plan(NamedTuple):
    """Design of a spec.

    Attributes:
        kind: `"grid"`, or how lanes are drawn.
        lanes, seed: Of a draw.
        ranges: Of parameters, by name.
    """

    kind: str
    lanes: int
    seed: int
    ranges: dict[str, _Range]

    @classmethod
    def read(cls, table: Table, most: int) -> _Plan:
        if not table.entries:
            return cls("grid", 0, 0, {})
        kinds = toml.choice(("grid", *DRAWN))
        kind = table.take("kind", kinds, None if "kind" in table.entries else "grid")
        if kind is None:
            # What other entries there may be depends on it.
            return cls("grid", 0, 0, {})
        drawn = kind in DRAWN
        lanes = table.take("lanes", toml.at_most(most)) if drawn else 0
        seed = table.take("seed", toml.whole, 0) if drawn else 0
        parameters = table.table("parameters")
        if not parameters.entries:
            table.complain("parameters", "expected an entry for each number that varies")
        ranges = {name: _Range.read(name, entry, drawn, most) for name, entry in parameters.tables().items()}
        table.close()
        return cls(kind, lanes, seed, ranges)


def _starts(move: ControlledMove) -> dict[str, Array]:
    """Coordinates of start and target of joints that have one, by name."""
    names = move.coordinates
    return {f"{what}:{name}": getattr(move, what)[i] for what in STARTS for name, i in names.items()}


def _rows(value):
    if toml.at_most(MOST_ROWS)(value) < 2:
        raise ValueError(f"expected at least 2, the start and the end, got {value}")
    return value


def _outputs(value):
    for name in toml.texts(value):
        if name not in OUTPUTS:
            raise ValueError(f"there is no output {short(name)}; {known(name, list(OUTPUTS))}")
    return value
