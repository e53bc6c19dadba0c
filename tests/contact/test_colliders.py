"""Which collision shapes may touch."""

import jax
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders

pytestmark = pytest.mark.fast_compile


def _arm(change=lambda builder: None, **of_hand):
    """A base that is fixed to the world, two links one after the other, a hand that is fixed to the second, a floor."""
    builder = jdyn.Builder("arm")
    builder.add_link("base", jdyn.Fixed(), mass=1.0, inertia=1.0)
    for name, parent in (("upper", "base"), ("lower", "upper")):
        builder.add_link(name, jdyn.Revolute((0, 1, 0)), parent=parent, mass=1.0, inertia=1.0)
    builder.add_link("hand", jdyn.Fixed(), parent="lower", mass=1.0, inertia=1.0)
    builder.add_frame("palm", "hand")
    for link in ("base", "upper", "lower", "hand"):
        touching = jdyn.contact.Touching(**(of_hand if link == "hand" else {}))
        builder.add_shape(link, "sphere", 0.1, role="collision", touching=touching)
    builder.add_shape("palm", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(friction=0.3))
    builder.add_shape(
        "world", "plane", (0, 0), role="collision", name="floor", touching=jdyn.contact.Touching((0.5, 0.1, 0.2))
    )
    change(builder)
    return builder.build()


def _pairs(model):
    found = colliders(model)
    return {frozenset(found.entries[i].name for i in pair) for pair in found.pairs}


def _named(*pairs):
    return {frozenset(pair.split()) for pair in pairs}


# The base is no relative of the lower link, nor the floor of anybody that moves.
RULES = _named(
    "floor upper", "floor lower", "floor hand", "floor palm", "base lower", "base hand", "base palm"
)  # fmt: skip


def test_neighbours_and_what_is_fixed_to_each_other_do_not_touch():
    assert _pairs(_arm()) == RULES


def test_what_moves_freely_touches_the_tables_that_are_fixed_to_the_world():
    def change(builder):
        builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=1.0)
        builder.add_shape("ball", "sphere", 0.1, role="collision")

    of_ball = _named("floor ball", "base ball", "upper ball", "lower ball", "hand ball", "palm ball")
    assert _pairs(_arm(change)) == RULES | of_ball


def test_excluded_links_do_not_touch_nor_do_frames_on_them():
    assert _pairs(_arm(lambda builder: builder.exclude("hand", "base"))) == RULES - _named("base hand", "base palm")
    assert _pairs(_arm(lambda builder: builder.exclude("world", "palm"))) == RULES - _named("floor palm")


def test_bits_say_what_touches_what():
    assert _pairs(_arm(contype=2, conaffinity=0)) == RULES - _named("floor hand", "base hand")
    assert _pairs(_arm(contype=0, conaffinity=1)) == RULES


def test_included_shapes_may_touch_whatever_else_counts():
    def change(builder):
        builder.exclude("hand", "base")
        builder.include("hand", "base")
        builder.include("upper", "lower")

    assert _pairs(_arm(change)) == RULES - _named("base palm") | _named("upper lower")


def test_friction_is_that_of_the_shapes():
    found = colliders(_arm())
    by_name = {entry.name: row.tolist() for entry, row in zip(found.entries, np.asarray(found.friction), strict=True)}
    assert by_name["floor"] == [0.5, 0.1, 0.2] and by_name["palm"] == [0.3, 0, 0] and by_name["hand"] == [1, 0, 0]


@pytest.mark.parametrize(
    ("numbers", "turning"),
    [
        ({"friction": 0.5}, False),
        ({"friction": (0.5, 0.1, 0.2)}, True),
        ({"friction": (0.5, 0.1, 0.2), "condim": 3}, False),
        ({"friction": 0.5, "condim": 6}, True),
    ],
)
def test_programs_know_which_friction_models_have_that_they_are_given(numbers, turning):
    """Numbers that are known count, too: zeros resist nothing."""

    def arm(**numbers):
        builder = jdyn.Builder("arm")
        builder.add_link("arm", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
        builder.add_shape("arm", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(**numbers))
        builder.add_shape("world", "plane", (0, 0), role="collision")
        return builder.build()

    found = []
    jax.eval_shape(lambda model: found.append(colliders(model).turning), arm(**numbers))
    assert found == [turning]
    assert colliders(arm(**numbers)).turning == (turning and numbers["friction"] != 0.5)


def test_a_model_without_collision_shapes_is_refused():
    builder = jdyn.Builder("bare")
    builder.add_link("rod", jdyn.Revolute((0, 1, 0)), mass=1.0, inertia=1.0)
    with pytest.raises(ValueError, match=r"'bare' has no collision shapes: give it some by jdyn\.Builder\.add_shape"):
        colliders(builder.build())
