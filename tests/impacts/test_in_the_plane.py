"""Impacts in the plane against a path of the impulse that is made of lines, drawn by this file itself."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.impacts import ImpactMode

pytestmark = pytest.mark.fast_compile

LAWS = {"newton": jdyn.impacts.Newton(), "poisson": jdyn.impacts.Poisson(), "stronge": jdyn.impacts.Stronge()}
RESTITUTIONS, FRICTIONS = (0.0, 0.4, 0.8, 1.0), (0.0, 0.2, 0.5, 1.0, 1.8)
# Tangent of the angle of incidence, and the angle of the rod against the ground [rad].
INCIDENCES, LEANS = (-2.0, -0.5, 0.0, 0.3, 3.0), (0.2, 0.6, 1.0, 1.5)
# m k² of the rod as a share of that of a thin one: a ball of lead at the middle, a rod, two balls at its ends.
SLENDER = (0.1, 1.0, 3.0)


def rod(lean, slender):
    """Delassus matrix of the tip of a rod of unit mass and length two that leans."""
    arm, inertia = np.array([np.cos(lean), np.sin(lean)]), slender / 3
    return np.eye(2) + np.outer([-arm[1], arm[0]], [-arm[1], arm[0]]) / inertia


def lines(W, v, e, mu, law):
    """Impulse, and case of Wang and Mason: lines from kink to kink, with events in the order in which they come."""
    v, p, work, mode, compressed = np.array(v), np.zeros(2), 0.0, "SLIDES", None
    sign, stuck, start = np.sign(v[0]), v[0] == 0, v[1]
    held = abs(W[0, 1] / W[0, 0]) <= mu
    onward = -W[0, 1] / W[0, 0] if held else -mu * np.sign(W[0, 1])
    if stuck:
        mode = "STICKS_IN_COMPRESSION" if held else "REVERSES_IN_COMPRESSION"
    while True:
        direction = np.array([onward if stuck else -mu * sign, 1.0])
        rate = W @ direction
        events = {}
        if not stuck and rate[0] * sign < 0:
            events["stop"] = -v[0] / rate[0]
        if compressed is None:
            if rate[1] > 0:
                events["compressed"] = -v[1] / rate[1]
        elif law == "newton" and rate[1] > 0:
            events["end"] = (-e * start - v[1]) / rate[1]
        elif law == "poisson":
            events["end"] = (1 + e) * compressed[0] - p[1]
        elif law == "stronge":
            left = compressed[1] * (1 - e**2) - work
            roots = np.roots([rate[1] / 2, v[1], -left])
            roots = [r.real for r in roots if abs(r.imag) < 1e-9 and r.real > -1e-12]
            if roots or left <= 0:
                events["end"] = 0.0 if left <= 0 else min(roots)
        event = min(events, key=events.get)
        length = events[event]
        work += (v[1] + rate[1] * length / 2) * length
        v, p = v + length * rate, p + length * direction
        if event == "stop":
            stuck, v[0] = True, 0.0
            when = "COMPRESSION" if compressed is None else "RESTITUTION"
            mode = f"{'STICKS' if held else 'REVERSES'}_IN_{when}"
        elif event == "compressed":
            compressed, v[1] = (p[1], work), 0.0
        else:
            return p, mode


def in_space(W):
    """The Delassus matrix with a second tangent, along which nothing is coupled."""
    whole = np.eye(3)
    whole[np.ix_([0, 2], [0, 2])] = W
    return whole


@pytest.mark.parametrize("law", LAWS)
def test_impacts_of_a_rod_are_lines(law):
    rows = list(itertools.product(RESTITUTIONS, FRICTIONS, INCIDENCES, LEANS, SLENDER))
    assert len(rows) >= 900
    matrices = np.array([in_space(rod(lean, slender)) for *_, lean, slender in rows])
    velocities = np.array([[row[2], 0.0, -1.0] for row in rows])
    e, mu = (np.array([row[i] for row in rows]) for i in (0, 1))
    found = jax.jit(jax.vmap(LAWS[law]))(matrices, velocities, e, mu)
    modes = set()
    for i, row in enumerate(rows):
        W = matrices[i][np.ix_([0, 2], [0, 2])]
        p, mode = lines(W, velocities[i, [0, 2]], row[0], row[1], law)
        # The margin says where rounding decides between two modes; impulses agree there all the same.
        if found.margin[i] > 1e-9:
            assert ImpactMode(int(found.mode[i])).name == mode, row
        modes.add(mode)
        np.testing.assert_allclose(found.impulse[i][jnp.array([0, 2])], p, rtol=1e-9, atol=1e-9, err_msg=str(row))
        np.testing.assert_allclose(found.impulse[i, 1], 0, atol=1e-15)
    assert modes == {mode.name for mode in ImpactMode} - {"APART", "IMPOSSIBLE"}
    gains = np.max(np.asarray(found.work))
    # Newton's law makes energy in some of these, see Wang and Mason 1992; the others in none.
    assert gains > 1e-3 if law == "newton" else gains < 1e-12


def test_a_tip_that_jams_goes_on_to_an_end():
    """The tip of a rod at tan θ = 2 with friction beyond 4/3 digs in first: v_n falls as p_n grows."""
    W = rod(np.arctan(2.0), 1.0)
    v = np.array([1.0, -1e-3])
    mu = 1.5
    assert (W @ [-mu, 1.0])[1] < 0 or (W @ [mu, 1.0])[1] < 0
    slide = v if (W @ [-mu, 1.0])[1] < 0 else v * [-1, 1]
    for law, kept in LAWS.items():
        hit = kept(jnp.asarray(in_space(W)), jnp.array([slide[0], 0.0, slide[1]]), 0.5, mu)
        p, mode = lines(W, slide, 0.5, mu, law)
        np.testing.assert_allclose(hit.impulse, [p[0], 0, p[1]], atol=1e-12)
        assert ImpactMode(int(hit.mode)).name == mode == "STICKS_IN_COMPRESSION"
        # Bodies that graze each other leave with hundreds of times the speed of their approach.
        assert p[1] > 100 * 1e-3 / W[1, 1]


def test_all_laws_are_one_without_friction():
    W, v = jnp.asarray(in_space(rod(0.7, 1.0))), jnp.array([0.4, 0.2, -1.5])
    laws = [*LAWS.values(), jdyn.impacts.StickOrSlide(), jdyn.impacts.Brach(), jdyn.impacts.Frictionless()]
    for law in laws:
        hit = law(W, v, 0.6)
        # Directions of sliding turn, and are integrated.
        np.testing.assert_allclose(hit.impulse, [0, 0, 1.6 * 1.5 / W[2, 2]], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(hit.velocity[2], 0.9, rtol=1e-11)


def test_bodies_that_part_are_left_alone():
    v = jnp.array([1.0, 2.0, 0.5])
    for law in (*LAWS.values(), jdyn.impacts.Brach()):
        hit = law(jnp.eye(3), v, 0.5, 0.3)
        assert hit.mode == ImpactMode.APART
        np.testing.assert_array_equal(hit.impulse, 0)
    by_v = jax.jit(jax.jacfwd(lambda v: LAWS["poisson"](jnp.eye(3), v, 0.5, 0.3).velocity))(v)
    np.testing.assert_array_equal(by_v, np.eye(3))


def test_laws_in_one_formula():
    W, e, mu = rod(1.0, 1.0), 0.5, 0.3
    hit = jdyn.impacts.StickOrSlide()(jnp.asarray(in_space(W)), jnp.array([2.0, 0.0, -1.0]), e, mu)
    p_n = (1 + e) / (W[1, 1] - mu * W[1, 0])
    np.testing.assert_allclose(hit.impulse, [-mu * p_n, 0, p_n], rtol=1e-14)
    hit = jdyn.impacts.StickOrSlide()(jnp.asarray(in_space(W)), jnp.array([0.1, 0.0, -1.0]), e, 3.0)
    np.testing.assert_allclose(hit.velocity, [0, 0, e], atol=1e-14)
    jam = rod(np.arctan(2.0), 1.0)
    hit = jdyn.impacts.StickOrSlide()(jnp.asarray(in_space(jam)), jnp.array([10.0, 0.0, -0.1]), e, 1.5)
    assert hit.mode == (ImpactMode.IMPOSSIBLE if (jam @ [-1.5, 1.0])[1] < 0 else ImpactMode.SLIDES)
    for slip, stops in ((-0.1, True), (0.1, False)):  # one sliding reverses by itself
        hit = jdyn.impacts.Brach()(jnp.asarray(in_space(W)), jnp.array([slip, 0.0, -1.0]), e, 3.0)
        assert (abs(float(hit.velocity[0])) < 1e-14) == stops and hit.work < 1e-14


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_types_are_those_of_the_matrix(dtype):
    W, v = jnp.asarray(in_space(rod(0.7, 1.0)), dtype), jnp.array([0.4, 0.2, -1.5], dtype)
    hit, exact = (LAWS["stronge"](W.astype(x), v.astype(x), 0.6, 0.3) for x in (dtype, jnp.float64))
    assert hit.impulse.dtype == hit.work.dtype == hit.margin.dtype == dtype
    # Steps err by about 1e-6 of the velocity in single precision.
    np.testing.assert_allclose(hit.impulse, exact.impulse, rtol=1e-4 if dtype == jnp.float32 else 1e-12, atol=1e-5)
