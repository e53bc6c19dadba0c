"""Actuators, tendons, sensors and accelerations of MuJoCo files beside MuJoCo's.

`python -m benchmarks.mujoco_files [FOLDER ...]` reads the MuJoCo files below the folders, or else those of gymnasium,
dm_control and robosuite, as far as these are installed, by `jdyn.load_system` and by MuJoCo. In 50 random states under
random commands it compares forces of actuators and rates of their activations, lengths and moments of actuators and
tendons, values of sensors, and accelerations; then the end of a motion of half a second under constant commands.

Constraints are off in both: contact, equalities, limits and friction of joints and tendons, which MuJoCo has as one
switch. Only equalities of two joints that became mimic joints stay in jdyn; MuJoCo's equations are then projected, and
motions and sensors of accelerations and forces are not compared. Actuators that jdyn names and leaves out are without
force in MuJoCo, too. Commands exceed their ranges. A column of numbers, such as a coordinate in all states, is wrong by
its largest deviation, relative to its largest number, or to a thousandth of the largest one of all columns, or of one,
if that is more.
"""

import argparse
import collections
import dataclasses
import importlib.util
import pathlib
import re
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn
from benchmarks import files
from jdyn.elements import TendonSpring
from jdyn.elements.elements import Elements
from jdyn.interop import MujocoMap
from jdyn.io import mjcf, mjcf_source
from jdyn.io.mjcf_sensors import sensor_names
from jdyn.io.mjcf_tendons import transmission_of
from jdyn.io.mjcf_translation import Translation
from jdyn.terminal.tables import print_table
from jdyn.transmissions import NoSurfaces, Transmission, Travels

