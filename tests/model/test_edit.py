"""Models made of models, against Pinocchio, MuJoCo, and what the parts do by themselves."""

import dataclasses
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.contact import collision_pairs
from jdyn.interop import MujocoMap, PinocchioMap

pytestmark = pytest.mark.fast_compile

PLACED = jdyn.pose((1.0, 0.5, 0.2), (0.3, -0.2, 0.5))


def arm(seed, nb=5, prefix=""):
    """A branching arm in Pinocchio and here."""
    model = jdyn.random_tree(seed, nb, kinds=(jdyn.Revolute, jdyn.Prismatic))
    return jdyn.append(empty(), model, "world", name=prefix) if prefix else model


def empty():
    return jdyn.Builder("empty").build()


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(jax.random.key(seed)), *(jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))


def forces(model, q, v, a):
    return jdyn.inverse_dynamics(model, q, v, a)


def assert_pinocchio_agrees(model, peer):
    both, data = PinocchioMap(model, peer), peer.createData()
    q, v, a = state(model)
    tau = pin.rnea(peer, data, both.q_to_peer(q), both.v_to_peer(q, v), both.a_to_peer(q, v, a))
    np.testing.assert_allclose(forces(model, q, v, a), both.tau_from_peer(q, tau), rtol=1e-10, atol=1e-10)


@pytest.fixture
def in_pinocchio(tmp_path):
    def read(model):
        jdyn.save_urdf(model, tmp_path / "robot.urdf")
        return pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))

    return read


def test_locked_joints_are_those_of_a_reduced_model_of_pinocchio(in_pinocchio):
    model = arm(3, 7)
    peer, at = in_pinocchio(model), PinocchioMap
    q, locked = np.random.default_rng(1).normal(size=7), (0, 3, 4)
    names = [model.joint_names[body] for body in locked]
    reference = at(model, peer).q_to_peer(jnp.asarray(q))
    reduced = pin.buildReducedModel(peer, [peer.getJointId(name) for name in names], reference)
    smaller = jdyn.lock(model, dict(zip(names, q[list(locked)], strict=True)))
    assert smaller.nv == reduced.nv == 4
    assert_pinocchio_agrees(smaller, reduced)


def of_peer(both, peer, q, v, frames):
    """Mass matrix, bias forces and places of frames in Pinocchio, in this model's coordinates."""
    data, there, T = peer.createData(), both.q_to_peer(q), both.velocity_map(q)
    still = both.a_to_peer(q, v, jnp.zeros(len(v)))
    tau = pin.rnea(peer, data, there, both.v_to_peer(q, v), still)
    pin.framesForwardKinematics(peer, data, there)
    M = pin.crba(peer, data, there)
    places = [data.oMf[peer.getFrameId(frame)].translation for frame in frames]
    return T.T @ M @ T, both.tau_from_peer(q, tau), np.array(places)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["ground", "free"])
def test_all_of_a_locked_robot_is_that_of_a_reduced_model_of_pinocchio(base, in_pinocchio):
    model = arm(3, 7) if base == "ground" else jdyn.append(jdyn.load("ball").without_shapes(), arm(3, 7), "ball")
    peer, first = in_pinocchio(model), model.topology.joint("joint0")
    whole = state(model, 1)[0]
    names, at = ("joint0", "joint3", "joint4"), model.topology.q_offsets[first]
    reference = PinocchioMap(model, peer).q_to_peer(whole)
    reduced = pin.buildReducedModel(peer, [peer.getJointId(name) for name in names], reference)
    smaller = jdyn.lock(model, {name: whole[at + int(name[-1])] for name in names})
    q, v, _ = state(smaller)
    expected = of_peer(PinocchioMap(smaller, reduced), reduced, q, v, smaller.frame_names)
    frames = jnp.stack([jdyn.frame_pose(smaller, q, frame).translation for frame in smaller.frame_names])
    assert {f"body{name[-1]}" for name in names} <= set(smaller.frame_names)
    for own, theirs in zip(
        (jdyn.mass_matrix(smaller, q), jdyn.bias_forces(smaller, q, v), frames), expected, strict=True
    ):
        np.testing.assert_allclose(own, theirs, rtol=1e-12, atol=1e-12)


