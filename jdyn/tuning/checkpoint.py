"""A tuning on disk: what it takes to go on from there, bit for bit."""

import os
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jdyn.io.archive import load_archive, save_archive
from jdyn.io.whole_file import remove_unfinished
from jdyn.terminal.messages import enumerated

KIND, VERSION = "tuning", 1

# Saving may take this part of the time.
SHARE = 0.05


class Checkpoint:
    """A file that holds the state of a tuning; it is replaced as a whole.

    Attributes:
        path: Of the file.
        digest: Of what is tuned.
    """

    def __init__(self, path: str | os.PathLike, digest: str):
        self.path, self.digest = pathlib.Path(path), digest
        self._saved_at = self._cost = 0.0

    def load(self, walk: PyTree, seen: PyTree) -> tuple[PyTree, list[PyTree]]:
        """The walk, and what each step told, as they were saved; the ones given, and none, if there is no file.

        Args:
            walk: At the start.
            seen: What a step tells: shapes and types.

        Raises:
            ValueError: if the file is damaged, or that of something else.
            OSError: if it cannot be read.
        """
        remove_unfinished(self.path.parent, self.path.name)
        if not self.path.exists():
            return walk, []
        arrays, header = load_archive(self.path, KIND, VERSION)
        if header.get("digest") != self.digest:
            raise ValueError(
                f"{self.path}: it holds another tuning: of another loss, start, optimizer, bounds, data or seed, or "
                "another version of JAX or jdyn. Choose another path, or delete it"
            )
        leaves, structure = jax.tree.flatten(walk)
        told, rows = jax.tree.flatten(seen)
        self._check(arrays, leaves, told)
        walk = structure.unflatten(_like(leaf, arrays[f"walk_{i}"]) for i, leaf in enumerate(leaves))
        columns = [arrays[f"seen_{i}"] for i in range(len(told))]
        return walk, [rows.unflatten(row) for row in zip(*columns, strict=True)]

    def _check(self, arrays, leaves, told):
        """Check that a file has the numbers of this walk, and of as many steps each of what these told."""
        steps = {np.shape(arrays.get(f"seen_{i}"))[:1] for i in range(len(told))}
        expected = {f"walk_{i}": as_numbers(leaf) for i, leaf in enumerate(leaves)}
        expected = {name: (x.shape, x.dtype) for name, x in expected.items()}
        rows = next(iter(steps)) if len(steps) == 1 else ()
        expected |= {f"seen_{i}": ((*rows, *x.shape), np.dtype(x.dtype)) for i, x in enumerate(told)}
        found = {name: (x.shape, x.dtype) for name, x in arrays.items()}
        if found != expected:
            wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            raise ValueError(
                f"{self.path}: expected a jdyn {KIND}, found a damaged or a different file: it has other numbers than "
                f"this tuning ({enumerated(wrong)})"
            )

    def is_due(self) -> bool:
        """Tell whether saving would now take a small part of the time."""
        return SHARE * (time.monotonic() - self._saved_at) >= self._cost

    def save(self, walk: PyTree, records: list[PyTree]) -> None:
        """Keep the walk, and what each step told.

        Raises:
            OSError: if the file cannot be written. The one before it stays.
        """
        began = time.monotonic()
        arrays = {f"walk_{i}": as_numbers(leaf) for i, leaf in enumerate(jax.tree.leaves(walk))}
        columns = zip(*map(jax.tree.leaves, records), strict=True)
        arrays |= {f"seen_{i}": np.stack(column) for i, column in enumerate(columns)}
        save_archive(self.path, KIND, VERSION, arrays, {"digest": self.digest})
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began


def as_numbers(leaf: Any) -> np.ndarray:
    """A leaf as an array of numbers, also if it is a key of random numbers."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf, numbers):
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(numbers), impl=jax.random.key_impl(leaf))
    return jnp.asarray(numbers, leaf.dtype)


def _is_key(leaf):
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
