"""Rigid contact in simulations, beside closed forms."""

import warnings

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import jdyn
from jdyn.array import with_fields
from jdyn.contact import colliders
from jdyn.model import ModelError

G = 9.81


def body(shape, size, *, joint=None, inertia=4e-3, mass=1.0, tilt=0.0):
    """A body above a plane, in a field of gravity that a tilt turns about y, as a slope would."""
    gravity = (G * np.sin(tilt), 0.0, -G * np.cos(tilt))
    builder = jdyn.Builder("body", gravity=gravity)
    builder.add_link("body", jdyn.Free() if joint is None else joint, mass=mass, inertia=inertia * jnp.ones(3))
    builder.add_shape("body", shape, size, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


def on_floor(model, height):
    return model.neutral().at[2].set(height)


FALLING = body("sphere", 0.1, joint=jdyn.Prismatic((0, 0, 1)))


def dropped(height):
    contact = jdyn.RigidContact(restitution=0.6)
    return jdyn.simulate(FALLING, jnp.array([height]), jnp.zeros(1), 2.5, contact=contact, max_events=100)


def test_a_ball_bounces_until_it_rests():
    """Bounces at √(2 h/g) (1 + 2 (e + e² + ...)), which end at √(2 h/g) (1 + e)/(1 − e)."""
    motion = dropped(1.1)
    times = np.asarray(motion.events.ts)
    times = times[np.isfinite(times)]
    first = np.sqrt(2 / G)
    expected = first * (1 + 2 * np.cumsum(0.6 ** np.arange(10)) - 2)
    np.testing.assert_allclose(times[:10], expected, rtol=1e-8)
    # What is left of the series where the speed is less than the rest speed, 3e-5 m/s: 2 · 3e-5 / e / g / (1 − e).
    assert times[-1] < first * 4 < times[-1] + 3e-5
    np.testing.assert_allclose(motion.q[-1], 0.1, atol=1e-12)
    np.testing.assert_allclose(motion.v[-1], 0, atol=1e-7)


def plane(*obstacles):
    """A bead in a plane, above what stands there."""
    builder = jdyn.Builder("plane", gravity=(0.0, 0.0, -G))
    builder.add_link("x", jdyn.Prismatic((1, 0, 0)), mass=1e-12, inertia=1e-12 * np.ones(3))
    builder.add_link("bead", jdyn.Prismatic((0, 0, 1)), parent="x", mass=1.0, inertia=1e-6 * np.ones(3))
    builder.add_shape("bead", "sphere", 0.01, role="collision")
    for shape, size in obstacles:
        builder.add_shape("world", shape, size, role="collision")
    return builder.build()


FLOOR = plane(("plane", (0, 0)))


@jax.jit
def thrown(e, mu, h, v, t):
    """Where a bead is that falls from a height while it moves along a floor, and the derivatives of both coordinates by
    all but the time."""

    def place(e, mu, h, v):
        contact = jdyn.RigidContact(restitution=e, friction=mu)
        start = jnp.stack([jnp.zeros(()), 0.01 + h])
        return jdyn.simulate(FLOOR, start, jnp.stack([v, jnp.zeros(())]), t, contact=contact, saveat=t[None]).q[-1]

    return place(e, mu, h, v), jax.jacrev(place, (0, 1, 2, 3))(e, mu, h, v)


@pytest.mark.slow
def test_a_bounce_has_exact_derivatives():
    """Height after one bounce: z = e u s − g s²/2, u = √(2 g h), s = t − √(2 h/g), by e and h."""
    e, h, t = 0.6, 1.0, 0.7
    (_, z), by = thrown(*map(jnp.asarray, (e, 0.0, h, 0.0, t)))
    s, u = t - np.sqrt(2 * h / G), np.sqrt(2 * G * h)
    np.testing.assert_allclose(z - 0.01, e * u * s - G * s**2 / 2, rtol=1e-8)
    np.testing.assert_allclose([by[0][1], by[2][1]], [u * s, e * G / u * s - (e * u - G * s) / u], rtol=1e-8)


@pytest.mark.slow
def test_derivatives_know_when_sliding_stops():
    """A bead lands without a bounce, which takes μ u of its speed, and slides to a stop: x = v √(2 h/g) + (v − μ u)²/
    (2 μ g)."""
    mu, h, v = 0.3, 0.1, 2.0
    (x, _), by = thrown(*map(jnp.asarray, (0.0, mu, h, v, 1.0)))
    u, w = np.sqrt(2 * G * h), v - mu * np.sqrt(2 * G * h)
    # The tolerance of steps is 1e-6. From the rest speed on, it stops at once.
    np.testing.assert_allclose(x, v * u / G + w**2 / (2 * mu * G), atol=2e-6)
    by_mu, by_h = -u * w / (mu * G) - w**2 / (2 * mu**2 * G), v / u - w / u
    np.testing.assert_allclose([by[1][0], by[2][0], by[3][0]], [by_mu, by_h, u / G + w / (mu * G)], rtol=1e-6)


@pytest.mark.slow
def test_a_bead_that_a_spring_pulls_sticks_and_slips():
    """By its end that moves with a speed V: it sticks until k V t = μₛ m g, and slips for (π + 2 atan(V/(ω Δ)))/ω with
    Δ = (μₛ − μ) m g/k, by 2 Δ more than the end moves."""
    k, V, mu, static = 40.0, 0.5, 0.2, 0.5
    contact = jdyn.RigidContact(friction=mu, static_friction=static)

    def pulled(t, q, v):
        return jnp.stack([k * (V * t - q[0]), jnp.zeros_like(t)])

    times = jnp.linspace(0, 2.0, 201)
    motion = jdyn.simulate(
        FLOOR, jnp.array([0.0, 0.01]), jnp.zeros(2), 2.0, contact=contact, controller=pulled, saveat=times
    )
    w, D, until = np.sqrt(k), (static - mu) * G / k, static * G / (k * V)
    slips = (np.pi + 2 * np.arctan(V / (w * D))) / w
    stop, x, t = float(motion.events.ts[0]), np.asarray(motion.q[:, 0]), np.asarray(times)
    # Where it is slower than the rest speed, it has stopped.
    np.testing.assert_allclose(stop, until + slips, atol=3e-5 / ((static - mu) * G) + 1e-6)
    np.testing.assert_allclose(x[t < until], 0, atol=1e-8)
    # Then the spring is short by as much as it was long: it sticks until that is made up for.
    np.testing.assert_allclose(x[(t > stop) & (t < stop + 2 * D / V)], 2 * D + V * slips, atol=1e-5)
    during = (t > until) & (t < stop)
    phase = w * (t[during] - until) + np.pi - np.arctan2(V / w, D)
    np.testing.assert_allclose(x[during], np.hypot(D, V / w) * np.cos(phase) + V * t[during] - mu * G / k, atol=1e-5)


@pytest.mark.slow
def test_a_box_slides_to_a_stop_and_does_not_rise():
    """Way v²/(2 μ g), on four points that share its weight."""
    model = body("box", (0.2, 0.2, 0.2))
    start, v = on_floor(model, 0.1), jnp.zeros(6).at[3].set(1.0)
    motion = jdyn.simulate(model, start, v, 1.0, contact=jdyn.RigidContact(friction=0.3))
    # From the rest speed on it creeps, by that over 20 / s.
    np.testing.assert_allclose(motion.q[-1, 0], 1 / (2 * 0.3 * G), atol=3e-5 / 20 + 1e-7)
    np.testing.assert_allclose(motion.q[:, 2], 0.1, atol=1e-11)
    np.testing.assert_allclose(motion.v[-1], 0, atol=1e-6)
    forces = motion.contacts.force("body")
    # It slides at first, and nothing moves it at last.
    np.testing.assert_allclose(forces[0], [-0.3 * G, 0, G], atol=1e-9)
    np.testing.assert_allclose(forces[-1], [0, 0, G], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [0.2, 0.5])
def test_a_box_on_a_slope_slides_or_sticks(friction):
    """At 0.3 rad: tan 0.3 is 0.309."""
    model = body("box", (0.2, 0.2, 0.2), tilt=0.3)
    motion = jdyn.simulate(model, on_floor(model, 0.1), jnp.zeros(6), 1.0, contact=jdyn.RigidContact(friction=friction))
    a = max(G * (np.sin(0.3) - friction * np.cos(0.3)), 0)
    np.testing.assert_allclose(motion.v[-1, 3:], [a, 0, 0], atol=1e-6)
    np.testing.assert_allclose(motion.q[-1, :3], [a / 2, 0, 0.1], atol=1e-6)


def test_a_ball_that_slides_begins_to_roll():
    """From 1 m/s: rolls with 5/7 m/s from the time 2/(7 μ g) on."""
    model = body("sphere", 0.1)
    start, v = on_floor(model, 0.1), jnp.zeros(6).at[3].set(1.0)
    motion = jdyn.simulate(model, start, v, 1.0, contact=jdyn.RigidContact(friction=0.2))
    speed, begin = 5 / 7, 2 / (7 * 0.2 * G)
    # Along the axes of the ball, which turns about the second one.
    np.testing.assert_allclose(np.linalg.norm(motion.v[-1, 3:]), speed, atol=1e-6)
    np.testing.assert_allclose(motion.v[-1, :3], [0, speed / 0.1, 0], atol=1e-5)
    way = (1 + speed) / 2 * begin + speed * (1 - begin)
    np.testing.assert_allclose(motion.q[-1, 0], way, atol=1e-6)


@pytest.mark.slow
def test_a_ball_rolls_in_few_steps_at_any_tolerance():
    """Errors of stages, which are of order 2, do not make what is held slide: steps would be as short as those of a
    method of order 2, 600 at 1e-8."""
    model = body("sphere", 0.1)
    start, v = on_floor(model, 0.1), jnp.array([0, 10.0, 0, 1, 0, 0])

    @jax.jit
    def run(tolerance):
        return jdyn.simulate(
            model, start, v, 1.0, contact=jdyn.RigidContact(friction=0.8),
            stepsize_controller=diffrax.PIDController(tolerance, tolerance), saveat=jnp.array([1.0]),
        )  # fmt: skip

    for tolerance in (1e-5, 1e-6, 1e-8):
        motion = run(tolerance)
        np.testing.assert_allclose(motion.q[-1, :3], [1, 0, 0.1], atol=10 * tolerance)
        assert motion.stats["accepted_steps"] + motion.stats["rejected_steps"] < 60


# A ball of 1 m less the radius of the bead on top of it.
HILL = plane(("sphere", 0.99))


@pytest.mark.exhaustive
def test_errors_fall_with_the_tolerance():
    """Of a bead that slides with friction and leaves, beside itself at 1e-12; the guide has these figures."""

    def end(tolerance):
        motion = jdyn.simulate(
            HILL, jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]), 1.0, contact=jdyn.RigidContact(friction=0.1),
            stepsize_controller=diffrax.PIDController(tolerance, tolerance), saveat=jnp.array([1.0]),
        )  # fmt: skip
        return motion.q[-1], motion.stats["accepted_steps"]

    exact, _ = end(1e-12)
    for tolerance, error, steps in ((1e-4, 3e-4, 14), (1e-6, 4e-5, 26), (1e-8, 4e-8, 27), (1e-10, 4e-10, 44)):
        q, taken = end(tolerance)
        assert np.max(np.abs(q - exact)) < error
        assert int(taken) < 1.2 * steps


