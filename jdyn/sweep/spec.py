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

from jdyn.io import toml
from jdyn.io.toml import Table
from jdyn.model import BY_COORDINATE, parameters, units_of, vary
from jdyn.model.messages import known
from jdyn.robots import ROBOTS, load
from jdyn.sweep.controlled_move import CONTROLLERS, ControlledMove
from jdyn.sweep.design import Design, Grid
from jdyn.sweep.drawn import LatinHypercube, Log, Sobol
from jdyn.sweep.outputs import OUTPUTS, USUAL, Lane, Output
from jdyn.sweep.sweep import sweep

if TYPE_CHECKING:
    import xarray

DRAWN = {"latin_hypercube": LatinHypercube, "sobol": Sobol}
# Numbers that are none of the model's, and their units.
GAINS = {"controller.kp": "1/s²", "controller.kd": "1/s"}
STARTS = {"q0": "rad or m", "v0": "rad/s or m/s", "target": "rad or m"}
USUAL_GAINS = {"kp": 100.0, "kd": 20.0}
# The tolerance of `simulate`; the absolute one is this share of it.
RTOL, ABSOLUTE = {"float64": 1e-6, "float32": 1e-5}, {"float64": 1e-2, "float32": 1e-1}


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
        move: The motion.
        design: What varies; None if nothing does.
        horizon: Length of the motion [s].
        store: Folder for the results, or None.
        chunk: Lanes of a chunk, or None.
        title: Of the dataset.
        tune: Table of which `jdyn tune` makes something.
    """

    def __init__(self, table: Table, folder: pathlib.Path):
        """Read a table.

        Args:
            table: Its entries.
            folder: Where paths begin.

        Raises:
            ValueError: naming line, entry and reason of the first problem.
        """
        self.entries = dict(table.entries)
        self.horizon = table.take("horizon", toml.positive)
        self.rows = table.take("rows", _rows, 101)
        self.dtype = table.take("dtype", toml.choice(tuple(RTOL)), "float64")
        self.outputs = table.take("outputs", _outputs, USUAL)
        self.store = table.take("store", lambda path: str(folder.joinpath(toml.text(path))), None)
        self.chunk = table.take("chunk", toml.count, None)
        self.scheduler = table.take("scheduler", toml.text, None)
        controller = table.table("controller")
        with self.precision():
            self.model = self._load(table, folder)
            self.move = self._move(table.table("motion"), controller)
            self._nominal = {
                **parameters(self.model), **_starts(self.move),
                "rtol": table.take("rtol", toml.positive, RTOL[self.dtype]),
                **{f"controller.{gain}": controller.take(gain, toml.positive, x) for gain, x in USUAL_GAINS.items()},
            }  # fmt: skip
        self.title = table.take("title", toml.text, self.name)
        self.tune = table.table("tune")
        self._varied: dict[str, Varied] = {}
        self.design = self._design(table.table("design"))
        for read in (controller, table):
            read.close()

    @property
    def name(self) -> str:
        """Of the robot."""
        return pathlib.Path(self.entries["robot"]).stem

    def precision(self):
        """A context in which JAX computes as the spec says."""
        return jax.enable_x64(self.dtype == "float64")

    @property
    def gains(self) -> dict[str, float]:
        """Those of the controller, kp and kd, where they do not vary."""
        return {gain: self._nominal[f"controller.{gain}"] for gain in USUAL_GAINS}

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
    def from_json(cls, text: str, source: str) -> Spec:
        return cls.of(json.loads(text), source)

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
        model = vary(self.model, chosen)
        motion = move.run(
            model, **gains, t1=self.horizon, saveat=jnp.linspace(0, self.horizon, self.rows, dtype=model.dtype),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=ABSOLUTE[self.dtype] * rtol),
        )  # fmt: skip
        return Lane(dict(values), model, move, gains, motion)

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Array]:
        return self.kept(self.lane(values))

    def kept(self, lane: Lane) -> dict[str, Array]:
        """What is kept of a lane."""
        return {name: OUTPUTS[name].of(lane) for name in self.outputs} | {"result": lane.motion.result}

    @property
    def attrs(self) -> dict[str, dict[str, str]]:
        """Units and meanings of the dataset's variables."""
        named: dict[str, Output | Varied] = {name: OUTPUTS[name] for name in self.outputs} | self._varied
        words = {name: {"long_name": x.long_name, "units": x.units} for name, x in named.items()}
        return {name: {key: word for key, word in both.items() if word} for name, both in words.items()}

    def _load(self, table, folder):
        robot = table.take("robot", toml.text)
        if robot not in ROBOTS:
            self.entries["robot"] = robot = str(folder.joinpath(robot).resolve())
        packages = [str(folder.joinpath(path).resolve()) for path in table.take("package_dirs", toml.texts, [])]
        if packages:
            self.entries["package_dirs"] = packages
        return load(robot, floating_base=table.take("floating_base", toml.flag, None), package_dirs=packages)

    def _move(self, motion, controller):
        options = {name: motion.take(name, toml.numbers, None) for name in ("q0", "v0", "target")}
        seed = motion.take("seed", toml.whole, 0)
        kind = controller.take("kind", toml.choice(CONTROLLERS), CONTROLLERS[0])
        motion.close()
        try:
            return ControlledMove(self.model, seed, **options, kind=kind)
        except ValueError as error:
            raise ValueError(f"{motion.where(motion.path)}: motion: {error}") from error

    def _design(self, table: Table) -> Design | None:
        if not table.entries:
            return None
        kind = table.take("kind", toml.choice(("grid", *DRAWN)), "grid")
        drawn = kind in DRAWN
        n, seed = (table.take("lanes", toml.count), table.take("seed", toml.whole, 0)) if drawn else (0, 0)
        values = {}
        for name, entry in table.table("parameters").tables().items():
            self._varied[name] = varied = self._varied_by(name, entry)
            values[name] = _interval(entry) if drawn else _axis(entry)
            if varied.of in (*GAINS, "rtol") and varied.by != "plus" and np.min(values[name]) <= 0:
                raise table.error("parameters", f"{name}: expected positive numbers, got {np.min(values[name]):g}")
            entry.close()
        table.close()
        if wrong := sorted({"n", "seed", "self"} & set(values) if drawn else ()):
            raise table.error("parameters", f"{wrong[0]!r} says something of the design, call the parameter otherwise")
        try:
            return DRAWN[kind](n, seed=seed, **values) if drawn else Grid(**values)
        except ValueError as error:
            raise table.error("parameters", str(error)) from error

    def _varied_by(self, name, entry) -> Varied:
        of = entry.take("of", toml.text, name)
        if of not in self._nominal:
            raise entry.error("of", f"there is no number called {of!r}; {known(of, list(self._nominal))}")
        for other, varied in self._varied.items():
            if varied.of == of:
                raise entry.error("of", f"{other!r} changes {of!r} already")
        by = entry.take("by", toml.choice(("is", "plus", "times")), "is")
        if by != "times" and np.ndim(self._nominal[of]) and of.rpartition(".")[2] not in BY_COORDINATE:
            shape = np.shape(self._nominal[of])
            raise entry.error("by", f"{of!r} has shape {shape}, which a number can only change by 'times'")
        units = "1" if by == "times" else GAINS.get(of) or STARTS.get(of.partition(":")[0]) or units_of(of)
        return Varied(of, by, entry.take("units", toml.text, units), entry.take("long_name", toml.text, of))


def _starts(move: ControlledMove) -> dict[str, Array]:
    """Coordinates of start and target of joints that have one, by name."""
    names = move.coordinates
    return {f"{what}:{name}": getattr(move, what)[i] for what in STARTS for name, i in names.items()}


def _rows(value):
    if toml.count(value) < 2:
        raise ValueError(f"expected at least 2, the start and the end, got {value}")
    return value


def _outputs(value):
    for name in toml.texts(value):
        if name not in OUTPUTS:
            raise ValueError(f"there is no output {name!r}; {known(name, list(OUTPUTS))}")
    return value


def _interval(entry: Table):
    low, high = entry.take("low", toml.number), entry.take("high", toml.number)
    return Log(low, high) if entry.take("scale", toml.choice(("linear", "log")), "linear") == "log" else (low, high)


def _axis(entry: Table) -> Any:
    listed = entry.take("values", toml.numbers, None)
    if listed is not None:
        return listed
    interval, many = _interval(entry), entry.take("count", toml.count)
    if not isinstance(interval, Log):
        return np.linspace(*interval, many)
    if min(interval) <= 0:
        raise entry.error("low", f"the logarithm needs positive numbers, got {interval.low:g} and {interval.high:g}")
    return np.geomspace(*interval, many)
