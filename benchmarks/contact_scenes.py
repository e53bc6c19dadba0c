"""Scenes with contact, as jdyn's models and as MuJoCo files: starts, PD controllers and an end each."""

import dataclasses
import pathlib
import warnings
import xml.etree.ElementTree as ET

import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn
from benchmarks.mujoco_twin import mjcf
from jdyn.interop import MujocoMap

LANES = 1024
SEED = 7


@dataclasses.dataclass(frozen=True)
class ContactScene:
    """What all programs simulate, without friction and limits of joints.

    Attributes:
        about: What moves, in words.
        model: The mechanism with the ground.
        xml: The same as the text of a MuJoCo file.
        q0, v0: Starts in jdyn's coordinates, a row a lane.
        t1: End [s].
        kp, kd: Gains of PD controllers, shape (nv,), or None.
        target: What they hold, shape (nq,).
        nearest: Of how many pairs of each two kinds of shapes jdyn looks for points; None for all.
    """

    name: str
    about: str
    model: jdyn.Model
    xml: str
    q0: np.ndarray
    v0: np.ndarray
    t1: float
    kp: np.ndarray | None = None
    kd: np.ndarray | None = None
    target: np.ndarray | None = None
    nearest: int | None = None

    @property
    def controller(self) -> jdyn.Controller | None:
        return None if self.kp is None else jdyn.PD(self.model, self.target, kp=self.kp, kd=self.kd)

    def astype(self, dtype) -> "ContactScene":
        """The same scene in another floating type."""
        arrays = {key: x.astype(dtype) for key, x in vars(self).items() if isinstance(x, np.ndarray)}
        return dataclasses.replace(self, model=self.model.astype(dtype), **arrays)

    def peer(self) -> dict:
        """What a program that reads MuJoCo files needs."""
        m = mujoco.MjModel.from_xml_string(self.xml)
        other = MujocoMap(self.model, m)
        ctrl = np.zeros(0)
        if self.target is not None:
            qpos = other.q_to_peer(self.target)
            ctrl = qpos[m.jnt_qposadr[m.actuator_trnid[:, 0]]]
        qpos, qvel = other.q_to_peer(self.q0), other.v_to_peer(self.q0, self.v0)
        return {"name": self.name, "xml": self.xml, "qpos": qpos.tolist(), "qvel": qvel.tolist(), "ctrl": ctrl.tolist()}


def quadruped(lanes: int = LANES) -> ContactScene:
    model = _frictionless(jdyn.with_ground(jdyn.load("quadruped")))
    crouch = np.concatenate([[0, 0, 0.2875, 1, 0, 0, 0], np.tile([0, -0.8, 1.6], 4)])
    kp, kd = (np.concatenate([np.zeros(6), np.full(12, gain)]) for gain in (60.0, 2.0))
    about = "Mini Cheetah that lands from 5 mm and stands under PD (kp 60, kd 2), 0.16 s"
    q0, v0 = _starts(model, crouch, 0.05, lanes)
    # All steps that are compared fit the time.
    return ContactScene("quadruped", about, model, mjcf(model, kp, kd), q0, v0, 0.16, kp, kd, crouch)


def humanoid(lanes: int = LANES) -> ContactScene:
    import gymnasium  # the others do without

    path = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "humanoid.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        model = jdyn.load(path)
    root = ET.parse(path).getroot()
    for tag in ("tendon", "actuator"):
        root.remove(root.find(tag))
    middle = np.clip(np.asarray(model.neutral()), *(np.asarray(x) for x in (model.limits.lower, model.limits.upper)))
    middle[2] = 1.3  # its feet are 7 mm above the floor
    about = "Gymnasium's humanoid that falls limply, with its self-collisions, 0.5 s"
    q0, v0 = _starts(model, middle, 0.3, lanes)
    return ContactScene("humanoid", about, model, ET.tostring(root, encoding="unicode"), q0, v0, 0.5, nearest=8)


def gripper(lanes: int = LANES) -> ContactScene:
    model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    target = np.asarray(model.neutral().at[:3].set(jnp.array([0.1, 0.035, 0.035])))
    kp, kd = (np.concatenate([gains, np.zeros(6)]) for gains in ([1000.0, 1000.0, 1000.0], [60.0, 10.0, 10.0]))
    about = "two fingers that grasp a cube and lift it, 0.3 s"
    q0, v0 = _starts(model, np.asarray(model.neutral()), 0.01, lanes)
    return ContactScene("gripper", about, model, mjcf(model, kp, kd), q0, v0, 0.3, kp, kd, target)


SCENES = {scene.__name__: scene for scene in (quadruped, humanoid, gripper)}


def _frictionless(model):
    zero = jnp.zeros_like(model.friction)
    return dataclasses.replace(model, friction=zero)


def _starts(model, q, spread, lanes):
    """The first lane starts from `q` at rest, the others with other velocities [rad/s or m/s]."""
    v0 = spread * np.random.default_rng(SEED).normal(size=(lanes, model.nv))
    v0[0] = 0
    return np.tile(q, (lanes, 1)), v0