@pytest.mark.exhaustive
def test_what_slides_off_a_ball_leaves_it_where_its_weight_no_longer_holds_it():
    """A small ball without friction, from the top of a large one: cos θ = 2/3 + ... of the start's energy."""
    speed = 0.5
    motion = jdyn.simulate(
        HILL, jnp.array([0.0, 1.0]), jnp.array([speed, 0.0]), 1.2, contact=jdyn.RigidContact(friction=0.0),
        saveat=jnp.linspace(0, 1.2, 601),
    )  # fmt: skip
    pressing = np.linalg.norm(motion.contacts.points.force[:, 0], axis=1)
    last = np.flatnonzero(pressing > 0)[-1]
    assert np.all(pressing[: last + 1] > 0)
    # Rows lie within steps, and the one in which it leaves is not smooth: forces of 5 ms are missing.
    assert motion.q[last, 1] > 2 / 3 + speed**2 / (3 * G) > motion.q[last + 3, 1]
    np.testing.assert_allclose(np.linalg.norm(motion.q[: last + 1], axis=1), 1, atol=1e-8)
    theta = np.arctan2(motion.q[: last + 1, 0], motion.q[: last + 1, 1])
    # m g cos θ − m v²/R, with the energy that it had.
    expected = G * np.cos(theta) - speed**2 - 2 * G * (1 - np.cos(theta))
    # Where it leaves, up to what brings back a point that parts with the rest speed.
    np.testing.assert_allclose(pressing[: last + 1], expected, atol=2 * 20 * 3e-5)


