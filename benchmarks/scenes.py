"""The motions that integrators are compared on: a mechanism, starts, a controller and an end each."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.sweep import ControlledMove

SEED = 7


@dataclasses.dataclass(frozen=True)
class Drive:
    """A PD controller.

    Attributes:
        target: Configuration to reach, shape (nq,).
        kp, kd: Gains, shape (lanes, nv).
        compensated: Whether gravity is, by a controller that does not know of payloads.
    """

    target: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    compensated: bool = False

    @property
    def varies(self) -> bool:
        return any(bool(np.any(gain != gain[0])) for gain in (self.kp, self.kd))


@dataclasses.dataclass(frozen=True)
class Scene:
    """What all curves of a picture compute.

    Attributes:
        about: What moves, in words.
        model: The mechanism without payloads.
        q0, v0: Starts, a row a lane.
        t1: End [s].
        drive: What moves it besides gravity.
        payload: What each lane has more on its last body [kg].
        stiff: Whether forces of joints would hold the steps of explicit methods.
        extrapolated: Whether extrapolation methods are among the curves.
    """

    name: str
    about: str
    model: jdyn.Model
    q0: np.ndarray
    v0: np.ndarray
    t1: float
    drive: Drive | None = None
    payload: np.ndarray | None = None
    stiff: bool = False
    extrapolated: bool = False

    @property
    def lanes(self) -> int:
        return len(self.q0)

    @property
    def floating(self) -> bool:
        return jdyn.Free in self.model.topology.kinds

    @property
    def has_friction(self) -> bool:
        return bool(np.any(np.asarray(self.model.friction)))

    @property
    def varies(self) -> bool:
        """Whether lanes differ in more than their starts."""
        return self.payload is not None or (self.drive is not None and self.drive.varies)

    def loaded(self, lane: int) -> jdyn.Model:
        """The mechanism of one lane."""
        return self.model if self.payload is None else _with_payload(self.model, self.payload[lane])

    def simulate(self, reduce: Callable, **options: Any):
        """`reduce` of every lane's trajectory, by `jdyn.simulate_batch`."""
        model, axes = self.model, dict[str, Any](q0=0, v0=0)
        if self.payload is not None:
            heavier = jax.vmap(lambda payload: _with_payload(self.model, payload))(jnp.asarray(self.payload))
            model = eqx.tree_at(lambda model: model.inertias, model, heavier.inertias)
            axes["model"] = _axes(model, lambda model: model.inertias)
        controller = None
        if self.drive is not None:
            controller, axes["controller"] = self._controller(self.drive)
        q0, v0 = jnp.asarray(self.q0), jnp.asarray(self.v0)
        return jdyn.simulate_batch(
            model, q0, v0, self.t1, controller=controller, in_axes=axes, reduce=reduce, **options
        )

    def _controller(self, drive: Drive):
        pd, axes = jdyn.PD(self.model, drive.target, kp=drive.kp[0], kd=drive.kd[0]), None
        if drive.varies:
            axes = _axes(pd, lambda pd: (pd.kp, pd.kd))
            pd = eqx.tree_at(lambda pd: (pd.kp, pd.kd), pd, (jnp.asarray(drive.kp), jnp.asarray(drive.kd)))
        if not drive.compensated:
            return pd, axes
        both = pd + jdyn.GravityCompensation(self.model)
        return both, None if axes is None else eqx.tree_at(
            lambda both: both.terms[0], _axes(both), axes, is_leaf=_is_none
        )


def _is_none(x):
    return x is None


def _axes(tree, batched: Callable = lambda tree: ()):
    """Axes of lanes: none, but for what is `batched`."""
    none = jax.tree.map(lambda _: None, tree)
    return eqx.tree_at(batched, none, replace_fn=lambda _: 0, is_leaf=_is_none) if batched(tree) else none


def _with_payload(model, payload):
    last = model.body_names[-1]
    return model.with_body(last, mass=model.inertias.mass[model.topology.body(last)] + payload)


def _without_friction(model):
    return _with_friction(model, friction=0.0)


def _with_friction(model, **changes):
    kinds = zip(model.joint_names, model.topology.kinds, strict=True)
    for joint in [name for name, kind in kinds if kind is not jdyn.Free]:
        model = model.with_joint(joint, **changes)
    return model


def _everywhere(lanes, gains):
    return np.tile(np.asarray(gains, float), (lanes, 1))


def _around(rng, center, reach, lanes):
    return np.asarray(center) + rng.uniform(-reach, reach, (lanes, len(center)))


# The scenes.


def _panda(name, about, lanes, model, compensated=False):
    rng = np.random.default_rng(SEED)
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    target = ready + np.array([0.4, 0.3, -0.3, 0.5, 0.4, -0.4, 0.5])
    drive = Drive(target, _everywhere(lanes, [100.0] * 7), _everywhere(lanes, [20.0] * 7), compensated)
    q0, v0 = _around(rng, ready, 0.4, lanes), _around(rng, np.zeros(7), 0.5, lanes)
    return Scene(name, about, model, q0, v0, 0.5, drive, stiff=True)