TOLERANCE = 1e-8
STATES, SECONDS, TIME = 50, 0.5, 0.25
# MuJoCo's longer step of two [s], shorter where the two ends are farther apart. Of both follows how far the shorter one
# is off.
STEP, SHORTEST, SETTLED = 2e-4, 1e-6, 1e-6
# jdyn's tolerances, the second one for the motion that is compared. What turns fast and freely amplifies errors.
TOLERANCES = (1e-9, 1e-10)
# How far free bodies are lifted [m]: rays from beneath a height field meet its walls in jdyn, its base in MuJoCo.
LIFT = 10.0
WHEELS = {"gymnasium": "envs/mujoco/assets", "dm_control": "suite", "robosuite": "models/assets"}
COMPARED = ("forces", "lengths", "moments", "sensors", "accelerations", "motion")
HEADS = ("file", "nv", "actuators", "tendons", "sensors", "equalities", *COMPARED, "by steps", "left out")


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Findings about one file.

    Attributes:
        refused: Why jdyn or MuJoCo does not read it, or what failed; None if all was compared.
        by_both: Whether MuJoCo refuses it, too.
        features: Number of coordinates, and what the file has, in words.
        errors: Largest errors of each comparison, by what was compared.
        own: How far the motions are off by the steps of either.
        named: Parts that jdyn named and left out.
    """

    refused: str | None = None
    by_both: bool = False
    features: tuple[str, ...] = ("", "", "", "", "")
    errors: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    own: float = 0.0
    named: tuple[str, ...] = ()

    def error(self, comparison: str) -> float | None:
        """The largest error of a comparison; None if nothing was compared."""
        return max(self.errors.get(comparison, {}).values(), default=None)

    @property
    def wrong(self) -> dict[str, float]:
        """Errors beyond the tolerance, or for a motion beyond what the steps of both explain."""
        bounds = dict.fromkeys(COMPARED, TOLERANCE) | {"motion": 1e-6 + 10 * self.own}
        every = ((what, name, x) for what, errors in self.errors.items() for name, x in errors.items())
        return {f"{what} of {name}": x for what, name, x in every if not x <= bounds[what]}


def compared(path: pathlib.Path, folder: pathlib.Path, motion: bool = True) -> Agreement:
    """Findings about a file, the folder of which may hold its meshes; `motion` compares motions, too."""
    with jax.enable_x64(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mujoco.set_mju_user_warning(lambda message: None)
        try:
            peer, by_both = _tried(lambda: mujoco.MjModel.from_xml_path(str(path)))
            if by_both is not None:
                return Agreement(by_both, by_both=True)
            if not peer.nv:
                return Agreement(features=("0", "", "", "", ""))
            system, refused = _tried(lambda: jdyn.load_system(path, package_dirs=[folder], dtype=float))
            if refused is not None:
                return Agreement(refused)
            said = [str(warning.message) for warning in caught if warning.category is jdyn.ModelWarning]
            named = [line.removeprefix("not simulated: ") for text in said for line in text.split("\n  - ")[1:]]
            found = Agreement(features=_features(system, peer), named=tuple(named))
            return _with_errors(found, _Both(path, folder, system, peer), motion)
        finally:
            mujoco.set_mju_user_warning(None)


def _tried(read) -> tuple[Any, str | None]:
    try:
        return read(), None
    # What readers raise is what is asked for.
    except Exception as error:
        return None, " ".join(f"{type(error).__name__}: {error}".split())


def _features(system: jdyn.System, m) -> tuple[str, ...]:
    def counted(names: Iterable[str]) -> str:
        return ", ".join(f"{count} {name}" for name, count in collections.Counter(names).items())

    def kinds(enumeration, numbers) -> Iterator[str]:
        return (enumeration(int(number)).name.split("_", 1)[1].lower() for number in numbers)

    unread, joints = ["not read"] * (m.nactuator - len(system.actuators)), int(mujoco.mjtWrap.mjWRAP_JOINT)
    return (
        str(m.nv),
        counted([type(each).__name__ for each in system.actuators] + unread),
        counted("fixed" if m.wrap_type[start] == joints else "spatial" for start in m.tendon_adr),
        counted(kinds(mujoco.mjtSensor, m.sensor_type)),
        counted(kinds(mujoco.mjtEq, m.eq_type)),
    )


def _with_errors(found: Agreement, both: "_Both", motion: bool) -> Agreement:
    errors, refused = _tried(lambda: both.errors(both.states()))
    if refused is not None:
        return dataclasses.replace(found, refused=refused)
    if motion and not both.couples:
        ends, refused = _tried(both.motion)
        if refused is not None:
            return dataclasses.replace(found, errors=errors, refused=f"motion: {refused}")
        return dataclasses.replace(found, errors=errors | {"motion": {"the end": ends[0]}}, own=ends[1])
    return dataclasses.replace(found, errors=errors)


class _Both:
    """One file in jdyn and in MuJoCo, without constraints.

    Attributes:
        couples: Whether joints follow others in jdyn, and none in MuJoCo.
    """

    def __init__(self, path: pathlib.Path, folder: pathlib.Path, system: jdyn.System, m):
        self.couples = bool(system.model.topology.mimics)
        self.system, self.m = _unconstrained(system, self.couples), m
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT) | int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        self.map = MujocoMap(system.model, m)
        names = [m.actuator(i).name or f"actuator{i}" for i in range(m.nactuator)]
        self.read = [names.index(each.name) for each in system.actuators]
        others = [i for i in range(m.nactuator) if i not in self.read]
        m.actuator_gainprm[others] = m.actuator_biasprm[others] = 0
        self.with_state = {names[i]: m.actuator_actadr[i] for i in self.read if m.actuator_actnum[i]}
        controls = zip(m.actuator_ctrladr[self.read], m.actuator_ctrlnum[self.read], strict=True)
        self.controls = [first + i for first, count in controls for i in range(count)]
        # States alone have no past.
        m.actuator_delay[:] = m.sensor_delay[:] = m.sensor_interval[:] = 0
        self.tendons = _tendons(path, folder)

    def states(self) -> list[tuple[np.ndarray, ...]]:
        """Random configurations of MuJoCo, jdyn's velocities, commands and activations."""
        m, rng, drawn = self.m, np.random.default_rng(0), []
        for _ in range(STATES):
            qpos = m.qpos0.copy()
            mujoco.mj_integratePos(m, qpos, rng.normal(size=m.nv), 1.0)
            qpos[m.jnt_qposadr[m.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)] + 2] += LIFT
            for joint in np.flatnonzero(m.jnt_limited):
                if m.jnt_type[joint] >= int(mujoco.mjtJoint.mjJNT_SLIDE):
                    qpos[m.jnt_qposadr[joint]] = rng.uniform(*m.jnt_range[joint])
            q = self.map.q_from_peer(qpos)
            middle, half = _middle_and_half(m)
            drawn.append(
                (q, rng.normal(size=self.map.model.nv), middle + half * rng.uniform(-1.2, 1.2, m.nu),
                 rng.uniform(-0.5, 1, m.na))
            )  # fmt: skip
        return drawn

    def errors(self, states: list[tuple[np.ndarray, ...]]) -> dict[str, dict[str, float]]:
        """Largest errors of each comparison, by what was compared."""
        several = (jdyn.actuators.PIDServo, jdyn.actuators.DCMotor)
        if names := [each.name for each in self.system.actuators if isinstance(each, several)]:
            raise NotImplementedError(f"states of {', '.join(names)}, which tests/actuators compares")
        expected = [self._values(*state) for state in states]
        q, v, controls, activations = (np.array(x) for x in zip(*states, strict=True))
        memories = {name: jnp.asarray(activations[:, i]) for name, i in self.with_state.items()}
        commands = jnp.asarray(controls[:, self.controls])
        found = _ours(self.system, self.tendons, jnp.asarray(q), jnp.asarray(v), commands, memories)
        return {
            what: {
                name: _error(np.array([one[what][name] for one in expected]), np.asarray(x), "quat" in name)
                for name, x in values.items()
            }
            for what, values in found.items()
        }

    def _values(self, q, v, controls, activations) -> dict[str, dict[str, np.ndarray]]:
        """MuJoCo's values in one state, in jdyn's conventions."""
        m, map, d = self.m, self.map, mujoco.MjData(self.m)
        d.qpos[:], d.qvel[:], d.time = map.q_to_peer(q), map.v_to_peer(q, v), TIME
        d.ctrl[:], d.act[:] = controls, activations
        mujoco.mj_forward(m, d)
        T, rows = map.velocity_map(q), m.actuator_outadr[self.read]
        if self.couples:
            M = np.array([_times_mass(m, d, unit) for unit in np.eye(m.nv)])
            a = np.linalg.solve(T.T @ M @ T, T.T @ (d.qfrc_smooth - M @ map.drift(q, v)))
        else:
            a = map.a_from_peer(q, v, d.qacc)
        arms = _dense(m, d.actuator_moment, d.moment_rownnz, d.moment_rowadr, d.moment_colind)[rows]
        of_tendons = _dense(m, d.ten_J, m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
        names = sensor_names(types.SimpleNamespace(mujoco=mujoco, m=m))
        parts = ((start, start + size) for start, size in zip(m.sensor_adr, m.sensor_dim, strict=True))
        return {
            "forces": {
                "actuators": T.T @ d.qfrc_actuator,
                **{f"state {i}": d.act_dot[j] for i, j in self.with_state.items()},
            },
            "lengths": {"actuators": d.actuator_length[rows], "tendons": d.ten_length},
            "moments": {"actuators": arms @ T, "tendons": of_tendons @ T},
            "accelerations": {"joints": a},
            "sensors": {name: d.sensordata[slice(*part)].copy() for name, part in zip(names, parts, strict=True)},
        }

    def motion(self) -> tuple[float, float]:
        """Largest difference at the end of a motion, and that of MuJoCo's own steps, or of jdyn's if that is more."""
        m = self.m
        middle, half = _middle_and_half(m)
        controls = middle + 0.2 * half * np.cos(np.arange(m.nu))
        start = m.qpos0.copy()
        controller = jdyn.control.Constant(controls[self.controls]) if self.read else None
        system = self.system.but(sensors=(), controller=controller)
        state, ends = system.state(jnp.asarray(self.map.q_from_peer(start))), []
        # First, since it fails soon where motions are out of all bounds.
        for tolerance in TOLERANCES:
            control = diffrax.PIDController(rtol=jnp.asarray(tolerance), atol=jnp.asarray(tolerance / 100))
            ours = jdyn.simulate(system, state, SECONDS, saveat=diffrax.SaveAt(t1=True), stepsize_controller=control)
            ends.append(self.map.q_to_peer(np.asarray(ours.q[-1])))
        step = STEP
        coarse, fine = (_steps(m, start, controls, each) for each in (step, step / 2))
        while not _apart(m, fine, coarse) < SETTLED and step > SHORTEST:
            step /= 8
            coarse, fine = (_steps(m, start, controls, each) for each in (step, step / 2))
        # An error of fourth order falls to a sixteenth.
        return _apart(m, fine, ends[1]), max(_apart(m, fine, coarse) / 15, _apart(m, *ends))


def _unconstrained(system: jdyn.System, couples: bool) -> jdyn.System:
    """The system without constraints, and without sensors that compare with nothing if joints follow others."""
    model = dataclasses.replace(system.model, friction=jnp.zeros_like(system.model.friction))
    springs = (each if not isinstance(each, TendonSpring) else _spring_alone(each) for each in system.elements)
    sensors = tuple(sensor for sensor in system.sensors if not (couples and sensor.uses_forces))
    return system.but(
        model=model, elements=tuple(springs), sensors=sensors, contact=None, constraints=(), joint_limits=None
    )


def _spring_alone(element: TendonSpring) -> TendonSpring:
    none = jnp.zeros_like(element.stiffness)
    return dataclasses.replace(element, friction=none, stop_stiffness=none)


def _tendons(path: pathlib.Path, folder: pathlib.Path) -> list[Transmission]:
    """All tendons of a file, also those on which nothing acts."""
    document = mjcf_source.read(path, [folder])
    compiled, _ = mjcf.compile_document(mujoco, document)
    translation = Translation(mujoco, compiled, document, None)
    return [transmission_of(translation, i) for i in range(compiled.ntendon)]


@jax.jit
def _ours(system, tendons, q, v, commands, activations):
    """Values of jdyn in a batch of states, named as those of MuJoCo."""

    def one(q, v, commands, activations):
        commanded = system.but(controller=jdyn.control.Constant(commands) if system.actuators else None)
        state, model = commanded.state(q, v), system.model
        memory = state.parts.get("controller")
        if activations:
            memory = memory._replace(actuators=activations)
            state = jdyn.State(q, v, state.parts | {"controller": memory})
        driver, t = commanded.driver(), jnp.asarray(TIME)
        tau = driver.force(t, q, v, memory)
        others = Elements(system.elements).force(model, t, q, v) if system.elements else jnp.zeros_like(v)
        found = {
            "forces": {"actuators": tau},
            "lengths": {},
            "moments": {},
            "accelerations": {"joints": jdyn.forward_dynamics(model, q, v, tau + others)},
            "sensors": commanded.sense(state, t=t) if system.sensors else {},
        }
        if activations:
            rates = driver.rate(t, q, v, memory).actuators
            found["forces"] |= {f"state {name}": rate for name, rate in rates.items()}
        # Nothing touches, since contact is off.
        driven = [each.transmission.among(NoSurfaces()) for each in system.actuators]
        of_kinds = {"actuators": driven, "tendons": tendons}
        for kind, transmissions in of_kinds.items():
            if transmissions:
                travels = Travels.at(transmissions, model, q, v)
                found["lengths"][kind], found["moments"][kind] = travels.lengths, travels.moments
        return found

    return jax.vmap(one)(q, v, commands, activations)


def _error(expected: np.ndarray, found: np.ndarray, is_quaternion: bool) -> float:
    """The largest error of a column; the first axis is that of states."""
    expected = expected.reshape(len(expected), -1)
    found = found.reshape(expected.shape)
    if not expected.size:
        return 0.0
    if is_quaternion:
        expected = expected * np.sign(np.sum(expected * found, axis=1, keepdims=True))
    largest = np.max(np.abs(expected), axis=0)
    scale = np.maximum(largest, 1e-3 * max(1.0, np.max(largest)))
    return float(np.max(np.max(np.abs(found - expected), axis=0) / scale))


def _middle_and_half(m) -> tuple[np.ndarray, np.ndarray]:
    """Centers of the ranges of commands, and half of their widths; zero and one where there are no limits."""
    limited = m.actuator_ctrllimited.astype(bool)
    lower, upper = m.actuator_ctrlrange.T
    return np.where(limited, (lower + upper) / 2, 0.0), np.where(limited, (upper - lower) / 2, 1.0)


def _times_mass(m, d, x: np.ndarray) -> np.ndarray:
    product = np.zeros(m.nv)
    mujoco.mj_mulM(m, d, product, x)
    return product


def _dense(m, values, counts, starts, columns) -> np.ndarray:
    """A sparse matrix of MuJoCo with a column for each velocity."""
    dense = np.zeros((len(counts), m.nv))
    for row, count, start in zip(dense, counts, starts, strict=True):
        row[columns[start : start + count]] = values[start : start + count]
    return dense


def _steps(m, start: np.ndarray, controls: np.ndarray, step: float) -> np.ndarray:
    """The end of MuJoCo's motion by its Runge-Kutta method."""
    flags, integrator, timestep = m.opt.disableflags, m.opt.integrator, m.opt.timestep
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    m.opt.integrator, m.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), step
    d = mujoco.MjData(m)
    d.qpos[:], d.ctrl[:] = start, controls
    mujoco.mj_step(m, d, nstep=round(SECONDS / step))
    m.opt.disableflags, m.opt.integrator, m.opt.timestep = flags, integrator, timestep
    return d.qpos.copy()