@pytest.mark.exhaustive
def test_a_tumbling_box_loses_energy_and_lies_down():
    model = body("box", (0.2, 0.3, 0.1), inertia=jnp.array([1.0, 0.6, 1.2]) / 100)
    start = on_floor(model, 0.5)
    v = jnp.array([1.0, -2.0, 0.5, 0.4, 0.2, 0.0])
    motion = jdyn.simulate(
        model, start, v, 3.0, contact=jdyn.RigidContact(restitution=0.3, friction=0.4), max_events=300
    )
    energy = np.asarray(motion.energy)
    assert np.all(np.diff(energy) < 1e-6 * energy[0])
    np.testing.assert_allclose(motion.v[-1], 0, atol=1e-5)
    heights = [0.05, 0.1, 0.15]
    assert np.min(np.abs(motion.q[-1, 2] - np.array(heights))) < 1e-7


@pytest.mark.exhaustive
def test_lanes_bounce_as_alone():
    start, still = jnp.array([0.6]), jnp.zeros(1)

    def bounced(e):
        contact = jdyn.RigidContact(restitution=e)
        return jdyn.simulate(FALLING, start, still, 1.0, contact=contact, max_events=100).q

    e = jnp.array([0.2, 0.5, 0.8])
    for lane, q in enumerate(jax.vmap(bounced)(e)):
        np.testing.assert_allclose(q, bounced(e[lane]), atol=1e-12)


