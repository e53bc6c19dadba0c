"""Processes that run out of memory maps are told before."""

import sys
import warnings

import jax.numpy as jnp
import pytest

import jdyn
from jdyn.execution import memory_maps
from jdyn.execution.memory_maps import MapCounter

pytestmark = pytest.mark.fast_compile


def taken():
    return memory_maps.MAPS.read_bytes().count(b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit")
def test_compiling_warns_once_where_few_maps_are_left(tmp_path, monkeypatch):
    limit = tmp_path / "max_map_count"
    limit.write_text(f"{2 * taken()}\n")
    monkeypatch.setattr(memory_maps, "LIMIT", limit)
    monkeypatch.setattr(memory_maps, "PAUSE", 0.0)
    monkeypatch.setattr("jdyn.execution.compiled.memory_maps", MapCounter())

    def compile_for(joints):
        builder, parent = jdyn.Builder("chain"), "world"
        for number in range(joints):
            builder.add_link(f"link{number}", jdyn.Revolute((0, 1, 0)), parent=parent, mass=1.0, inertia=1.0)
            parent = f"link{number}"
        jdyn.potential_energy(builder.build(), jnp.zeros(joints))

    with warnings.catch_warnings(action="error"):
        compile_for(1)
    limit.write_text(f"{taken()}\n")
    with pytest.warns(RuntimeWarning, match=r"this process has \d+ memory maps, of \d+ .* call jax.clear_caches\(\)"):
        compile_for(2)
    with warnings.catch_warnings(action="error"):
        compile_for(3)


def test_systems_without_a_limit_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_maps, "LIMIT", tmp_path / "max_map_count")
    with warnings.catch_warnings(action="error"):
        MapCounter().look()
