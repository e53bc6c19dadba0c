"""Convex contact against closed forms of rigid bodies, and against the same law as a force of the state."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.spatial import quaternion_to_matrix
from tests.contact.scenes import ball, bouncing, box, stack, tilted

pytestmark = pytest.mark.fast_compile

G, MU = 9.81, 0.5


def contact(stiffness=1e5, dissipation=20.0, friction=MU, slip_speed=1e-6):
    """Of these numbers at each point: both surfaces are alike."""
    return jdyn.ConvexContact(jdyn.contact.Material(2 * stiffness, dissipation, friction), slip_speed=slip_speed)


def run(model, q, v, t1, law, tolerance=1e-6, **options):
    """Tolerances are traced, so that all of them share a program."""
    control = diffrax.PIDController(rtol=jnp.asarray(tolerance), atol=jnp.asarray(tolerance))
    options = {"saveat": jnp.linspace(0, t1, 11), "stepsize_controller": control, **options}
    return jdyn.simulate(model, q, v, t1, contact=law, **options)


def resting(model, height, law, angle=0.0, points=4, mass=1.0):
    """With all its points as deep as they bear its weight."""
    depth = mass * G * np.cos(angle) / (points * law.material.stiffness / 2)
    return model.neutral().at[2].set(height - depth)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.2, 0.49, 0.51, 0.8])
def test_a_block_sticks_up_to_the_angle_of_friction_and_slides_beyond(slope):
    angle = np.arctan(slope)
    model, law = tilted(box(sides=(0.4, 0.3, 0.1)), angle), contact(stiffness=1e7)
    moving = 0.0 if slope < MU else 0.1
    q = resting(model, 0.05, law, angle)
    motion = run(model, q, jnp.zeros(6).at[3].set(moving), 1.0, law)
    expected = moving + G * (np.sin(angle) - MU * np.cos(angle)) if moving else 0.0
    np.testing.assert_allclose(motion.v[-1, 3], expected, atol=1e-6)
    if not moving:
        # What sticks creeps in proportion to its share of friction, once the block has settled.
        np.testing.assert_allclose(motion.v[-1, 3], 1e-6 * slope / MU, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_a_ball_on_a_slope_rolls_up_to_seven_halves_of_friction_and_slips_beyond(share):
    angle = np.arctan(3.5 * MU * share)
    model, law = tilted(ball(), angle), contact(stiffness=1e8)
    motion = run(model, resting(model, 0.1, law, angle, points=1), jnp.zeros(6), 0.3, law)
    speed = model.rate(motion.q[-1], motion.v[-1])[0]
    spin = motion.v[-1, 1] * 0.1
    if share < 1:
        np.testing.assert_allclose(speed, 0.3 * 5 / 7 * G * np.sin(angle), rtol=2e-6)
        np.testing.assert_allclose(spin, speed, rtol=2e-6)
    else:
        np.testing.assert_allclose(speed, 0.3 * G * (np.sin(angle) - MU * np.cos(angle)), rtol=2e-6)
        np.testing.assert_allclose(spin, 0.3 * 2.5 * MU * G * np.cos(angle), rtol=2e-6)


@pytest.mark.slow
def test_a_sliding_ball_ends_rolling_with_five_sevenths_of_its_speed():
    model, law = ball(), contact(stiffness=1e8)
    # Friction has done its work after 2/7 of v/(μ g).
    motion = run(model, resting(model, 0.1, law, points=1), jnp.zeros(6).at[3].set(1.0), 0.1, law)
    np.testing.assert_allclose(model.rate(motion.q[-1], motion.v[-1])[0], 5 / 7, rtol=2e-6)


def test_a_resting_box_bears_its_weight():
    model, law = box(sides=(0.4, 0.3, 0.1)), contact()
    motion = run(model, resting(model, 0.05, law).at[2].add(1e-3), jnp.zeros(6), 1.0, law)
    force = jax.jit(lambda motion: motion.contacts.force("body")[-1])(motion)
    np.testing.assert_allclose(force, [0, 0, G], atol=1e-9 * G)


def test_the_depth_at_the_start_is_that_of_the_deepest_point():
    model = box(sides=(0.4, 0.3, 0.1))
    motion = run(model, model.neutral().at[2].set(0.05 - 2e-3), jnp.zeros(6), 0.01, contact())
    np.testing.assert_allclose(motion.stats["start_depth"], 2e-3, rtol=1e-12)


@pytest.mark.slow
def test_failures_at_the_start_say_where_to_look():
    with pytest.raises(jdyn.SimulationError, match=r"Do shapes overlap at the start \(jdyn\.contact\.distances\)\?"):
        run(bouncing(), jnp.array([0.095]), jnp.zeros(1), 1.0, contact(), max_steps=1)


@jax.jit
def _energies(model, law, motion):
    """Kinetic, potential and elastic, at all rows."""
    springs = jnp.sum(law.material.stiffness / 2 * motion.contacts.points.depth**2, axis=1) / 2
    return motion.energy + springs


def test_energy_does_not_grow_where_a_box_comes_to_rest():
    model, law = box(sides=(0.4, 0.3, 0.1)), contact()
    rests = resting(model, 0.05, law)
    settling, still = (run(model, q, jnp.zeros(6), 1.0, law) for q in (rests.at[2].add(1e-3), rests))
    energies = _energies(model, law, settling)
    # It falls by 1 mm. Near rest energy is quadratic in the speed, which errs by 10⁻⁶ m/s at most.
    assert energies[-1] < energies[0] - 0.009
    assert jnp.max(jnp.diff(energies)) < 1e-12
    assert jnp.max(jnp.abs(jnp.diff(_energies(model, law, still)))) < 1e-14


@pytest.mark.slow
def test_energy_never_grows():
    """Also not that of springs: a box tumbles to rest."""
    model, law = box(), contact(dissipation=5.0)
    start = jnp.array([0.0, 0.0, 0.5, 0.9, 0.3, 0.3, 0.1])
    motion = run(model, start, jnp.array([3.0, -2.0, 1.0, 1.0, 0.0, 0.0]), 1.0, law, saveat=diffrax.SaveAt(steps=True))
    rows = jnp.isfinite(motion.ts)
    energies = _energies(model, law, motion)[rows]
    assert energies[0] > 5
    # Steps err by their tolerance times the forces and momenta that it moves.
    assert jnp.max(jnp.diff(energies)) < 1e-4
    assert energies[-1] < energies[0] - 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jdyn.contact.ContactWarning")
def test_errors_follow_tolerances_to_the_same_law_as_a_force_of_the_state():
    """A box begins deep on an edge, slides, and settles. Another solver integrates the force, with steps of its own."""
    model, law = box(sides=(0.4, 0.3, 0.1)), contact(stiffness=1e4, dissipation=2.0, slip_speed=1e-2)
    q = jnp.array([0.0, 0.0, 0.08, np.cos(0.1), 0.6 * np.sin(0.1), 0.8 * np.sin(0.1), 0.0])
    v = jnp.array([0.5, -0.3, 0.2, 1.0, 0.3, 0.0])
    options = {"saveat": diffrax.SaveAt(t1=True), "max_steps": 65536}
    exact = run(model, q, v, 0.3, law, 1e-10, solver=jdyn.solvers.CashKarp(), **options)
    tolerances = 10.0 ** -np.arange(3, 8)
    ends = [run(model, q, v, 0.3, law, tolerance, **options) for tolerance in tolerances]
    errors = np.array([jnp.max(jnp.abs(end.q - exact.q)) for end in ends])
    line = np.polyfit(np.log(tolerances), np.log(errors), 1)
    # Kinks of the motion take a little from the slope of 1.
    assert 0.5 < line[0] < 1.1
    assert np.all(np.abs(np.log(errors) - np.polyval(line, np.log(tolerances))) < np.log(3))
    assert np.all(errors < 5 * tolerances)


def test_flight_before_contact_is_as_exact_as_its_tolerance():
    """A body without forces but gravity, turning about a principal axis."""
    model, law = box(), contact()
    v = jnp.array([0.0, 0.0, 4.0, 1.0, 2.0, 3.0])
    motion = run(model, model.neutral().at[2].set(5.0), v, 0.5, law, 1e-9)
    fallen = jnp.array([0.0, 0.0, 5.0]) + 0.5 * v[3:] - jnp.array([0, 0, G / 8])
    np.testing.assert_allclose(motion.q[-1, :3], fallen, atol=1e-8)
    np.testing.assert_allclose(motion.q[-1, 3:], [np.cos(1), 0, 0, np.sin(1)], atol=1e-8)


@pytest.mark.slow
def test_a_bounce_keeps_what_dissipation_leaves():
    """As with the force of the state: (1 − ⅔ c u) u to first order."""
    model, law = bouncing().with_gravity((0, 0, 0)), contact(dissipation=0.1, friction=0.0)
    motion = run(model, jnp.array([0.101]), jnp.array([-1.0]), 0.02, law, 1e-8)
    np.testing.assert_allclose(motion.v[-1], 1 - 2 / 3 * 0.1, atol=0.1**2)


def _end(x, adjoint=None, dtype=jnp.float64):
    """Of a box that lands on an edge and slides: where it is, by its start, its material and gravity."""
    model = box(sides=(0.4, 0.3, 0.1)).astype(dtype)
    height, speed, friction, stiffness, dissipation, gravity = x
    law = contact(1e4 * stiffness, dissipation, friction, slip_speed=1e-3)
    q = jnp.array([0, 0, 0, np.cos(0.1), 0.6 * np.sin(0.1), 0.8 * np.sin(0.1), 0], dtype).at[2].set(height)
    v = jnp.zeros(6, dtype).at[3].set(speed)
    model = model.with_gravity(jnp.array([0, 0, -1], dtype) * gravity)
    steps = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 2e-3, "solver": jdyn.solvers.ConvexEuler(rows=2)}
    saved = diffrax.SaveAt(t1=True)
    return jdyn.simulate(model, q, v, 0.06, contact=law, saveat=saved, adjoint=adjoint, **steps).q[0]


START = jnp.array([0.085, 1.0, 0.4, 1.0, 5.0, 9.81])


@pytest.mark.exhaustive
def test_derivatives_of_simulations_are_those_of_differences_in_both_modes():
    program = jax.jit(_end)
    steps = 1e-6 * jnp.eye(len(START))
    differences = jnp.stack([(program(START + e) - program(START - e)) / 2e-6 for e in steps], axis=1)
    backwards = jax.jit(jax.grad(lambda x: _end(x)[0]))(START)
    assert jnp.max(jnp.abs(differences[0])) > 0.01
    # Newton steps leave 10⁻¹² or so, and differences amplify that by 10⁶.
    np.testing.assert_allclose(backwards, differences[0], atol=1e-5)
    way = jnp.arange(1.0, len(START) + 1)
    _, forwards = jax.jvp(jax.jit(lambda x: _end(x, diffrax.ForwardMode())), (START,), (way,))
    np.testing.assert_allclose(forwards, differences @ way, atol=2e-4)
    np.testing.assert_allclose(forwards[0], backwards @ way, rtol=1e-9)


@pytest.mark.slow
def test_a_batch_is_its_lanes_and_those_that_fail_spoil_no_other():
    model, law = box(sides=(0.4, 0.3, 0.1)), contact()
    # One starts nowhere, and the last one would go backwards in time.
    # Tilted, since rounding decides which of four corners that land at once stick first.
    q = jnp.tile(model.neutral().at[3:].set(jnp.array([0.9993, 0.03, 0.02, 0.01])), (6, 1))
    q = q.at[:, 2].set(jnp.array([0.07, 0.08, 0.3, jnp.nan, 0.06, 0.07]))
    v, t1 = jnp.zeros((6, 6)).at[:, 3].set(1.0), jnp.full(6, 0.5).at[5].set(-0.5)
    options = {"contact": law, "throw": False, "saveat": diffrax.SaveAt(t1=True)}

    @jax.jit
    def batch(q, t1):
        control = diffrax.PIDController(rtol=1e-4, atol=1e-4)
        axes = {"q0": 0, "v0": 0, "t1": 0}
        return jdyn.simulate_batch(model, q, v, t1, in_axes=axes, stepsize_controller=control, **options)

    lanes, good = batch(q, t1), np.array([0, 1, 2, 4])
    bad = [jdyn.Result.bad_configuration, jdyn.Result.step_too_small]
    assert [int(result) for result in lanes.result] == [0, 0, 0, int(bad[0]), 0, int(bad[1])]
    beside_good_ones = batch(q.at[3].set(q[0]), t1.at[5].set(0.5))
    np.testing.assert_array_equal(lanes.q[good], beside_good_ones.q[good])
    # Factorizations of a batch round differently, which steps of the same length do not amplify.
    options |= {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.01}
    together = jax.jit(jax.vmap(lambda q: jdyn.simulate(model, q, v[0], 0.5, **options).q))(q[good])
    alone = jax.jit(lambda q: jdyn.simulate(model, q, v[0], 0.5, **options).q)
    np.testing.assert_allclose(together, [alone(q[lane]) for lane in good], atol=1e-9)


@pytest.mark.slow
def test_single_precision_follows_double_precision():
    model, law = box(sides=(0.4, 0.3, 0.1)), contact()
    q, v = resting(model, 0.05, law).at[2].add(0.01), jnp.zeros(6).at[3].set(1.0)
    # At 1e-4, where the box comes to rest differs by 6 mm from one choice of steps to the next, at 1e-5 by 0.3 mm.
    options = {"contact": law, "stepsize_controller": diffrax.PIDController(rtol=1e-5, atol=1e-5)}
    double = jdyn.simulate(model, q, v, 0.5, **options)
    single = jdyn.simulate(model.astype(jnp.float32), q.astype(jnp.float32), v.astype(jnp.float32), 0.5, **options)
    assert single.q.dtype == jnp.float32
    np.testing.assert_allclose(single.q[-1], double.q[-1], atol=2e-3)
    # It has come to rest, and creeps no faster than rounding makes it.
    assert jnp.max(jnp.abs(single.v[-1])) < 1e-4


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("contact", "control", "beside"),
    [
        (jdyn.ConvexContact(), diffrax.PIDController(rtol=1e-4, atol=1e-4, safety=0.8, factormax=2.0), 0.01),
        (jdyn.ConvexContact(), diffrax.PIDController(rtol=1e-4, atol=1e-4, safety=0.8, factormax=2.0), 2.0),
        (jdyn.CompliantContact(), diffrax.PIDController(rtol=1e-4, atol=1e-5), 2.0),
    ],
    ids=["convex on it", "convex beside it", "compliant beside it"],
)
def test_rods_that_roll_on_each_other_take_no_more_steps_in_single_precision(contact, control, beside):
    """Two that lie fall on the ground, one on the other or beside it, a minute after the start."""
    builder = jdyn.Builder("rods")
    for name in ("lower", "upper"):
        builder.add_link(name, jdyn.Free(), mass=1.0, inertia=4e-3 * np.ones(3))
        builder.add_shape(name, "capsule", (0.05, 0.4), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build()
    lying = np.array([np.cos(0.7), np.sin(0.7), 0, 0])
    q = model.neutral().reshape(2, 7).at[:, 3:].set(lying).at[:, 2].set([0.1, 0.3]).at[1, 0].set(beside).ravel()
    # From a start of 10⁻⁴ s steps grow for as long in both.
    options = {"contact": contact, "saveat": diffrax.SaveAt(t1=True), "dt0": 1e-4, "t0": 64.0}
    double = jdyn.simulate(model, q, jnp.zeros(12), 65.0, stepsize_controller=control, **options)
    # These tolerances are the default of single precision.
    single = jdyn.simulate(
        model.astype(jnp.float32), q.astype(jnp.float32), jnp.zeros(12, jnp.float32), 65.0, **options
    )
    tried = [int(motion.stats["accepted_steps"] + motion.stats["rejected_steps"]) for motion in (single, double)]
    assert tried[0] < 1.3 * tried[1]
    if beside > 1:
        # Bounces that end a little sooner or later leave them as deep as their weight asks.
        np.testing.assert_allclose(single.q[-1].reshape(2, 7)[:, 2], double.q[-1].reshape(2, 7)[:, 2], atol=1e-5)


@pytest.mark.slow
def test_a_stack_of_ten_boxes_stands():
    count, side = 10, 0.1
    (model, q), law = stack(count, side), contact()
    motion = run(model, q.ravel(), jnp.zeros(6 * count), 10.0, law, 1e-3)
    energies = _energies(model, law, motion)
    # While they settle, speeds err by a tenth of the tolerance: energy by half of 10 kg times the square of that.
    assert jnp.max(jnp.diff(energies)) < 5e-8 and energies[-1] < energies[0] - 0.04
    end = motion.q[-1].reshape(count, 7)
    np.testing.assert_allclose(end[:, :2], q[:, :2], atol=2e-4)
    # Four corners bear all boxes above them.
    sunk = np.cumsum((G / 4e5) * np.arange(count, 0, -1))
    np.testing.assert_allclose(end[:, 2], q[:, 2] - sunk, rtol=0.02)
    assert jnp.max(jnp.abs(motion.v[-1])) < 1e-6


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::jdyn.contact.ContactWarning")
def test_boxes_that_begin_within_each_other_part_in_long_steps():
    """In the air, so that their momentum is what gravity gives. Newton's method for velocities alone gave up in the
    second step."""
    count, step, steps, side = 10, 2e-3, 10, 0.2
    rng = np.random.default_rng(0)
    builder = jdyn.Builder("boxes")
    for i in range(count):
        builder.add_link(f"box{i}", jdyn.Free(), mass=1.0, inertia=side**2 / 6 * np.ones(3))
        builder.add_shape(f"box{i}", "box", side * np.ones(3), role="collision")
    model, q = builder.build(), rng.normal(size=(count, 7))
    q[:, :3] = rng.uniform(-side, side, (count, 3))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    control = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": step}
    motion = run(model, q.ravel(), jnp.zeros(6 * count), steps * step, jdyn.ConvexContact(), **control)
    assert motion.stats["jacobians"] < 20 * motion.stats["dynamics_calls"]
    turns = jax.vmap(quaternion_to_matrix)(motion.q[-1].reshape(count, 7)[:, 3:])
    velocities = jnp.einsum("bij,bj->bi", turns, motion.v[-1].reshape(count, 6)[:, 3:])
    assert jnp.min(jnp.linalg.norm(velocities, axis=1)) > G * steps * step
    # Velocities are in axes that turn, and steps of 2, 1 and 0.5 ms miss 7, 1.7 and 0.7 mm/s.
    np.testing.assert_allclose(velocities.sum(axis=0), [0, 0, -count * G * steps * step], atol=0.01)


def _rod(length=1.0):
    """A thin rod in the plane x, z, which slides on its lower end; its angle is that from the ground."""
    builder = jdyn.Builder("rod")
    builder.add_link("x", jdyn.Prismatic(jnp.array([1.0, 0, 0])))
    builder.add_link("z", jdyn.Prismatic(jnp.array([0, 0, 1.0])), parent="x")
    inertia = length**2 / 12 * np.array([1e-3, 1, 1])
    builder.add_link("rod", jdyn.Revolute(jnp.array([0, -1.0, 0])), parent="z", mass=1.0, inertia=inertia)
    builder.add_shape("rod", "sphere", 1e-3, placement=(-length / 2, 0, 0), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


@pytest.mark.slow
def test_a_foot_that_sticks_does_not_slip_at_the_ends_of_steps():
    """A rod turns about its end. The slip and the depth that single steps of Euler's method leave miss by h²."""
    model, law = _rod(), contact(stiffness=1e8, friction=10.0, slip_speed=1e-9)
    angle, rate = 1.2, 2.0
    q = jnp.array([0.0, np.sin(angle) / 2 + 1e-3 - 1e-7, angle])
    v = jnp.array([-(np.sin(angle) / 2 + 1e-3), np.cos(angle) / 2, 1.0]) * rate
    options = {"solver": jdyn.solvers.ConvexEuler(rows=1), "stepsize_controller": diffrax.ConstantStepSize()}
    slips, depths = [], []
    for h in (2e-3, 1e-3):
        end = jdyn.simulate(model, q, v, 0.02, contact=law, saveat=diffrax.SaveAt(t1=True), dt0=h, **options)
        (_, height, angle), (x_rate, _, angle_rate) = end.q[-1], end.v[-1]
        slips.append(float(x_rate + angle_rate * (jnp.sin(angle) / 2 + 1e-3)))
        depths.append(float(jnp.sin(angle) / 2 + 1e-3 - height))
    # Its end turns about the middle: as Jacobians at the start have it, it would slip by rate² cos(angle) h / 2, some
    # 6e-4 m/s, and lose touch.
    np.testing.assert_allclose(slips[0] / slips[1], 4, rtol=0.1)
    assert abs(slips[1]) < 2e-5
    # The spring bears the weight less what the middle falls, ω² sin(angle) / 2 and a little.
    assert 0.5 * G / 1e8 < depths[1] < G / 1e8