def test_two_surfaces_have_the_smaller_restitution_and_the_larger_friction():
    builder = jdyn.Builder("balls")
    for name in ("clay", "steel", "rubber"):
        builder.add_link(name, jdyn.Free(), mass=1.0, inertia=4e-3 * np.ones(3))
        builder.add_shape(name, "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(friction=0.3))
    model, Material = builder.build(), jdyn.contact.RigidMaterial
    contact = jdyn.RigidContact(
        restitution=0.8, materials={"clay": Material(restitution=0.0), "rubber": Material(friction=1.2)}
    )
    forces = contact.between(colliders(model))
    assert forces.colliders.names == (("clay", "steel"), ("clay", "rubber"), ("steel", "rubber"))
    np.testing.assert_array_equal(forces.pairs.restitution, [0.0, 0.0, 0.8])
    np.testing.assert_array_equal(forces.pairs.friction, [0.3, 1.2, 1.2])
    assert forces.pairs.static_friction is None
    held = with_fields(contact, static_friction=0.5).between(colliders(model))
    np.testing.assert_array_equal(held.pairs.static_friction, [0.5, 1.2, 1.2])
    # One friction for all but those that materials name.
    slippery = with_fields(contact, friction=0.1).between(colliders(model))
    np.testing.assert_array_equal(slippery.pairs.friction, [0.1, 1.2, 1.2])
    scaled = jdyn.scale(jdyn.System(model, contact=contact), length=2.0).contact
    assert scaled.materials["rubber"].friction == 1.2
    with pytest.raises(ValueError, match=r"materials: .*'wood'"):
        jdyn.RigidContact(materials={"wood": Material()}).between(colliders(model))
    with pytest.raises(ValueError, match=r"materials: expected .*RigidMaterial\(\)}, got {'clay': 0.5}"):
        jdyn.RigidContact(materials={"clay": 0.5})


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="restitution: expected a number from 0 to 1"):
        jdyn.RigidContact(restitution=1.2)
    for restitution in (-0.1, np.nan):
        with pytest.raises(ValueError, match="restitution: expected a number from 0 to 1"):
            jdyn.RigidContact(restitution=restitution)
    for friction in (-0.1, np.inf):
        with pytest.raises(ValueError, match="friction: expected a number not negative"):
            jdyn.RigidContact(friction=friction)
    with pytest.raises(ValueError, match="forwards in time"):
        jdyn.simulate(FALLING, jnp.array([1.0]), jnp.zeros(1), -1.0, contact=jdyn.RigidContact())


