"""The flags that `import jdyn` asks XLA for."""

import os
import subprocess
import sys
import textwrap

import pytest

from jdyn.execution.xla_flags import OURS, set_xla_flags

ALL = " ".join(OURS)

# Seconds of the processor to compile a batch and to run a gradient, and the gradient.
REACH = """
    import time
    import jax, jax.numpy as jnp, jdyn
    model = jdyn.load("panda")
    target = model.neutral() + 0.3
    controller = jdyn.PD(model, target, kp=100.0, kd=20.0)
    def end(q):
        return jdyn.simulate(model, q, jnp.zeros(7), 0.1, controller=controller).q[-1]
    def ends(q):
        return jdyn.simulate_batch(model, q, jnp.zeros((64, 7)), 0.1, controller=controller).q[:, -1]
    def compiled(function, *operands):
        lowered = jax.jit(function).lower(*operands)
        start = time.process_time()
        return lowered.compile(), time.process_time() - start
    def ran(program, *operands):
        start = time.process_time()
        jax.block_until_ready(program(*operands))
        return time.process_time() - start
    _, to_compile = compiled(ends, jnp.tile(model.neutral(), (64, 1)))
    gradient, _ = compiled(jax.grad(lambda q: jnp.sum(end(q))), model.neutral())
    print(to_compile, min(ran(gradient, model.neutral()) for _ in range(10)), *gradient(model.neutral()))
"""


def _run(code: str, flags: str = "") -> subprocess.CompletedProcess:
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_PLATFORMS": "cpu"}
    arguments = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.slow
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
    monkeypatch.setattr("jdyn.execution.xla_flags._computes_on_processors", lambda: False)
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
@pytest.mark.exhaustive
def test_a_batch_compiles_and_a_gradient_runs_in_less_time_and_is_what_it_was():
    """On one core 2.2 s, of 3.6, and 3 ms, of 12."""
    none = "--xla_backend_extra_options=xla_none"
    (compiled, ran, *gradient), (plain_compiled, plain_ran, *plain_gradient) = (
        [float(x) for x in _run(REACH, flags).stdout.split()] for flags in ("", none)
    )
    assert compiled < 0.8 * plain_compiled
    assert ran < 0.5 * plain_ran
    assert gradient == pytest.approx(plain_gradient, abs=1e-5)
