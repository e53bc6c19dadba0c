"""Operational space in contact, against the equations of motion of Pinocchio and what was asked for."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.constraints import Connect, PointOnPlane
from jdyn.control import HeldContacts, OperationalSpace, Posture, SingularRegion
from tests.dynamics.pinocchio_robots import pair

# Regular configurations are outside of such a region.
REGION = SingularRegion(1e-4)
ARM_Q = jnp.array([0.4, -1.1, 1.3, -0.9, 0.7, 0.3])
# Of the forearm, in its frame, and the plane that it leans on.
ELBOW, SLOPE = (0.02, -0.05, 0.1), np.array([0.36, 0.48, 0.8])
# Rows do not depend on how far planes are away.
ARM_CONTACTS = (PointOnPlane("world", "ee_link"), PointOnPlane("world", "forearm_link", point_b=ELBOW, normal=SLOPE))
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
STANCE = tuple(Connect("world", foot) for foot in FEET)
# A plane where the arm's tool is.
START = (0.3, -0.2, 0.5)


@jax.jit
def _driven(model, controller, q, v):
    """Torques, accelerations and forces of the rows, when contacts hold."""
    tau = controller(0.0, q, v)
    held = jdyn.constrained_dynamics(model, controller.contacts.constraints, q, v, tau)
    return tau, held.a, held.multipliers


class _Peer:
    """Pinocchio at a state: M, h, and the motions of points."""

    def __init__(self, name, q, v):
        self.model, self.to = pair(name)[1:3]
        self.data = self.model.createData()
        state = self.to.q_to_peer(q), self.to.v_to_peer(q, v)
        pin.computeAllTerms(self.model, self.data, *state)
        pin.forwardKinematics(self.model, self.data, *state, np.zeros(self.model.nv))
        pin.updateFramePlacements(self.model, self.data)
        self.q, upper = q, np.triu(self.data.M)
        turn = np.stack([self.to.v_to_peer(q, each) for each in np.eye(self.model.nv)], axis=1)
        self.M = turn.T @ (upper + np.triu(upper, 1).T) @ turn
        self.h = turn.T @ self.data.nle

    def point(self, frame, place=(0.0, 0.0, 0.0)):
        """Jacobian of a point's velocity in the world's axes, and its acceleration where those of joints are zero."""
        frame_id = self.model.getFrameId(frame)
        there = self.model, self.data, frame_id, pin.LOCAL_WORLD_ALIGNED
        arm = self.data.oMf[frame_id].rotation @ np.asarray(place)
        J = self.to.jacobian_from_peer(self.q, pin.getFrameJacobian(*there))
        turning, of_frame = pin.getFrameVelocity(*there).angular, pin.getFrameClassicalAcceleration(*there)
        bias = of_frame.linear + np.cross(of_frame.angular, arm) + np.cross(turning, np.cross(turning, arm))
        # Rows of rotations come first.
        return J[3:] - pin.skew(arm) @ J[:3], bias

    def position(self, frame):
        return self.data.oMf[self.model.getFrameId(frame)].translation


def _consistent(J, v):
    return v - np.linalg.pinv(J) @ (J @ v)


def _held(M, h, tau, J, bias):
    """Accelerations and forces of rows, by the dense matrix of both."""
    rows = len(J)
    K = np.block([[M, -J.T], [J, np.zeros((rows, rows))]])
    return np.split(np.linalg.solve(K, np.concatenate([tau - h, -bias])), [len(M)])


@functools.cache
def arm_in_contact():
    """An arm whose tool slides on a table, while its forearm leans on a slope; rows of both by Pinocchio."""
    model, rng = pair("fixed")[0], np.random.default_rng(0)

    def contacts(v):
        peer = _Peer("fixed", ARM_Q, v)
        (tool, of_tool), (elbow, of_elbow) = peer.point("ee_link"), peer.point("forearm_link", ELBOW)
        return peer, np.stack([tool[2], SLOPE @ elbow]), np.stack([of_tool[2], SLOPE @ of_elbow])

    v = _consistent(contacts(np.zeros(6))[1], rng.normal(size=6))
    return model, v, *contacts(v)


def _reach(model, forces=(20.0, 15.0), posture=None, **options):
    options = {"kp": 30.0, "kd": 4.0, "damping": REGION} | options
    posture = Posture(kp=5.0, kd=2.0) if posture is None else posture
    contacts = HeldContacts(ARM_CONTACTS, jnp.array(forces))
    return OperationalSpace(model, "ee_link", jnp.array(START), posture=posture, contacts=contacts, **options)


def test_the_tool_moves_and_presses_as_asked_for():
    model, v, peer, J, bias = arm_in_contact()
    tau, a, forces = _driven(model, _reach(model), ARM_Q, jnp.asarray(v))
    exact_a, exact_forces = _held(peer.M, peer.h, np.asarray(tau), J, bias)
    np.testing.assert_allclose(a, exact_a, atol=1e-10 * np.max(np.abs(exact_a)))
    np.testing.assert_allclose(forces, exact_forces, rtol=1e-10)
    np.testing.assert_allclose(exact_forces, [20.0, 15.0], rtol=1e-10)
    task, of_task = peer.point("ee_link")
    asked = 30 * (np.array(START) - peer.position("ee_link")) - 4 * task @ v
    reached = task @ exact_a + of_task
    np.testing.assert_allclose(reached, [*asked[:2], 0.0], atol=1e-10 * np.max(np.abs(asked)))
    # What remains is nearest to the posture, in the norm of M: only contacts and the task pull it away.
    pull = peer.M @ (exact_a - (5 * np.asarray(model.difference(ARM_Q, model.neutral())) - 2 * v))
    rows = np.concatenate([J, task]).T
    assert np.linalg.matrix_rank(rows) == 4
    missing = pull - rows @ np.linalg.lstsq(rows, pull, rcond=1e-12)[0]
    np.testing.assert_allclose(missing, 0, atol=1e-9 * np.max(np.abs(pull)))


def test_the_posture_moves_neither_the_task_nor_forces():
    model, v, peer, *_ = arm_in_contact()
    postures = (Posture(kp=5.0, kd=2.0), Posture(jnp.ones(6), kp=50.0, kd=1.0))
    reaches = (_reach(model, posture=posture) for posture in postures)
    (_, one, forces), (_, other, same) = (_driven(model, reach, ARM_Q, jnp.asarray(v)) for reach in reaches)
    change = np.asarray(other - one)
    assert np.max(np.abs(change)) > 1
    np.testing.assert_allclose(peer.point("ee_link")[0] @ change, 0, atol=1e-10 * np.max(np.abs(change)))
    np.testing.assert_allclose(forces, same, rtol=1e-10)


def test_forces_change_torques_alone():
    model, v, _, J, _ = arm_in_contact()
    wished = (20.0, 15.0), (-3.0, 80.0)
    (tau, a, _), (more, same, forces) = (_driven(model, _reach(model, w), ARM_Q, jnp.asarray(v)) for w in wished)
    np.testing.assert_allclose(same, a, atol=1e-10 * np.max(np.abs(a)))
    np.testing.assert_allclose(forces, wished[1], rtol=1e-10)
    np.testing.assert_allclose(more - tau, -J.T @ np.subtract(*wished[::-1]), atol=1e-9)


@functools.cache
def four_legs():
    """A quadruped on the balls of its feet, and the rows of these by Pinocchio."""
    model, rng = pair("floating")[0], np.random.default_rng(1)
    q = model.neutral().at[2].set(0.3).at[7:].set(jnp.array([0.1, 0.8, -1.6] * 2 + [-0.1, -0.7, 1.5] * 2))

    def contacts(v):
        peer = _Peer("floating", q, v)
        points = [peer.point(foot) for foot in FEET]
        return peer, np.concatenate([J for J, _ in points]), np.concatenate([bias for _, bias in points])

    v = _consistent(contacts(np.zeros(model.nv))[1], 0.3 * rng.normal(size=model.nv))
    return model, q, v, *contacts(v)


def _stand(model, feet, forces):
    legs = np.arange(6, model.nv)
    contacts = HeldContacts(feet, forces, actuated=legs)
    target = jnp.array([0.05, -0.02, 0.32])
    return OperationalSpace(model, 0, target, kp=30.0, kd=4.0, damping=REGION, contacts=contacts)


@pytest.mark.slow
def test_redundant_contacts_share_the_load_as_asked_for():
    """Of forces that balance, those nearest to what is asked for: the difference is no internal force."""
    model, q, v, peer, J, bias = four_legs()
    rng = np.random.default_rng(2)
    # Internal forces: those that the trunk does not feel.
    on_trunk = J[:, :6].T
    internal = np.linalg.svd(on_trunk)[2][6:]
    assert internal.shape == (6, 12) and np.max(np.abs(on_trunk @ internal.T)) < 1e-12
    for wished in (np.zeros(12), 30 * rng.normal(size=12)):
        tau, a, forces = _driven(model, _stand(model, STANCE, jnp.asarray(wished)), q, jnp.asarray(v))
        assert np.all(np.asarray(tau[:6]) == 0)
        exact_a, exact = _held(peer.M, peer.h, np.asarray(tau), J, bias)
        np.testing.assert_allclose(a, exact_a, atol=1e-9 * np.max(np.abs(exact_a)))
        np.testing.assert_allclose(forces, exact, atol=1e-9 * np.max(np.abs(exact)))
        np.testing.assert_allclose(internal @ (exact - wished), 0, atol=1e-9 * np.max(np.abs(exact)))
        task, of_task = (x[:3] for x in _trunk(model, q, v))
        asked = 30 * (np.array([0.05, -0.02, 0.32]) - np.asarray(q[:3])) - 4 * task @ v
        np.testing.assert_allclose(task @ exact_a + of_task, asked, atol=1e-10 * np.max(np.abs(asked)))


def _trunk(model, q, v):
    """Jacobian and bias of the trunk's origin; q[:3] moves with the trunk's own velocity."""
    turn = np.asarray(jdyn.frame_pose(model, q, 0).rotation)
    J = np.zeros((3, model.nv))
    J[:, 3:6] = turn
    return J, turn @ np.cross(v[:3], v[3:6])


@pytest.mark.slow
def test_legs_do_not_balance_what_they_cannot():
    """On two feet nothing turns the trunk about the line between them: the posture's wish for it is left out, and
    accelerations are those that the controller planned."""
    model, q, v, _, J, _ = four_legs()
    J = np.concatenate([J[:3], J[9:]])
    v = _consistent(J, np.asarray(v))
    peer = _Peer("floating", q, v)
    points = [peer.point(foot) for foot in (FEET[0], FEET[3])]
    bias = np.concatenate([bias for _, bias in points])
    tau, a, _ = _driven(model, _stand(model, (STANCE[0], STANCE[3]), jnp.zeros(6)), q, jnp.asarray(v))
    assert np.all(np.asarray(tau[:6]) == 0)
    exact_a, _ = _held(peer.M, peer.h, np.asarray(tau), J, bias)
    np.testing.assert_allclose(a, exact_a, atol=1e-9 * np.max(np.abs(exact_a)))
    task, of_task = _trunk(model, q, v)
    asked = 30 * (np.array([0.05, -0.02, 0.32]) - np.asarray(q[:3])) - 4 * task @ v
    np.testing.assert_allclose(task @ exact_a + of_task, asked, atol=1e-9 * np.max(np.abs(asked)))


@pytest.mark.slow
def test_derivatives_of_torques_are_those_of_differences():
    model, v, *_ = arm_in_contact()
    reach, along, h = _reach(model), jnp.asarray(np.random.default_rng(3).normal(size=6)), 1e-5

    @jax.jit
    def torque(s, forces):
        changed = jdyn.control.HeldContacts(ARM_CONTACTS, forces).of(model)
        return OperationalSpace(
            model, "ee_link", jnp.array(START), kp=30.0, kd=4.0, posture=Posture(kp=5.0, kd=2.0), damping=REGION,
            contacts=changed,
        )(0.0, ARM_Q + s * along, jnp.asarray(v))  # fmt: skip

    forces = reach.contacts.forces
    by_s = jax.jit(jax.jacfwd(torque))(0.0, forces)
    differences = (torque(h, forces) - torque(-h, forces)) / (2 * h)
    np.testing.assert_allclose(by_s, differences, atol=1e-7 * float(jnp.max(jnp.abs(by_s))))
    backwards = jax.jit(jax.jacrev(torque))(0.0, forces)
    np.testing.assert_allclose(backwards, by_s, atol=1e-9 * float(jnp.max(jnp.abs(by_s))))


PUMA = jdyn.load("puma560")
PUMA_Q = jnp.array([0.2, 0.6, -0.4, 0.3, 1.2, 0.1])


@pytest.mark.slow
def test_a_puma_wipes_a_table():
    """Its tool slides on the table like an oscillator, pressing with 20 N, and keeps its orientation."""
    pose = jdyn.frame_pose(PUMA, PUMA_Q, "tool")
    table = PointOnPlane("world", "tool", offset=pose.translation[2])
    shift = np.array([0.06, -0.1])
    # What is asked for across the table is left out.
    target = jdyn.Transform(pose.rotation, pose.translation + jnp.array([*shift, -0.05]))
    wipe = OperationalSpace(PUMA, "tool", target, kp=16.0, kd=4.0, damping=REGION, contacts=HeldContacts([table], 20.0))
    motion = jdyn.simulate(
        PUMA, PUMA_Q, jnp.zeros(6), 1.0, controller=wipe, constraints=[table], saveat=[0.0, 0.25, 0.5, 1.0],
        stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-11),
    )  # fmt: skip

    reached = jax.vmap(lambda q: jdyn.frame_pose(PUMA, q, "tool"))(motion.q)
    turns = np.asarray(pose.rotation).T @ np.asarray(reached.rotation)
    t, damped = np.asarray(motion.ts), 4 * np.sqrt(1 - 0.5**2)
    decay = np.exp(-2 * t) * (np.cos(damped * t) + 2 / damped * np.sin(damped * t))
    left = np.asarray(target.translation)[:2] - np.asarray(reached.translation)[:, :2]
    np.testing.assert_allclose(left, np.outer(decay, shift), atol=1e-7)
    np.testing.assert_allclose(reached.translation[:, 2], pose.translation[2], atol=1e-9)
    np.testing.assert_allclose(turns, np.broadcast_to(np.eye(3), (4, 3, 3)), atol=1e-7)
    np.testing.assert_allclose(motion.multipliers, 20.0, atol=1e-6)


@pytest.mark.exhaustive
def test_a_compliant_table_bears_what_is_asked_for():
    """The arm knows a rigid table, and meets one that gives way: at rest on it forces are those of statics."""
    builder = jdyn.Builder("arm", gravity=(0, 0, -9.81))
    for name, parent, axis in (("a", "world", (0, 0, 1)), ("b", "a", (0, 1, 0)), ("c", "b", (0, 1, 0))):
        place = (0.5 * (name == "c"), 0, 0.3 * (name == "a"))
        body = {"mass": 2.0, "com": (0.2, 0, 0), "inertia": 0.02 * np.eye(3)}
        builder.add_link(name, jdyn.Revolute(axis), parent=parent, placement=place, **body)
    builder.add_shape("c", "sphere", 0.03, placement=(0.5, 0, 0), role="collision")
    builder.add_frame("tip", "c", placement=(0.5, 0, 0))
    builder.add_shape("world", "plane", (0, 0), role="collision", name="table")
    model = builder.build()
    # The tip is 30 mm above the table, or nearly.
    q = jnp.array([0.0, -0.4, 0.4 + np.arcsin((0.27 + 0.5 * np.sin(0.4)) / 0.5)])
    contacts = HeldContacts([PointOnPlane("world", "tip", offset=0.03)], 20.0)
    target = jdyn.frame_pose(model, q, "tip").translation + jnp.array([-0.05, 0.1, 0.0])
    press = OperationalSpace(model, "tip", target, kp=100.0, kd=20.0, damping=REGION, contacts=contacts)
    smooth = jdyn.CompliantContact(material=jdyn.contact.Material(friction=0.0))
    motion = jdyn.simulate(model, q, jnp.zeros(3), 3.0, controller=press, contact=smooth, saveat=[3.0])
    # What is left of oscillators after 3 s at 10 rad/s, and of the default tolerance.
    np.testing.assert_allclose(motion.contacts.force("c")[0], [0, 0, 20.0], atol=1e-3)
    reached = jdyn.frame_pose(model, motion.q[0], "tip").translation
    np.testing.assert_allclose(reached[:2], target[:2], atol=1e-5)
    assert -1e-3 < reached[2] - 0.03 < 0


def test_numbers_of_contacts_have_names():
    model = jdyn.load("double_pendulum")
    contacts = HeldContacts([PointOnPlane("world", "tip", offset=-1.0)], 5.0)
    reach = OperationalSpace(model, "tip", jnp.zeros(3), kp=1.0, kd=1.0, damping=REGION, contacts=contacts)
    system = jdyn.System(model, controller=reach)
    names = ("contacts.forces", "contacts.constraints.0.offset", "damping.border", "damping.limit")
    assert {f"controller.{name}" for name in names} <= set(jdyn.parameters(system))
    changed = jdyn.vary(system, {"controller.contacts.forces": 8.0, "controller.damping.limit": 50.0}).controller
    assert changed.contacts.forces == 8.0 and changed.damping.limit == 50.0


def test_wrong_contacts_are_named():
    model = jdyn.load("double_pendulum")

    def reach(*contacts, **options):
        OperationalSpace(model, "tip", jnp.zeros(3), kp=1.0, kd=1.0, contacts=HeldContacts(*contacts, **options))

    with pytest.raises(ValueError, match="contacts: expected at least one constraint, got none"):
        reach([])
    with pytest.raises(ValueError, match=r"contacts.forces: expected a scalar or shape \(3,\) for 'double_pendulum'"):
        reach([Connect("world", "tip")], jnp.zeros(2))
    with pytest.raises(ValueError, match="'hand'"):
        reach([Connect("world", "hand")])
    with pytest.raises(ValueError, match="actuated: expected different indices"):
        reach([Connect("world", "tip")], actuated=[7])