@pytest.mark.slow
def test_where_no_acceleration_is_possible_there_is_a_code():
    """Painlevé's rod at 45° slides on its tip into its lean: beyond μ = 5/3 no force keeps the tip out of the floor."""
    builder = jdyn.Builder("rod", gravity=(0.0, 0.0, -G))
    builder.add_link("x", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("z", jdyn.Prismatic((0, 0, 1)), parent="x")
    builder.add_link("rod", jdyn.Revolute((0, 1, 0)), parent="z", mass=1.0, inertia=jnp.array([1e-4, 1 / 3, 1 / 3]))
    builder.add_shape("rod", "sphere", 1e-3, placement=(1.0, 0.0, 0.0), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build()
    start = jnp.array([0.0, np.sin(np.pi / 4) + 1e-3, np.pi / 4])

    def end(friction, speed):
        contact = jdyn.RigidContact(friction=friction)
        motion = jdyn.simulate(model, start, jnp.array([speed, 0.0, 0.0]), 0.05, contact=contact, throw=False)
        return jdyn.Result(int(motion.result))

    # Steps with impulses in them stop the tip.
    system = jdyn.System(model, contact=jdyn.RigidContact(friction=2.0))
    _, info = system.step(system.state(start, jnp.array([5.0, 0.0, 0.0])), dt=1e-3)
    assert info.result == jdyn.Result.success
    assert end(2.0, 5.0) == jdyn.Result.nonfinite
    assert end(1.5, 5.0) == jdyn.Result.success
    assert end(2.0, -5.0) == jdyn.Result.success


@pytest.mark.exhaustive
def test_derivatives_know_when_a_ball_begins_to_roll():
    """It slides until 2 v/(7 μ g), and rolls with 5 v/7 from then on: x = 5 v t/7 + 2 v²/(49 μ g)."""
    model = body("sphere", 0.1)

    def way(speed, friction):
        contact, v = jdyn.RigidContact(friction=friction), jnp.zeros(6).at[3].set(speed)
        return jdyn.simulate(model, on_floor(model, 0.1), v, 1.0, contact=contact, saveat=jnp.array([1.0])).q[-1, 0]

    v, mu = 1.0, 0.2
    value, slopes = jax.jit(jax.value_and_grad(way, (0, 1)))(v, mu)
    np.testing.assert_allclose(value, 5 / 7 * v + 2 * v**2 / (49 * mu * G), atol=1e-6)
    np.testing.assert_allclose(slopes, [5 / 7 + 4 * v / (49 * mu * G), -2 * v**2 / (49 * mu**2 * G)], rtol=1e-5)


def thrown_cube(speed):
    """Way of a cube of 10 cm along y in 1 s, thrown at a floor with a vertical speed: the case of DiffMJX."""
    builder = jdyn.Builder("cube", gravity=(0.0, 0.0, -2.0))
    builder.add_link("cube", jdyn.Free(), mass=0.1, inertia=0.1 * 0.1**2 / 6 * np.ones(3))
    builder.add_shape("cube", "box", (0.1, 0.1, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build()
    turn = jnp.array([np.cos(np.pi / 6), np.sin(np.pi / 6), 0.0, 0.0])
    start = model.neutral().at[2].set(0.2).at[3:].set(turn)
    # Along the axes of the cube.
    c, s = np.cos(np.pi / 3), np.sin(np.pi / 3)
    v = jnp.zeros(6).at[4].set(-0.1 * c + s * speed).at[5].set(0.1 * s + c * speed)
    contact, ends = jdyn.RigidContact(friction=0.5), jnp.array([1.0])
    return jdyn.simulate(model, start, v, 1.0, contact=contact, saveat=ends, max_events=100).q[-1, 1]


@pytest.mark.exhaustive
def test_a_thrown_cube_has_the_derivative_of_differences():
    """It falls on an edge, tips over another one, lies down and slides to a stop."""
    value, slope = jax.jit(jax.value_and_grad(thrown_cube))(-2.0)
    ways = jax.jit(thrown_cube)
    # Of order 4, with steps that are large beside errors of the motions.
    near, far = (ways(-2.0 + h) - ways(-2.0 - h) for h in (0.02, 0.04))
    difference = (8 * near - far) / (12 * 0.02)
    np.testing.assert_allclose(slope, difference, rtol=1e-4)
    np.testing.assert_allclose(value, ways(-2.0), atol=1e-9)


def test_an_overlap_at_the_start_is_told_with_its_pair():
    said = "rigid shapes overlap at the start; .* 'world' and 'body' overlap by 0.05 m"
    with pytest.raises(jdyn.SimulationError, match=said):
        dropped(0.05)


@pytest.mark.parametrize(("faces", "said"), [([[0, 1, 2], [1, 3, 2]], "within one plane"), (None, "not a closed")])
def test_flat_meshes_are_refused_and_open_ones_named(tmp_path, faces, said):
    """An open box touches as its hull, which is said."""
    mesh = trimesh.creation.box()
    flat = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    mesh = trimesh.Trimesh(mesh.vertices, mesh.faces[1:]) if faces is None else trimesh.Trimesh(flat, faces)
    mesh.export(tmp_path / "part.stl")
    builder = jdyn.Builder("part")
    builder.add_link("part", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("part", "mesh", path=str(tmp_path / "part.stl"), role="collision")
    model = jdyn.with_ground(builder.build())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # Traced, and not compiled.
            jax.eval_shape(
                lambda q: jdyn.simulate(model, q, jnp.zeros(1), 0.01, contact=jdyn.RigidContact()).q, jnp.array([5.0])
            )
            found = [str(warning.message) for warning in caught]
        except ModelError as error:
            found = [str(error)]
    assert len(found) == 1
    assert said in found[0]
    assert "part.stl" in found[0]


def test_scaling_knows_its_numbers():
    """Speeds grow as the root of lengths under the same gravity."""
    system = jdyn.System(FALLING, contact=jdyn.RigidContact(restitution=0.5, rest_speed=1e-4))
    scaled = jdyn.scale(system, length=4.0).contact
    assert scaled.restitution == 0.5
    np.testing.assert_allclose(scaled.rest_speed, 2e-4)
