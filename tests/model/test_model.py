"""The model: its configuration space, changed copies, coupled joints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def tree():
    """Every kind of joint, two configurations, a velocity."""
    model = jdyn.random_tree(4, 9)
    keys = jax.random.split(jax.random.key(0), 3)
    return model, model.random(keys[0]), model.random(keys[1]), jax.random.normal(keys[2], (model.nv,))


def test_what_is_no_array_is_refused_in_a_line(tree):
    """Such as a controller in the place of a velocity, which holds a model with hundreds of numbers."""
    model, q, _, v = tree
    for wrong in (jdyn.PD(model, q, kp=1.0, kd=1.0), "v"):
        with pytest.raises(
            ValueError, match=r"v: expected an array of numbers, got \w+; are the arguments in the right"
        ) as raised:
            jdyn.forward_dynamics(model, q, wrong, v)
        assert len(str(raised.value)) < 200


def test_difference_leads_from_one_configuration_to_the_other(tree):
    model, q0, q1, _ = tree
    difference, integrate = eqx.filter_jit(model.difference), eqx.filter_jit(model.integrate)
    dv = difference(q0, q1)
    reached = integrate(q0, dv)
    np.testing.assert_allclose(difference(reached, q1), 0, atol=100 * EPS)
    np.testing.assert_allclose(integrate(reached, -dv) ** 2, q0**2, atol=100 * EPS)
    # The same pose, whichever of its two signs the quaternion has.
    poses, expected = map(jax.jit(lambda q: jdyn.forward_kinematics(model, q)), (reached, q1))
    np.testing.assert_allclose(poses.rotation, expected.rotation, atol=100 * EPS)
    np.testing.assert_allclose(poses.translation, expected.translation, atol=100 * EPS)


def test_rate_is_the_derivative_of_integrate(tree):
    model, q, _, v = tree
    _, rate = jax.jvp(lambda s: model.integrate(q, s * v), (0.0,), (1.0,))
    np.testing.assert_allclose(model.rate(q, v), rate, atol=10 * EPS)


def test_normalize_scales_quaternions_alone(tree):
    model, q, _, _ = tree
    np.testing.assert_allclose(model.normalize(q), q, atol=2 * EPS)
    offsets = [model.topology.q_offsets[b] for b, kind in enumerate(model.topology.kinds) if kind is jdyn.Ball]
    (k,) = offsets[:1]
    np.testing.assert_allclose(model.normalize(q.at[k : k + 4].multiply(3.0)), q, atol=4 * EPS)


def test_random_configurations_keep_limits_on_either_side():
    builder = jdyn.Builder("limits", gravity=(0, 0, 0))
    limits = {"both": (0.2, 0.4), "below": (5.0, np.inf), "above": (-np.inf, -7.0), "none": (-np.inf, np.inf)}
    for name, (lower, upper) in limits.items():
        builder.add_link(name, jdyn.Prismatic((1, 0, 0)), mass=1.0, lower=lower, upper=upper)
    model = builder.build()
    q = np.asarray(jax.vmap(model.random)(jax.random.split(jax.random.key(0), 500)))
    assert np.all(np.asarray(model.limits.lower) <= q) and np.all(q <= np.asarray(model.limits.upper))
    # Uniform: 500 draws reach within a fiftieth of each end, or all but once in e¹⁰ seeds.
    spread = q.max(axis=0) - q.min(axis=0)
    np.testing.assert_allclose(spread, [0.2, 2, 2, 2], rtol=0.04)


# Changed copies.


def box(mass=2.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5), **joint):
    builder = jdyn.Builder("box")
    builder.add_link("hand", jdyn.Revolute((0, 1, 0)), mass=mass, com=com, inertia=inertia, joint_name="wrist", **joint)
    return builder.build()


@pytest.mark.parametrize(
    "change",
    [{"mass": 3.0}, {"com": (0.5, -0.1, 0)}, {"inertia": (1.0, 0.9, 0.8)}, {"mass": 3.0, "com": (0, 0, 1)}],
    ids=lambda change: "+".join(change),
)
def test_a_changed_body_is_the_one_the_builder_makes(change):
    given = {name: np.diag(value) if name == "inertia" else value for name, value in change.items()}
    changed, built = box().with_body("hand", **given), box(**change)
    for ours, theirs in zip(jax.tree.leaves(changed), jax.tree.leaves(built), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=4 * EPS)


def test_a_changed_joint_is_the_one_the_builder_makes():
    change = {
        "damping": 0.3,
        "friction": 0.1,
        "armature": 0.2,
        "stiffness": 1.0,
        "rest": 0.4,
        "effort": 5.0,
        "lower": -2,
    }
    changed, built = box().with_joint("wrist", **change), box(**change)
    for ours, theirs in zip(jax.tree.leaves(changed), jax.tree.leaves(built), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    sideways = box().with_joint("wrist", axis=(3.0, 0, 0), placement=(0, 0, 1.0))
    np.testing.assert_array_equal(jdyn.forward_kinematics(sideways, jnp.zeros(1)).translation, [[0, 0, 1]])
    np.testing.assert_allclose(jdyn.jacobian(sideways, jnp.zeros(1), "hand")[:, 0], [1, 0, 0, 0, 0, 0])


def test_changes_are_batched_and_differentiated_together():
    """τ = (I + m c²) a + m g c for a bar about its end, with the mass, the length and gravity swept."""

    def torque(mass, c, g):
        model = box(com=(0, 0, 0)).with_body("hand", mass=mass, com=jnp.stack([c, 0 * c, 0 * c]))
        model = model.with_gravity(jnp.stack([0 * g, 0 * g, -g]))
        return jdyn.inverse_dynamics(model, jnp.zeros(1), jnp.zeros(1), jnp.ones(1))[0]

    mass, c, g = jnp.array([1.0, 2.0]), jnp.array([0.3, 0.1]), jnp.array([9.81, 1.6])
    # Turning about y lowers what lies along x, so gravity helps and is subtracted.
    np.testing.assert_allclose(jax.jit(jax.vmap(torque))(mass, c, g), 0.4 + mass * c**2 - mass * g * c, rtol=1e-14)
    gradients = jax.jit(jax.vmap(jax.grad(torque, argnums=(0, 1, 2))))(mass, c, g)
    for ours, exact in zip(gradients, (c**2 - g * c, 2 * mass * c - mass * g, -mass * c), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.with_body("foot", mass=1.0), "no body is called 'foot'; there are hand"),
        (lambda m: m.with_joint("knee", damping=1.0), "no joint is called 'knee'; there are wrist"),
        (lambda m: m.with_joint("wrist", dumping=1.0), "has no parameter 'dumping'; it has damping"),
        (lambda m: m.with_gravity(-9.81), r"gravity: expected shape \(3,\), got \(\)"),
        (lambda m: m.with_body("hand", com=(1.0, 2.0)), r"com: expected shape \(3,\), got \(2,\)"),
        (lambda m: m.with_body("hand", inertia=(1.0, 2.0, 3.0)), r"inertia: expected shape \(3, 3\), got \(3,\)"),
        (lambda m: m.with_joint("wrist", damping=(1.0, 2.0)), "damping: expected a scalar or shape"),
        (lambda m: m.integrate(jnp.zeros(2), jnp.zeros(1)), r"q: expected shape \(1,\) for 'box', got \(2,\)"),
        (lambda m: jdyn.mass_matrix(m, jnp.zeros((4, 1))), "use jax.vmap for a batch"),
        (
            lambda _: jdyn.kinetic_energy(jdyn.load("quadruped"), jnp.zeros(18), jnp.zeros(19)),
            "q: expected shape .19,. for 'quadruped', got .18,.; nq is 19 and nv is 18: are the arguments in the right",
        ),
        (
            lambda m: jdyn.inverse_dynamics(m, [0.0], [0.0], [0.0], f_ext=jnp.zeros(6)),
            r"f_ext: expected shape \(1, 6\)",
        ),
    ],
)
def test_wrong_names_and_shapes_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        change(box())


# Coupled joints.


def gripper(coupled):
    """Two fingers and a cam on an arm; the cam follows a finger that follows the other one."""
    builder = jdyn.Builder("gripper")
    solid = {"mass": 0.7, "com": (0.1, 0.02, 0.05), "inertia": (0.01, 0.02, 0.03)}
    builder.add_link("arm", jdyn.Revolute((0, 1, 0)), damping=0.1, **solid)
    follows = {"right": jdyn.Mimic("left", -1.0, 0.2), "cam": jdyn.Mimic("right", 3.0, -0.1)} if coupled else {}
    builder.add_link("cam", jdyn.Revolute((1, 0, 0)), parent="arm", mimic=follows.get("cam"), stiffness=2.0, **solid)
    builder.add_link("left", jdyn.Prismatic((0, 1, 0)), parent="arm", armature=0.3, **solid)
    builder.add_link("right", jdyn.Prismatic((0, 1, 0)), parent="arm", mimic=follows.get("right"), damping=0.4, **solid)
    return builder.build()


@pytest.mark.slow
def test_mimic_joints_are_an_exact_reduction():
    coupled, free = gripper(True), gripper(False)
    assert coupled.nv == 2 and free.nv == 4
    # Columns: arm, left. Followers: right = -left + 0.2, cam = 3 right - 0.1 = -3 left + 0.5.
    G, g0 = np.array([[1.0, 0], [0, -3], [0, 1], [0, -1]]), np.array([0, 0.5, 0, 0.2])
    q, v, a = jnp.array([0.3, 0.05]), jnp.array([1.0, -0.7]), jnp.array([0.4, 2.0])
    np.testing.assert_allclose(coupled.expand(q), G @ q + g0, atol=4 * EPS)
    full = (jnp.asarray(G @ q + g0), jnp.asarray(G @ v), jnp.asarray(G @ a))
    dynamics = jax.jit(lambda model, q, v, a: (jdyn.inverse_dynamics(model, q, v, a), jdyn.mass_matrix(model, q)))
    tau, M = dynamics(coupled, q, v, a)
    full_tau, full_M = dynamics(free, *full)
    np.testing.assert_allclose(tau, G.T @ full_tau, rtol=1e-13)
    np.testing.assert_allclose(M, G.T @ full_M @ G, rtol=1e-13)
    for method in (jdyn.ABA(), jdyn.CRBA()):
        found = jax.jit(lambda method=method: jdyn.forward_dynamics(coupled, q, v, tau, method=method))()
        np.testing.assert_allclose(found, a, rtol=1e-12)


def test_two_loads_have_equal_topologies():
    first, second = (jdyn.load("panda") for _ in range(2))
    assert first.topology == second.topology and hash(first.topology) == hash(second.topology)
    assert jax.tree.structure(first) == jax.tree.structure(second)
