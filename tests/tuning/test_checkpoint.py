"""Tunings on disk go on where they were, to the last bit."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jdyn
from jdyn.io.archive import load_archive, save_archive
from jdyn.tuning import descent
from jdyn.tuning.history import History

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


START = {"x": jnp.array([1.5, -0.5]), "gain": 3.0, "n": 2}
ROWS = np.random.default_rng(0).normal(size=(10, 2))


def loss(p, rows):
    return jnp.mean((jnp.sin(p["x"]) - rows) ** 2) + jnp.log(p["gain"]) ** 2


def run(path, steps=9, function=loss, start=START, rows=ROWS, seed=0, rate=0.05):
    # Noise, so that a random key is part of the state.
    optimizer = optax.chain(optax.add_noise(0.1, 0.5, jax.random.key(1)), optax.adam(rate))
    return jdyn.tune(
        function, start, optimizer=optimizer, steps=steps, bounds={"x": None, "gain": jdyn.tuning.Positive(),
        "n": None},
        data=jdyn.tuning.Minibatches(rows, 3, seed), checkpoint=path, check=False,
    )  # fmt: skip


def assert_same(a, b):
    for name in ("losses", "gradient_norms", "judged", "learning_rates"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.best_step, a.message) == (b.best_step, b.message)
    jax.tree.map(np.testing.assert_array_equal, (a.params, a.path), (b.params, b.path))


@pytest.fixture(scope="module")
def undisturbed():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return run(None)


def test_a_tuning_goes_on_to_the_same_bits(tmp_path, undisturbed, monkeypatch):
    """Stopped in the middle of an epoch, as a full disk stops it."""
    save, saved = descent.Checkpoint.save, []

    def fill_up(self, walk, records):
        if len(saved) == 5:
            raise OSError("no space left")
        saved.append(len(records))
        save(self, walk, records)

    monkeypatch.setattr(descent.Checkpoint, "save", fill_up)
    monkeypatch.setattr(descent.Checkpoint, "is_due", lambda self: True)
    with pytest.raises(OSError, match="no space left"):
        run(tmp_path / "c")
    monkeypatch.undo()
    adds = []
    monkeypatch.setattr(descent, "_take", lambda *args, take=descent._take: adds.append(args[3]) or take(*args))
    assert_same(run(tmp_path / "c"), undisturbed)
    assert saved == [1, 2, 3, 4, 5] and adds == [5, 6, 7, 8, 9]


def test_a_finished_tuning_takes_no_step_and_more_steps_go_on(tmp_path, undisturbed, monkeypatch):
    # Epochs have three steps: both ends are beginnings of epochs, at which all rows are looked at anyway.
    run(tmp_path / "c", steps=6)
    assert_same(run(tmp_path / "c"), undisturbed)
    monkeypatch.setattr(descent, "_take", None)
    assert_same(run(tmp_path / "c"), undisturbed)


def test_the_checkpoint_of_another_tuning_is_refused(tmp_path):
    run(tmp_path / "c", steps=1)
    others = [
        dict(function=lambda p, rows: 1.5 * loss(p, rows)),
        dict(start=START | {"gain": 4.0}),
        dict(rows=ROWS + 1e-9),
        dict(seed=1),
        dict(rate=0.06),
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"it holds another tuning.*Choose another path, or delete it"):
            run(tmp_path / "c", steps=1, **other)


def test_numbers_that_the_loss_closes_over_tell_tunings_apart(tmp_path):
    def descend(centre):
        jdyn.tune(
            lambda x: jnp.sum((x - centre) ** 2), jnp.zeros(2), optimizer=optax.sgd(0.1), steps=1,
            checkpoint=tmp_path / "c", check=False,
        )  # fmt: skip

    descend(jnp.array([1.0, 2.0]))
    descend(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="it holds another tuning"):
        descend(jnp.array([1.0, 2.0000001]))


def test_damage_is_refused_in_words(tmp_path):
    run(tmp_path / "c", steps=1)
    whole = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="expected a jdyn tuning, found a damaged or a different file"):
        run(tmp_path / "c", steps=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("walk_0"),
        lambda arrays: arrays.update(walk_0=arrays["walk_0"][..., None]),
        lambda arrays: arrays.update(walk_0=arrays["walk_0"].astype(np.float32)),
        lambda arrays: arrays.update(walk_99=np.zeros(3)),
        lambda arrays: arrays.update(seen_0=arrays["seen_0"][:-1]),
        lambda arrays: arrays.update(seen_1=np.float64(3.0)),
    ],
    ids=["one less", "another shape", "another type", "one more", "a step less", "no steps"],
)
def test_numbers_of_another_shape_are_refused_in_words(tmp_path, change):
    run(tmp_path / "c", steps=2)
    arrays, header = load_archive(tmp_path / "c", "tuning", 1)
    change(arrays)
    save_archive(tmp_path / "c", "tuning", 1, arrays, header)
    with pytest.raises(ValueError, match=r"found a damaged or a different file: it has other numbers than this tuning"):
        run(tmp_path / "c", steps=2)


def test_ctrl_c_keeps_what_was_found(tmp_path, undisturbed, monkeypatch):
    add, before = History.add, signal.getsignal(signal.SIGINT)

    def interrupted(self, *numbers):
        add(self, *numbers)
        if len(self.losses) == 5:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    monkeypatch.setattr(History, "add", interrupted)
    with pytest.warns(jdyn.tuning.TuneWarning, match=r"interrupted after 4 steps; the result holds the best"):
        result = run(tmp_path / "c")
    np.testing.assert_array_equal(result.losses, undisturbed.losses[:5])
    assert result.message == "interrupted after 4 steps" and signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    assert_same(run(tmp_path / "c"), undisturbed)


def test_a_tuning_that_failed_stays_so(tmp_path):
    def runs_away():
        with pytest.warns(jdyn.tuning.TuneWarning, match="the loss is nan after 2 steps"):
            return jdyn.tune(
                lambda x: x * jnp.sqrt(x), 1.0, optimizer=optax.sgd(0.6), steps=50, checkpoint=tmp_path / "c"
            )

    assert_same(runs_away(), runs_away())


KILLED = """
import sys, jax, jax.numpy as jnp, numpy as np, optax, jdyn
def loss(x):
    # Some milliseconds of work.
    A = jnp.cos(jnp.outer(x, x))
    return jnp.sum(jax.lax.fori_loop(0, 20, lambda i, A: jnp.tanh(A @ A.T / 300), A)) + jnp.sum(x**2)