def test_what_is_appended_is_where_pinocchio_appends_it(in_pinocchio):
    lower, upper = arm(3), arm(4, prefix="tool")
    peers = in_pinocchio(lower), in_pinocchio(upper)
    pose = pin.SE3(PLACED.rotation, PLACED.translation)
    for each in peers[1].frames:
        each.name = "" if each.name == "world" else each.name
    frame = peers[0].getFrameId("body3")
    peer = pin.appendModel(*peers, frame, pose)
    assert_pinocchio_agrees(jdyn.append(lower, upper, "body3", PLACED), peer)


def test_mujoco_attaches_the_same_robot():
    """A tool that moves freely becomes part of the link that it is fixed on."""
    rod = '<geom type="capsule" size=".05" fromto="0 0 0 0 0 -1" contype="0" conaffinity="0"/>'
    cube = '<geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/>'
    flap = f'<body name="flap" pos="0 0 .3"><joint name="hinge" axis="1 0 0"/>{rod}</body>'
    base = f'<mujoco><worldbody><body name="rod"><joint name="pivot" axis="0 1 0"/>{rod}%s</body></worldbody></mujoco>'
    tool = f'<mujoco><worldbody><body name="tool"><freejoint/>{cube}{flap}</body></worldbody></mujoco>'
    whole = base % f'<body name="tool" pos="0 .1 -1" quat=".8 .6 0 0">{cube}{flap}</body>'
    pose = jdyn.Transform(jdyn.pose(rpy=(2 * np.arctan2(0.6, 0.8), 0, 0)).rotation, np.array([0, 0.1, -1.0]))
    model = jdyn.append(jdyn.load(base % ""), jdyn.load(tool), "rod", pose)
    peer = mujoco.MjModel.from_xml_string(whole)
    data = mujoco.MjData(peer)
    both = MujocoMap(model, peer)
    q, v, a = state(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = both.q_to_peer(q), both.v_to_peer(q, v), both.a_to_peer(q, v, a)
    mujoco.mj_inverse(peer, data)
    np.testing.assert_allclose(forces(model, q, v, a), both.tau_from_peer(q, data.qfrc_inverse), rtol=1e-9, atol=1e-9)
    assert model.frame_names == ("tool",)


@pytest.mark.slow
def test_parts_of_a_merged_model_move_as_they_do_alone():
    left, right = arm(0), jdyn.random_tree(1, 6)
    whole = jdyn.merge({"left": left, "right": right}, {"right": PLACED})
    q, v, a = (jnp.concatenate(x) for x in zip(state(left), state(right), strict=True))
    assert whole.joint_names == (*(f"left/{x}" for x in left.joint_names), *(f"right/{x}" for x in right.joint_names))
    turned = right.with_gravity(jnp.asarray(PLACED.rotation).T @ right.gravity)
    alone = forces(left, *state(left)), forces(turned, *state(right))
    np.testing.assert_allclose(forces(whole, q, v, a), jnp.concatenate(alone), rtol=1e-10, atol=1e-10)
    pose = jdyn.frame_pose(whole, q, "right/body4")
    expected = jax.tree.map(jnp.asarray, PLACED) @ jdyn.frame_pose(right, state(right)[0], "body4")
    np.testing.assert_allclose(pose.translation, expected.translation, atol=1e-12)


def gripper():
    """A hand with two fingers, one of which follows the other, with limits, a frame and shapes."""
    builder = jdyn.Builder("gripper")
    inertia = {"mass": 0.3, "inertia": 0.01}
    builder.add_link("hand", jdyn.Revolute((0, 0, 1)), damping=0.2, lower=-1.0, upper=2.0, **inertia)
    builder.add_link(
        "thumb", jdyn.Prismatic((0, 1, 0)), parent="hand", placement=(0.1, 0, 0.2), stiffness=3.0, **inertia
    )
    follows = jdyn.Mimic("thumb", ratio=-0.5, offset=0.1)
    builder.add_link("finger", jdyn.Prismatic((0, 1, 0)), parent="hand", mimic=follows, armature=0.1, **inertia)
    builder.add_frame("tip", "thumb", (0, 0, 0.1))
    builder.add_link("stand", jdyn.Fixed(), mass=1.0, inertia=0.1)
    for link in ("stand", "hand", "thumb", "finger"):
        builder.add_shape(link, "sphere", 0.05)
    builder.exclude("thumb", "finger")
    builder.include("stand", "hand")
    return builder.build()


def test_a_merged_model_keeps_everything_of_its_parts():
    one = gripper()
    pair = jdyn.merge({"a": one, "b": one})
    assert pair.name == "a+b"
    assert pair.topology.mimics == ((2, 1), (5, 4))
    assert pair.frame_names == ("a/stand", "a/tip", "b/stand", "b/tip")
    assert ("b/thumb", "b/finger") in pair.shapes.excluded
    assert ("b/stand", "b/hand") in pair.shapes.included
    numbers, twice = jdyn.parameters(one), jdyn.parameters(pair)
    for name, value in numbers.items():
        if ":" not in name:
            continue
        kind, own = name.split(":", 1)
        for part in ("a", "b"):
            np.testing.assert_array_equal(twice[f"{kind}:{part}/{own}"], value)


@pytest.mark.slow
def test_two_robots_and_a_box_are_those_of_one_file(tmp_path):
    """The file has the parts' elements with other names, and a fixed joint that places the right robot."""
    puma = dataclasses.replace(jdyn.load("puma560"), armature=jnp.zeros(6))
    parts = {"left": puma, "right": puma, "part": jdyn.load("box")}
    whole = '<robot name="cell"><link name="world"/>'
    for part, model in parts.items():
        jdyn.save_urdf(model, tmp_path / f"{part}.urdf")
        parts[part] = jdyn.load(tmp_path / f"{part}.urdf")
        robot = ElementTree.parse(tmp_path / f"{part}.urdf").getroot()
        for element in robot.iter():
            for key in {"name", "link"} & set(element.keys()):
                element.set(key, f"{part}/{element.get(key)}")
        where = "1 2 3" if part == "right" else "0 0 0"
        whole += f'<joint name="{part}" type="fixed"><parent link="world"/><child link="{part}/world"/>'
        whole += f'<origin xyz="{where}"/></joint>' + "".join(ElementTree.tostring(x, "unicode") for x in robot)
    one = jdyn.load(whole + "</robot>")
    merged = jdyn.merge(parts, {"right": (1.0, 2.0, 3.0)})
    assert merged.joint_names == one.joint_names
    q, v, tau = state(one)
    for function, arguments in (
        (jdyn.mass_matrix, (q,)), (jdyn.inverse_dynamics, (q, v, tau)), (jdyn.forward_dynamics, (q, v, tau)),
    ):  # fmt: skip
        own, theirs = function(merged, *arguments), function(one, *arguments)
        assert jnp.max(jnp.abs(own - theirs)) <= 1e-14 * jnp.max(jnp.abs(theirs))
    for body, pose in enumerate(jdyn.forward_kinematics(one, q).translation):
        np.testing.assert_allclose(jdyn.forward_kinematics(merged, q).translation[body], pose, atol=1e-14)


def test_what_stands_beside_another_part_may_touch_it():
    one = gripper()
    pairs = {frozenset(pair) for pair in collision_pairs(jdyn.merge({"a": one, "b": one}))}
    alone = {frozenset(pair) for pair in collision_pairs(one)}
    for part in ("a", "b"):
        own = {frozenset(x.removeprefix(f"{part}/") for x in pair) for pair in pairs if {x[0] for x in pair} == {part}}
        assert own == alone
    names = ("stand", "hand", "thumb", "finger")
    across = {frozenset((f"a/{x}", f"b/{y}")) for x in names for y in names} - {frozenset(("a/stand", "b/stand"))}
    assert across <= pairs


def test_a_locked_leader_locks_its_followers():
    model, q = gripper(), jnp.array([0.3, 0.07])
    held = jdyn.lock(model, {"thumb": q[1]})
    assert (held.joint_names, held.topology.mimics) == (("hand",), ())
    np.testing.assert_allclose(jdyn.mass_matrix(held, q[:1])[0, 0], jdyn.mass_matrix(model, q)[0, 0], rtol=1e-12)
    for frame in ("tip", "thumb", "finger"):
        lumped, free = (jdyn.frame_pose(m, x, frame) for m, x in ((held, q[:1]), (model, q)))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), lumped, free)
    still = jdyn.lock(model, {"hand": 0.3, "thumb": 0.07})
    assert (still.nv, still.nb, {entry.body for entry in still.shapes.entries}) == (0, 0, {-1})