def _apart(m, qpos: np.ndarray, other: np.ndarray) -> float:
    """The largest coordinate of the way from one configuration to another, relative to one, or the largest of all."""
    way = np.zeros(m.nv)
    mujoco.mj_differentiatePos(m, way, 1.0, qpos, other)
    return float(np.max(np.abs(way)) / max(1.0, np.max(np.abs(qpos))))


def installed() -> list[pathlib.Path]:
    """Folders of files in wheels that are installed, which are not imported."""
    specs = ((importlib.util.find_spec(wheel), below) for wheel, below in WHEELS.items())
    return [pathlib.Path(place) / below for spec, below in specs if spec for place in spec.submodule_search_locations]


def all_compared(
    folders: Iterable[pathlib.Path], pattern: str = "*", motion: bool = True
) -> Iterator[tuple[pathlib.Path, pathlib.Path, Agreement]]:
    """Each MuJoCo file of a name like the pattern, its folder, and what was found."""
    found = ((path, folder, root) for folder in folders for path, root in files.robot_files(folder))
    tasks = [(path, folder, motion) for path, folder, root in found if root == "mujoco" and path.match(pattern)]
    for (path, folder, _), agreement in files.in_processes(compared, tasks):
        yield path, folder, agreement or Agreement("the process crashed")


