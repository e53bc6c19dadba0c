"""Friction of pairs that depends on the direction: tangents and motions are those of MuJoCo, with an elliptic cone."""

import dataclasses
import itertools
import warnings

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jdyn
from jdyn.contact import colliders
from jdyn.contact.directional import first_tangent

pytestmark = pytest.mark.fast_compile

CONTACTS = [jdyn.CompliantContact(), jdyn.ConvexContact()]
KINDS = {
    "plane": "1 1 .1", "sphere": ".1", "capsule": ".05 .1", "ellipsoid": ".1 .08 .06", "cylinder": ".05 .1",
    "box": ".05 .06 .07",
}  # fmt: skip
# Coefficients of sliding along the first and the second tangent.
FRICTION = np.array([0.6, 0.2])


def sledge(kind="box", size=".1 .1 .05", floor="0 0 0", turned="0 0 0", armature=0.0):
    """A shape of 1 kg that slides without turning, as its joints are slides."""
    inertia = f"armature='{armature}'"
    axes = (("1 0 0", inertia), ("0 1 0", inertia), ("0 0 1", ""))
    joints = "".join(f"<joint type='slide' axis='{axis}' {more}/>" for axis, more in axes)
    return f"""<mujoco><option cone="elliptic" impratio="1e4"/><worldbody>
<body euler="{floor}"><geom name="floor" type="plane" size="9 9 .1"/>
<body pos="0 0 .05">{joints}<geom name="sledge" type="{kind}" size="{size}" mass="1" euler="{turned}"/></body></body>
</worldbody><contact><pair geom1="floor" geom2="sledge" friction="0.6 0.2 0 0 0"/></contact></mujoco>"""


def loaded(text, contact=None):
    with warnings.catch_warnings():
        warnings.simplefilter("error", jdyn.ModelWarning)
        return jdyn.load_system(text, contact=contact)


def contacts_of_mujoco(a, b, rng):
    """Normals and first tangents of contacts of two kinds of shapes, and the axes of those that are capsules."""
    text = f"""<mujoco><worldbody><geom type="{a}" size="{KINDS[a]}" euler="20 70 -40"/>
<body><freejoint/><geom type="{b}" size="{KINDS[b]}"/></body></worldbody></mujoco>"""
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    for _ in range(20):
        place, turn = rng.normal(size=3), rng.normal(size=4)
        data.qpos[:] = np.concatenate([0.1 * place / np.linalg.norm(place), turn / np.linalg.norm(turn)])
        mujoco.mj_forward(compiled, data)
        axis = data.geom_xmat[1].reshape(3, 3)[:, 2].copy() if (a, b) == ("plane", "capsule") else np.zeros(3)
        for contact in data.contact:
            yield contact.frame[:3].copy(), axis, contact.frame[3:6].copy()


def test_tangents_are_those_of_mujoco():
    kinds, rng = itertools.combinations_with_replacement(KINDS, 2), np.random.default_rng(2)
    found = [each for a, b in kinds if (a, b) != ("plane", "plane") for each in contacts_of_mujoco(a, b, rng)]
    normals, axes, tangents = np.moveaxis(np.array(found), 1, 0)
    assert len(found) > 300 and np.sum(np.any(axes, axis=1)) > 10
    ours = jax.vmap(first_tangent)(jnp.asarray(normals), jnp.asarray(axes))
    np.testing.assert_allclose(ours, tangents, atol=1e-12)


