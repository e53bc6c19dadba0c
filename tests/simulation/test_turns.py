"""Motions that turn by more than rotation vectors tell, π: rows between steps, and steps themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.simulation.interpolation import hermite

pytestmark = pytest.mark.fast_compile

COM = np.array([0.1, -0.05, 0.2])
G = np.array([0, 0, -9.81])


def thrown():
    """A body whose axes of inertia are those of its frame, far from the centre of mass, with a ball joint in there."""
    builder = jdyn.Builder("thrown")
    builder.add_link("body", jdyn.Free(), mass=1.3, com=COM, inertia=(0.03, 0.03, 0.03))
    builder.add_link("ball", jdyn.Ball(), parent="body", placement=COM, mass=0.2, inertia=(1e-3,) * 3)
    return builder.build()


def flight(spin, own, times):
    """Rows of that body and of the ball in it, which spin at constant angular velocities: closed form."""
    drift = np.array([0.5, 2.0, 4.0])
    body, ball = (Rotation.from_rotvec(np.outer(times, w)) for w in (spin, own))
    along = drift + np.outer(times, G)
    place = np.outer(times, drift) + np.outer(times**2 / 2, G)
    attitudes = [turned.as_quat(scalar_first=True) for turned in (body, ball)]
    spins = [np.broadcast_to(w, (len(times), 3)) for w in (spin, own)]
    q = np.concatenate([place - body.apply(COM), *attitudes], axis=1)
    v = np.concatenate([spins[0], body.inv().apply(along) - np.cross(spin, COM), spins[1]], axis=1)
    return q, v


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_a_constant_spin_is_exact_between_rows_however_far_it_turns(dtype):
    model, axis = thrown().astype(dtype), np.array([2.0, -1.0, 2.0]) / 3
    between = jax.jit(jax.vmap(lambda ts, q, v, t: hermite(model, ts, q, v, t), (None, 0, 0, None)))
    between = jax.jit(jax.vmap(between, (None, None, None, 0)))
    speeds = np.array([0.5, 2.0, np.pi, 2 * np.pi, 20.0, 200.0])
    rows, inside = np.array([0.0, 1.0, 2.5]), np.linspace(0, 2.5, 23)
    motions = [[flight(s * axis, -1.7 * s * axis[::-1], t) for s in speeds] for t in (rows, inside)]
    (q, v), (q_true, v_true) = (tuple(jnp.array(x, dtype) for x in zip(*m, strict=True)) for m in motions)
    q_found, v_found = (jnp.moveaxis(x, 0, 1) for x in between(jnp.array(rows, dtype), q, v, jnp.array(inside, dtype)))
    apart = jax.vmap(jax.vmap(model.difference))(q_true, q_found)
    # Angles are rounded in proportion to their size.
    allowed = 20 * float(jnp.finfo(dtype).eps) * (1 + 4 * speeds)
    assert np.all(np.max(np.abs(apart), axis=(1, 2)) < allowed)
    assert np.all(np.max(np.abs(v_found - v_true), axis=(1, 2)) < allowed * (1 + speeds))


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_rows_within_steps_of_a_ball_that_spins_and_slides(dtype):
    """It rolls on the ground and keeps its energy in every row, though it turns by more than π in a step."""
    builder = jdyn.Builder("r")
    builder.add_link("b", jdyn.Free(), mass=1.0, inertia=(4e-3,) * 3)
    builder.add_shape("b", "sphere", 0.1, role="collision", friction=0.3)
    model = jdyn.with_ground(builder.build(), friction=0.3).astype(dtype)
    q0 = model.neutral().at[2].set(0.0999)
    v0 = jnp.array([0, 20.0, 0, 2.0, 0, 0], dtype)
    motion = jdyn.simulate(model, q0, v0, 0.6, contact=jdyn.ConvexContact())
    assert jnp.max(jnp.abs(motion.q[:, 2] - 0.0999)) < 1e-4
    energy = motion.energy(model)
    assert jnp.max(jnp.abs(energy / energy[0] - 1)) < 1e-3
