"""Forward dynamics by block elimination of one sparse system in forces, body accelerations and joint accelerations."""

from collections.abc import Iterable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import GAUSS_JORDAN
from jdyn.dynamics.building_blocks import (
    JointKinematics,
    TreeMethod,
    accumulate_motion,
    compiled,
    coupling_forces,
    coupling_rows,
    joint_kinematics,
    on_leaders,
    one_of,
    passive_forces,
    velocity_terms,
    world_acceleration,
)
from jdyn.model import WORLD, Model, checked
from jdyn.spatial import SpatialInertia

Block = Float[Array, "rows columns"]


class Step(eqx.Module):
    """The elimination of one unknown, by the row of the same number.

    Attributes:
        unknown: Number of the unknown.
        pivot: Inverse of the block on the diagonal; None where that is still the identity.
        row: Blocks to the right of the pivot, after division by the pivot.
        column: Blocks below the pivot, by row.
    """

    unknown: int = eqx.field(static=True)
    pivot: Block | None
    row: dict[int, Block]
    column: dict[int, Block]


class Elimination(eqx.Module):
    """All steps in order, and the motion transforms from the world to the bodies that stand on it."""

    steps: tuple[Step, ...]
    roots: dict[int, Float[Array, "6 6"]]


class Solution(NamedTuple):
    """The solution of the block system.

    Attributes:
        a: Accelerations of the model's coordinates [rad/s² or m/s²].
        forces: Force [n; f] that each joint transmits from the parent to its body, actuator and all, at the body's
            origin in its frame [N m, N].
        accelerations: True spatial acceleration of each body in its own frame, the rate of what `body_velocities`
            returns [rad/s², m/s²]: a free body under gravity alone has that of free fall.
    """

    a: Float[Array, " nv"]
    forces: Float[Array, "nb 6"]
    accelerations: Float[Array, "nb 6"]


class BlockElimination(TreeMethod):
    """Write Newton's and Euler's equations of all bodies as one sparse system, and eliminate block by block.

    For every body i with children c the unknowns are f_i, the force that joint i transmits, −φ̇_i and q̈_i, and the rows

        f_i + M_i (−φ̇_i) − Σ X_cᵀ f_c = p_i
        (−φ̇_i) − X_i (−φ̇_parent) + S_i q̈_i = −c_i
        S_iᵀ f_i + R_i q̈_i = τ_i,

    with bias forces p, bias accelerations c and rotor inertias R. Known methods are orders of elimination. Body by
    body from the leaves inward, the pivots of q̈ are those of the articulated-body algorithm, and only the parent's
    inertia fills in; with all q̈ last, their block becomes the joint-space inertia matrix.

    The program grows with the number of block operations (`block_operations`): for study, and for small mechanisms.
    Rounding grows as in `MatrixABA(form="textbook")` or `CRBA`.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.BlockElimination("crba")).round(3))
    [-6.047  8.063]

    Attributes:
        order: `"aba"`; `"crba"`; or a permutation of `range(3 * nb)`, in which 3i is f_i, 3i + 1 is −φ̇_i and 3i + 2
            is q̈_i, with q̈_i after f_i and φ̇_i. If every body has mass, all such orders have regular pivots; a
            massless body's joint must come after the bodies that it carries.
        bias: `"within"`: velocities, gravity and external forces enter the recursion; `"separate"`: as forces of
            the joints, from inverse dynamics first.

    Source: Pai, Ascher, Kry 2000, sections 3 to 5; Ascher, Pai, Cloutier 1997.
    """

    order: str | tuple[int, ...] = eqx.field(
        static=True, default="aba", converter=lambda order: order if isinstance(order, str) else tuple(map(int, order))
    )

    def __check_init__(self):
        if isinstance(self.order, str):
            one_of("order", self.order, ("aba", "crba"))
        else:
            _check_permutation(self.order)

    def eliminate(self, model, joints):
        rows, roots = _system(model, joints)
        return Elimination(tuple(_eliminated(rows, unknown) for unknown in self._unknowns(model)), roots)

    def sweep(self, model, tree, tau, c, p, world):
        x = _solved(model, tree, tau, c, p, world)
        return jnp.concatenate(x[2::3])

    @compiled
    def solution(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        *,
        f_ext: Float[Array, "nb 6"] | None = None,
    ) -> Solution:
        """Joint forces and body accelerations besides the accelerations that `forward_dynamics` returns.

        Arguments, units and errors are those of `forward_dynamics`. Derivatives go through the elimination.
        """
        q, v, tau = checked(model, q=q, v=v, tau=tau)
        factors, v = self.factor(model, q), model.expand_velocity(v)
        _, c, p = velocity_terms(model, factors.joints, factors.q, v, f_ext)
        tau = on_leaders(model, tau) + passive_forces(model, factors.q, v)
        world = world_acceleration(model, p.dtype)
        x = _solved(model, factors.tree, tau, c, p, world)
        if factors.couplings is not None:
            force = coupling_forces(model, factors.couplings, jnp.concatenate(x[2::3]))
            x = _solved(model, factors.tree, tau - coupling_rows(model).T @ force, c, p, world)
        free_fall = accumulate_motion(model, factors.joints.X, jnp.zeros_like(p), -world)
        a = jnp.concatenate(x[2::3])[np.array(model.topology.independent_v)]
        return Solution(a, jnp.stack(x[0::3]), free_fall - jnp.stack(x[1::3]))

    def block_operations(self, model: Model) -> int:
        """Products of blocks in the elimination, and divisions of blocks by a pivot that is not the identity."""
        factors = eqx.filter_eval_shape(lambda: self.eliminate(model, joint_kinematics(model, model.rest)))
        return sum(len(s.row) * (len(s.column) + (s.pivot is not None)) for s in factors.steps)

    def _unknowns(self, model: Model) -> Iterable[int]:
        """The order for this model."""
        inward = range(model.nb)[::-1]
        if self.order == "aba":
            return [3 * i + k for i in inward for k in range(3)]
        if self.order == "crba":
            return [*(3 * i + k for i in inward for k in range(2)), *(3 * i + 2 for i in inward)]
        if len(self.order) != 3 * model.nb:
            raise ValueError(
                f"order: expected a permutation of range({3 * model.nb}), three unknowns for each of the {model.nb} "
                f"bodies of {model.name!r}, got {len(self.order)} entries"
            )
        # The constructor makes a tuple of anything but a string.
        return self.order  # type: ignore[return-value]


