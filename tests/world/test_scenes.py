"""Scenes, each by what is known of it."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.cli import main
from jdyn.cli.parser import SCENES as SCENES_OF_COMMANDS
from jdyn.world import SCENES


def kept(motion):
    """Energy without what impacts took, as a share of the first."""
    energy = motion.energy - motion.energy_of_impacts
    return np.max(np.abs(np.asarray(energy - energy[0])))


def test_commands_know_all_scenes():
    assert SCENES_OF_COMMANDS == tuple(SCENES)
    for scene in SCENES.values():
        world, t1, _ = scene()
        assert t1 > 0 and len(world.islands()) >= 1


@pytest.mark.exhaustive
def test_balls_of_a_cradle_leave_one_by_one():
    """Of three balls the last one takes all speed, and comes as high as the first one was."""
    world, t1, _ = jdyn.world.newtons_cradle(3)
    motion = world.simulate(t1 / 2, saveat=jnp.linspace(0, t1 / 2, 201), max_events=200)
    first, second = motion.impacts.records[:2]
    assert (first.pair, second.pair) == (("ball1/ball", "ball2/ball"), ("ball2/ball", "ball3/ball"))
    # A gap of 1 mm at 0.5 m turns the second ball by 2e-3 rad before it stops.
    lowest = np.min(motion["ball3"].q)
    np.testing.assert_allclose(lowest, -0.6, atol=0.02)
    away = int(np.argmin(motion["ball3"].q[:, 0]))
    assert np.max(np.abs(motion.q[away, :2])) < 0.05
    assert kept(motion) < 1e-5
    np.testing.assert_allclose([first.energy, second.energy], 0, atol=1e-9)


@pytest.mark.exhaustive
def test_a_break_keeps_momentum_but_at_cushions():
    world, _, _ = jdyn.world.billiards(2)
    # Until no ball has come to a cushion.
    motion = world.simulate(0.35, saveat=jnp.linspace(0, 0.35, 8), coordinator=jdyn.world.Coordinator(window=0.05))
    hits = motion.impacts.records
    assert hits and not [hit for hit in hits if "table" in hit.pair[0]]
    assert hits[0].pair == ("cue/ball", "ball1/ball")
    impulse = np.sum([each.impulse for each in motion["cue"].impacts.records], axis=0)
    others = np.sum([motion[name].v[-1, :2] for name in ("ball1", "ball2", "ball3")], axis=0)
    # Damping takes a share of 0.02 a second.
    np.testing.assert_allclose(0.17 * others, -impulse[:2], atol=5e-3)
    assert all(hit.energy <= 1e-12 for hit in hits)


@pytest.mark.exhaustive
def test_pumas_collide_and_keep_the_rest_of_their_energy():
    """One falls, the other's controller is a potential that undoes its weight."""
    world, _, _ = jdyn.world.two_pumas()
    tight = diffrax.PIDController(rtol=1e-9, atol=1e-9)
    motion = world.simulate(10.0, saveat=jnp.linspace(0, 10, 41), max_events=64, stepsize_controller=tight)
    assert [hit.pair for hit in motion.impacts.records] == [("falling/elbow", "floating/elbow")] * 2
    held = np.array([world["floating"].at(q).dynamic.potential_energy for q in motion["floating"].q])
    energy = np.asarray(motion.energy - motion.energy_of_impacts) - held
    np.testing.assert_allclose(energy, energy[0], atol=1e-6 * abs(energy[0]))


@pytest.mark.slow
def test_the_command_tells_impacts_and_energy(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(SCENES, "cradle", lambda: jdyn.world.newtons_cradle(2))
    monkeypatch.chdir(tmp_path)
    assert main(["world", "cradle", "--t1", "0.5", "--save", "motion.npz"]) == 0
    printed = capsys.readouterr().out
    motion = jdyn.world.WorldMotion.load(tmp_path / "motion.npz")
    (hit,) = motion.impacts.records
    assert f"{hit.t:.6f}  ball1/ball  ball2/ball" in printed
    assert f"energy: {float(motion.energy[0]):.8g} J at the start" in printed
