"""Shapes beside a model: what they are, that dynamics leaves them out, and their derivatives."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model import WORLD, ModelError, ModelWarning, Shape, Shapes
from jdyn.spatial import Transform
from jdyn.sweep.program import Program

pytestmark = pytest.mark.fast_compile


def double_pendulum(**of_second):
    """Two rods, and a tool that is fixed to the second; `of_second` is one more shape of it."""
    builder = jdyn.Builder("double pendulum")
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=0.1)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0, 0, -1), mass=1.0, inertia=0.1)
    builder.add_link("tool", jdyn.Fixed(), parent="lower", placement=jdyn.pose((0, 0, -1), (0, np.pi / 2, 0)))
    if of_second:
        builder.add_shape("upper", "capsule", (0.05, 1.0), placement=(0, 0, -0.5))
        builder.add_shape("tool", placement=(0.2, 0, 0), **of_second)
        builder.add_shape("world", "plane", (0, 0), role="visual", name="floor")
    return builder.build()


BARE = double_pendulum()
SHAPED = double_pendulum(kind="sphere", size=0.1, color=(1, 0, 0), touching=jdyn.contact.Touching((1, 0, 0)))
OTHER = double_pendulum(kind="mesh", path="tool.stl", role="visual")
Q, V = np.array([0.3, -0.2]), np.array([0.1, 0.4])


@pytest.mark.slow
def test_shapes_belong_to_the_body_that_carries_their_link():
    assert SHAPED.shapes.entries == (
        Shape("capsule", "visual", 0, "upper", "upper"),
        Shape("capsule", "collision", 0, "upper", "upper"),
        Shape("sphere", "visual", 1, "tool", "tool", None, (1.0, 0.0, 0.0, 1.0), condim=6),
        Shape("sphere", "collision", 1, "tool", "tool", None, (1.0, 0.0, 0.0, 1.0), condim=6),
        Shape("plane", "visual", WORLD, "world", "floor"),
    )
    # The tool's x points down.
    np.testing.assert_allclose(SHAPED.shapes.placements.translation[2], [0, 0, -1.2], atol=1e-15)
    np.testing.assert_array_equal(SHAPED.shapes.sizes[:4], [[0.05, 1, 0]] * 2 + [[0.1, 0, 0]] * 2)
    assert BARE.shapes is None


def test_the_size_of_a_shape_leaves_out_what_fills_up_its_row():
    assert [SHAPED.shapes.size(row).shape for row in range(5)] == [(2,), (2,), (1,), (1,), (2,)]
    assert (len(SHAPED.shapes), SHAPED.shapes.rows("collision")) == (5, (1, 3))


def test_a_name_is_used_once_for_each_role():
    builder = jdyn.Builder("r")
    builder.add_link("a", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    for name in (None, None, "a", "a_2", None):
        builder.add_shape("a", "sphere", 0.1, name=name, role="visual")
    builder.add_shape("a", "sphere", 0.1, role="collision")
    entries = builder.build().shapes.entries
    assert [entry.name for entry in entries] == ["a", "a_2", "a_3", "a_2_2", "a_4", "a"]


@pytest.mark.parametrize(
    ("shape", "phrases"),
    [
        (("arm", "sphere", 0.1), ["no link or frame is called 'arm'", "there are a"]),
        (("a", "cube", 1), ["kind is 'cube'", "box, sphere, capsule"]),
        (("a", "box", 0.1), ["box has shape (1,)", "3 numbers, the lengths of its sides"]),
        (("a", "sphere", (1, 2)), ["sphere has shape (2,)", "a number, its radius"]),
        (("a", "sphere", -0.1), ["size of a sphere is [-0.1]", "from 0"]),
        (("a", "capsule", (np.nan, 1)), ["size of a capsule is [nan  1.]", "finite"]),
        (("a", "sphere", 0.1, {"role": "seen"}), ["role is 'seen'", "'visual' or 'collision'"]),
        (("a", "sphere", 0.1, {"path": "a.stl"}), ["a sphere has no file", "'a.stl'"]),
        (("a", "sphere", 0.1, {"color": (0, 0, 300)}), ["color is (0.0, 0.0, 300.0)", "from 0 to 1"]),
        (
            ("a", "sphere", 0.1, {"touching": jdyn.contact.Touching((1, 0))}),
            ["friction is [1. 0.]", "a number or three"],
        ),
        (("a", "sphere", 0.1, {"touching": jdyn.contact.Touching(-0.1)}), ["friction is [-0.1", "not negative"]),
        (("a", "sphere", 0.1, {"touching": jdyn.contact.Touching(contype=-1)}), ["contype is -1", "bits"]),
        (("a", "height field", (1, 1)), ["expected finite heights in two rows and two columns or more, got none"]),
        (("a", "height field", (1, 1), {"heights": [[0, 1]]}), ["got some of shape (1, 2)"]),
        (("a", "height field", (1, 1), {"heights": [[0, 1], [np.nan, 0]]}), ["got nan in row 1 and column 0"]),
        (("a", "sphere", 1, {"heights": [[0, 1]]}), ["a sphere has no heights, got some of shape (1, 2)"]),
        (("a", "sphere", 0.1, {"touching": jdyn.contact.Touching(condim=2)}), ["condim is 2", "1, 3, 4 or 6"]),
        (("a", "sphere", 0.1, {"placement": Transform(2 * np.eye(3), np.zeros(3))}), ["not a rotation"]),
        (("a", "sphere", 0.1, {"placement": (0, 0, np.inf), "name": "tip"}), ["shape 'tip'", "not a rotation"]),
    ],
)
def test_what_cannot_be_a_shape_is_refused_by_name(shape, phrases):
    builder = jdyn.Builder("r")
    builder.add_link("a", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    *shape, options = shape if isinstance(shape[-1], dict) else (*shape, {})
    builder.add_shape(*shape, **options)
    with pytest.raises(ModelError) as error:
        builder.build()
    assert all(phrase in str(error.value) for phrase in ["r: ", *phrases])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"size": "big"}, "link 'a': shape 'tip': size: expected numbers, got 'big'"),
        ({"touching": jdyn.contact.Touching("low")}, "link 'a': shape 'tip': friction: expected numbers, got 'low'"),
        ({"heights": [[0, 1], [2]]}, r"link 'a': shape 'tip': heights: expected numbers, got \[\[0, 1\], \[2\]\]"),
    ],
)
def test_what_is_no_number_is_named(numbers, message):
    with pytest.raises(ValueError, match=message):
        jdyn.Builder("r").add_shape("a", "height field", **{"size": (1, 1), "name": "tip"} | numbers)


def test_shapes_with_both_roles_are_named_once():
    builder = jdyn.Builder("r")
    builder.add_link("a", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    builder.add_shape("a", "sphere", -0.1)
    with pytest.raises(ModelError, match="r: 1 problem"):
        builder.build()


def test_shapes_that_enclose_nothing_are_named():
    builder = jdyn.Builder("r")
    builder.add_link("a", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    for kind, size in {"box": (1, 0, 1), "sphere": 0, "capsule": (0, 1), "mesh": (1, 1, 0)}.items():
        builder.add_shape("a", kind, size, role="collision", path="a.stl" if kind == "mesh" else None)
    builder.add_shape("a", "capsule", (0.1, 0), role="collision")
    builder.add_shape("a", "plane", (0, 0), role="collision")
    builder.add_shape("a", "sphere", 0, role="visual")
    with pytest.warns(ModelWarning) as caught:
        builder.build()
    (warning,) = caught
    assert str(warning.message).startswith("r: 4 warnings")
    for kind in ("box", "sphere", "capsule", "mesh"):
        assert f"the size of a {kind} that may touch is" in str(warning.message)


def test_links_and_shapes_of_pairs_are_known():
    builder = jdyn.Builder("r")
    builder.add_link("a", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    builder.add_shape("a", "sphere", 0.1, role="visual", name="seen")
    builder.exclude("a", "arm")
    builder.include("seen", "world")
    with pytest.raises(ModelError) as error:
        builder.build()
    assert "no link or frame is called 'arm'; there are world, a" in str(error.value)
    assert "no collision shape is called 'seen'" in str(error.value)


# Dynamics leaves them out.


@pytest.mark.slow
def test_controllers_do_not_hold_them():
    for controller in (
        jdyn.PD(SHAPED, Q, kp=1.0, kd=1.0),
        jdyn.GravityCompensation(SHAPED),
        jdyn.LQR(SHAPED, jnp.zeros(SHAPED.nq), Q=1.0, R=1.0),
    ):
        assert controller.model.shapes is None


def called(model):
    torques = jdyn.GravityCompensation(model)(0.0, Q, V), jdyn.ComputedTorque(model, Q, kp=10.0, kd=1.0)(0.0, Q, V)
    return jdyn.mass_matrix(model, Q), jdyn.mass_matrix(model=model, q=Q), model.random(jax.random.key(0)), torques


def simulated(model):
    controller = jdyn.GravityCompensation(model) + jdyn.PD(model, Q, kp=10.0, kd=1.0)
    return jdyn.simulate(model, Q, V, 0.1, controller=controller).q


def reached(model):
    targets = [jdyn.planning.FrameTarget("tool", (0.5, 0, -1.5))]
    return jdyn.inverse_kinematics(model, targets, Q).q, [*jdyn.diagnose(model, samples=2).digits.values()]


@pytest.mark.parametrize(
    "function",
    [
        called,
        pytest.param(simulated, marks=pytest.mark.slow),
        pytest.param(reached, marks=pytest.mark.exhaustive),
    ],
    ids=lambda f: f.__name__,
)
def test_robots_share_programs_whatever_they_look_like(function):
    expected = function(BARE)
    with traced_programs() as names:
        for model in (SHAPED, OTHER):
            jax.tree.map(np.testing.assert_array_equal, function(model), expected)
    assert names == []


class traced_programs:
    """Names of the programs that are traced within."""

    def __enter__(self):
        self.names = []
        jax.monitoring.register_event_duration_secs_listener(self._listen)
        return self.names

    def _listen(self, event, _seconds, **more):
        if event == "/jax/core/compile/jaxpr_trace_duration":
            self.names.append(more.get("fun_name", ""))

    def __exit__(self, *_):
        jax.monitoring.unregister_event_duration_listener(self._listen)


@pytest.mark.slow
def test_lanes_of_models_may_have_shapes():
    masses = jnp.array([1.0, 2.0])
    models = jax.vmap(lambda mass: SHAPED.with_body("lower", mass=mass))(masses)
    axes = jax.tree.map(lambda _: 0, models)
    for in_axes in (0, axes):
        ends = jdyn.simulate_batch(
            models, Q, V, 0.1, in_axes={"model": in_axes}, reduce=lambda trajectory: trajectory.q[-1]
        )
        assert ends.shape == (2, 2) and not np.array_equal(ends[0], ends[1])


def test_a_warmed_up_program_takes_robots_whatever_they_look_like():
    models = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), SHAPED)
    for in_axes in (0, jax.tree.map(lambda _: 0, models)):
        program = jdyn.warm_up(OTHER, 2, lambda model, q: q * model.gravity[2], in_axes={"model": in_axes, "q": None})
        np.testing.assert_allclose(program(models, Q), [-9.81 * Q] * 2, rtol=1e-5)


def test_a_store_of_a_sweep_goes_on_whatever_the_robot_looks_like():
    def digest(model, function=jdyn.bias_forces):
        lane = {"v": np.zeros((1, 2))}
        return Program(lambda lane: {"tau": function(model, Q, lane["v"])}, lane, 1).digest

    def touching(model, q, v):
        return model.shapes.sizes[-1] + v[0]

    assert digest(SHAPED) == digest(OTHER) == digest(BARE)
    smaller = jdyn.vary(SHAPED, {"collision:upper.size": (0.01, 1.0)})
    floor = dataclasses.replace(SHAPED.shapes, sizes=SHAPED.shapes.sizes.at[-1].set(2.0))
    assert digest(smaller) == digest(BARE)
    # But not where the function looks at them.
    assert digest(dataclasses.replace(SHAPED, shapes=floor), touching) != digest(SHAPED, touching)


def test_collision_shapes_have_their_numbers_by_name():
    names = [name for name in jdyn.parameters(SHAPED) if name.startswith("collision:")]
    assert names == [
        f"collision:{shape}.{what}" for shape in ("upper", "tool") for what in ("size", "translation", "friction")
    ]
    changes = {"collision:tool.size": 0.3, "collision:tool.translation": (1, 2, 3), "collision:upper.size": (0.1, 2)}
    changes |= {"collision:tool.friction": (0.5, 0.1, 0.2)}
    varied = jdyn.vary(SHAPED, changes)
    np.testing.assert_array_equal(np.asarray(varied.shapes.sizes)[[1, 3]], [[0.1, 2, 0], [0.3, 0, 0]])
    np.testing.assert_array_equal(varied.shapes.placements.translation[3], [1, 2, 3])
    np.testing.assert_array_equal(varied.shapes.friction[3], [0.5, 0.1, 0.2])
    slippery = jdyn.vary(varied, {"collision:tool.friction": 0.3})
    np.testing.assert_array_equal(slippery.shapes.friction[3], [0.3, 0.1, 0.2])
    # Those that are seen stay.
    np.testing.assert_array_equal(np.asarray(varied.shapes.sizes)[::2], SHAPED.shapes.sizes[::2])
    for name, value in changes.items():
        np.testing.assert_array_equal(np.ravel(jdyn.parameters(varied)[name]), np.ravel(value))
    jax.tree.map(np.testing.assert_array_equal, jdyn.vary(varied, jdyn.parameters(varied)), varied)
    mesh = double_pendulum(kind="mesh", path="a.stl", role="collision")
    assert jdyn.parameters(mesh)["collision:tool.scale"].tolist() == [1, 1, 1]


def test_shapes_of_which_all_only_slide_have_one_coefficient():
    model = double_pendulum(kind="sphere", size=0.1)
    assert jdyn.parameters(model)["collision:tool.friction"] == 1
    jax.tree.map(np.testing.assert_array_equal, jdyn.vary(model, jdyn.parameters(model)), model)
    with pytest.raises(ValueError, match=r"got three coefficients, but .* no shape has a condim of 4 or 6"):
        jdyn.vary(model, {"collision:tool.friction": (0.5, 0.1, 0.2)})
    # Beside one that resists turning, the larger coefficients of both count.
    np.testing.assert_array_equal(jdyn.parameters(SHAPED)["collision:upper.friction"], [1, 0, 0])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("collision:hand.size", 1.0, "no collision shape is called 'hand'; there are upper, tool"),
        ("collision:tool.scale", 1.0, "collision 'tool' has no 'scale'; there are translation, size, friction"),
        ("collision:tool.size", (1.0, 2.0), "expected a scalar or shape (1,), got (2,)"),
        ("collision:upper.size", 1.0, "expected shape (2,), got ()"),
    ],
)
def test_what_no_collision_shape_has_is_refused_by_name(name, value, said):
    with pytest.raises(ValueError) as error:
        jdyn.vary(SHAPED, {name: value})
    assert said in str(error.value)


def test_a_model_keeps_its_shapes_through_changes():
    changed = SHAPED.with_gravity((0, 0, -1)).with_body("upper", mass=2.0).with_joint("upper", damping=1.0)
    changed = pickle.loads(pickle.dumps(jdyn.vary(changed, {"frame:tool.translation": (0, 0, -2)})))
    assert changed.shapes.entries == SHAPED.shapes.entries
    single = changed.astype(jnp.float32).shapes
    assert single.sizes.dtype == single.placements.rotation.dtype == jnp.float32
    jax.tree.map(np.testing.assert_array_equal, changed.shapes, SHAPED.shapes)
    assert changed.without_shapes().shapes is None and changed.without_shapes().without_shapes().shapes is None


# Derivatives.


def lowest(model, shapes: Shapes):
    """Height of the lowest point of the tool's sphere [m]."""
    row = shapes.rows("collision")[-1]
    pose = jax.tree.map(lambda leaf: leaf[shapes.entries[row].body], jdyn.forward_kinematics(model, Q))
    return pose.point_to_parent(shapes.placements.translation[row])[2] - shapes.size(row)[0]


def test_functions_of_sizes_and_placements_have_derivatives():
    by_shapes = jax.grad(lowest, argnums=1)(SHAPED, SHAPED.shapes)
    # The sphere turns with the sum of the angles about y.
    angle = Q[0] + Q[1]
    np.testing.assert_allclose(by_shapes.placements.translation[3], [-np.sin(angle), 0, np.cos(angle)], rtol=1e-14)
    np.testing.assert_array_equal(by_shapes.sizes[3], [-1, 0, 0])
    assert not np.any(by_shapes.sizes[:3]) and not np.any(by_shapes.placements.rotation)
    by_model = jax.grad(lambda model: lowest(model, model.shapes) + jdyn.potential_energy(model, Q))(SHAPED)
    jax.tree.map(np.testing.assert_array_equal, by_model.shapes, by_shapes)
    assert np.all(np.isfinite(jax.flatten_util.ravel_pytree(by_model)[0]))
