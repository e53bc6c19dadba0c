"""Which shapes may touch, against the pairs that MuJoCo tests."""

import pathlib

import gymnasium
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders
from jdyn.contact.materials import pair_materials
from jdyn.io import load_mjcf
from jdyn.model import ModelWarning

pytestmark = [pytest.mark.fast_compile, pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")]

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets"


def mujocos_pairs(m):
    """Pairs of geoms that MuJoCo tests: with a margin of a kilometre, all of them are in contact."""
    m.geom_margin[:] = m.pair_margin[:] = m.body_margin[:] = 1e3
    d = mujoco.MjData(m)
    mujoco.mj_integratePos(m, d.qpos, np.random.default_rng(0).normal(size=m.nv), 1.0)
    mujoco.mj_forward(m, d)
    return {frozenset(pair) for pair in d.contact.geom.tolist()}


def our_pairs(m, model):
    """The same of jdyn, by MuJoCo's numbers: collision shapes are in the order of geoms."""
    touching = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
    touching[[*m.pair_geom1, *m.pair_geom2]] = True
    geoms, found = np.flatnonzero(touching).tolist(), colliders(model)
    assert len(geoms) == len(found.entries)
    return {frozenset(geoms[i] for i in pair) for pair in found.pairs}


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d"])
def test_pairs_of_robots_are_mujocos(name):
    m = mujoco.MjModel.from_xml_path(str(ASSETS / f"{name}.xml"))
    ours = our_pairs(m, load_mjcf(ASSETS / f"{name}.xml"))
    assert ours == mujocos_pairs(m)


def world(more="", inside=""):
    """A floor; a base that is fixed to the world, an arm on it with two joints, a hand on the arm with a thumb that is
    fixed to it and a finger; a ball."""
    return f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base"><geom size=".1"/><body name="arm"><joint axis="1 0 0"/><joint axis="0 1 0"/><geom size=".1"/>
      <geom name="guard" size=".1" contype="2" conaffinity="4"/>
      <body name="hand"><joint axis="0 0 1"/><joint axis="0 1 0"/><geom size=".1"/>{inside}
        <body name="thumb"><geom size=".1"/></body><body name="finger"><joint pos=".1 0 0"/><geom size=".1"/></body>
      </body></body></body>
    <body name="ball"><freejoint/><geom size=".1"/></body></worldbody>{more}</mujoco>"""


@pytest.mark.parametrize(
    "source",
    [
        world(),
        world('<option><flag filterparent="disable"/></option>'),
        world('<contact><exclude body1="base" body2="arm"/><exclude body1="thumb" body2="ball"/></contact>'),
        world('<contact><pair geom1="guard" geom2="floor"/><pair geom1="guard" geom2="side"/></contact>',
              '<geom name="side" size=".1" contype="4" conaffinity="0"/>'),
        world("", '<body name="ring"><joint/><geom size=".1" contype="4"/></body>'),
    ],
    ids=["neighbours", "no filter", "exclude", "pair", "bits"],
)  # fmt: skip
def test_pairs_of_every_rule_are_mujocos(source):
    m = mujoco.MjModel.from_xml_string(source)
    ours = our_pairs(m, load_mjcf(source))
    assert ours == mujocos_pairs(m)


def test_a_ball_that_is_held_touches_nothing_that_holds_it():
    held = colliders(load_mjcf(world(), floating_base=False))
    names = {frozenset(held.entries[i].name for i in pair) for pair in held.pairs}
    assert not names & {frozenset(("ball", other)) for other in ("floor", "base")}
    assert frozenset(("ball", "finger")) in names


FRICTION = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1" condim="3" friction="1 .5 .5"/>
<body name="a"><freejoint/><geom name="a" size=".1" condim="1" friction="0.3 .2 .1"/></body>
<body name="b"><freejoint/><geom name="b" size=".1" condim="1" friction="2 .2 .1"/></body>
<body name="c"><freejoint/><geom name="c" size=".1" condim="6" friction="0.5 .3 .05"/></body></worldbody></mujoco>"""
PRIORITY = FRICTION.replace('name="a" size', 'name="a" priority="1" size').replace(
    'name="c" size', 'name="c" priority="2" size'
)


PAIRS = PRIORITY.replace(
    "</worldbody>",
    """</worldbody><contact><pair geom1="a" geom2="floor" condim="4" friction=".7 .7 .2 .1 .1"/>
    <pair geom1="c" geom2="b"/><pair geom1="a" geom2="b" condim="6"/><pair geom1="c" geom2="floor" condim="1"/>
    </contact>""",
)


@pytest.mark.parametrize("source", [FRICTION, PRIORITY, PAIRS], ids=["alike", "priority", "pairs"])
def test_friction_of_pairs_is_mujocos(source):
    m, found = mujoco.MjModel.from_xml_string(source), colliders(load_mjcf(source))
    m.geom_margin[:] = m.body_margin[:] = 1e3
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    theirs = {
        frozenset(pair): contact[[0, 2, 3]] * (dim >= np.array([3, 4, 6]))
        for pair, contact, dim in zip(d.contact.geom.tolist(), d.contact.friction, d.contact.dim, strict=True)
    }
    assert len(theirs) == len(found.pairs) == 6
    for pair, ours in zip(found.pairs, found.pair_friction(), strict=True):
        np.testing.assert_array_equal(ours, theirs[frozenset(pair)])


def test_friction_of_a_pair_goes_along_until_a_material_says_otherwise():
    model = load_mjcf(PAIRS)
    whole = jdyn.merge({"left": model, "right": model})
    found = colliders(whole)
    by_names = dict(zip(map(frozenset, found.names), np.asarray(found.pair_friction()), strict=True))
    for side in ("left", "right"):
        np.testing.assert_allclose(by_names[frozenset((f"{side}/a", f"{side}/floor"))], [0.7, 0.2, 0])
    # Shapes of different parts have what follows from theirs: those of higher priority.
    np.testing.assert_allclose(by_names[frozenset(("left/c", "right/b"))], [0.5, 0.3, 0.05])
    shapes, slick = colliders(model), jdyn.contact.Material(friction=0.1)
    made = pair_materials(shapes, jdyn.contact.Material(), {"c": slick}, jdyn.contact.HuntCrossley())
    by_names = dict(zip(map(frozenset, shapes.names), np.asarray(made.friction), strict=True))
    np.testing.assert_allclose(by_names[frozenset(("a", "floor"))], [0.7, 0.2, 0])
    # Stated without friction, but for the material.
    np.testing.assert_allclose(by_names[frozenset(("c", "floor"))], [0.1, 0, 0])


def test_friction_of_pairs_by_direction():
    """Two coefficients each of sliding and rolling friction, as far as the `condim` of the pair has them."""
    for condim, counted in ((1, [0, 0, 0, 0, 0]), (3, [0.9, 0.4, 0, 0, 0]), (6, [0.9, 0.4, 0.02, 0.003, 0.005])):
        own = f'<pair geom1="a" geom2="b" condim="{condim}" friction=".9 .4 .02 .003 .005"/>'
        text = PAIRS.replace('<pair geom1="a" geom2="b" condim="6"/>', own)
        found = colliders(load_mjcf(text))
        place = [frozenset(names) for names in found.names].index(frozenset("ab"))
        sliding, turning, rolling = found.pair_friction()[place]
        np.testing.assert_allclose([sliding, turning, rolling], [counted[0], counted[2], counted[4]])
        both = found.pair_directions()
        assert (both is None) == (condim == 1)
        if both is not None:
            np.testing.assert_allclose(both[place], [counted[:2], counted[3:]])


def test_friction_of_pairs_is_checked():
    builder = jdyn.Builder("two")
    for name in ("a", "b"):
        builder.add_link(name, jdyn.Free(), mass=1.0, inertia=1.0)
        builder.add_shape(name, "sphere", 0.1, name=name)
    builder.include("a", "b", friction=0.25)
    np.testing.assert_allclose(colliders(builder.build()).pair_friction(), [[0.25, 0, 0]])
    builder.include("a", "b", friction=(1.0, -1.0, 0.0))
    with pytest.raises(jdyn.ModelError, match=r"pair 'a', 'b': friction is .*, expected one, three or five numbers"):
        builder.build()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('margin="-0.01"', "negative margins of contacts of geoms knob"),
        ('margin="0.01"/></body></worldbody><contact><pair name="p" geom1="knob" geom2="floor"/></contact>'
         "<worldbody><body><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'", "properties of contact pairs p"),
        ('gap="0.01"', "gap of contacts of geoms knob"),
        ('solref="0.01 1"', "solref of contacts of geoms knob"),
        ('solimp=".8 .9 .01"', "solimp of contacts of geoms knob"),
        ('solmix="2"', "solmix of contacts of geoms knob"),
    ],
)  # fmt: skip
def test_what_contacts_lack_is_named_once(more, said):
    source = f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
    <body name="a"><freejoint/><geom name="knob" size=".1" {more}/></body></worldbody></mujoco>"""
    with pytest.warns(ModelWarning) as caught:
        load_mjcf(source)
    assert [said in str(w.message) for w in caught] == [True]


def test_attributes_of_contacts_that_cannot_be_are_not_named():
    source = (
        """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1" margin=".1"/></body></worldbody></mujoco>"""
    )
    load_mjcf(source)
