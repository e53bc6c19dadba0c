"""Results of all of jdyn's functions at one state, from one compiled program per robot."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import (
    CRBA,
    bias_forces,
    body_velocities,
    center_of_mass,
    coriolis_matrix,
    forward_dynamics,
    forward_kinematics,
    gravity_forces,
    inverse_dynamics,
    jacobian,
    kinetic_energy,
    mass_matrix,
    momentum,
    potential_energy,
    regressor,
)
from jdyn.execution.compiled import compiled_once
from jdyn.model import Model

# Results by function. Parts with different units are separate, because each is compared on its own scale.
Values = dict[str, tuple[Array | np.ndarray, ...]]

JACOBIAN_FRAMES = ("body", "world", "aligned")
FUNCTIONS = (
    "forward_kinematics",
    "body_velocities",
    *(f"jacobian, {frame}" for frame in JACOBIAN_FRAMES),
    "inverse_dynamics",
    "forward_dynamics, ABA",
    "forward_dynamics, CRBA",
    "mass_matrix",
    "bias_forces",
    "gravity_forces",
    "coriolis_matrix",
    "coriolis_matrix @ v",
    "kinetic_energy",
    "potential_energy",
    "center_of_mass",
    "momentum",
    "regressor",
)
DERIVATIVES = tuple(f"forward_dynamics, d/d{x}" for x in ("q", "v", "tau"))
# Functions whose results have one row per body.
PER_BODY = ("forward_kinematics", "body_velocities")


class State(eqx.Module):
    """A state of a robot with accelerations and forces; several states if there is a leading axis."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    a: Float[Array, "*batch nv"]
    tau: Float[Array, "*batch nv"]
    f_ext: Float[Array, "*batch nb 6"]

    def __getitem__(self, i: int) -> "State":
        return jax.tree.map(lambda x: np.asarray(x[i]), self)


def random_states(model: Model, samples: int, seed: int) -> State:
    """Random states far from the neutral configuration, regardless of limits."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=(samples, *shape)), model.dtype)

    q = _integrated(nameless(model), normal(model.nv))
    return State(q, normal(model.nv), normal(model.nv), normal(model.nv), normal(model.nb, 6))


@compiled_once
def _integrated(model, dv):
    return jax.vmap(lambda dv: model.integrate(model.neutral(), dv))(dv)


def dynamics_alone(model: Model) -> Model:
    """The model without joint damping, friction and springs."""
    nothing = jnp.zeros_like(model.damping)
    return dataclasses.replace(model, damping=nothing, friction=nothing, stiffness=nothing)


def nameless(model: Model) -> Model:
    """The model without names and shapes, so that robots of the same structure share one compiled program."""
    names = tuple(map(str, range(model.nb)))
    topology = dataclasses.replace(
        model.topology, name="", body_names=names, joint_names=names, frame_names=(), frame_bodies=()
    )
    frames = jax.tree.map(lambda x: x[:0], model.frames)
    return dataclasses.replace(model, topology=topology, frames=frames, shapes=None)


def deepest_body(model: Model) -> int:
    """The body farthest from the world, for which `jacobian` is evaluated."""
    return max(range(model.nb), key=lambda body: len(model.topology.supports[body]))


def values(model: Model, states: State) -> Values:
    """All functions at several states; `jacobian` is that of the deepest body."""
    return _values(nameless(model), states)


def derivatives(model: Model, states: State) -> Values:
    """Derivatives of forward dynamics at several states; with respect to q, in tangent coordinates."""
    return _derivatives(nameless(model), states)


@compiled_once
def _values(model, states):
    return jax.vmap(lambda s: _values_at(model, s))(states)


@compiled_once
def _derivatives(model, states):
    return jax.vmap(lambda s: _derivatives_at(model, s))(states)


def _values_at(model, s):
    J = {frame: jacobian(model, s.q, deepest_body(model), frame=frame) for frame in JACOBIAN_FRAMES}
    X = forward_kinematics(model, s.q)
    H = momentum(model, s.q, s.v)
    velocities = body_velocities(model, s.q, s.v)
    C = coriolis_matrix(model, s.q, s.v)
    return {
        "forward_kinematics": (X.rotation, X.translation),
        "body_velocities": (velocities[:, :3], velocities[:, 3:]),
        **{f"jacobian, {frame}": (J[frame][:3], J[frame][3:]) for frame in JACOBIAN_FRAMES},
        "inverse_dynamics": (inverse_dynamics(model, s.q, s.v, s.a, f_ext=s.f_ext),),
        "forward_dynamics, ABA": (forward_dynamics(model, s.q, s.v, s.tau, f_ext=s.f_ext),),
        "forward_dynamics, CRBA": (forward_dynamics(model, s.q, s.v, s.tau, f_ext=s.f_ext, method=CRBA()),),
        "mass_matrix": (mass_matrix(model, s.q),),
        "bias_forces": (bias_forces(model, s.q, s.v, f_ext=s.f_ext),),
        "gravity_forces": (gravity_forces(model, s.q),),
        "coriolis_matrix": (C,),
        "coriolis_matrix @ v": (C @ s.v,),
        "kinetic_energy": (kinetic_energy(model, s.q, s.v),),
        "potential_energy": (potential_energy(model, s.q),),
        "center_of_mass": (center_of_mass(model, s.q),),
        "momentum": (H[:3], H[3:]),
        "regressor": (regressor(model, s.q, s.v, s.a),),
    }


def _derivatives_at(model, s):
    def acceleration(dq, v, tau):
        return forward_dynamics(model, model.integrate(s.q, dq), v, tau, f_ext=s.f_ext)

    D = jax.jacfwd(acceleration, argnums=(0, 1, 2))(jnp.zeros_like(s.v), s.v, s.tau)
    return {name: (d,) for name, d in zip(DERIVATIVES, D, strict=True)}