result = jdyn.tune(loss, jnp.linspace(0, 1, 200), optimizer=optax.adam(0.01), steps=300, checkpoint=sys.argv[1])
np.savez(sys.argv[1] + ".result", losses=result.losses, params=result.params)
"""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_killed_tuning_goes_on_to_the_same_result(tmp_path):
    """Killed at random moments: bit for bit as if nothing had happened."""

    def started(name):
        environment = os.environ | {"PYTHONPATH": str(pathlib.Path(jdyn.__file__).parents[1])}
        words = [sys.executable, "-c", KILLED, str(tmp_path / name)]
        return subprocess.Popen(words, env=environment)

    rng, kills, path = np.random.default_rng(0), 0, tmp_path / "killed"
    for _ in range(2):
        tuning, before = started("killed"), path.stat().st_mtime_ns if path.exists() else 0
        while tuning.poll() is None and (not path.exists() or path.stat().st_mtime_ns == before):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.2))
        tuning.kill()
        kills += tuning.wait() == -signal.SIGKILL
    assert kills >= 1
    for name in ("killed", "undisturbed"):
        assert started(name).wait() == 0
    killed, undisturbed = (np.load(tmp_path / f"{name}.result.npz") for name in ("killed", "undisturbed"))
    for name in ("losses", "params"):
        np.testing.assert_array_equal(killed[name], undisturbed[name])