@pytest.mark.slow
def test_a_rod_for_which_rigid_bodies_have_no_force_stops_as_at_an_impact():
    """Painlevé's paradox: pressing on the sliding end drives it deeper, by m a = (1 + 3 cos θ (cos θ − μ sin θ)) f."""
    model, angle, friction = _rod(), 1.1, 3.0
    law = contact(stiffness=1e6, friction=friction)
    assert 1 + 3 * np.cos(angle) * (np.cos(angle) - friction * np.sin(angle)) < 0
    depth = 1e-6
    q = jnp.array([0.0, np.sin(angle) / 2 + 1e-3 - depth, angle])
    # Its upper end leads, and the lower one is dragged backwards against friction.
    v = jnp.array([-1.0, 0.0, 0.0])
    motion = run(model, q, v, 0.02, law, 1e-6)
    assert int(motion.result) == jdyn.Result.success

    def tip(q, v):
        return v[0] + v[2] * jnp.sin(q[2]) / 2

    # The end jams long before friction without the paradox would stop it, after v / (μ g).
    assert 0.02 < 0.7 * 1.0 / (friction * G)
    slides = jnp.abs(jax.vmap(tip)(motion.q, motion.v))
    assert slides[0] == 1
    # What is left is the turning of the small ball at the end.
    assert jnp.all(slides[2:] < 5e-3)
    energies = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v) + jdyn.potential_energy(model, q))(
        motion.q, motion.v
    )
    assert energies[-1] < energies[0]


