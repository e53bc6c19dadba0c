"""Methods that are recursions over the tree: what they share besides the recursion itself.

Inside, every joint counts; joints that follow others are brought into step outside of the recursion, by the
coupling forces that a system of their number gives.
"""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import bias_forces, passive_forces, velocity_products, world_acceleration
from jdyn.dynamics.kinematics import JointKinematics, accumulate_motion, joint_kinematics, joint_motion
from jdyn.dynamics.methods.method import Method, one_of
from jdyn.model import Model


class Couplings(eqx.Module):
    """What keeps following joints in step with their leaders: v_follower = ratio v_leader, or Nᵀ v_full = 0.

    Attributes:
        response: Full accelerations per unit force along each coupling.
        factor: Cholesky factor of Nᵀ M⁻¹ N, the couplings' inverse inertia.
    """

    response: Float[Array, "nm nv_full"]
    factor: Float[Array, "nm nm"]


class Factors(eqx.Module):
    """What a recursion knows at one configuration.

    Attributes:
        q: Full configuration.
        joints: Joint poses and subspaces.
        tree: What the method's own elimination left.
        couplings: None where no joint follows another.
    """

    q: Float[Array, " nq_full"]
    joints: JointKinematics
    tree: Any
    couplings: Couplings | None


class TreeMethod(Method):
    """A recursion over the tree.

    Attributes:
        bias: `"within"`: velocities, gravity and external forces enter the recursion as biases of the bodies;
            `"separate"`: as generalized forces, from inverse dynamics first (Cloutier 1995, section 3.3.1).
    """

    bias: Literal["within", "separate"] = eqx.field(static=True, default="within", kw_only=True)

    def __check_init__(self):
        one_of("bias", self.bias, ("within", "separate"))

    @abc.abstractmethod
    def eliminate(self, model: Model, joints: JointKinematics) -> Any:
        """What `sweep` needs to know at this configuration."""

    @abc.abstractmethod
    def sweep(
        self,
        model: Model,
        tree: Any,
        tau: Float[Array, " nv_full"],
        c: Float[Array, "nb 6"],
        p: Float[Array, "nb 6"],
        world: Float[Array, "6"],
    ) -> Float[Array, " nv_full"]:
        """Accelerations of all joints, none following another.

        Args:
            model: The mechanism.
            tree: What `eliminate` returned.
            tau: Forces along the joints.
            c: Bias accelerations of the joints.
            p: Bias forces of the bodies.
            world: Acceleration of the world.
        """

    def factor(self, model: Model, q: Float[Array, " nq"]) -> Factors:
        q = model.expand(q)
        joints = joint_kinematics(model, q)
        tree = self.eliminate(model, joints)
        if not model.topology.mimics:
            return Factors(q, joints, tree, None)
        N = coupling_rows(model)
        response = jax.vmap(lambda n: self._from_rest(model, tree, n))(N)
        return Factors(q, joints, tree, Couplings(response, cho_factor(N @ response.T, lower=True)[0]))

    def solve(self, model: Model, factors: Factors, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return _coupled(model, factors, self._from_rest(model, factors.tree, on_leaders(model, tau)))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        if self.bias == "separate":
            return self.solve(model, factors, tau - bias_forces(model, q, v, f_ext=f_ext))
        v = model.expand_velocity(v)
        velocities = self.velocities(model, factors, joint_motion(model, factors.joints, v))
        c, p = velocity_products(model, factors.q, v, velocities, f_ext)
        tau = on_leaders(model, tau) + passive_forces(model, factors.q, v)
        world = world_acceleration(model, p.dtype)
        return _coupled(model, factors, self.sweep(model, factors.tree, tau, c, p, world))

    def velocities(self, model: Model, factors: Factors, motion: Float[Array, "nb 6"]) -> Float[Array, "nb 6"]:
        """Velocities of all bodies from those across their joints."""
        return accumulate_motion(model, factors.joints.X, motion, jnp.zeros(6, motion.dtype))

    def _from_rest(self, model, tree, tau):
        """M⁻¹ τ, couplings ignored."""
        zero = jnp.zeros((model.nb, 6), tau.dtype)
        return self.sweep(model, tree, tau, zero, zero, zero[0])


def coupling_rows(model: Model) -> Float[Array, "nm nv_full"]:
    """Nᵀ: each row times the full accelerations is a follower's less ratio times its leader's."""
    offsets = model.topology.v_offsets
    rows = np.arange(len(model.topology.mimics))
    follower, leader = (np.array([offsets[pair[i]] for pair in model.topology.mimics], int) for i in (0, 1))
    N = jnp.zeros((len(rows), offsets[-1]), model.dtype)
    return N.at[rows, follower].set(1).at[rows, leader].add(-model.mimic_ratio)


def _coupled(model: Model, factors: Factors, a: Float[Array, " nv_full"]) -> Float[Array, " nv"]:
    """Accelerations of the model's coordinates once coupling forces act."""
    if factors.couplings is None:
        return a
    force = coupling_forces(model, factors.couplings, a)
    return (a - factors.couplings.response.T @ force)[np.array(model.topology.independent_v)]


def coupling_forces(model: Model, couplings: Couplings, a: Float[Array, " nv_full"]) -> Float[Array, " nm"]:
    """Forces, along minus each coupling, that bring joints into step which would accelerate by `a` without them."""
    return cho_solve((couplings.factor, True), coupling_rows(model) @ a)


def on_leaders(model: Model, tau: Float[Array, " nv"]) -> Float[Array, " nv_full"]:
    """Full generalized forces that act on the model's coordinates as `tau` does."""
    if not model.topology.mimics:
        return tau
    return jnp.zeros(model.topology.v_offsets[-1], tau.dtype).at[np.array(model.topology.independent_v)].set(tau)
