"""Margins, at which shapes already touch, beside MuJoCo and closed forms."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders, contact_points
from jdyn.interop import MujocoMap

pytestmark = pytest.mark.fast_compile

RADIUS, MARGIN, STIFFNESS = 0.1, 0.02, 1e4
SOFT = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=STIFFNESS, friction=0.5))
NEAR = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" margin="0.01"/>
<body pos="0 0 0.125"><freejoint/><geom name="ball" size="0.1" margin="0.02"/></body>
<body pos="0.165 0 0.125"><freejoint/><geom name="box" type="box" size="0.05 0.05 0.05"/></body>
<body pos="-0.142 0 0.125" euler="90 0 0"><freejoint/>
<geom name="rod" type="capsule" size="0.03 0.05" margin="0.005"/></body></worldbody></mujoco>"""


def ball(margin=MARGIN):
    """A ball with a margin on the ground, which has none."""
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", RADIUS, role="collision", touching=jdyn.contact.Touching(margin=margin))
    return jdyn.with_ground(builder.build())


def test_points_are_those_of_mujoco():
    m, model = mujoco.MjModel.from_xml_string(NEAR), jdyn.load_system(NEAR).model
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    theirs = {
        frozenset(m.geom(geom).name for geom in contact.geom): (
            contact.dist - contact.includemargin, contact.pos, np.abs(contact.frame[:3]),
        )
        for contact in d.contact
    }  # fmt: skip
    shapes, q = colliders(model), jnp.asarray(MujocoMap(model, m).q_from_peer(m.qpos0))
    found, pairs = jax.jit(lambda q: contact_points(shapes, jdyn.forward_kinematics(model, q)))(q)
    ours = {
        frozenset(shapes.names[pairs.of_points[row]]): (
            found.distance[row], (found.a + found.b)[row] / 2, np.abs(found.normal[row]),
        )
        for row in np.flatnonzero(found.distance < 0)
    }  # fmt: skip
    assert len(theirs) == 3 and set(ours) == set(theirs)
    for pair, expected in theirs.items():
        for x, y in zip(ours[pair], expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-15)
    deep = found.distance < 0
    np.testing.assert_allclose((found.b - found.a)[deep], (found.distance[:, None] * found.normal)[deep], atol=1e-15)


def test_forces_begin_at_the_margin_and_are_differentiated_by_it():
    model = ball()

    def force(margin, height):
        moved = jdyn.vary(model, {"collision:ball.margin": margin})
        return SOFT.between(colliders(moved)).force(moved, jnp.array([height]), jnp.zeros(1))[0]

    by_margin = jax.jit(jax.value_and_grad(force))
    # Two materials in series.
    np.testing.assert_allclose(by_margin(MARGIN, RADIUS + 0.015), [STIFFNESS / 2 * 0.005, STIFFNESS / 2], rtol=1e-12)
    assert by_margin(MARGIN, RADIUS + 0.021) == (0, 0)


def test_boxes_with_margins_push_as_higher_boxes_do():
    builder = jdyn.Builder("boxes")
    builder.add_link("box", jdyn.Free(), mass=1.0, inertia=1.0)
    builder.add_shape("box", "box", (0.2, 0.3, 0.2), role="collision", touching=jdyn.contact.Touching(margin=MARGIN))
    builder.add_shape("world", "box", (1, 1, 0.2), placement=(0, 0, -0.1), role="collision")
    model = builder.build()

    @jax.jit
    def force(margin, height):
        moved = jdyn.vary(model, {"collision:box.margin": margin})
        # Half of it is beyond the edge.
        q = model.neutral().at[:3].set(jnp.array([0.5, 0.1, height]))
        return SOFT.between(colliders(moved)).force(moved, q, jnp.zeros(6))

    near, deep = force(MARGIN, 0.115), force(0.0, 0.095)
    np.testing.assert_allclose(near, deep, rtol=1e-9, atol=1e-9)
    # Four points, and a torque about the edge.
    np.testing.assert_allclose(near[5], 4 * STIFFNESS / 2 * 0.005, rtol=1e-9)
    assert abs(near[1]) > 1


@pytest.mark.slow
@pytest.mark.parametrize("contact", [SOFT, jdyn.ConvexContact(material=SOFT.material)], ids=["compliant", "convex"])
def test_what_falls_rests_at_the_margin(contact):
    motion = jdyn.simulate(ball(), jnp.array([0.2]), jnp.zeros(1), 3.0, contact=contact)
    np.testing.assert_allclose(motion.q[-1], RADIUS + MARGIN - 9.81 / (STIFFNESS / 2), atol=2e-5)


def test_margins_go_along():
    model, plain = ball(), ball(0.0)
    assert plain.shapes.margins is None and "collision:ball.margin" not in jdyn.parameters(plain)
    np.testing.assert_array_equal(model.shapes.margins, [MARGIN, 0])
    np.testing.assert_array_equal(jdyn.merge({"a": plain, "b": model}).shapes.margins, [0, 0, MARGIN, 0])
    np.testing.assert_allclose(jdyn.scale(model, length=3.0).shapes.margins, [3 * MARGIN, 0])
    with pytest.raises(ValueError, match="margin is -1"):
        jdyn.vary(model, {"collision:ball.margin": -1.0})
    with pytest.raises(jdyn.ModelError, match=r"link 'ball': shape: margin is -0.1, expected a number, finite and not"):
        ball(-0.1)


def test_margins_are_written(tmp_path):
    builder = jdyn.Builder("two")
    for name, margin in (("a", 0.01), ("b", 0.02), ("c", 0.0)):
        touching = jdyn.contact.Touching(margin=margin)
        builder.add_link(name, jdyn.Free(), mass=1.0, inertia=1.0)
        builder.add_shape(name, "sphere", 0.1, role="collision", touching=touching)
    builder.include("a", "b")
    jdyn.save_mjcf(builder.build(), tmp_path / "two.xml")
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "two.xml"))
    assert m.geom_margin.tolist() == [0.01, 0.02, 0] and m.pair_margin == 0.01 + 0.02
    # All of it is read again, without a word.
    np.testing.assert_array_equal(jdyn.load_system(tmp_path / "two.xml").model.shapes.margins, [0.01, 0.02, 0])