def test_every_kind_of_joint_can_be_locked():
    model = jdyn.random_tree(5, 9)
    q, _, _ = state(model)
    values = {joint: q[model.topology.q_slice(body)] for body, joint in enumerate(model.joint_names)}
    held = jdyn.lock(model, values)
    frame = jax.tree.map(lambda x: x[held.frame_names.index("body8")], held.frames)
    where = jdyn.frame_pose(model, q, "body8")
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), frame, where)


@pytest.mark.slow
def test_numbers_of_the_parts_pass_through():
    """Derivatives by masses, placements and locked values, and batches of them."""
    base, other = jdyn.load("double_pendulum"), jdyn.load("pendulum")

    def energy(mass, x, angle):
        heavy = other.with_body("link1", mass=mass)
        whole = jdyn.append(jdyn.merge({"a": base, "b": heavy}, {"b": x}), heavy, "a/link2", x, name="tool")
        held = jdyn.lock(whole, {"a/joint2": angle})
        return jdyn.potential_energy(held, jnp.array([0.1, 0.2, 0.3]))

    arguments = jnp.array(2.0), jnp.array([0.1, 0.2, 0.3]), jnp.array(0.4)
    check_grads(energy, arguments, order=1, modes=["fwd", "rev"], rtol=1e-6)
    masses = jnp.array([1.0, 2.0])
    together = jax.jit(jax.vmap(energy, (0, None, None)))(masses, *arguments[1:])
    np.testing.assert_allclose(together, [energy(mass, *arguments[1:]) for mass in masses])


