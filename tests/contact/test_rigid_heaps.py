"""Heaps of rigid boxes that rest, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.exhaustive

MINUTE, STEP = 60.0, 0.05


def boxes(sides, mass, places):
    """Boxes of one size on a floor, and their configuration: x, z and angle about y of each."""
    x, y, z = sides
    builder = jdyn.Builder("boxes")
    moments = mass / 12 * np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    for number in range(len(places)):
        builder.add_link(f"box{number}", jdyn.Free(), mass=mass, inertia=moments)
        builder.add_shape(f"box{number}", "box", sides, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    q = [[x, 0.0, z, np.cos(turn / 2), 0.0, np.sin(turn / 2), 0.0] for x, z, turn in places]
    return builder.build(), jnp.asarray(np.ravel(q))


def stack():
    return boxes((0.1, 0.1, 0.1), 1.0, [(0.0, 0.05 + 0.1 * number, 0.0) for number in range(10)])


def card_house():
    """Two pairs of cards that lean on each other, one card across both, and a pair on top of it."""
    thickness, length, turn = 0.002, 0.1, np.radians(20)
    c, s = np.cos(turn), np.sin(turn)
    aside, height = (thickness * c + length * s) / 2, (thickness * s + length * c) / 2
    top = thickness * s + length * c

    def pair(x, z):
        return [(x - side * aside, z + height, side * turn) for side in (1, -1)]

    across = (0.0, top + thickness / 2, np.pi / 2)
    return boxes(
        (thickness, 0.06, length), 1.8e-3, [*pair(-0.039, 0.0), *pair(0.039, 0.0), across, *pair(0.0, top + thickness)]
    )


def moved(heap, friction, seconds, h=STEP):
    """How far coordinates have come from the start, and the largest speed."""
    model, start = heap
    system = jdyn.System(model, contact=jdyn.RigidContact(friction=friction, nearest=12))

    @jax.jit
    def run(state):
        def step(state, _):
            state, info = system.step(state, dt=h)
            return state, info.result

        return jax.lax.scan(step, state, None, length=round(seconds / h))

    state, results = run(system.state(start))
    assert np.all(results == jdyn.Result.success)
    return np.max(np.abs(state.q - start)), np.max(np.abs(state.v))


@pytest.mark.parametrize("heap", [stack, card_house])
def test_it_rests_for_a_minute(heap):
    way, speed = moved(heap(), 0.5, MINUTE)
    assert way < 1e-12
    assert speed < 1e-11


def test_a_card_house_falls_where_cards_slide():
    """Where two cards lean on each other, feet need μ = tan(20°) / 2 = 0.18; those with cards on top need more."""
    way, _ = moved(card_house(), 0.1, 0.2, h=0.005)
    assert way > 0.05
