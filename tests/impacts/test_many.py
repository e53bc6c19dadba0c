"""A hundred thousand impacts of random robots, and momentum through ten thousand impacts one after another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.impacts import Brach, Poisson, PoissonTogether, Stronge
from jdyn.spatial.rotation import quaternion_to_matrix

ROBOTS, EACH, IMPACTS = 10, 15_000, 100_000
LAWS = {"poisson": Poisson(), "stronge": Stronge(), "brach": Brach()}


def robots():
    """Random trees, some of which move freely."""
    for seed in range(ROBOTS):
        joints = (jdyn.Free, jdyn.Revolute) if seed % 2 else (jdyn.Revolute, jdyn.Prismatic, jdyn.Ball)
        yield jdyn.random_tree(seed, 2 + seed % 7, kinds=joints)


def points_of(model, points, seed):
    """Jacobians of random points of random bodies along random axes, shape (EACH, points, 3, nv); velocities of the
    robot, of which the first point's approaches; and its mass matrices."""
    rng = np.random.default_rng((seed, points))
    axes = np.linalg.qr(rng.normal(size=(EACH, points, 3, 3)))[0]
    places = rng.uniform(-0.3, 0.3, size=(EACH, points, 3))
    bodies = rng.integers(model.nb, size=(EACH, points))

    @jax.jit
    @jax.vmap
    def in_state(key, bodies, places, axes):
        q = model.random(key)
        all_bodies = jnp.stack([jdyn.jacobian(model, q, name) for name in model.body_names])

        def point(body, place, axes):
            J = all_bodies[body]
            return axes @ (J[3:] - jnp.cross(place, J[:3].T).T)

        return jdyn.mass_matrix(model, q), jax.vmap(point)(bodies, places, axes)

    M, J = in_state(jax.random.split(jax.random.key(seed), EACH), bodies, places, axes)
    v = rng.normal(size=(EACH, model.nv))
    towards = np.einsum("sn,sn->s", np.asarray(J)[:, 0, 2], v)
    return np.asarray(J), np.where(towards > 0, -1, 1)[:, None] * v, np.asarray(M)


def drawn(points):
    """Delassus matrices and velocities of points, and kinetic energies before, of all robots."""
    found = []
    for seed, model in enumerate(robots()):
        J, v, M = points_of(model, points, seed)
        rows = J.reshape(EACH, 3 * points, -1)
        G = rows @ np.linalg.solve(M, rows.transpose(0, 2, 1))
        found.append((G, np.einsum("sin,sn->si", rows, v), np.einsum("sa,sab,sb->s", v, M, v) / 2))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def gain(G, v, p):
    """pᵀ v + ½ pᵀ G p, what impulses do to the energy."""
    return np.einsum("si,si->s", p, v) + np.einsum("si,sij,sj->s", p, G, p) / 2


@pytest.mark.exhaustive
def test_no_robot_gains_energy():
    """By the laws of one point that promise it."""
    G, v, energy = drawn(1)
    # Points that have few joints below them do not move along all three directions.
    moves = np.flatnonzero(np.linalg.cond(G) < 1e10)[:IMPACTS]
    assert len(moves) == IMPACTS
    G, v, energy = G[moves], v[moves], energy[moves]
    rng = np.random.default_rng(0)
    e, mu = rng.uniform(size=IMPACTS), rng.uniform(0, 1.5, size=IMPACTS)
    for name, law in LAWS.items():
        # In batches that wait for their slowest lane alone.
        found = jax.jit(lambda x, law=law: jax.lax.map(lambda x: law(*x), x, batch_size=1000))((G, v, e, mu))
        p = np.asarray(found.impulse)
        assert np.all(np.isfinite(p)), name
        scale = energy + np.sum(np.abs(p * v), 1)
        assert np.max(gain(G, v, p) / scale) < 1e-11, name
        if name == "poisson":
            # Where sliding turns until it jams, bodies may approach again before its restitution ends.
            continue
        # As a share of the speeds that add up to it.
        size = np.abs(v[:, 2]) + np.sum(np.abs(G[:, 2] * p), 1)
        assert np.min(np.asarray(found.velocity)[:, 2] / size) > -1e-9, name


