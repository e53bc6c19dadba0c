"""Interface of forward-dynamics methods, and what recursions over the tree share.

A recursion moves every joint by itself. Coupling forces then bring joints that follow others into step; they solve a
system of as many equations as there are followers.
"""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import bias_forces, velocity_products
from jdyn.dynamics.kinematics import JointKinematics, joint_kinematics, velocities, world_acceleration
from jdyn.dynamics.passive import passive_forces
from jdyn.model import Model
from jdyn.terminal.messages import one_of


class Method(eqx.Module):
    """A way to solve M a = τ − h for the acceleration a.

    A method separates what depends on the configuration alone (`factor`) from what is done for each right-hand
    side, so that derivatives of forward dynamics reuse the factors of the value.

    >>> method, model, q = jdyn.CRBA(), jdyn.load("pendulum"), jnp.zeros(1)
    >>> print(method.solve(model, method.factor(model, q), jnp.ones(1)).round(3))
    [3.]
    """

    @abc.abstractmethod
    def factor(self, model: Model, q: Float[Array, " nq"]) -> Any:
        """Factors of M at `q` for `solve` and `accelerations`: any PyTree."""

    @abc.abstractmethod
    def solve(self, model: Model, factors: Any, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M⁻¹ τ."""

    @abc.abstractmethod
    def accelerations(
        self,
        model: Model,
        factors: Any,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        f_ext: Float[Array, "nb 6"] | None,
    ) -> Float[Array, " nv"]:
        """M⁻¹ (τ − h(q, v, f_ext))."""

    def accelerations_and_factors(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        f_ext: Float[Array, "nb 6"] | None,
    ) -> tuple[Float[Array, " nv"], Any]:
        """`accelerations` and their factors."""
        factors = self.factor(model, q)
        return self.accelerations(model, factors, q, v, tau, f_ext), factors


class BiasFirst(Method):
    """A method that solves with M alone; inverse dynamics computes the bias forces h."""

    def accelerations(self, model, factors, q, v, tau, f_ext):
        return self.solve(model, factors, tau - bias_forces(model, q, v, f_ext=f_ext))


class MimicCouplings(eqx.Module):
    """Constraints that keep followers in step with their leaders: v_follower = ratio v_leader, or Nᵀ v_full = 0.

    Attributes:
        response: Full accelerations per unit force along each coupling.
        factor: Cholesky factor of Nᵀ M⁻¹ N, the couplings' inverse inertia.
    """

    response: Float[Array, "nm nv_full"]
    factor: Float[Array, "nm nm"]


class Factors(eqx.Module):
    """The factors of a recursion at one configuration.

    Attributes:
        q: Full configuration.
        joints: Joint poses and subspaces, from `Recursion.kinematics`.
        tree: What the method's own elimination left.
        couplings: None where no joint follows another.
    """

    q: Float[Array, " nq_full"]
    joints: Any
    tree: Any
    couplings: MimicCouplings | None


class Recursion(Method):
    """A recursion over the tree in which every joint counts.

    Attributes:
        bias: `"within"`: velocities, gravity and external forces enter the recursion as biases of the bodies;
            `"separate"`: as generalized forces, from inverse dynamics first (Cloutier 1995, section 3.3.1).
    """

    bias: Literal["within", "separate"] = eqx.field(static=True, default="within", kw_only=True)

    def __check_init__(self):
        one_of("bias", self.bias, ("within", "separate"))

    @abc.abstractmethod
    def kinematics(self, model: Model, q: Float[Array, " nq_full"]) -> Any:
        """Poses and motion subspaces in the form that the recursion needs."""

    @abc.abstractmethod
    def eliminate(self, model: Model, joints: Any) -> Any:
        """Everything that the recursion can compute from these `kinematics` before it is given forces."""

    @abc.abstractmethod
    def response(self, model: Model, factors: "Factors", tau: Float[Array, " nv_full"]) -> Float[Array, " nv_full"]:
        """Accelerations from rest under joint forces alone, without gravity and couplings."""

    @abc.abstractmethod
    def moving(
        self,
        model: Model,
        factors: "Factors",
        v: Float[Array, " nv_full"],
        tau: Float[Array, " nv_full"],
        f_ext: Float[Array, "nb 6"] | None,
    ) -> Float[Array, " nv_full"]:
        """Accelerations at velocity `v`, under gravity and forces, without couplings."""

    def factor(self, model: Model, q: Float[Array, " nq"]) -> Factors:
        q = model.expand(q)
        joints = self.kinematics(model, q)
        return self.coupled(model, Factors(q, joints, self.eliminate(model, joints), None))

    def coupled(self, model: Model, factors: Factors) -> Factors:
        """The factors with the constraints of followers."""
        if not model.topology.mimics:
            return factors
        N = coupling_rows(model)
        response = jax.vmap(lambda n: self.response(model, factors, n))(N)
        couplings = MimicCouplings(response, cho_factor(N @ response.T, lower=True)[0])
        return Factors(factors.q, factors.joints, factors.tree, couplings)

    def solve(self, model: Model, factors: Factors, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return in_step(model, factors, self.response(model, factors, on_leaders(model, tau)))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        if self.bias == "separate":
            return self.solve(model, factors, tau - bias_forces(model, q, v, f_ext=f_ext))
        v = model.expand_velocity(v)
        tau = on_leaders(model, tau) + passive_forces(model, factors.q, v)
        return in_step(model, factors, self.moving(model, factors, v, tau, f_ext))


class TreeMethod(Recursion):
    """A recursion on transforms and matrices of whole bodies."""

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

    def kinematics(self, model: Model, q: Float[Array, " nq_full"]) -> JointKinematics:
        return joint_kinematics(model, q)

    def response(self, model, factors, tau):
        zero = jnp.zeros((model.nb, 6), tau.dtype)
        return self.sweep(model, factors.tree, tau, zero, zero, zero[0])

    def moving(self, model, factors, v, tau, f_ext):
        c, p = velocity_products(model, factors.q, v, self.velocities(model, factors, v), f_ext)
        return self.sweep(model, factors.tree, tau, c, p, world_acceleration(model, p.dtype))

    def velocities(self, model: Model, factors: Factors, v: Float[Array, " nv_full"]) -> Float[Array, "nb 6"]:
        """Velocities of all bodies, each in its own frame."""
        return velocities(model, factors.joints, v)


def coupling_rows(model: Model) -> Float[Array, "nm nv_full"]:
    """Nᵀ: each row times the full accelerations is a follower's less ratio times its leader's."""
    offsets = model.topology.v_offsets
    rows = np.arange(len(model.topology.mimics))
    follower, leader = (np.array([offsets[pair[i]] for pair in model.topology.mimics], int) for i in (0, 1))
    N = jnp.zeros((len(rows), offsets[-1]), model.dtype)
    return N.at[rows, follower].set(1).at[rows, leader].add(-model.mimic_ratio)


def in_step(model: Model, factors: Factors, a: Float[Array, " nv_full"]) -> Float[Array, " nv"]:
    """Accelerations of the model's coordinates once coupling forces act."""
    if factors.couplings is None:
        return a
    force = coupling_forces(model, factors.couplings, a)
    return (a - factors.couplings.response.T @ force)[np.array(model.topology.independent_v)]


def coupling_forces(model: Model, couplings: MimicCouplings, a: Float[Array, " nv_full"]) -> Float[Array, " nm"]:
    """Forces, along minus each coupling, that bring joints into step which would accelerate by `a` without them."""
    return cho_solve((couplings.factor, True), coupling_rows(model) @ a)


def on_leaders(model: Model, tau: Float[Array, " nv"]) -> Float[Array, " nv_full"]:
    """Full generalized forces that act on the model's coordinates as `tau` does."""
    if not model.topology.mimics:
        return tau
    return jnp.zeros(model.topology.v_offsets[-1], tau.dtype).at[np.array(model.topology.independent_v)].set(tau)
