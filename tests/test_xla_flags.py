"""The flags that `import jdyn` asks XLA for."""

import os
import subprocess
import sys
import textwrap

import pytest

from jdyn.xla_flags import OURS, set_xla_flags

ALL = " ".join(OURS)

# Times of the processor to compile and to run, and where the motion ends.
REACH = """
    import time
    import jax, jax.numpy as jnp, jdyn
    model = jdyn.load("panda")
    target = model.neutral() + 0.3
    def end(q):
        return jdyn.simulate(model, q, jnp.zeros(7), 0.5, controller=jdyn.PD(model, target, kp=100.0, kd=20.0)).q[-1]
    times = [time.process_time()]
    program = jax.jit(end).lower(model.neutral()).compile()
    times.append(time.process_time())
    q = jax.block_until_ready(program(model.neutral()))
    times.append(time.process_time())
    for _ in range(5):
        jax.block_until_ready(program(model.neutral()))
    times.append(time.process_time())
    print(times[1] - times[0], times[3] - times[2], *q)
"""


def _run(code: str, flags: str = "") -> subprocess.CompletedProcess:
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_PLATFORMS": "cpu"}
    arguments = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.parametrize(
    ("there", "then"),
    [
        ("", ALL),
        ("--xla_cpu_max_isa=AVX2 ", f"--xla_cpu_max_isa=AVX2 {ALL}"),
        ("--xla_backend_extra_options=xla_other", f"--xla_backend_extra_options=xla_other {OURS[1]}"),
        ("--xla_cpu_experimental_ynn_fusion_type=1", f"--xla_cpu_experimental_ynn_fusion_type=1 {OURS[0]}"),
        (ALL, ALL),
        ("file.txt", "file.txt"),
    ],
)
def test_flags_that_are_there_stay(monkeypatch, there, then):
    monkeypatch.setattr("jdyn.xla_flags._computes_on_processors", lambda: False)
    environment = {"XLA_FLAGS": there}
    set_xla_flags(environment)
    assert environment == {"XLA_FLAGS": then}


def test_too_late_is_said():
    code = "import jax; x = jax.numpy.ones(3); import jdyn, os; print(os.environ['XLA_FLAGS'])"
    run = _run(code)
    assert "imported after JAX had computed something" in run.stderr
    assert "Import jdyn first, or set XLA_FLAGS='--xla_backend_extra_options=" in run.stderr
    assert run.stdout.strip() == ""
    assert _run(code, ALL).stderr == ""


@pytest.mark.slow
def test_a_controlled_robot_takes_less_time_and_ends_where_it_did():
    """On one core 1.2 ms, of 10, and half of the time to compile."""
    none = "--xla_backend_extra_options=xla_none"
    (compiled, ran, *q), (plain_compiled, plain_ran, *plain_q) = (
        [float(x) for x in _run(REACH, flags).stdout.split()] for flags in ("", none)
    )
    assert compiled < 0.8 * plain_compiled
    assert ran < 0.5 * plain_ran
    assert q == pytest.approx(plain_q, abs=1e-5)