@pytest.mark.exhaustive
def test_no_robot_gains_energy_at_several_points():
    """By Poisson's law of many points, without friction, with another restitution at each; three points at once."""
    G, v, energy = drawn(3)
    e = np.random.default_rng(1).uniform(size=(len(v), 3))
    law = jax.jit(jax.vmap(PoissonTogether(), in_axes=(0, 0, 0, None)))
    found = law(G.reshape(-1, 3, 3, 3, 3), v.reshape(-1, 3, 3), e, 0.0)
    sure = np.asarray(found.converged)
    assert np.mean(sure) > 0.999
    p = np.asarray(found.impulse).reshape(len(v), 9)
    scale = energy + np.sum(np.abs(p * v), 1)
    assert np.max((gain(G, v, p) / scale)[sure]) < 1e-10
    # Those without an answer say so by their residuals, too.
    assert np.asarray(found.velocity)[sure, :, 2].min() > -1e-7


def balls(count):
    """Balls of different masses that move freely, without weight."""
    builder = jdyn.Builder("balls", gravity=(0.0, 0.0, 0.0))
    for i in range(count):
        mass = 0.5 + 0.3 * i
        builder.add_link(f"ball{i}", jdyn.Free(), mass=mass, inertia=0.4 * mass * 0.01 * np.ones(3))
        builder.add_shape(f"ball{i}", "sphere", 0.1, role="collision")
    return builder.build()


@pytest.mark.slow
def test_momentum_is_kept_through_ten_thousand_impacts():
    """Four balls turn and spin as they like, and any two touch at any place again and again: linear momentum is that
    of the beginning to 1e-12, angular momentum that before each impact."""
    count = 4
    model = balls(count)
    event = jdyn.impact_event(model, jdyn.impacts.Poisson(), restitution=1.0, friction=0.3)
    pairs = jdyn.contact.collision_pairs(model)
    masses = 0.5 + 0.3 * np.arange(count)

    def hit(velocities, key):
        """Linear velocities along the axes of the world; spins are new each time, so that balls do not come to rest."""
        one, two, three, four = jax.random.split(key, 4)
        q = model.random(one).reshape(count, 7)
        # All far from each other, but two.
        q = q.at[:, :3].set(jnp.outer(jnp.arange(float(count)), jnp.array([3.0, 0.0, 0.0])))
        number = jax.random.randint(two, (), 0, len(pairs))
        first, second = jnp.array([[int(name[-1]) for name in pair] for pair in pairs])[number]
        normal = jax.random.normal(three, (3,))
        normal = normal / jnp.linalg.norm(normal)
        q = q.at[second, :3].set(q[first, :3] + 0.2 * normal)
        # Exchange what they have so that they approach: of two that part, one is on the other side.
        parts = (velocities[second] - velocities[first]) @ normal > 0
        q = q.at[second, :3].set(jnp.where(parts, q[first, :3] - 0.2 * normal, q[second, :3]))
        turned = jax.vmap(lambda row: quaternion_to_matrix(row[3:]))(q)
        spins = 3 * jax.random.normal(four, (count, 3))
        v = jnp.concatenate([spins, jnp.einsum("bji,bj->bi", turned, velocities)], axis=1).ravel()
        after = event.reset(0.0, jdyn.State(q.ravel(), v, {}), number).v
        kept = jdyn.momentum(model, q.ravel(), after) - jdyn.momentum(model, q.ravel(), v)
        moved = jnp.einsum("bij,bj->bi", turned, after.reshape(count, 6)[:, 3:])
        return moved, (jnp.max(jnp.abs(kept)), jnp.max(jnp.abs(moved - velocities)))

    start = jax.random.normal(jax.random.key(1), (count, 3))
    end, (errors, changes) = jax.jit(lambda v, keys: jax.lax.scan(hit, v, keys))(
        start, jax.random.split(jax.random.key(0), 10_000)
    )
    assert np.all(np.asarray(changes) > 0)
    assert np.max(errors) < 1e-12
    np.testing.assert_allclose(masses @ end, masses @ start, atol=1e-12 * np.sum(masses) * np.max(np.abs(start)))