def _shortened(named: Sequence[str], length: int = 60) -> str:
    lines = [re.sub(r"\S*/", "", line) for line in named]
    return "; ".join(line if len(line) <= length else f"{line[:length]}..." for line in lines)


def _row(name: str, found: Agreement) -> list[str]:
    errors = [found.error(what) for what in COMPARED]
    shown = ["-" if error is None else f"{error:.0e}" for error in errors]
    own = "-" if errors[-1] is None else f"{found.own:.0e}"
    return [name, *(feature or "-" for feature in found.features), *shown, own, _shortened(found.named)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", type=pathlib.Path)
    parser.add_argument("--only", default="*", help="pattern of names of files")
    parser.add_argument("--no-motion", action="store_true", help="compare no motions, which take the longest")
    options = parser.parse_args()
    rows, lines, counts = [], [], collections.Counter()
    for path, folder, found in all_compared(options.folder or installed(), options.only, not options.no_motion):
        name = str(path.relative_to(folder))
        if found.by_both:
            counts["refused by MuJoCo"] += 1
            continue
        if found.refused is not None:
            lines.append(f"refused: {name}: {found.refused[:300]}")
        elif not found.errors:
            counts["nothing moves"] += 1
            continue
        counts["refused by jdyn" if found.refused else "differ" if found.wrong else "agree"] += 1
        lines += [f"differs: {name}: {what} by {error:.1e}" for what, error in found.wrong.items()]
        rows.append(_row(name, found))
        print(*rows[-1], sep=" | ", flush=True)
    print()
    print_table(HEADS, rows)
    print(*lines, sep="\n")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    print(f"MuJoCo {mujoco.__version__}, JAX {jax.__version__}, tolerance {TOLERANCE:g}")


if __name__ == "__main__":
    main()
