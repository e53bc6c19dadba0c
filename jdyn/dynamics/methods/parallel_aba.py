"""Forward dynamics in logarithmic depth: the articulated-body recursions as associative scans along paths.

All paths of one rank are visited at once, chunk by chunk; `jdyn.dynamics.recursion.heavy_paths` says which these are,
and which rows tables have. What a path passes on is added to the body that carries it before the next rank is visited.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import cholesky, triangular_inverse
from jdyn.dynamics.kinematics import joint_motion, padded
from jdyn.dynamics.methods.matrix_aba import (
    ArticulatedBody,
    Link,
    WideLink,
    acceleration,
    bias_force,
    narrowed,
    projected,
    wide_links,
)
from jdyn.dynamics.methods.method import TreeMethod
from jdyn.dynamics.recursion.heavy_paths import Rank, along, chunk_loop, entering, outward, path_ranks, table


class Segment(eqx.Module):
    """Consecutive bodies of a path as their neighbours feel them, biases apart.

    With a_in the acceleration of the body before the segment and g_out the force that what comes after takes from
    the segment's last body, that body accelerates by A a_in − C g_out, and the segment takes J a_in + Aᵀ g_out from
    the body before it. C and J are positive semidefinite.
    """

    A: Float[Array, "*batch 6 6"]
    C: Float[Array, "*batch 6 6"]
    J: Float[Array, "*batch 6 6"]

    @staticmethod
    def empty(dtype=None) -> "Segment":
        """The segment of no bodies: the identity of `combine`."""
        zero = jnp.zeros((6, 6), dtype)
        return Segment(jnp.eye(6, dtype=dtype), zero, zero)


def combine(outer: Segment, inner: Segment) -> Segment:
    """The segment of `inner` and, after it, `outer`: Redheffer's star product, which is associative.

    It needs E = (1 + C J)⁻¹ with C of `inner` and J = L Lᵀ of `outer`. As J E = L (1 + Lᵀ C L)⁻¹ Lᵀ that is the
    inverse of a symmetric matrix with no eigenvalue below one, which keeps up to three digits more
    than solving with 1 + C J where masses differ by orders of magnitude.
    """
    L = cholesky(outer.J, semidefinite=True)
    root = cholesky(jnp.eye(6, dtype=L.dtype) + L.T @ inner.C @ L, semidefinite=True)
    H = triangular_inverse(root) @ L.T
    HA, HC = H @ inner.A, H @ inner.C
    A, C = inner.A - HC.T @ HA, inner.C - HC.T @ HC
    return Segment(outer.A @ A, outer.C + outer.A @ C @ outer.A.T, inner.J + HA.T @ HA)


class Paths(eqx.Module):
    """The paths of one rank once their joints are eliminated.

    Attributes:
        bodies: Every body with its joint, leading axes (length, chunks).
        A: Acceleration of a chunk's last body per unit of that of the body before the chunk.
    """

    bodies: ArticulatedBody
    A: Float[Array, "chunks 6 6"]


class ParallelABA(TreeMethod):
    """The articulated-body algorithm with O(n) work in O(log n) steps on a chain, O(log² n) on a tree.

    For devices that are idle most of the time: long chains, small batches, a GPU. Segments of a path are combined by
    `jax.lax.associative_scan`; first, and again last, chunks of a path are visited body by body, side by side. There
    are at most log₂(n + 1) ranks of paths; each takes 9 `chunk` + 6 + 8 log₂(n / `chunk`) steps, or 4 `chunk` where no
    path is longer than a chunk.

    It does twice the work of `ABA` or more, and compiles longer: for a chain of 128 links in 3 s instead of 1 s.
    Combining segments cancels digits: in float32, on chains of 300 links, errors are up to 2e-5 where masses spread
    over two decades, and 7e-4 where they spread over six (`ABA`: 1e-5 and 2e-4), but 5e-2 and 7e-4 with chunks of 2.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.ParallelABA()).round(3))
    [-6.047  8.063]

    Attributes:
        chunk: Most bodies that are visited one after another. With chunks of fewer than six bodies, accelerations may
            be NaN where so many massless bodies follow one another.
        bias: As in `jdyn.ABA`; inverse dynamics, which `"separate"` begins with, takes O(n) steps.

    Raises:
        ValueError: if `chunk` is less than one.

    Source: Särkkä and García-Fernández, arXiv:2104.03186, for the scan (a body is a step in time);
    Featherstone 1999, Int. J. Robotics Research 18(9), for combining parts of a mechanism.
    """

    chunk: int = eqx.field(static=True, default=16)

    def __check_init__(self):
        if self.chunk < 1:
            raise ValueError(f"chunk: expected at least one body, got {self.chunk}")

    def eliminate(self, model, joints):
        wide = wide_links(model, joints)
        X, S, inertias, R = *(table(x) for x in (wide.X, wide.S, wide.I)), table(wide.R, fill=1)
        tree = []
        for rank in path_ranks(model.topology, self.chunk):
            links = WideLink(*(x[rank.rows] for x in (X, S, inertias, R))).narrowed(rank.nv)
            paths, J = _eliminated(rank, links)
            inertias = inertias.at[rank.attachments].add(J[rank.heads])
            tree.append(paths)
        return tuple(tree)

    def sweep(self, model, tree, tau, c, p, world):
        ranks, loads = path_ranks(model.topology, self.chunk), []
        tau, c, pA = (table(x) for x in (padded(model, model.by_group("v", tau)), c, p))
        for rank, paths in zip(ranks, tree, strict=True):
            load = paths.bodies, tau[rank.rows, : rank.nv], c[rank.rows], pA[rank.rows]
            nothing = jnp.zeros((rank.rows.shape[1], 6), tau.dtype)
            force, u = along(rank, bias_force, jnp.swapaxes(paths.A, 1, 2), nothing, load, inward=True)
            pA = pA.at[rank.attachments].add(force[rank.heads])
            loads.append((paths.bodies, u, c[rank.rows]))
        _, by_rank = outward(model.topology, ranks, acceleration, [paths.A for paths in tree], world, loads)
        a = jnp.zeros_like(tau)
        for rank, here in zip(ranks, by_rank, strict=True):
            a = a.at[rank.rows, : rank.nv].set(here)
        return narrowed(model, a[: model.nb])

    def velocities(self, model, factors, v):
        ranks, motion = path_ranks(model.topology, self.chunk), table(joint_motion(model, factors.joints, v))
        X = [paths.bodies.X for paths in factors.tree]
        moves = [(X, motion[rank.rows]) for rank, X in zip(ranks, X, strict=True)]
        at_rest = jnp.zeros_like(motion[0])
        return outward(model.topology, ranks, _move, [_product(X) for X in X], at_rest, moves)[0]


def _eliminated(rank: Rank, links: Link) -> tuple[Paths, Float[Array, "chunks 6 6"]]:
    """A rank's paths, and what each chunk with all that comes after it weighs on the body before it."""
    chunks = rank.rows.shape[1]
    start = jax.tree.map(lambda x: jnp.broadcast_to(x, (chunks, *x.shape)), Segment.empty(links.X.dtype))
    if rank.cut:
        borrowed = _borrowed(rank, links, start.J)
        # Heads lend nothing, since tails borrow nothing.
        lent = jnp.roll(borrowed, 1, axis=0)
        alone, _ = chunk_loop(_absorb, Segment(start.A, start.C, borrowed), links, inward=True)
        # The scan goes on from path to path: without A and C, a tail does not feel what the scan finds after it.
        A, C = (x.at[rank.tails].set(0) for x in (alone.A, alone.C))
        rest = jax.lax.associative_scan(jax.vmap(combine), Segment(A, C, alone.J - lent), reverse=True).J
        start = Segment(start.A, start.C, entering(rest + lent, start.J, rank.tails, inward=True))
    segments, bodies = chunk_loop(_absorb, start, links, inward=True)
    return Paths(bodies, segments.A), segments.J