@pytest.mark.parametrize("contact", CONTACTS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("kind", "size"), [("box", ".1 .1 .05"), ("capsule", ".05 .1"), ("sphere", ".05")], ids=["box", "capsule", "ball"]
)
def test_friction_is_that_of_mujoco(kind, size, contact):
    """On floors that lean by less and by more than the angle at which tangents jump. MuJoCo's friction points against
    the slip and a share of the acceleration, which such inertia has none of."""
    rng = np.random.default_rng(3)
    for floor, turned in (("0 0 0", "90 0 0"), ("-25 10 0", "90 40 0"), ("-70 10 30", "90 -20 0")):
        text = sledge(kind, size, floor, turned if kind == "capsule" else "0 0 0", 1e9)
        system, compiled = (
            loaded(text, dataclasses.replace(contact, slip_speed=1e-9)),
            mujoco.MjModel.from_xml_string(text),
        )
        mujoco.mj_forward(compiled, data := mujoco.MjData(compiled))
        compiled.opt.gravity[:] = -9.81 * data.xmat[1].reshape(3, 3)[:, 2]
        # Fast sledges take off there.
        data, v = mujoco.MjData(compiled), 2e-3 * np.append(rng.normal(size=2), 0)
        data.qvel[:] = v
        mujoco.mj_step(compiled, data, 1000)
        mujoco.mj_forward(compiled, data)
        force = np.zeros((data.ncon, 6))
        for i in range(data.ncon):
            mujoco.mj_contactForce(compiled, data, i, force[i])
        total = sum(each.frame.reshape(3, 3).T @ f[:3] for each, f in zip(data.contact, force, strict=True))
        points, _ = jax.jit(points_of)(system, jnp.array([0.0, 0.0, -1e-4]), jnp.asarray(v))
        ours = np.sum(points.force, axis=0)
        np.testing.assert_allclose(ours / np.linalg.norm(ours), total / np.linalg.norm(total), atol=1e-5)


def points_of(system, q, v):
    return system.contact.between(colliders(system.model)).points(system.model, q, v)


@pytest.mark.parametrize("contact", CONTACTS, ids=lambda each: type(each).__name__)
def test_sledges_slide_by_the_ellipse(contact):
    """The path bends towards the direction in which friction is less, beside SciPy's integration of two components."""
    speed, g, t = np.array([0.8, 1.0]), 9.81, 0.15
    # On a horizontal floor the first tangent is y.
    along = FRICTION[::-1]

    def slows(_, y):
        return np.concatenate([y[2:], -g * along**2 * y[2:] / np.linalg.norm(along * y[2:])])

    expected = solve_ivp(slows, (0, t), np.append([0, 0], speed), rtol=1e-10, atol=1e-12).y[:2, -1]
    system = loaded(sledge("capsule", ".05 .1", turned="90 0 0"), contact)
    state = system.state(jnp.array([0.0, 0.0, -g / 2e5]), jnp.array([*speed, 0.0]))
    motion = jdyn.simulate(system, state, t)
    # A slip speed of 1 mm/s lessens the friction of 0.5 m/s and more by 2e-6 of it; steps err by ten tolerances.
    np.testing.assert_allclose(motion.q[-1, :2], expected, atol=1e-5)
    assert abs(expected[0] / expected[1] - speed[0] / speed[1]) > 0.1


def test_equal_coefficients_are_as_one():
    rng = np.random.default_rng(4)
    one, five = (two_balls(friction) for friction in ([0.6, 0.02, 0.03], [0.6, 0.6, 0.02, 0.03, 0.03]))
    assert one.shapes.stated_friction.shape == (1, 3) and five.shapes.stated_friction.shape == (1, 5)
    q, v = one.neutral(), jnp.asarray(rng.normal(size=6))
    for contact in CONTACTS:
        forces = [contact.between(colliders(model)).force(model, q, v) for model in (one, five)]
        np.testing.assert_allclose(*forces, rtol=1e-12, atol=1e-12)


def two_balls(friction):
    builder = jdyn.Builder("balls")
    builder.add_link("ball", jdyn.Free(), placement=(0.1, 0.12, 0.11), mass=1.0, inertia=[0.01] * 3)
    for link in ("world", "ball"):
        builder.add_shape(link, "sphere", 0.1, role="collision", name=f"of {link}")
    builder.include("of world", "of ball", friction=friction)
    return builder.build()


