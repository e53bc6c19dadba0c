"""Which parameters a result depends on: known indices are found."""

import numpy as np
import pytest

import jdyn

ANGLES = {name: (-np.pi, np.pi) for name in "abc"}


def test_indices_of_ishigamis_function():
    """Ishigami and Homma 1990: with coefficients 7 and 0.1 the variance is 13.84, of which single parameters have
    0.3139, 0.4424 and 0; the interaction of the first and the third has the rest, 0.2437."""
    import jax.numpy as jnp

    def lane(p):
        return {"y": jnp.sin(p["a"]) + 7 * jnp.sin(p["b"]) ** 2 + 0.1 * p["c"] ** 4 * jnp.sin(p["a"])}

    design = jdyn.designs.Saltelli(2048, **ANGLES)
    assert design.size == 2048 * 5
    found = design.indices(jdyn.sweep(lane, design, progress=False)["y"])
    for name, expected in (("first_order", [0.3139, 0.4424, 0]), ("total", [0.5576, 0.4424, 0.2437])):
        error = np.abs(found[name] - expected)
        assert np.all(error < 0.03) and np.all(error < 2 * found[f"{name}_interval"] + 1e-3)
    assert found["parameter"].values.tolist() == ["a", "b", "c"]


def test_steps_of_a_linear_function_have_its_slopes():
    design = jdyn.designs.Morris(10, a=(0.0, 2.0), b=(-1.0, 1.0), c=jdyn.designs.Log(1.0, 100.0))
    assert design.size == 40
    lanes = design.lanes(np.arange(40))
    found = design.indices(3 * lanes["a"] - 2 * lanes["b"] + np.log10(lanes["c"]))
    np.testing.assert_allclose(found["mean"], [6, -4, 2], rtol=1e-9)
    np.testing.assert_allclose(found["mean_size"], [6, 4, 2], rtol=1e-9)
    np.testing.assert_allclose(found["spread"], 0, atol=1e-9)


def test_designs_come_again_and_bad_ones_are_refused():
    for kind in (jdyn.designs.Saltelli, jdyn.designs.Morris):
        design = kind(4, seed=1, **ANGLES)
        assert jdyn.designs.Design.from_json(design.to_json()) == design != kind(4, seed=2, **ANGLES)
        with pytest.raises(ValueError, match=f"1 of {design.size} lanes have no finite number"):
            design.indices(np.where(np.arange(design.size) == 3, np.nan, 1.0))
        with pytest.raises(ValueError, match="expected a number for each of"):
            design.indices(np.zeros(3))
    with pytest.raises(ValueError, match="Saltelli: expected a power of 2, got 3"):
        jdyn.designs.Saltelli(3, **ANGLES)
    with pytest.raises(ValueError, match="Morris: expected a positive number of walks, got 0"):
        jdyn.designs.Morris(0, **ANGLES)