def _borrowed(rank: Rank, links: Link, nothing: Float[Array, "chunks 6 6"]) -> Float[Array, "chunks 6 6"]:
    """Inertia that each chunk borrows from the next one for its last body: half of what the first bodies of the next
    one weigh on it at least, whatever comes after.

    Alone, a chunk whose last body is massless could move without force, and its C would not be finite. At most five
    massless bodies can follow one another, since the mass matrix is singular otherwise: of six, one lends.
    """
    first = jax.tree.map(lambda x: x[:6], links)
    least, _ = chunk_loop(_least, nothing, first, inward=True)
    return entering(0.5 * least, nothing, rank.tails, inward=True)


def _least(below, link):
    """Inertia that a link passes on of the inertia `below` it, a part of what it carries: its joint may move without
    force."""
    IA = link.I + below
    U = IA @ link.S
    root = cholesky(link.S.T @ U + jnp.diag(link.R), semidefinite=True)
    # Along a column that is zero nothing resists: dividing by infinity leaves such a motion out.
    resisting = root + jnp.diag(jnp.where(jnp.diag(root) > 0, 0, jnp.inf))
    G = triangular_inverse(resisting) @ U.T
    return link.X.T @ (IA - G.T @ G) @ link.X, None


def _absorb(outer: Segment, link: Link) -> tuple[Segment, ArticulatedBody]:
    """The segment of a link and, after it, `outer`."""
    J, body = projected(outer.J, link)
    moved = outer.A @ link.S
    A = (outer.A - moved @ body.K) @ link.X
    return Segment(A, outer.C + moved @ body.D_inverse @ moved.T, J), body


def _product(X: Float[Array, "length chunks 6 6"]) -> Float[Array, "chunks 6 6"]:
    """Motion transforms across whole chunks."""
    return chunk_loop(lambda before, X: (X @ before, None), X[0], X[1:], inward=False)[0]


def _move(before, x):
    X, motion = x
    return X @ before + motion, None