def panda_pd(lanes):
    about = "Panda without friction, PD (kp 100, kd 20) towards a target, 0.5 s"
    return _panda("panda_pd", about, lanes, _without_friction(jdyn.load("panda")))


def panda_gravity(lanes):
    about = "the same, gravity compensated"
    return _panda("panda_gravity", about, lanes, _without_friction(jdyn.load("panda")), compensated=True)


def panda_friction(lanes):
    model = _with_friction(jdyn.load("panda"), friction=0.5, friction_speed=1e-3)
    return _panda("panda_friction", "Panda, the same PD, friction of 0.5 N m, smooth below 1e-3 rad/s", lanes, model)


def _puma(name, about, lanes, model):
    rng, reach = np.random.default_rng(SEED), ControlledMove(model, 0)
    # In any order, so that the first lanes are like all.
    gains, payload = rng.permutation(np.geomspace(5, 500, lanes)), rng.permutation(np.linspace(0, 5, lanes))
    kp = gains[:, None] * np.asarray(reach.inertia)
    kd = _everywhere(lanes, 4 * np.asarray(reach.inertia))
    q0 = np.tile(np.asarray(reach.q0), (lanes, 1))
    drive = Drive(np.asarray(reach.target), kp, kd, compensated=True)
    return Scene(name, about, model, q0, np.zeros_like(q0), 2.0, drive, payload, stiff=True)


def puma(lanes):
    about = "the PUMA 560 of jdyn sweep: gains from 5 to 500 an inertia, payloads to 5 kg, its own friction, 2 s"
    return _puma("puma", about, lanes, jdyn.load("puma560"))


def puma_smooth(lanes):
    return _puma("puma_smooth", "the same without friction", lanes, _without_friction(jdyn.load("puma560")))


def double_pendulum(lanes):
    # Low enough that it is not chaotic.
    rng = np.random.default_rng(SEED)
    q0 = _around(rng, np.zeros(2), 0.5, lanes)
    about = "double pendulum from rest at up to 0.5 rad, 5 s"
    model = jdyn.load("double_pendulum")
    return Scene("double_pendulum", about, model, q0, np.zeros_like(q0), 5.0, extrapolated=True)


def quadruped(lanes):
    rng, model = np.random.default_rng(SEED), _without_friction(jdyn.load("quadruped"))
    crouch = np.concatenate([np.asarray(model.neutral())[: jdyn.Free.nq], np.tile([0.0, -0.8, 1.6], 4)])
    gains = [np.append(np.zeros(6), np.full(12, gain)) for gain in (40.0, 1.0)]
    away = jnp.asarray(_around(rng, np.zeros(18), 0.3, lanes))
    q0 = np.asarray(jax.vmap(model.integrate, (None, 0))(jnp.asarray(crouch), away))
    drive = Drive(crouch, _everywhere(lanes, gains[0]), _everywhere(lanes, gains[1]))
    about = "quadruped without friction that falls, PD (kp 40, kd 1) of its legs, 0.5 s"
    v0 = _around(rng, np.zeros(18), 0.5, lanes)
    return Scene("quadruped", about, model, q0, v0, 0.5, drive, extrapolated=True)


def chain32(lanes):
    rng = np.random.default_rng(SEED)
    model = _with_friction(jdyn.random_tree(0, 32, kinds=(jdyn.Revolute,), reach=1), damping=0.5)
    q0, v0 = _around(rng, np.zeros(32), 0.3, lanes), _around(rng, np.zeros(32), 0.2, lanes)
    about = "random chain of 32 links that falls, dampers of 0.5 N m s/rad, 1 s"
    return Scene("chain32", about, model, q0, v0, 1.0, stiff=True)


def rods(lanes):
    """Lane 0 starts from round numbers, the others near it."""
    builder, length, mass = jdyn.Builder("rods"), 0.5, 1.0
    # Of a slender rod about its middle, but for the axis along it, about which nothing turns.
    inertia = (mass * length**2 / 12, mass * length**2 / 12, 1e-4)
    for i in range(3):
        where: dict[str, Any] = {} if i == 0 else {"parent": f"rod{i - 1}", "placement": (0, 0, -length)}
        joint = jdyn.Revolute(np.array([0.0, 1, 0]))  # type: ignore[arg-type]
        builder.add_link(f"rod{i}", joint, mass=mass, com=(0, 0, -length / 2), inertia=inertia, **where)
    rng = np.random.default_rng(SEED)
    q0, v0 = _around(rng, [1.5, 0.3, -0.2], 0.1, lanes), _around(rng, [0.5, -1.0, 1.0], 0.1, lanes)
    q0[0], v0[0] = [1.5, 0.3, -0.2], [0.5, -1.0, 1.0]
    return Scene("rods", "three rods that fall freely, 1 s", builder.build(), q0, v0, 1.0, extrapolated=True)


SCENES: dict[str, Callable[[int], Scene]] = {
    make.__name__: make
    for make in (
        panda_pd, panda_gravity, puma, puma_smooth, panda_friction, double_pendulum, quadruped, chain32, rods
    )
}  # fmt: skip
