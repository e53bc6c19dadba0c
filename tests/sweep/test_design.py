"""Designs of experiments: which lanes they have."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

INTERVALS = {"mass": (0.5, 2.0), "kp": jdyn.designs.Log(10.0, 1000.0), "angle": (-1.0, 1.0)}


def places(design):
    """Where the lanes are between the ends of each interval."""
    lanes = design.lanes(np.arange(design.size))
    return {
        "mass": (lanes["mass"] - 0.5) / 1.5, "kp": np.log10(lanes["kp"] / 10) / 2, "angle": (lanes["angle"] + 1) / 2
    }  # fmt: skip


def test_a_latin_hypercube_has_one_lane_in_each_stratum():
    design = jdyn.designs.LatinHypercube(50, **INTERVALS)
    assert design.dims == {"sample": 50}
    for place in places(design).values():
        np.testing.assert_array_equal(np.sort(np.floor(place * 50)), np.arange(50))


def test_a_sobol_sequence_is_balanced_in_every_pair():
    """Every cell of a net of 64 lanes has one; scrambled Sobol points have nets of quality 0 in the first pair, and at
    most 1 in these dimensions, where cells of twice the size have two."""
    points = places(jdyn.designs.Sobol(64, **INTERVALS))
    for place in points.values():
        np.testing.assert_array_equal(np.sort(np.floor(place * 64)), np.arange(64))
    for wide in range(6):
        shape = 2**wide, 2 ** (5 - wide)
        cells = np.floor(points["mass"] * shape[0]) * shape[1] + np.floor(points["kp"] * shape[1])
        np.testing.assert_array_equal(np.bincount(cells.astype(int)), np.full(32, 2))


@pytest.mark.parametrize("kind", [jdyn.designs.LatinHypercube, jdyn.designs.Sobol])
def test_lanes_can_be_had_again(kind):
    first, again, other = (kind(32, seed=seed, **INTERVALS) for seed in (3, 3, 4))
    some = np.array([5, 31])
    for name in INTERVALS:
        np.testing.assert_array_equal(again.lanes(some)[name], first.lanes(np.arange(32))[name][some])
        assert np.all(other.lanes(some)[name] != first.lanes(some)[name])


def test_a_larger_sobol_design_begins_with_the_smaller_one():
    small, large = (jdyn.designs.Sobol(n, **INTERVALS) for n in (16, 64))
    np.testing.assert_array_equal(large.values["kp"][:16], small.values["kp"])


def test_products_have_every_lane_of_one_with_every_lane_of_the_other():
    product = jdyn.designs.Grid(kp=[10.0, 100.0], kd=[1.0, 2.0, 3.0]) * jdyn.designs.Samples(
        mass=[0.1, 0.2], q0=[[0.0, 1.0], [2.0, 3.0]]
    )
    assert product.dims == {"kp": 2, "kd": 3, "sample": 2} and product.size == 12
    assert {name: x.tolist() for name, x in product.lanes(np.array([7])).items()} == {
        "kp": [100.0], "kd": [1.0], "mass": [0.2], "q0": [[2.0, 3.0]],
    }  # fmt: skip
    dataset = jdyn.sweep(lambda p: {"sum": p["kp"] + p["kd"] + p["mass"] + jnp.sum(p["q0"])}, product, progress=False)
    assert dataset["sum"].dims == ("kp", "kd", "sample")
    np.testing.assert_allclose(dataset["sum"].sel(kp=100.0, kd=3.0).values, [104.1, 108.2])
    np.testing.assert_array_equal(dataset["mass"], [0.1, 0.2])


def test_zips_have_each_lane_of_one_with_the_same_of_the_other():
    zipped = jdyn.designs.LatinHypercube(6, mass=(0.5, 2.0)).zip(jdyn.designs.Grid(kp=[1.0, 2.0], kd=[1.0, 2.0, 3.0]))
    assert zipped.dims == {"sample": 6}
    np.testing.assert_array_equal(zipped.lanes(np.arange(6))["kd"], [1, 2, 3, 1, 2, 3])
    dataset = jdyn.sweep(lambda p: {"sum": p["mass"] + p["kp"]}, zipped, progress=False)
    np.testing.assert_array_equal(dataset["sum"], dataset["mass"] + dataset["kp"])


DESIGNS = [
    jdyn.designs.Grid(kp=[10.0, 100.0], on=[True, False], n=[1, 2, 3]),
    jdyn.designs.Samples(q0=np.arange(6, dtype=np.float32).reshape(3, 2), bad=[0.1, np.nan, np.inf]),
    jdyn.designs.Sobol(8, seed=2, **INTERVALS),
    jdyn.designs.LatinHypercube(5, **INTERVALS) * jdyn.designs.Grid(kd=[1.0, 2.0]),
    jdyn.designs.Sobol(2, mass=(0.5, 2.0)).zip(jdyn.designs.Grid(kp=[1.0, 2.0])),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_designs_are_values_that_can_be_written_down(design):
    for again in (jdyn.designs.Design.from_json(design.to_json()), pickle.loads(pickle.dumps(design))):
        assert again == design and hash(again) == hash(design) and again is not design
        assert type(again) is type(design) and repr(again) == repr(design)
        for name, values in again.values.items():
            np.testing.assert_array_equal(values, design.values[name])
            assert values.dtype == design.values[name].dtype


def test_designs_with_other_lanes_are_not_equal():
    others = [
        *DESIGNS,
        jdyn.designs.Grid(kp=[10.0, 100.0]),
        jdyn.designs.Samples(kp=[10.0, 100.0]),
        jdyn.designs.Sobol(8, seed=3, **INTERVALS),
    ]
    assert len(set(others)) == len(others) and DESIGNS[0] != "text"
    assert jdyn.designs.Grid(a=[1.0], b=[2.0, 3.0]) != jdyn.designs.Grid(b=[2.0, 3.0], a=[1.0])
    for text in ("", "{}", '{"kind": "Lattice"}', '{"kind": "Grid", "values": {"a": 1}}', "[]"):
        with pytest.raises(ValueError, match="expected the text of a design"):
            jdyn.designs.Design.from_json(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jdyn.designs.LatinHypercube(0, mass=(0, 1)), "expected a positive number of lanes, got 0"),
        (lambda: jdyn.designs.LatinHypercube(4), "no parameter is given"),
        (lambda: jdyn.designs.Sobol(100, mass=(0, 1)), "expected a power of 2 lanes, got 100; take 64 or 128"),
        (lambda: jdyn.designs.Sobol(4, mass=(1, 1)), r"'mass': expected \(low, high\) or jdyn.designs.Log"),
        (lambda: jdyn.designs.Sobol(4, mass=[1, 2, 3]), r"low < high, got \[1, 2, 3\]"),
        (lambda: jdyn.designs.Sobol(4, mass=jdyn.designs.Log(0, 1)), r"needs low > 0, got Log\(low=0, high=1\)"),
        (
            lambda: jdyn.designs.Grid(kp=[1.0]) * jdyn.designs.Samples(kp=[1.0]),
            "both designs have parameters called 'kp'",
        ),
        (
            lambda: jdyn.designs.Grid(kp=[1.0]).zip(jdyn.designs.Grid(kd=[1.0, 2.0])),
            "as many lanes in both designs, got 1 and 2",
        ),
        (
            lambda: jdyn.designs.Samples(m=[1.0]) * jdyn.designs.Samples(n=[1.0]),
            "both designs have axes called 'sample'",
        ),
    ],
)
def test_bad_designs_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
