"""Meshes that touch as several convex parts."""

import sys
import types

import numpy as np
import pytest
import trimesh

import jdyn
from jdyn.contact import colliders
from jdyn.model import ModelError

pytestmark = pytest.mark.fast_compile


def _robot(path):
    """An L of 3 m³, mirrored, and a ball on it that may touch it besides."""
    builder = jdyn.Builder("robot")
    builder.add_link("angle", jdyn.Free(), mass=1.0, inertia=1.0)
    builder.add_link("ball", jdyn.Prismatic((1, 0, 0)), parent="angle", mass=1.0, inertia=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("angle", "mesh", (1, 1, -1), path=path, touching=jdyn.contact.Touching(friction=0.3))
    builder.include("angle", "ball")
    return builder.build()


@pytest.fixture
def robot(tmp_path):
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    cover = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)])
    sides = [(k, (k + 1) % 6, k + 6) for k in range(6)] + [((k + 1) % 6, (k + 1) % 6 + 6, k + 6) for k in range(6)]
    vertices = [(x, y, z) for z in (0, 1) for x, y in outline]
    trimesh.Trimesh(vertices, [*cover[:, ::-1], *(cover + 6), *sides]).export(tmp_path / "angle.stl")
    return _robot(tmp_path / "angle.stl")


class Cutter(types.ModuleType):
    """In the place of CoACD: cuts into the two arms."""

    def __init__(self):
        super().__init__("coacd")
        self.calls = []

    def set_log_level(self, level):
        pass

    def Mesh(self, vertices, faces):
        return vertices, faces

    def run_coacd(self, mesh, **options):
        self.calls.append(options)
        arms = [trimesh.creation.box(bounds=bounds) for bounds in ([[0, 0, 0], [2, 1, 1]], [[0, 1, 0], [1, 2, 1]])]
        return [(arm.vertices, arm.faces) for arm in arms]


def test_parts_take_the_place_of_the_mesh_and_are_found_again(robot, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", cutter := Cutter())
    first = jdyn.contact.decompose(robot, tmp_path / "parts", threshold=0.1, max_parts=3)
    again = jdyn.contact.decompose(robot, tmp_path / "parts", threshold=0.1, max_parts=3)
    assert [(each["threshold"], each["max_convex_hull"]) for each in cutter.calls] == [(0.1, 3)]
    assert first.shapes.entries == again.shapes.entries
    found = colliders(first)
    assert [entry.name for entry in found.entries] == ["ball", "angle", "angle_part1"]
    np.testing.assert_array_equal(found.sizes[1:], [[1, 1, -1]] * 2)
    np.testing.assert_array_equal(found.friction[1:, 0], [0.3, 0.3])
    assert jdyn.contact.collision_pairs(first) == (("ball", "angle"), ("ball", "angle_part1"))
    assert len(first.shapes.rows("visual")) == 1
    jdyn.contact.decompose(robot, tmp_path / "parts", threshold=0.2)
    assert len(cutter.calls) == 2


def test_parts_of_a_call_that_was_cut_short_are_made_again(robot, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", cutter := Cutter())
    jdyn.contact.decompose(robot, tmp_path / "parts")
    next((tmp_path / "parts").glob("*-001-of-2.stl")).unlink()
    model = jdyn.contact.decompose(robot, tmp_path / "parts")
    assert len(cutter.calls) == 2 and len(model.shapes.rows("collision")) == 3


def test_coacd_leaves_the_notch_open(robot, tmp_path):
    pytest.importorskip("coacd")
    found = colliders(jdyn.contact.decompose(robot, tmp_path / "parts"))
    hulls = found.shapes(np.flatnonzero([entry.kind == "mesh" for entry in found.entries]))
    volume = sum(trimesh.Trimesh(vertices).convex_hull.volume for vertices in hulls.vertices)
    # The hull of the whole has 3.5 m³.
    assert 2.9 < volume < 3.2


def test_a_model_without_meshes_stays_as_it_is(tmp_path):
    model = jdyn.with_ground(jdyn.load("quadruped"))
    assert jdyn.contact.decompose(model, tmp_path / "parts").shapes.entries == model.shapes.entries
    assert jdyn.contact.decompose(jdyn.load("acrobot").without_shapes(), tmp_path / "parts").shapes is None
    assert not (tmp_path / "parts").exists()


def test_what_is_missing_is_named(robot, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(ImportError, match=r'CoACD, which is not installed: pip install "jdyn\[collision\]"'):
        jdyn.contact.decompose(robot, tmp_path / "parts")
    with pytest.raises(ModelError, match=r"robot: 1 problem\n.*'angle' of link 'angle': .*gone\.stl: there is no such"):
        jdyn.contact.decompose(_robot(tmp_path / "gone.stl"), tmp_path / "parts")