@pytest.mark.slow
def test_compliant_and_convex_contact_meet_where_stiffness_grows():
    """A sliding ball ends rolling with 5/7 of its speed, but for its depth."""
    model, speeds = ball(), []
    for stiffness in 10.0 ** np.arange(4, 7):
        law = contact(stiffness)
        compliant = jdyn.CompliantContact(material=law.material)
        q = resting(model, 0.1, law, points=1)
        ends = [run(model, q, jnp.zeros(6).at[3].set(1.0), 0.1, each, 1e-8) for each in (law, compliant)]
        speeds.append([model.rate(end.q[-1], end.v[-1])[0] for end in ends])
    convex, compliant = np.transpose(speeds)
    np.testing.assert_allclose((convex - 5 / 7)[:-1] / (convex - 5 / 7)[1:], 10, rtol=0.05)
    np.testing.assert_allclose((compliant - 5 / 7)[:-1] / (compliant - 5 / 7)[1:], 10, rtol=0.05)
    np.testing.assert_allclose(compliant, convex, atol=1e-5)


def test_what_convex_contact_does_not_know_is_refused():
    model, law = box(), contact()
    q, v = model.neutral().at[2].set(1.0), jnp.zeros(6)
    with pytest.raises(ValueError, match=r"expected contact=jdyn\.ConvexContact"):
        jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.ConvexEuler())
    with pytest.raises(ValueError, match=r"ConvexEuler: it steps forwards in time alone"):
        jdyn.simulate(model, q, v, -1.0, contact=law)
    with pytest.raises(ValueError, match="at least 1"):
        jdyn.solvers.ConvexEuler(rows=0)
    with pytest.raises(ValueError, match="work of contact"):
        jdyn.simulate(model, q, v, 1.0, contact=law, solver=jdyn.solvers.EnergyError(jdyn.solvers.ConvexEuler()))
    for name in ("slip_speed", "spin_speed"):
        with pytest.raises(ValueError, match=name):
            jdyn.ConvexContact(**{name: 0.0})
