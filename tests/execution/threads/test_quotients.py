"""Quotients of kernels are those of IEEE arithmetic: dynamics rest on x / x = 1."""

import ctypes
import dataclasses
import re

import numpy as np
import pytest

import jdyn
from jdyn.execution.threads import nvrtc
from tests.dynamics.test_accuracy import error, two_links
from tests.execution.threads.on_host import needs_compiler, run, source

# Two units in the last place too large, as CUDA's `--prec-div=false` allows.
APPROXIMATE = """
static inline float quotient_of(float x, float y) { return nextafterf(nextafterf(x / y, 3e38f), 3e38f); }
"""


@needs_compiler
def test_forward_dynamics_in_float32_needs_exact_quotients():
    """A light link that carries one a million times as long and as heavy, beside 60-digit arithmetic."""
    model, *state, exact = two_links(6, "float32", False)
    state = [np.asarray(x) for x in state]
    lanes, varies = len(exact), [True] * 3
    kernel = source(lambda q, v, tau: [jdyn.forward_dynamics(model, q, v, tau)], lanes, varies, state)
    text, count = re.subn(r"= (\w+) / (\w+);", r"= quotient_of(\1, \2);", kernel.text)
    assert count > 10

    def worst(kernel):
        (found,) = run(kernel, lanes, varies, state)
        return max(map(error, found, exact))

    assert worst(kernel) < 1e-6
    assert worst(dataclasses.replace(kernel, text=APPROXIMATE + text)) > 1e-3


def test_nvrtc_is_asked_for_exact_quotients(monkeypatch):
    asked = []

    class Library:
        """NVRTC that knows nothing but what it is asked for."""

        def nvrtcCompileProgram(self, program, count, options):
            asked.extend(options[:count])
            return 0

        def nvrtcGetPTXSize(self, program, size):
            ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t))[0] = 1
            return 0

        def __getattr__(self, name):
            return lambda *arguments: 0

    monkeypatch.setattr(nvrtc, "_library", Library)
    nvrtc.compiled("// nothing", "compute_80")
    assert asked == [b"--gpu-architecture=compute_80", b"--std=c++17"]


def test_quotients_compile_to_rounded_ones():
    text = 'extern "C" __global__ void lanes(float* x, float* y) { x[threadIdx.x] /= y[threadIdx.x]; }'
    try:
        ptx = nvrtc.compiled(text, "compute_80")
    except FileNotFoundError:
        pytest.skip("no NVRTC")
    assert "div.rn.f32" in ptx and "div.full" not in ptx and "div.approx" not in ptx
