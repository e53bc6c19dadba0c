"""Second derivatives of inverse dynamics.

First derivatives in closed form (`jdyn.dynamics.derivatives`) are differentiated forwards along one coordinate after
another. Derivatives of rigid-body forces by the velocity are linear in the velocity: at the unit velocity of one
coordinate they are the second derivatives by that of all and that one.

Milliseconds of one state and of 64 (two cores, JAX 0.10.2, least of several runs); `_differentiated` differentiates
inverse dynamics twice, the last row is `jax.jacfwd` of `inverse_dynamics_derivatives`:

                                          Panda, nv = 7     tree, nv = 30
    this closed form                      0.25, 3.8         1.7, 157
    `_differentiated`                     0.49, 109         163, 21500
    the derivative rule of the first      0.66, 331         420, not run

Source: Singh, Russell, Wensing, Analytical Second-Order Partial Derivatives of Rigid-Body Inverse Dynamics, IROS 2022,
which names the four of them.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.derivatives import rigid_body_derivatives
from jdyn.dynamics.inverse import inverse_dynamics
from jdyn.dynamics.mass_matrix import mass_matrix, reduced
from jdyn.dynamics.newton_euler import MovingTree, moving_tree
from jdyn.dynamics.passive import passive_forces_derivatives
from jdyn.dynamics.recursion.batching import by_lanes, in_chunks
from jdyn.dynamics.recursion.order import Order
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import DofTree

# So many directions, of all states together, fit a processor's cache.
_CHUNK = 128


class SecondDerivatives(NamedTuple):
    """Result of `jdyn.inverse_dynamics_second_derivatives`. The index i is that of the forces.

    Attributes:
        by_q_q: [i, j, k]: derivative of ∂τ_i/∂q_j along coordinate k.
        by_v_v: [i, j, k]: ∂²τ_i/∂v_j ∂v_k, symmetric in j and k.
        by_v_q: [i, j, k]: derivative of ∂τ_i/∂v_j along coordinate k.
        by_a_q: [i, j, k]: derivative of the mass matrix M_ij along coordinate k.
    """

    by_q_q: Float[Array, "nv nv nv"]
    by_v_v: Float[Array, "nv nv nv"]
    by_v_q: Float[Array, "nv nv nv"]
    by_a_q: Float[Array, "nv nv nv"]


@compiled
def inverse_dynamics_second_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
) -> SecondDerivatives:
    """Second derivatives of inverse dynamics, by q twice, by v twice, by v and q, and by a and q; those by a twice and
    by a and v are zero. Arguments are those of `inverse_dynamics`.

    Those by q go along the tangent space, as `model.integrate` walks it: for forces τ(q ⊕ e_k ⊕ e_j), j is the index of
    the inner derivative, that of `inverse_dynamics_derivatives`, and k of the outer one, which moves the configuration
    at which that is taken. They commute but for two rotations of one ball or free joint, and there
    `by_q_q[:, j, k] - by_q_q[:, k, j]` is the first derivative along the Lie bracket of k and j: for a ball joint along
    e_k × e_j. The symmetric part is the Hessian along `integrate`: τ(q ⊕ e) = τ + by_q e + ½ eᵀ by_q_q e + O(e³).

    First derivatives in closed form, differentiated forwards, where joints have one degree of freedom each, but for
    free bases; twice by forward differentiation otherwise.

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.array([0.3, -0.5]), jnp.array([1.0, 2.0])
    >>> second = jdyn.inverse_dynamics_second_derivatives(model, q, v, jnp.zeros(2))
    >>> print(second.by_q_q.shape, second.by_a_q[:, :, 1].round(2) + 0.0)  # of the mass matrix by the second angle
    (2, 2, 2) [[0.48 0.24]
     [0.24 0.  ]]

    Returns:
        Arrays (nv, nv, nv); the first index is that of the forces.
    """
    q, v, a, f_ext = checked(model, q=q, v=v, a=a, f_ext=f_ext)
    found = (_closed_form if model.topology.single_dof_joints else _differentiated)(model, q, v, a, f_ext)
    return SecondDerivatives(*found)


def _differentiated(model, q, v, a, f_ext):
    still = jnp.zeros_like(v)

    def first(e, v):
        at = model.integrate(q, e)

        def forces(e, v):
            return inverse_dynamics(model, model.integrate(at, e), v, a, f_ext=f_ext)

        return *jax.jacfwd(forces, (0, 1))(still, v), mass_matrix(model, at)

    (by_q_q, _), (by_v_q, by_v_v), (by_a_q, _) = jax.jacfwd(first, (0, 1))(still, v)
    return by_q_q, by_v_v, by_v_q, by_a_q


@eqx.filter_custom_jvp
def _closed_form(model, q, v, a, f_ext):
    like = (jax.ShapeDtypeStruct((model.nv,) * 3, v.dtype),) * 4
    return in_chunks(_along_each, _CHUNK // max(model.nv, 1) + 1, like)(model, q, v, a, f_ext)


def _along_each(model, q, v, a, f_ext):
    q_full, v_full, a_full = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    like = (jax.ShapeDtypeStruct((*v_full.shape, *v_full.shape), v.dtype),) * 3
    units = jnp.eye(model.nv, dtype=v.dtype)

    def along_coordinate(unit):
        dq = jax.jvp(lambda e: model.expand(model.integrate(q, e)), (jnp.zeros_like(v),), (unit,))[1]
        arguments = q_full, dq, v_full, a_full, f_ext
        by_q, by_v, M = by_lanes(None, _turning_tree, _derivatives_along, model, *arguments, like=like)
        _, (passive, _) = jax.jvp(lambda q: passive_forces_derivatives(model, q, v_full), (q_full,), (dq,))
        return reduced(model, by_q - passive), reduced(model, by_v), reduced(model, M)

    def along_velocity(unit):
        dv = model.expand_velocity(unit)
        arguments = q_full, dv, jnp.zeros_like(dv), None
        by_v = by_lanes(None, moving_tree, _by_velocity, model, *arguments, like=like[0])
        _, (_, passive) = jax.jvp(lambda v: passive_forces_derivatives(model, q_full, v), (v_full,), (dv,))
        return reduced(model, by_v - passive)

    by_q_q, by_v_q, by_a_q = jax.vmap(along_coordinate, out_axes=-1)(units)
    return by_q_q, jax.vmap(along_velocity, out_axes=-1)(units), by_v_q, by_a_q


@_closed_form.def_jvp
@precise
def _closed_form_jvp(primals, tangents):
    # Third derivatives differentiate the same function by JAX.
    return _closed_form(*primals), eqx.filter_jvp(_differentiated, primals, tangents)[1]


class _TurningTree(NamedTuple):
    """A moving tree, and changes of what depends on its configuration.

    Attributes:
        tree: The tree.
        coordinates: Changes of the coordinates of all degrees of freedom, packed.
        upward: Change of the acceleration that stands for gravity, in a free base.
    """

    tree: MovingTree
    coordinates: tuple[Float[Array, "levels width *lanes"], ...]
    upward: Float[Array, "6 *lanes"]


def _turning_tree(order: Order, model: Model, q, dq, v, a, f_ext) -> _TurningTree:
    def turning(q):
        tree = moving_tree(order, model, q, v, a, f_ext)
        return (tuple(body.place.coordinate for body in tree.bodies), tree.base.upward), tree

    _, changes, tree = jax.jvp(turning, (q,), (dq,), has_aux=True)
    return _TurningTree(tree, *changes)


def _derivatives_along(order: Order, tree: DofTree, x: _TurningTree):
    bodies, base = x.tree

    def derivatives(coordinates, upward):
        places = (
            dataclasses.replace(body.place, coordinate=coordinate)
            for body, coordinate in zip(bodies, coordinates, strict=True)
        )
        moved = tuple(body._replace(place=place) for body, place in zip(bodies, places, strict=True))
        return rigid_body_derivatives(order, tree, MovingTree(moved, dataclasses.replace(base, upward=upward)))

    now, changes = (tuple(body.place.coordinate for body in bodies), base.upward), (x.coordinates, x.upward)
    # Lanes of changes may be others than those of configurations.
    both = jax.tree.map(lambda *x: tuple(jnp.broadcast_arrays(*x)), now, changes)
    return jax.jvp(derivatives, *jax.tree.transpose(jax.tree.structure(now), None, both))[1]


def _by_velocity(order: Order, tree: DofTree, x: MovingTree):
    return rigid_body_derivatives(order, tree, x)[1]
