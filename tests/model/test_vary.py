"""Numbers of a model by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model.random_tree import ALL_KINDS

pytestmark = pytest.mark.fast_compile

TREE = jdyn.random_tree(0, len(ALL_KINDS))


@pytest.mark.slow
def test_every_number_can_be_had_and_given_back():
    """To rounding: inertias are kept about other points, axes are scaled again."""
    for model in (TREE, jdyn.load("panda"), jdyn.load("quadruped")):
        numbers = jdyn.parameters(model)
        for a, b in zip(jax.tree.leaves(jdyn.vary(model, numbers)), jax.tree.leaves(model), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_each_name_changes_its_number_and_no_other():
    model = jdyn.load("panda")
    for name, value in jdyn.parameters(model).items():
        if name.endswith((".axis", ".inertia")) or not name.startswith(("gravity", "body:link3", "joint:joint3")):
            continue
        before, after = jdyn.parameters(model), jdyn.parameters(jdyn.vary(model, {name: value + 0.25}))
        for other in before:
            expected = before[other] + (0.25 if other == name else 0)
            np.testing.assert_allclose(after[other], expected, atol=1e-12, err_msg=f"{other} by {name}")


def test_a_changed_model_moves_as_one_that_was_built_so():
    def built(mass, length, damping):
        builder, hinge = jdyn.Builder("arm"), jdyn.Revolute((0, 0, 1))
        builder.add_link("upper", hinge, mass=1.0, com=(0.3, 0, 0), inertia=0.1, joint_name="shoulder")
        builder.add_link(
            "lower", hinge, parent="upper", mass=mass, com=(0.2, 0, 0), inertia=0.1, joint_name="elbow",
            placement=(length, 0, 0), damping=damping,
        )  # fmt: skip
        return builder.build()

    changes = {"body:lower.mass": 2.0, "joint:elbow.translation": [0.7, 0, 0], "joint:elbow.damping": 3.0}
    varied, expected = jdyn.vary(built(1.0, 0.5, 0.0), changes), built(2.0, 0.7, 3.0)
    state = jnp.array([0.3, -0.4]), jnp.array([1.0, -2.0]), jnp.zeros(2)
    np.testing.assert_allclose(
        jdyn.forward_dynamics(varied, *state), jdyn.forward_dynamics(expected, *state), rtol=1e-13
    )


@pytest.mark.slow
def test_batches_and_derivatives_go_through_names():
    model = jdyn.load("double_pendulum")
    state, body = (jnp.array([0.3, -0.7]), jnp.ones(2), jnp.zeros(2)), model.body_names[1]

    @jax.jit
    def accelerations(mass):
        return jdyn.forward_dynamics(jdyn.vary(model, {f"body:{body}.mass": mass}), *state)

    masses = jnp.array([1.0, 2.0])
    batch = jax.vmap(accelerations)(masses)
    np.testing.assert_allclose(batch[1], accelerations(2.0), rtol=1e-12)
    slope, h = jax.jacrev(accelerations)(1.5), 1e-5
    difference = (accelerations(1.5 + h) - accelerations(1.5 - h)) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mass", r"expected a name such as 'gravity', 'body:NAME.mass', .* got 'mass'"),
        ("link:link3.mass", "expected a name such as"),
        ("body:link3.masss", "body 'link3' has no 'masss'; there are mass, com, inertia"),
        ("body:lin3.mass", "no body is called 'lin3'; there are link1, link2, link3"),
        ("joint:joint3.dampin", r"has no 'dampin'; is it 'damping'\?"),
        ("joint:elbow.damping", "no joint is called 'elbow'"),
        ("frame:hand.translation", "no frame is called 'hand'"),
    ],
)
def test_wrong_names_are_answered_by_similar_ones(name, message):
    with pytest.raises(ValueError, match=message):
        jdyn.vary(jdyn.load("panda"), {name: 1.0})


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"joint:joint3.translation: expected"):
        jdyn.vary(jdyn.load("panda"), {"joint:joint3.translation": [1.0, 2.0]})
