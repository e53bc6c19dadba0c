"""PyTorch is asked for where a function of tensors is made, and not before."""

import subprocess
import sys

import jax.numpy as jnp
import pytest

from jdyn.interop import to_torch

pytestmark = pytest.mark.fast_compile


def test_torch_is_named_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "jdyn.interop.torch_function", raising=False)
    with pytest.raises(ImportError, match=r'PyTorch is not installed; pip install "jdyn\[torch\]"'):
        to_torch(jnp.sin)


def test_jdyn_does_not_import_torch():
    program = "import sys, jdyn; jdyn.load('pendulum'); jdyn.interop.to_torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
