"""Kernels for a GPU, compiled for the processor and run there lane by lane."""

import ctypes
import pathlib
import shutil
import subprocess
import tempfile

import jax
import numpy as np
import pytest

from jdyn.execution.threads.kernel import program_of_lane
from jdyn.execution.threads.source import NAME, Source, source_of

COMPILER = shutil.which("c++") or shutil.which("g++")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no compiler of C++")

DTYPES = {
    "f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip


def source(function, lanes: int, varies, operands) -> Source:
    """The source of the kernel that `function` of a lane becomes."""
    lane = [jax.ShapeDtypeStruct(x.shape[each:], x.dtype) for x, each in zip(operands, varies, strict=True)]
    return source_of(program_of_lane(function, lane), lanes, varies)


def on_host(function, *operands, varies=None) -> list[np.ndarray]:
    """The results of all lanes that have entries. Operands have lanes first, unless `varies` says otherwise."""
    varies = [True] * len(operands) if varies is None else varies
    operands = [np.asarray(x) for x in operands]
    lanes = next(len(x) for x, each in zip(operands, varies, strict=True) if each)
    return run(source(function, lanes, varies, operands), lanes, varies, operands)


def run(kernel: Source, lanes: int, varies, operands) -> list[np.ndarray]:
    """Compiles a kernel, and calls it. What it is to write holds nonsense before."""
    given = [
        np.ascontiguousarray(np.moveaxis(x, 0, -1) if each and kernel.lanes_last else x)
        for x, each in zip(operands, varies, strict=True)
        if x.size
    ]
    shapes = [(*kind.shape, lanes) if kernel.lanes_last else (lanes, *kind.shape) for kind in kernel.results]
    results = [np.full(shape, 77, DTYPES[kind.dtype]) for shape, kind in zip(shapes, kernel.results, strict=True)]
    scratch = [np.full((kind.size, lanes), 77, DTYPES[kind.dtype]) for kind in kernel.scratch]
    memory = [*given, *results, *scratch]
    with tempfile.TemporaryDirectory() as folder:
        text, library = pathlib.Path(folder, "lanes.cc"), pathlib.Path(folder, "lanes.so")
        text.write_text(kernel.host())
        flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off"]
        subprocess.run([COMPILER, *flags, str(text), "-o", str(library)], check=True)
        pointers = (ctypes.c_void_p * len(memory))(*(x.ctypes.data for x in memory))
        getattr(ctypes.CDLL(str(library)), NAME)(pointers)
    return [np.moveaxis(x, -1, 0) if kernel.lanes_last else x for x in results]


def check(function, *operands, varies=None, rtol=0.0):
    """Threads compute what `jax.vmap` does, up to `rtol`. Results without entries are left out."""
    varies = [True] * len(operands) if varies is None else varies
    found = on_host(function, *operands, varies=varies)
    expected = jax.jit(jax.vmap(function, [0 if each else None for each in varies]))(*operands)
    expected = [np.asarray(x) for x in jax.tree.leaves(expected) if np.size(x)]
    for mine, other in zip(found, expected, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=rtol)