@pytest.mark.parametrize("contact", CONTACTS, ids=lambda each: type(each).__name__)
def test_rolling_has_two_coefficients(contact):
    """Torques by angular velocities beside the normal, in closed form, and finite derivatives at rest, also where one
    coefficient is zero or both are."""
    lengths = np.array([0.03, 0.01])
    model = two_balls([0.0, 0.0, 0.0, *lengths])
    forces, q = contact.between(colliders(model)), model.neutral()
    rolling = jnp.array([3.0, -4.0, 2.0])
    points, _ = forces.points(model, q, jnp.concatenate([rolling, jnp.zeros(3)]))
    (normal,), (force,), (torque,) = (np.asarray(x) for x in (points.normal, points.force, points.torque))
    first = np.asarray(first_tangent(jnp.asarray(normal), jnp.zeros(3)))
    axes = np.stack([first, np.cross(normal, first)])
    turning = axes @ rolling
    expected = -(lengths**2) * turning / np.linalg.norm(lengths * turning) * (normal @ force) @ axes
    # A spin speed of 0.01 rad/s lessens the friction of 2 rad/s and more by 1e-5 of it.
    np.testing.assert_allclose(torque, expected, atol=1e-5 * np.linalg.norm(expected))

    def force(v, stated):
        shapes = dataclasses.replace(model.shapes, stated_friction=stated[None])
        return contact.between(colliders(dataclasses.replace(model, shapes=shapes))).force(model, q, v)

    stated = jnp.array([[0.5, 0.0, 0.0, 0.02, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.2, 0.5, 0.1, 0.0, 0.3]])
    slopes, back = (
        jax.jit(jax.vmap(by(force, (0, 1)), (None, 0)))(jnp.zeros(6), stated) for by in (jax.jacfwd, jax.jacrev)
    )
    for one, other in zip(slopes, back, strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_allclose(other, one, atol=1e-9 * np.max(np.abs(one)))


@pytest.mark.slow
def test_numbers_are_leaves():
    """Derivatives of a motion by both coefficients are those of differences."""
    system = loaded(sledge("capsule", ".05 .1", turned="90 0 0"), CONTACTS[0])
    state = system.state(jnp.array([0.0, 0.0, -9.81 / 2e5]), jnp.array([0.8, 1.0, 0.0]))

    def end(friction):
        stated = jnp.concatenate([friction, jnp.zeros(3)])[None]
        shapes = dataclasses.replace(system.model.shapes, stated_friction=stated)
        model = dataclasses.replace(system.model, shapes=shapes)
        return jdyn.simulate(system.but(model=model), state, 0.1, adjoint=diffrax.ForwardMode()).q[-1, :2]

    friction, h = jnp.asarray(FRICTION), 1e-4
    tangents = jnp.eye(2)
    slopes = jax.jit(jax.vmap(lambda d: jax.jvp(end, (friction,), (d,))[1]))(tangents)
    both = jax.jit(jax.vmap(end))(jnp.concatenate([friction[None] + h * tangents, friction[None] - h * tangents]))
    np.testing.assert_allclose(slopes, (both[:2] - both[2:]) / (2 * h), atol=2e-4 * np.max(np.abs(slopes)))


def test_a_material_takes_the_place_of_both():
    sticky = jdyn.contact.Material(friction=1.5)
    model = two_balls([0.1, 0.5, 0.0, 0.0, 0.0])
    made = jdyn.CompliantContact(materials={"ball": sticky}).between(colliders(model)).materials
    assert made.directions is None
    np.testing.assert_allclose(made.friction, [[1.5, 0, 0]])


def test_rigid_contact_names_pairs():
    model = two_balls([0.1, 0.5, 0.0, 0.0, 0.0])
    system = jdyn.System(model, contact=jdyn.RigidContact())
    with pytest.warns(jdyn.contact.ContactWarning, match="'of world' and 'of ball' depends on the direction; Rigid"):
        shapes = system.touching()
    np.testing.assert_allclose(shapes.pair_friction(), [[0.5, 0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system.but(contact=CONTACTS[0]).touching()


def test_merged_and_scaled():
    plain, directed = two_balls([0.3, 0.02, 0.01]), two_balls([0.1, 0.5, 0.2, 0.01, 0.03])
    both = jdyn.merge({"a": plain, "b": directed}).shapes.stated_friction
    np.testing.assert_allclose(both, [[0.3, 0.3, 0.02, 0.01, 0.01], [0.1, 0.5, 0.2, 0.01, 0.03]])
    large = jdyn.scale(directed, length=2.0).shapes.stated_friction
    np.testing.assert_allclose(large, [[0.1, 0.5, 0.4, 0.02, 0.06]])


def test_written_and_read_again(tmp_path):
    text = sledge("capsule", ".05 .1", turned="90 40 0")
    jdyn.save_mjcf(loaded(text), tmp_path / "sledge.xml")
    first, second = mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_path(str(tmp_path / "sledge.xml"))
    np.testing.assert_allclose(second.pair_friction, first.pair_friction)
