"""One mechanism with several roots: whatever does not depend on the root is the same."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model.edit import row_of

pytestmark = pytest.mark.fast_compile

EXACT = {"rtol": 1e-12, "atol": 1e-12}
WAY = {
    "hip": jdyn.Revolute((1, 2, 0)),
    "slide": jdyn.Prismatic((1, 0, 2)),
    "screw": jdyn.Helical((0, 1, -1), 0.1),
    "ankle": jdyn.Continuous((0, 1, 0)),
}


def walker():
    """A torso on a leg of all joints that can be reversed, with an arm of all others; joints of both follow others."""
    rng, builder = np.random.default_rng(0), jdyn.Builder("walker")
    passive = {"damping": 0.1, "friction": 0.2, "friction_speed": 0.5, "stiffness": 3.0, "armature": 0.05}
    ranges = {"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 7.0}

    follows = {"mimic": jdyn.Mimic("hip", -0.7, 0.2)}

    def add(name, joint, parent, **more):
        pose = jdyn.pose(rng.normal(scale=0.3, size=3), rng.normal(size=3))
        inertia = np.diag(rng.uniform(0.2, 0.3, 3))
        builder.add_link(f"{name}_link", joint, parent=parent, placement=pose, joint_name=name, mass=rng.uniform(1, 2),
                         com=rng.normal(scale=0.1, size=3), inertia=inertia, **more)  # fmt: skip
        builder.add_shape(f"{name}_link", "sphere", 0.1, placement=rng.normal(size=3))
        builder.add_frame(f"{name}_frame", f"{name}_link", jdyn.pose(rng.normal(size=3), rng.normal(size=3)))

    add("base", jdyn.Free(), "world")
    parent = "base_link"
    for i, (name, joint) in enumerate(WAY.items()):
        add(name, joint, parent, rest=0.1 * i, **passive, **(ranges if name != "ankle" else follows))
        parent = f"{name}_link"
    add("toe", jdyn.Revolute((0, 1, 1)), "ankle_link", **passive, **ranges)
    add("ball", jdyn.Ball(), "slide_link", **passive)
    add("planar", jdyn.Planar((0, 0, 1), (1, 0, 0)), "ball_link")
    add("universal", jdyn.Universal((0, 0, 1), (1, 0, 0)), "base_link")
    add("follower", jdyn.Prismatic((0, 0, 1)), "universal_link", mimic=jdyn.Mimic("slide", 0.5, 0.1))
    return builder.build()


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(jax.random.key(seed)), jnp.asarray(rng.normal(size=model.nv))


def torques(model, values):
    """Generalized forces by the names of joints, none on free ones."""
    names = model.topology.v_names
    return jnp.asarray([values.get(name, 0.0) for name in names])


def same(x, y):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **EXACT), x, y)


def assert_same_mechanism(one, other, q, v):
    p, u = jdyn.rerooted_state(one, other, q, v)
    for energy in (jdyn.kinetic_energy(one, q, v) - jdyn.kinetic_energy(other, p, u),
                   jdyn.potential_energy(one, q) - jdyn.potential_energy(other, p)):  # fmt: skip
        np.testing.assert_allclose(energy, 0, atol=1e-11)
    same(jdyn.momentum(one, q, v), jdyn.momentum(other, p, u))
    rng = np.random.default_rng(1)
    values = {
        name: rng.normal() for name, kind in zip(one.joint_names, one.topology.kinds, strict=True) if kind.nv == 1
    }
    a, b = (jdyn.forward_dynamics(m, *x, torques(m, values)) for m, x in ((one, (q, v)), (other, (p, u))))
    for link in {*one.body_names, *one.frame_names} & {*other.body_names, *other.frame_names}:
        same(jdyn.frame_pose(one, q, link), jdyn.frame_pose(other, p, link))
        same(jdyn.frame_velocity(one, q, v, link), jdyn.frame_velocity(other, p, u, link))
        np.testing.assert_allclose(jdyn.frame_acceleration(one, q, v, a, link),
                                   jdyn.frame_acceleration(other, p, u, b, link), rtol=1e-12, atol=1e-11)  # fmt: skip
    for name in set(one.topology.v_names) & set(other.topology.v_names):
        if not name.startswith(("base", "walker/base")):
            i, j = one.topology.v_names.index(name), other.topology.v_names.index(name)
            np.testing.assert_allclose(a[i], b[j], rtol=1e-12, atol=1e-11, err_msg=name)
    return p, u


@pytest.mark.slow
@pytest.mark.parametrize("link", ["ankle_link", "toe_frame", "base_frame"])
def test_a_rerooted_mechanism_moves_as_before(link):
    model = walker()
    other = jdyn.reroot(model, link)
    assert other.body_names[0] == link
    assert sorted(other.joint_names) == sorted(model.joint_names)
    assert {*model.body_names, *model.frame_names} <= {*other.body_names, *other.frame_names}
    assert_same_mechanism(model, other, *state(model))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_tree_is_rerooted_among_others():
    whole = jdyn.merge({"arm": jdyn.load("double_pendulum"), "walker": walker(), "ball": jdyn.load("ball")})
    other = jdyn.reroot(whole, "walker/ankle_link")
    assert other.joint_names[:3] == ("arm/joint1", "arm/joint2", "walker/base")
    assert other.joint_names[-1] == "ball/ball"
    assert other.topology.parents[:4] == (-1, 0, -1, 2)
    q, v = state(whole)
    p, u = jdyn.rerooted_state(whole, other, q, v)
    a, b = (jdyn.forward_dynamics(m, *x, jnp.zeros(m.nv)) for m, x in ((whole, (q, v)), (other, (p, u))))
    names = whole.topology.v_names
    for i, name in enumerate(names):
        if not name.startswith("walker/base"):
            np.testing.assert_allclose(a[i], b[other.topology.v_names.index(name)], rtol=1e-12, atol=1e-11)


@pytest.mark.slow
def test_the_old_root_can_be_the_root_again():
    model = walker()
    other = jdyn.reroot(model, "ankle_link")
    again = jdyn.reroot(other, "base_link")
    q, v = state(model)
    p, u = jdyn.rerooted_state(model, other, q, v)
    back, rate = jdyn.rerooted_state(other, model, p, u)
    same(model.difference(q, back), jnp.zeros(model.nv))
    same(rate, v)
    for x, y in zip(jdyn.rerooted_state(model, again, q, v), jdyn.rerooted_state(other, again, p, u), strict=True):
        same(jnp.abs(x), jnp.abs(y))
    # Its joints are in another order.
    order = [again.topology.v_names.index(name) for name in model.topology.v_names]
    M = jdyn.mass_matrix(again, jdyn.rerooted_state(model, again, q, v)[0])
    same(M[jnp.ix_(jnp.array(order), jnp.array(order))], jdyn.mass_matrix(model, q))


def test_numbers_of_joints_and_shapes_stay_theirs():
    model = walker()
    other = jdyn.reroot(model, "ankle_link")
    before, after = jdyn.parameters(model), jdyn.parameters(other)
    for joint in model.joint_names:
        for what in ("damping", "friction", "stiffness", "armature", "rest", "lower", "upper", "velocity", "effort"):
            name = f"joint:{joint}.{what}"
            np.testing.assert_array_equal(before[name], after[name])
    q, v = state(model)
    p, _ = jdyn.rerooted_state(model, other, q, v)
    poses, others = jdyn.forward_kinematics(model, q), jdyn.forward_kinematics(other, p)
    for row, (old, new) in enumerate(zip(model.shapes.entries, other.shapes.entries, strict=True)):
        assert old._replace(body=new.body) == new
        placed = (
            row_of(X, entry.body) @ row_of(m.shapes.placements, row)
            for m, entry, X in ((model, old, poses), (other, new, others))
        )
        same(*placed)


@pytest.mark.slow
def test_numbers_pass_through():
    """A derivative by a mass, and a batch of masses."""
    model = walker()
    q, v = state(model)

    def energy(mass, link):
        heavy = model.with_body("hip_link", mass=mass)
        other = jdyn.reroot(heavy, link)
        return jdyn.kinetic_energy(other, *jdyn.rerooted_state(heavy, other, q, v))

    masses = jnp.array([1.0, 2.0])
    slopes = jax.jit(jax.vmap(jax.grad(energy), (0, None)), static_argnums=1)
    same(slopes(masses, "ankle_link"), slopes(masses, "base_link"))


def test_what_cannot_be_rerooted_says_why():
    model = walker()
    damped = model.with_joint("base", damping=0.1)
    taken = jdyn.append(model, jdyn.load("ball"), "toe_link", name="hip_link_at_slide")
    taken = dataclasses.replace(
        taken, topology=dataclasses.replace(taken.topology, frame_names=(*model.frame_names, "base_link_at_hip"))
    )
    for call, words in (
        (lambda: jdyn.reroot(jdyn.load("double_pendulum"), "link2"), "stands on the ground, by the .* 'joint1'"),
        (lambda: jdyn.reroot(model, "hand"), "no body is called 'hand'"),
        (lambda: jdyn.reroot(model, "planar_link"), "'planar' on the way .* is Planar; only Revolute, "),
        (lambda: jdyn.reroot(model, "ball_link"), "is Ball"),
        (lambda: jdyn.reroot(damped, "ankle_link"), "damping of the free joint 'base' is"),
        (lambda: jdyn.reroot(taken, "ankle_link"), "a link called base_link_at_hip already"),
        (lambda: jdyn.rerooted_state(model, jdyn.load("ball"), *state(model)), "differ in their joints"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    traced = jax.jit(lambda x: jdyn.reroot(model.with_joint("base", damping=x), "ankle_link").damping)
    np.testing.assert_array_equal(jnp.isnan(traced(0.1)).nonzero()[0], np.arange(6))
    assert not jnp.isnan(traced(0.0)).any()
    assert jdyn.reroot(model, "base_link") is model
