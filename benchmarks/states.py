"""What every library computes with: the same states, in the coordinates of each.

A robot on a fixed base has the same coordinates everywhere. A floating one has as many conventions for its base as
there are libraries; states are carried to them, and what is computed is carried back to be compared.
"""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.cases import COMPARED, ROLLOUT_LANES
from benchmarks.robots import Robot
from jdyn.interop.conventions import Convention, FreeBodyWorld, FreeBodyXYZW


@dataclasses.dataclass(frozen=True)
class FreeBodyWXYZ(FreeBodyXYZW):
    """Body-frame velocities [v; ω] and quaternions wxyz."""

    def q_to_peer(self, q):
        return q

    def q_from_peer(self, q):
        return q


# States made at least: as many as are compared, or rolled out.
LEAST = max(COMPARED, ROLLOUT_LANES)
BASES = {
    "angular first": Convention(7, 6),
    "body": FreeBodyWXYZ(),
    "body xyzw": FreeBodyXYZW(),
    "world": FreeBodyWorld(),
}


def make(robot: Robot, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """`count` states (q, v, a, tau) in jdyn's coordinates, in which a robot neither rests nor flies apart.

    Accelerations are of order one and forces those that cause them. Coordinates fit into float32, so that rounding
    them is no part of any error; but for quaternions, which would not be of unit length.
    """
    model, rng = robot.model(), np.random.default_rng(seed)
    slides = [kind is jdyn.Prismatic for kind in model.topology.kinds]
    base = 7 if robot.floating else 0
    reach = np.where(slides[1 if robot.floating else 0 :], 0.04, 1.0)
    q = np.empty((count, model.nq))
    q[:, base:] = reach * rng.uniform(-1, 1, (count, len(robot.joints)))
    q = q.astype(np.float32).astype(float) if not base else q
    if base:
        q[:, :3] = rng.uniform(-1, 1, (count, 3))
        turn = rng.normal(size=(count, 4))
        q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        rest = np.r_[0:3, 7 : model.nq]
        q[:, rest] = q[:, rest].astype(np.float32)
    v, a = (rng.normal(size=(count, model.nv)).astype(np.float32).astype(float) for _ in range(2))
    v *= 0.5

    def force(state):
        return jdyn.inverse_dynamics(model, *state)

    tau = jax.lax.map(force, jax.tree.map(jnp.asarray, (q, v, a)), batch_size=min(count, 256))
    tau = np.asarray(tau, np.float32).astype(float)
    # Damping per inertia [1/s] of the sweep's lanes, a decade and a half of them.
    inertia = np.diag(np.asarray(jdyn.mass_matrix(model, jnp.asarray(q[0]))))
    damping = inertia * np.geomspace(1, 30, count)[rng.permutation(count), None]
    return {"q": q, "v": v, "a": a, "tau": tau, "damping": damping.astype(np.float32).astype(float)}


def save(robot: Robot, states: dict[str, np.ndarray], path: pathlib.Path):
    """An npz file of the states for every convention, as `q:body`; `joints` names the order."""
    parts = {}
    for name, base in BASES.items() if robot.floating else [("fixed", None)]:
        parts |= {f"{key}:{name}": x for key, x in to_peer(base, states).items()}
    np.savez(path, joints=np.array(robot.joints), damping=states["damping"], **parts)


def to_peer(base: Convention | None, states):
    q, v, a, tau = (states[k] for k in ("q", "v", "a", "tau"))
    if base is None:
        return {"q": q, "v": v, "a": a, "tau": tau}
    B = base.basis(q[:, :7])
    turned = {k: _on_base(B, x) for k, x in {"v": v, "a": a, "tau": tau}.items()}
    turned["a"][:, :6] += base.drift(q[:, :7], v[:, :6])
    return {"q": np.concatenate([base.q_to_peer(q[:, :7]), q[:, 7:]], axis=1), **turned}


def from_peer(base: Convention | None, quantity: str, found: np.ndarray, states) -> np.ndarray | None:
    """A result in jdyn's coordinates; `None` for what conventions of the base do not let compare."""
    if base is None:
        return found
    q, v = (states[k][: len(found)] for k in ("q", "v"))
    B = np.broadcast_to(np.eye(v.shape[1]), (len(v), v.shape[1], v.shape[1])).copy()
    B[:, :6, :6] = base.basis(q[:, :7])
    back = np.swapaxes(B, 1, 2)
    if quantity == "forward dynamics":
        found = found.copy()
        found[:, :6] -= base.drift(q[:, :7], v[:, :6])
        return (back @ found[..., None])[..., 0]
    if quantity == "inverse dynamics":
        return (back @ found[..., None])[..., 0]
    if quantity == "mass matrix":
        return back @ found @ B
    if quantity == "derivatives" and not isinstance(base, FreeBodyWorld):
        n = v.shape[1]
        return np.concatenate([back @ found[..., k * n : (k + 1) * n] @ B for k in range(3)], axis=-1)
    return None


def _on_base(B, x):
    return np.concatenate([(B @ x[:, :6, None])[..., 0], x[:, 6:]], axis=1)


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest error of a state relative to the size of what is found there."""
    difference = (found - exact).reshape(len(found), -1)
    return float(np.max(np.linalg.norm(difference, axis=1) / np.linalg.norm(exact.reshape(len(exact), -1), axis=1)))
