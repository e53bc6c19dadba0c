"""Forces of compliant contact against quadrature, closed forms and differences."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import jdyn
from jdyn.contact import colliders
from jdyn.contact.materials import pair_materials
from tests.contact.scenes import ball, bouncing

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def contact(law=None, **numbers):
    """Between a surface of these numbers and a rigid ground, without friction if nothing is said."""
    numbers = {"friction": 0.0, **numbers}
    ground = jdyn.contact.Material(stiffness=jnp.inf, dissipation=0.0, friction=0.0)
    law = jdyn.contact.HuntCrossley() if law is None else law
    return jdyn.CompliantContact(law, jdyn.contact.Material(**numbers), materials={"ground": ground})


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_a_ball_leaves_with_the_speed_that_quadrature_finds(exponent):
    """With h the speed over 1/c, m h dh/dd = −k dᵉ c² (1 + h) without gravity: h − log(1 + h) is the same before and
    after, whatever the spring."""
    # It starts where it touches: the error of a step across the kink of the force there would be as rounding has it.
    model, k, c, u = bouncing().with_gravity((0, 0, 0)), 1e5, 0.3, 1.2
    law = contact(jdyn.contact.HuntCrossley(exponent), stiffness=k, dissipation=c)
    rows = diffrax.SaveAt(t1=True)
    motion = jdyn.simulate(
        model, [0.1], [-u], 0.05, contact=law, stepsize_controller=TIGHT, solver=diffrax.Dopri8(), saveat=rows
    )

    def missed(speed):
        return (c * u - np.log1p(c * u)) - (-c * speed - np.log1p(-c * speed))

    expected = scipy.optimize.brentq(missed, 1e-3, u, xtol=1e-15)
    np.testing.assert_allclose(motion.v[0, 0], expected, rtol=1e-8)


LAWS = [
    jdyn.contact.HuntCrossley(),
    jdyn.contact.HuntCrossley(1.5),
    jdyn.contact.SpringDamper(),
    jdyn.contact.TwoStiffnesses(),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{type(law).__name__} {law.exponent}")
def test_laws_push_and_never_pull_and_know_their_springs(law):
    depth, rate = (x.ravel() for x in jnp.meshgrid(jnp.linspace(0, 1e-2, 9), jnp.linspace(-3, 3, 9)))
    force = law.force(depth, rate, jnp.full(81, 1e4), jnp.full(81, 0.4))
    assert np.all(force >= 0) and np.any(force > 0) and np.all(force[depth == 0] == 0)
    elastic = law.force(depth, rate, jnp.full(81, 1e4), jnp.zeros(81))
    np.testing.assert_allclose(elastic, 1e4 * depth**law.exponent, rtol=1e-14)
    loading, unloading = (
        law.force(depth, speed * jnp.ones(81), jnp.full(81, 1e4), jnp.full(81, 0.4)) for speed in (3, -3)
    )
    assert np.all(loading[depth > 0] > unloading[depth > 0])
    slope = jax.vmap(jax.grad(law.force))(jnp.zeros(2), jnp.array([0.0, 1.0]), jnp.ones(2), jnp.ones(2))
    assert np.all(np.isfinite(slope))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{type(law).__name__} {law.exponent}")
def test_a_surface_that_states_no_dissipation_has_one_that_suits_the_law(law):
    """A body bounces, with some 0.6 of its speed: no number of one law would do for all."""
    model = bouncing().with_gravity((0, 0, 0))
    motion = jdyn.simulate(model, [0.1], [-0.2], 0.1, contact=jdyn.CompliantContact(law))
    assert motion.q[-1, 0] > 0.1 and 0.5 < motion.v[-1, 0] / 0.2 < 0.75


def test_two_stiffnesses_leave_the_share_of_energy_that_they_say():
    law, c = jdyn.contact.TwoStiffnesses(speed=1e-6), 0.36
    depth = jnp.linspace(0, 1e-2, 1001)
    fast, k = jnp.full(1001, 0.1), jnp.full(1001, 1e4)
    taken, given = (jnp.trapezoid(law.force(depth, way * fast, k, c), depth) for way in (1, -1))
    np.testing.assert_allclose(given / taken, 1 - c, rtol=1e-12)


def test_springs_in_series_share_depth_and_dissipation():
    """A force f presses each surface in by (f/k)^(1/e); what is lost is lost in these shares."""
    shapes = colliders(ball())
    for exponent in (1.0, 1.5):
        soft = jdyn.contact.Material(1e4, 3.0, (0.2, 0.01, 0.02))
        hard = jdyn.contact.Material(7e5, 1.0, (0.5, 0.0, 0.03))
        made = pair_materials(shapes, soft, {"ground": hard}, jdyn.contact.HuntCrossley(exponent))
        depths = [(50.0 / k) ** (1 / exponent) for k in (1e4, 7e5)]
        np.testing.assert_allclose(made.stiffness * sum(depths) ** exponent, 50.0, rtol=1e-14)
        np.testing.assert_allclose(made.dissipation, np.average([3.0, 1.0], weights=depths), rtol=1e-14)
        np.testing.assert_allclose(made.friction, [[0.5, 0.01, 0.03]])
    rigid = jdyn.contact.Material(jnp.inf)
    np.testing.assert_allclose(
        pair_materials(shapes, soft, {"world": rigid}, jdyn.contact.HuntCrossley()).stiffness, 1e4
    )


def test_friction_of_shapes_holds_where_materials_have_none():
    model = ball()
    made = pair_materials(colliders(model), jdyn.contact.Material(), {}, jdyn.contact.HuntCrossley())
    np.testing.assert_allclose(made.friction, colliders(model).pair_friction())
    slippery = pair_materials(colliders(model), jdyn.contact.Material(friction=0.0), {}, jdyn.contact.HuntCrossley())
    assert np.all(slippery.friction == 0)


Q = np.array([0.3, -0.2, 0.0995, 0.5, -0.5, 0.1, 0.7])
V = np.array([0.4, -0.3, 0.8, 0.1, 0.05, -0.02])


@pytest.fixture(scope="module")
def sliding():
    """Forces on a pressed ball that slides, rolls and spins, their derivatives, and the pose of the ball."""
    material = jdyn.contact.Material(2e5, 5.0, (0.6, 0.02, 0.01))
    model, law = ball(), jdyn.CompliantContact(material=material, slip_speed=0.05, spin_speed=0.5)

    @jax.jit
    def found(q, v):
        forces = law.between(colliders(model))

        def moved(e, v):
            return forces.force(model, model.integrate(q, jnp.concatenate([jnp.zeros(3), e])), v)

        by_q, by_v = jax.jacfwd(moved, (0, 1))(jnp.zeros(3), v)
        at_rest = [
            jax.jacrev(lambda q, v: forces.force(model, q, v), (0, 1))(q.at[2].set(height), jnp.zeros(6))
            for height in (0.0995, 0.1, 0.2)
        ]
        points, _ = forces.points(model, q, v)
        rotation = jdyn.forward_kinematics(model, q).rotation[0]
        return forces.force(model, q, v), points, forces.slopes(model, q, v), (by_q, by_v), at_rest, rotation

    return found(Q, V)


@pytest.mark.slow
def test_forces_on_a_pressed_ball_in_closed_form(sliding):
    tau, points, *_, R = jax.tree.map(np.asarray, sliding)
    omega, center = R @ V[:3], R @ V[3:]
    position = np.array([0.3, -0.2, -0.00025])
    arm = position - Q[:3]
    slip = center + np.cross(omega, arm)
    pressing = 1e5 * 5e-4 * (1 - 5.0 * slip[2])
    across, along = np.array([1, 1, 0]), np.array([0, 0, 1])

    def bounded(x, speed):
        return x / np.hypot(np.linalg.norm(x), speed)

    force = pressing * (along - 0.6 * bounded(slip * across, 0.05))
    torque = -pressing * (0.02 * bounded(omega * along, 0.5) + 0.01 * bounded(omega * across, 0.5))
    np.testing.assert_allclose(points.position[0], position, atol=1e-15)
    np.testing.assert_allclose(points.force[0], force, rtol=1e-11)
    np.testing.assert_allclose(points.torque[0], torque, rtol=1e-11)
    moment = np.cross(arm, force) + torque
    np.testing.assert_allclose(tau, [*(R.T @ moment), *(R.T @ force)], rtol=1e-11)


def test_slopes_are_derivatives_of_the_forces(sliding):
    """Exact by velocity; by configuration but for the turn of the ball, which moves axes and no points."""
    _, _, (K, D), (by_q, by_v), *_ = sliding
    np.testing.assert_allclose(D, -by_v, rtol=1e-10, atol=1e-10 * np.abs(by_v).max())
    assert np.abs(K[:, 3:] + by_q).max() < 1e-3 * np.abs(by_q).max()


@pytest.mark.slow
def test_what_resists_no_turning_has_the_forces_of_zero_coefficients():
    """And their slopes, and their derivatives within a step that begins beside the ground and ends in it."""
    model, turned = ball(), jnp.array(Q)
    end, change = turned.at[2].set(0.0996), (jnp.array(np.linspace(-1, 1, 7)), jnp.array(np.linspace(2, -1, 6)))

    @jax.jit
    def found(friction):
        material = jdyn.contact.Material(2e5, 5.0, friction)
        forces = jdyn.CompliantContact(material=material, slip_speed=0.05).between(colliders(model))
        h = jnp.array(1e-4)
        begin = turned.at[2].set(0.10001)
        repaired = forces.gradient_policy.repaired(forces, model, (jnp.zeros(()), h), h, (begin, V), (end, V))
        middle = repaired.at_time(h / 2)
        moved = jax.jvp(lambda q, v: middle.force(model, q, v), (end, jnp.array(V)), change)
        points, _ = forces.points(model, turned, V)
        return moved, forces.slopes(model, turned, V), points.torque

    free, zero = found(0.6), found((0.6, 0.0, 0.0))
    assert np.all(free[0][0] != 0) and np.all(free[0][1] != 0)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max()), free, zero)


def test_forces_have_finite_derivatives_where_nothing_moves_or_nothing_touches(sliding):
    *_, at_rest, _ = sliding
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(at_rest))
    assert np.any(at_rest[0][0] != 0) and np.all(at_rest[2][0] == 0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{type(law).__name__} {law.exponent}")
def test_located_contact_lasts_to_a_distance_of_exactly_zero(law):
    """With the slope that it has next to zero; the radius is a number that rounding leaves alone."""
    model, radius = bouncing(radius=0.125), 0.125
    start = jnp.array([0.1249]), jnp.zeros(1)
    forces = jdyn.CompliantContact(law, located=True).between(colliders(model)).begun(model, *start)

    @jax.jit
    def found(z):
        return jax.jvp(lambda q: forces.force(model, q, jnp.array([-0.01]))[0], (z[None],), (jnp.ones(1),))

    at, beside = found(jnp.array(radius)), found(jnp.array(radius + 1e-12))
    np.testing.assert_allclose(at, beside, rtol=1e-6, atol=1e-6)
    assert law.exponent != 1 or at[1] < -1e4


def alone():
    builder = jdyn.Builder("alone")
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    return builder.build()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: jdyn.contact.Material(stiffness=0.0), "stiffness: expected numbers that are positive, got 0.0"),
        (lambda: jdyn.contact.Material(dissipation=-1.0), "dissipation: expected numbers that are not negative"),
        (lambda: jdyn.contact.Material(friction=(0.5, -0.1, 0.0)), "friction: expected numbers that are not negative"),
        (
            lambda: jdyn.contact.Material(friction=np.inf),
            "friction: expected numbers that are not negative and finite, got inf",
        ),
        (lambda: jdyn.contact.Material(dissipation=np.nan), "dissipation: expected numbers that .* got nan"),
        (lambda: jdyn.contact.Material(stiffness="hard"), "stiffness: expected numbers that are positive, got 'hard'"),
        (lambda: jdyn.CompliantContact(slip_speed=0.0), "slip_speed: expected a positive number, got 0.0"),
        *(
            (lambda kind=kind, options=options: kind(**options), message)
            for kind in (jdyn.CompliantContact, jdyn.ConvexContact)
            for options, message in (
                ({"slip_speed": jnp.array(-1.0)}, "slip_speed: expected a positive number, got -1.0"),
                ({"slip_speed": "low"}, "slip_speed: expected a positive number, got 'low'"),
                ({"nearest": 0}, "nearest: expected a whole number of pairs from 1, or None for all, got 0"),
                ({"nearest": 1.5}, "nearest: expected a whole number of pairs"),
                ({"material": 0.5}, "material: expected a jdyn.contact.Material, got 0.5"),
                ({"materials": {"body": 0.5}}, r"materials\['body'\]: expected a jdyn.contact.Material, got 0.5"),
                (
                    {"materials": [jdyn.contact.Material()]},
                    "materials: expected {name of a shape or a link: jdyn.contact.Material",
                ),
            )
        ),
        (
            lambda: jdyn.CompliantContact(jdyn.contact.TwoStiffnesses(), jdyn.contact.Material(dissipation=5.0)),
            "dissipation: expected numbers up to 1, as TwoStiffnesses has them, got 5.0",
        ),
        (
            lambda: jdyn.CompliantContact(jdyn.contact.TwoStiffnesses),
            "law: expected one such as jdyn.contact.HuntCrossley()",
        ),
        (lambda: jdyn.contact.HuntCrossley(2.0), "exponent: expected 1 or 1.5, got 2.0"),
        (
            lambda: jdyn.CompliantContact(materials={"foot": jdyn.contact.Material()}).between(colliders(ball())),
            "no shape and no link with one is called 'foot'; there are body, ground, world",
        ),
        (lambda: jdyn.simulate(ball(), ball().neutral(), jnp.zeros(6), 1.0, contact="hard"), "contact: expected"),
        *(
            (
                lambda kind=kind: jdyn.simulate(
                    ball(), ball().neutral(), jnp.zeros(6), 1.0, contact=kind(material=jdyn.contact.Material(jnp.inf))
                ),
                "stiffness: 'ground' and 'body' may touch and are both rigid",
            )
            for kind in (jdyn.CompliantContact, jdyn.ConvexContact)
        ),
        (
            lambda: jdyn.simulate(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), 1.0, contact=contact()),
            "has no collision shapes",
        ),
        (
            lambda: jdyn.simulate(alone(), alone().neutral(), jnp.zeros(6), 1.0, contact=contact()),
            "no two collision shapes of 'alone' may touch",
        ),
    ],
)
def test_errors_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("height", "speed", "acceleration", "until"),
    [
        (0.3, 0.0, -9.81, np.sqrt(0.4 / 9.81)),
        (0.3, 2.0, 0.0, None),
        (0.3, 1.0, -9.81, (1 + np.sqrt(1 + 0.4 * 9.81)) / 9.81),
        (0.3, -1.0, 9.81, None),
        (0.3, -2.0, 4.0, 0.2 / (1 + np.sqrt(0.6))),
        # Too slow to matter.
        (0.1 + 1e-9, -9e-4, 0.0, None),
    ],
)
def test_steps_end_before_a_touch_that_throws_foretell(height, speed, acceleration, until):
    """d + ḋ t + d̈ t²/2 = 0, where d = `height` − 0.1, in its first root."""
    model = bouncing()
    q, v, a = jnp.array([height]), jnp.array([speed]), jnp.array([acceleration])
    longest = contact().between(colliders(model)).step_policy(model, q).longest(model, v, a)
    np.testing.assert_allclose(longest, np.inf if until is None else 0.95 * until, rtol=1e-12)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_a_step_through_a_touch_is_as_long_as_its_spring_takes_for_a_hundredth_of_a_momentum(exponent):
    """∫ k (u t)ᵉ dt = m u / 100. From within this time before the touch, a step ends at it, unless it is very near."""
    model, k, u, still = bouncing(mass=0.5), 1e5, 0.3, jnp.zeros(1)
    forces = contact(jdyn.contact.HuntCrossley(exponent), stiffness=k).between(colliders(model))
    power = exponent + 1
    through = scipy.optimize.brentq(lambda t: k * u**exponent * t**power / power - u / 200, 0, 1, xtol=1e-16)

    def longest(passed):
        q = jnp.array([0.1 - u * passed])
        return forces.step_policy(model, q).longest(model, jnp.array([-u]), still)

    for passed, expected in [(-2, 1.9), (-1.03, 1), (-0.5, 0.5), (-0.05, 1), (0.5, 1), (1.5, np.inf)]:
        np.testing.assert_allclose(longest(passed * through), expected * through, rtol=1e-9)


def test_steps_do_not_fail_more_often_than_they_bounce():
    """A ball that bounces for a second, forwards and backwards in time. Steps that find out by failing that the ground
    is there fail 22 and 27 times."""
    model, law = bouncing(), contact(stiffness=1e5, dissipation=0.0)
    steps = diffrax.PIDController(rtol=1e-4, atol=1e-6)
    options = {"contact": law, "stepsize_controller": steps, "saveat": diffrax.SaveAt(t1=True)}
    there = jdyn.simulate(model, [0.6], [0.0], 1.0, **options)
    back = jdyn.simulate(model, there.q[-1], there.v[-1], 0.0, t0=1.0, **options)
    np.testing.assert_allclose(back.q[-1], 0.6, atol=2e-2)
    for motion in (there, back):
        assert motion.stats["rejected_steps"] < 8


@pytest.mark.slow
def test_what_is_fast_does_not_pass_through_what_is_thin():
    """A bullet and a plate of 1 mm, free of gravity: steps that are as long as errors allow take it through in one."""
    builder = jdyn.Builder("bullet")
    builder.add_link("bullet", jdyn.Free(), mass=0.1, inertia=4e-5 * jnp.ones(3))
    builder.add_shape("bullet", "sphere", 0.01, role="collision")
    builder.add_shape("world", "box", (1.0, 1.0, 1e-3), role="collision", name="plate")
    model = builder.build().with_gravity((0, 0, 0))

    @jax.jit
    def end(speed, spin):
        v0 = jnp.zeros(6).at[0].set(spin).at[5].set(-speed)
        options = {"contact": jdyn.CompliantContact(), "saveat": diffrax.SaveAt(t1=True)}
        return jdyn.simulate(model, model.neutral().at[2].set(1.0), v0, 3 / speed, **options).q[-1, 2]

    for speed in (1.0, 10.0, 50.0):
        for spin in (0.0, 30.0):
            assert end(speed, spin) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("force_dtmin", [True, False])
def test_no_step_is_shorter_than_the_least_that_a_controller_takes(force_dtmin):
    model, least = bouncing(), 5e-4
    steps = diffrax.PIDController(rtol=1e-3, atol=1e-5, dtmin=least, force_dtmin=force_dtmin)
    options = {"contact": contact(dissipation=0.3), "stepsize_controller": steps, "saveat": diffrax.SaveAt(steps=True)}
    motion = jdyn.simulate(model, [0.6], [0.0], 1.0, max_steps=400, **options)
    lengths = np.diff(motion.ts[np.isfinite(motion.ts)])
    # The last one ends with the motion.
    assert motion.success and lengths[:-1].min() > 0.999 * least


@pytest.mark.slow
def test_steps_that_single_precision_does_not_tell_from_none_are_not_asked_for():
    """The configuration is a hundred metres from where shapes are, and known to 8 um."""
    builder = jdyn.Builder("far")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1e-3, inertia=4e-6 * np.ones(3), placement=(0, 0, -100.0))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    model = builder.build().astype(jnp.float32)
    forces = contact(stiffness=1e5).between(colliders(model))
    for height, asked in [(0.5, True), (0.1 + 2**-17, False)]:
        q, v = jnp.float32([100 + height]), jnp.float32([-0.1])
        longest = forces.step_policy(model, q).longest(model, v, jnp.zeros_like(v))
        assert longest.dtype == jnp.float32 and bool(longest < 10) == asked
