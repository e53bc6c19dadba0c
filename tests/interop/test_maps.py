"""Conversions to and from Pinocchio's and MuJoCo's conventions; the reference tests check them through dynamics."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.interop import MujocoMap, PinocchioMap

pytestmark = pytest.mark.fast_compile

MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="torso" pos=".1 .2 .3">
      <joint name="root" type="free"/>
      <inertial pos=".05 0 .1" mass="2" diaginertia=".1 .2 .25"/>
      <body name="leg" pos="0 .1 -.2" quat="1 .5 0 0">
        <joint name="hip" axis="0 1 .2" pos="0 0 .1" ref=".3"/>
        <joint name="slider" type="slide" axis="1 0 0"/>
        <inertial pos="0 .03 -.1" mass="1" diaginertia=".02 .03 .04"/>
        <body name="foot" pos="0 0 -.3">
          <joint name="ankle" type="ball"/>
          <inertial pos="0 0 -.02" mass=".5" diaginertia=".01 .012 .013"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def pinocchio_pair():
    """A tree with every joint that reads differently, added in another order than Pinocchio's, and a follower."""
    builder, peer = jdyn.Builder("pair"), pin.Model()
    free = peer.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    turn = peer.addJoint(free, pin.JointModelRUBZ(), pin.SE3.Identity(), "turn")
    follow = peer.addJoint(turn, pin.JointModelRX(), pin.SE3.Identity(), "follow")
    peer.addJoint(follow, pin.JointModelPlanar(), pin.SE3.Identity(), "plane")
    lead = peer.addJoint(free, pin.JointModelPX(), pin.SE3.Identity(), "lead")
    peer.addJoint(lead, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    joints = {
        "free": (jdyn.Free(), "world"), "lead": (jdyn.Prismatic((1, 0, 0)), "free"),
        "ball": (jdyn.Ball(), "lead"), "turn": (jdyn.Continuous((0, 0, 1)), "free"),
        "follow": (jdyn.Revolute((1, 0, 0)), "turn"), "plane": (jdyn.Planar((0, 0, 1), (1, 0, 0)), "follow"),
    }  # fmt: skip
    for name, (joint, parent) in joints.items():
        mimic = jdyn.Mimic("lead", -0.5, 0.2) if name == "follow" else None
        builder.add_link(name, joint, parent=parent, mass=1.0, inertia=0.1, mimic=mimic)
    model = builder.build()
    return PinocchioMap(model, peer)


# The joint of the arm is called after its body, whose name another joint has taken.
CLASH = """
<mujoco>
  <worldbody>
    <body name="arm">
      <joint type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
      <body name="hand">
        <joint name="arm" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.slow
def test_joints_are_told_apart_that_would_have_one_name():
    model = jdyn.load(CLASH)
    assert sorted(model.joint_names) == ["arm", "arm_2"]
    pair = MujocoMap(model, mujoco.MjModel.from_xml_string(CLASH))
    np.testing.assert_array_equal(pair.q_to_peer(jnp.array([0.1, 0.2])), [0.1, 0.2])


def mujoco_pair():
    return MujocoMap(jdyn.load(MJCF), mujoco.MjModel.from_xml_string(MJCF))


@pytest.fixture(params=[pinocchio_pair, mujoco_pair], ids=["pinocchio", "mujoco"], scope="module")
def peers(request):
    return request.param()


@pytest.fixture(scope="module")
def states(peers):
    """A batch (2, 3) of configurations, velocities, and something else of their size."""
    model = peers.model
    keys = jax.random.split(jax.random.key(0), 6)
    q = np.asarray(jax.vmap(model.random)(keys)).reshape(2, 3, -1)
    rng = np.random.default_rng(0)
    return q, rng.normal(size=(2, 3, model.nv)), rng.normal(size=(2, 3, model.nv))


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-13)


def test_there_and_back(peers, states):
    q, v, a = states
    rng = np.random.default_rng(1)
    close(peers.q_from_peer(peers.q_to_peer(q)), q)
    close(peers.v_from_peer(q, peers.v_to_peer(q, v)), v)
    close(peers.a_from_peer(q, v, peers.a_to_peer(q, v, a)), a)
    close(peers.tau_from_peer(q, peers.tau_to_peer(q, a)), a)
    J = rng.normal(size=(2, 3, 6, peers.model.nv))
    close(peers.jacobian_from_peer(q, peers.jacobian_to_peer(q, J)), J)
    f_ext = rng.normal(size=(2, 3, peers.model.nb, 6)) * getattr(peers, "takes_force", np.ones(peers.model.nb))[:, None]
    close(peers.f_ext_from_peer(q, peers.f_ext_to_peer(q, f_ext)), f_ext)


def test_shapes_are_the_peers(peers, states):
    q, v, tau = states
    assert peers.q_to_peer(q).shape == (2, 3, peers.nq)
    assert peers.v_to_peer(q, v).shape == peers.tau_to_peer(q, tau).shape == (2, 3, peers.nv)
    assert peers.jacobian_to_peer(q, np.zeros((2, 3, 6, peers.model.nv))).shape == (2, 3, 6, peers.nv)


def test_power_is_the_same(peers, states):
    q, v, tau = states
    theirs = np.sum(peers.tau_to_peer(q, tau) * peers.v_to_peer(q, v), axis=-1)
    close(theirs, np.sum(tau * v, axis=-1))


def test_jacobians_give_the_same_velocity(peers, states):
    q, v, _ = states
    J = np.random.default_rng(2).normal(size=(2, 3, 6, peers.model.nv))
    ours = np.einsum("...ij,...j", J, v)
    theirs = np.einsum("...ij,...j", peers.jacobian_to_peer(q, J), peers.v_to_peer(q, v))
    close(theirs, np.roll(ours, 3, axis=-1))


def test_acceleration_is_the_rate_of_the_velocity(peers, states):
    """Along a motion through (q, v) with acceleration a; central differences, h² = 1e-10."""
    q, v, a = (x[0, 0] for x in states)
    h, model = 1e-5, peers.model
    after, before = (
        peers.v_to_peer(np.asarray(model.integrate(jnp.asarray(q), jnp.asarray(t * v + 0.5 * t * t * a))), v + t * a)
        for t in (h, -h)
    )
    np.testing.assert_allclose((after - before) / (2 * h), peers.a_to_peer(q, v, a), atol=1e-8)


def test_pinocchio_writes_linear_parts_first_and_scalars_last():
    builder, peer = jdyn.Builder("box"), pin.Model()
    builder.add_link("base", jdyn.Free(), mass=1.0, inertia=0.1)
    peer.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    q, x = np.array([1.0, 2, 3, 0.8, 0.6, 0, 0]), np.arange(6.0)
    to = PinocchioMap(builder.build(), peer)
    np.testing.assert_array_equal(to.q_to_peer(q), [1, 2, 3, 0.6, 0, 0, 0.8])
    np.testing.assert_array_equal(to.v_to_peer(q, x), [3, 4, 5, 0, 1, 2])
    np.testing.assert_array_equal(to.f_ext_to_peer(q, x[None]), [np.zeros(6), [3, 4, 5, 0, 1, 2]])


def test_mujoco_moves_free_bodies_in_world_axes_and_pushes_at_the_center():
    text = (
        '<mujoco><worldbody><body name="box"><freejoint name="base"/>'
        '<inertial pos="0 0 2" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    to = MujocoMap(jdyn.load(text), mujoco.MjModel.from_xml_string(text))
    # A quarter turn about x: y becomes z.
    q = np.array([1.0, 2, 3, np.sqrt(0.5), np.sqrt(0.5), 0, 0])
    close(to.q_to_peer(q), q)
    close(to.v_to_peer(q, np.array([1.0, 2, 3, 0, 4, 0])), [0, 0, 4, 1, 2, 3])
    # A force along y at the body's origin, and its moment about a point two metres up z: 2 about x.
    close(to.f_ext_to_peer(q, np.array([[0.0, 0, 0, 0, 1, 0]])), [np.zeros(6), [0, 0, 1, 2, 0, 0]])


def test_angles_come_back_within_a_turn():
    peers = pinocchio_pair()
    (k,) = peers.model.topology.q_offsets[3:4]
    q = np.asarray(peers.model.neutral()).copy()
    q[k] = 7.0
    assert peers.model.joint_names[3] == "turn"
    assert peers.q_from_peer(peers.q_to_peer(q))[k] == pytest.approx(7.0 - 2 * np.pi)


def test_followers_have_coordinates_of_their_own_in_the_peer():
    peers = pinocchio_pair()
    q, v = np.asarray(peers.model.neutral()).copy(), np.zeros(peers.model.nv)
    q[7], v[6] = 2.0, 1.0
    # Pinocchio: free (7, 6), turn (2, 1), then the follower: ratio -0.5 and offset 0.2.
    assert peers.q_to_peer(q)[9] == pytest.approx(-0.5 * 2 + 0.2)
    assert peers.v_to_peer(q, v)[7] == -0.5


def test_forces_between_the_joints_of_one_mujoco_body_are_refused():
    peers = mujoco_pair()
    f_ext = np.zeros((peers.model.nb, 6))
    f_ext[~peers.takes_force] = 1
    with pytest.raises(ValueError, match=r"no bodies that correspond to .*hip"):
        peers.f_ext_to_peer(np.asarray(peers.model.neutral()), f_ext)


def test_wrong_sizes_are_named(peers):
    with pytest.raises(ValueError, match=r"q: expected shape \(\.\.\., \d+\), got \(1,\)"):
        peers.q_to_peer(np.zeros(1))


def test_other_robots_are_refused():
    with pytest.raises(ValueError, match=r"not the same robot: joints only in jdyn's: joint1, .*Pinocchio's: shoulder"):
        PinocchioMap(jdyn.load("panda"), pin.buildSampleModelManipulator())
    with pytest.raises(ValueError, match=r"not the same robot: joints only in jdyn's: joint1, .*MuJoCo's: .*ankle"):
        MujocoMap(jdyn.load("panda"), mujoco.MjModel.from_xml_string(MJCF))


def test_other_kinds_of_joints_are_refused():
    builder, peer = jdyn.Builder("arm"), pin.Model()
    builder.add_link("arm", jdyn.Ball(), mass=1.0, inertia=0.1)
    peer.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "arm")
    with pytest.raises(ValueError, match=r"'arm' is Ball in jdyn .* and JointModelRX in Pinocchio"):
        PinocchioMap(builder.build(), peer)
