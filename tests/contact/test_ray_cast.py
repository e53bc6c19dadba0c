"""Rays against all shapes of a model, as in MuJoCo."""

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

SCENE = """<mujoco><asset>
  <hfield name="h" nrow="3" ncol="3" size="1 1 .4 2" elevation="0 .5 0 .25 1 .5 0 .25 0"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="0 0 1" pos="0 0 -.5" euler="5 3 0"/>
  <geom name="hill" type="hfield" hfield="h" pos="2 0 -.4"/>
  <geom name="post" type="cylinder" size=".1 .8" pos="-1 .5 0" euler="20 10 0"/>
  <body name="arm" pos="0 0 .5"><joint name="a" axis="0 1 0"/>
    <geom name="upper" type="capsule" fromto="0 0 0 .6 0 0" size=".08" mass="1"/>
    <site name="eye" pos=".3 0 0"/>
    <body name="hand" pos=".6 0 0"><joint name="b" axis="0 0 1"/>
      <geom name="palm" type="box" size=".1 .2 .05" pos=".1 0 0" mass="1"/>
      <body name="finger" pos=".2 .1 0"><geom name="tip" type="ellipsoid" size=".1 .05 .07" mass="1"/></body>
    </body>
  </body>
  <body name="ball" pos=".5 -.5 .8"><freejoint/><geom name="ball" size=".2" mass="1"/></body>
</worldbody></mujoco>"""
with warnings.catch_warnings():
    warnings.simplefilter("ignore", jdyn.ModelWarning)
    MODEL = jdyn.load(SCENE)


def _rays(count=200):
    rng = np.random.default_rng(0)
    targets = rng.uniform(-1, 1, size=(count, 3)) * [1.5, 1, 0.6] + [0.3, 0, 0.3]
    ahead = targets - np.array([0.2, -1.5, 1.4])
    ahead[::9, 2] *= -1
    return ahead / np.linalg.norm(ahead, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [(), ("arm",)])
def test_hits_are_those_of_mujoco(left_out):
    m = mujoco.MjModel.from_xml_string(SCENE)
    d, rng = mujoco.MjData(m), np.random.default_rng(1)
    mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv) * 0.5, 1.0)
    mujoco.mj_forward(m, d)
    directions, origin = _rays(), np.array([0.2, -1.5, 1.4])
    n = len(directions)
    distances, normals, numbers = np.zeros((n, 1)), np.zeros((3 * n, 1)), np.zeros((n, 1), np.int32)
    excluded = m.body(left_out[0]).id if left_out else -1
    mujoco.mj_multiRay(
        m, d, origin, directions.reshape(-1, 1), None, True, excluded, numbers, distances, normals, n, 1e9
    )
    hits = jdyn.contact.ray_cast(MODEL, jnp.array(d.qpos), origin, 3 * directions, left_out=left_out)
    want = np.where(distances[:, 0] < 0, np.inf, distances[:, 0])
    np.testing.assert_allclose(hits.distance, want, atol=1e-9)
    hit = np.isfinite(want)
    assert 0.6 < np.mean(hit) < 1 and np.all(hits.shape[~hit] == -1) and np.all(np.isinf(hits.point[~hit]))
    names = [m.geom(int(number)).name for number in numbers[hit, 0]]
    assert [hits.names[number] for number in hits.shape[hit]] == names
    assert len(set(names)) == (6 - len(left_out))
    np.testing.assert_allclose(hits.normal[hit], normals.reshape(-1, 3)[hit], atol=1e-9)
    np.testing.assert_allclose(hits.point[hit], (origin + want[:, None] * directions)[hit], atol=1e-9)


@pytest.mark.slow
def test_derivatives_are_finite_differences_along_motions():
    directions = jnp.array(_rays()[:40])
    q, v = MODEL.neutral(), jnp.array(np.random.default_rng(2).normal(size=MODEL.nv))

    def found(s):
        moved = MODEL.integrate(q, s * v)
        return jdyn.contact.ray_cast(MODEL, moved, jnp.array([0.2, -1.5, 1.4]), directions).distance

    # The other mode is that of `ray_hit`, and of rangefinders.
    lanes = jax.vmap(lambda s: jax.jvp(found, (s,), (jnp.ones(()),)))
    (values, before, after), (slopes, _, _) = jax.jit(lanes)(jnp.array([0, -1e-6, 1e-6]))
    hit = np.isfinite(values)
    np.testing.assert_allclose(slopes[hit], ((after - before) / 2e-6)[hit], atol=1e-7, rtol=1e-6)
    assert np.any(slopes[hit] != 0) and not np.any(slopes[~hit]) and 0 < np.mean(hit) < 1


@pytest.mark.slow
def test_batches_and_broadcast_axes():
    q = jnp.stack([MODEL.neutral()] * 2)
    origins = jnp.array([[0.0, 0, 3], [0, 0, 4]])[:, None]
    down = jnp.array([0.0, 0, -1])
    hits = jax.vmap(lambda q: jdyn.contact.ray_cast(MODEL, q, origins, jnp.stack([down, -down, 2 * down])))(q)
    assert hits.distance.shape == hits.shape.shape == (2, 2, 3) and hits.point.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(hits.distance[0], [[2.42, np.inf, 2.42], [3.42, np.inf, 3.42]], atol=1e-12)
    everything = ("world", "arm", "hand", "ball")
    none = jdyn.contact.ray_cast(MODEL, q[0], origins, down, left_out=everything)
    assert np.all(none.shape == -1) and np.all(np.isinf(none.distance))


def test_what_disagrees_is_named():
    q, x = MODEL.neutral(), jnp.zeros(3)
    with pytest.raises(ValueError, match="directions: expected shape"):
        jdyn.contact.ray_cast(MODEL, q, x, jnp.zeros(2))
    with pytest.raises(ValueError, match="expected shapes that can be broadcast"):
        jdyn.contact.ray_cast(MODEL, q, jnp.zeros((2, 3)), jnp.zeros((5, 3)))
    with pytest.raises(ValueError, match="left_out: "):
        jdyn.contact.ray_cast(MODEL, q, x, x, left_out="hnd")
    with pytest.raises(ValueError, match="no collision shapes"):
        jdyn.contact.ray_cast(jdyn.load("pendulum"), jnp.zeros(1), x, x)