@pytest.mark.slow
def test_robots_of_a_merged_model_push_each_other():
    ball = jdyn.load("ball")
    pair = jdyn.merge({"a": ball, "b": ball}, {"b": (0.199, 0, 0)}, gravity=(0, 0, 0))
    system = jdyn.System(pair, contact=jdyn.CompliantContact())
    state, _ = system.step(system.state(pair.neutral(), jnp.zeros(12)), None, dt=1e-3)
    np.testing.assert_allclose(state.v[3], -state.v[9])
    assert state.v[9] > 1e-3


def test_what_cannot_be_put_together_says_why():
    one, floats = jdyn.load("double_pendulum"), jdyn.load("pendulum").with_gravity((0, 0, 0))
    for call, words in (
        (lambda: jdyn.merge({}), "one or more"),
        (lambda: jdyn.merge({"": one}), "names of one letter"),
        (lambda: jdyn.merge({"a": one, "b": floats}), "gravity: 'a' has .* 'b' has"),
        (lambda: jdyn.merge({"a": one}, {"b": (0, 0, 0)}), "placements: no part is called 'b'"),
        (lambda: jdyn.merge({"a": one}, {"a": (0, 0)}), "placement of 'a'.*shape"),
        (lambda: jdyn.append(one, one, "link1"), "both models have a link or frame called link1, link2, tip"),
        (lambda: jdyn.append(one, one, "hand", name="b"), "no body is called 'hand'"),
        (lambda: jdyn.lock(one, {"joint3": 0.0}), "no joint is called 'joint3'"),
        (lambda: jdyn.lock(one, {"joint1": jnp.inf}), "joint 'joint1': value"),
        (lambda: jdyn.lock(one, {"joint1": jnp.zeros(2)}), "joint 'joint1'.*shape"),
        (lambda: jdyn.lock(gripper(), {"finger": 0.0}), "follows 'thumb'"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    traced = jax.jit(lambda a, b: jdyn.merge({"a": a, "b": b}).gravity)
    with pytest.raises(ValueError, match=r"gravity.*traced"):
        traced(one, floats)