def _check_permutation(order: tuple[int, ...]) -> None:
    nb, rest = divmod(len(order), 3)
    if rest or sorted(order) != list(range(3 * nb)):
        raise ValueError(
            "order: expected 'aba', 'crba' or a permutation of range(3 * nb), each number once, got "
            f"{len(order)} entries: {order}"
        )
    place = {unknown: i for i, unknown in enumerate(order)}
    early = [i for i in range(nb) if place[3 * i + 2] < max(place[3 * i], place[3 * i + 1])]
    if early:
        f, phi, a = 3 * early[0], 3 * early[0] + 1, 3 * early[0] + 2
        raise ValueError(
            f"order: {a}, the joint acceleration of body {early[0]}, must come after the body's force {f} and "
            f"acceleration {phi}: before them, its pivot is the rotor inertia alone"
        )


def _system(model: Model, joints: JointKinematics) -> tuple[dict[int, dict[int, Block]], dict[int, Block]]:
    """Blocks by row and unknown, and the motion transforms of the roots. A missing diagonal block is the identity."""
    topology = model.topology
    rows: dict[int, dict[int, Block]] = {unknown: {} for unknown in range(3 * model.nb)}
    roots = {}
    for group, S in zip(topology.groups, joints.S, strict=True):
        for body, S_body in zip(group.bodies, S, strict=True):
            rows[3 * body + 1][3 * body + 2] = S_body
            rows[3 * body + 2][3 * body] = S_body.T
            rows[3 * body + 2][3 * body + 2] = jnp.diag(model.armature[topology.v_slice(body)])
    X, M = jax.vmap(lambda X: X.motion_matrix())(joints.X), jax.vmap(SpatialInertia.matrix)(model.inertias)
    for body, parent in enumerate(topology.parents):
        rows[3 * body][3 * body + 1] = M[body]
        if parent == WORLD:
            roots[body] = X[body]
        else:
            rows[3 * body + 1][3 * parent + 1] = -X[body]
            rows[3 * parent][3 * body] = -X[body].T
    return rows, roots


def _eliminated(rows: dict[int, dict[int, Block]], unknown: int) -> Step:
    """Eliminate one unknown: its row leaves `rows`, its column is zero in those that remain."""
    row = rows.pop(unknown)
    pivot = None
    if unknown in row:
        pivot = _inverse(row.pop(unknown))
        row = {j: pivot @ block for j, block in row.items()}
    column = {i: remaining.pop(unknown) for i, remaining in rows.items() if unknown in remaining}
    for i, below in column.items():
        for j, right in row.items():
            update = -below @ right
            if j in rows[i]:
                update = rows[i][j] + update
            elif i == j:
                update = jnp.eye(len(update), dtype=update.dtype) + update
            rows[i][j] = update
    return Step(unknown, pivot, row, column)


def _inverse(pivot: Block) -> Block:
    """Inverse of a small matrix that need not be symmetric, without LAPACK (`jdyn.array.small_matrices` says why)."""
    return 1 / pivot if pivot.shape == (1, 1) else GAUSS_JORDAN.factor(pivot)


def _solved(
    model: Model,
    tree: Elimination,
    tau: Float[Array, " nv_full"],
    c: Float[Array, "nb 6"],
    p: Float[Array, "nb 6"],
    world: Float[Array, "6"],
) -> list[Float[Array, " size"]]:
    """All unknowns: f_0, −φ̇_0, q̈_0, f_1, ...; arguments are those of `TreeMethod.sweep`."""
    x = []
    for body in range(model.nb):
        handle = -c[body] - tree.roots[body] @ world if body in tree.roots else -c[body]
        x += [p[body], handle, tau[model.topology.v_slice(body)]]
    for step in tree.steps:
        if step.pivot is not None:
            x[step.unknown] = step.pivot @ x[step.unknown]
        for i, below in step.column.items():
            x[i] = x[i] - below @ x[step.unknown]
    for step in reversed(tree.steps):
        for j, right in step.row.items():
            x[step.unknown] = x[step.unknown] - right @ x[j]
    return x
