"""Format of a store: what is in its folder, and under which names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jdyn.simulation import Result
from jdyn.sweep.design import extra_dims

VERSION = 3
# Attribute of the group, and folder in it with one small file for each chunk that is whole.
KEY, LEDGER = "jdyn_sweep", "finished"
# Digests of all files that are there from the beginning.
SEAL = f"{LEDGER}/store.json"
# Of a store's folder and axis.
RESERVED = (LEDGER, "lane", "zarr.json")
# Lanes whose parameters are in one file, and what these take at most unless a lane takes more [bytes].
PARAMETERS_CHUNK, PARAMETERS_BYTES = 65536, 2**25
# Most that one file may hold when it is unpacked: whoever reads a lane unpacks its file [bytes].
MOST_BYTES = 2**28
TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
# Characters that mean nothing to a file system or in a page.
NAME = re.compile(r"[\w:+(\[{@#~=-][\w.:+()\[\]{},@#~=-]{0,199}")


class Output(NamedTuple):
    """A variable of each lane.

    Attributes:
        shape: Of one lane's.
        dtype: By name.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size of one lane's."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def file(self, name: str, chunk: int) -> str:
        """Path of the one file of a chunk: axes besides that of the lanes are not cut."""
        return "/".join([name, "c", str(chunk), *["0"] * len(self.shape)])


def is_name(name: Any) -> bool:
    """Tell whether a parameter or an entry may have this name in a store."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None and name not in RESERVED


def parameters_chunk(output: Output) -> int:
    """Lanes whose values of a parameter are in one file."""
    return max(min(PARAMETERS_CHUNK, PARAMETERS_BYTES // max(output.bytes, 1)), 1)


def nothing(name: str, dtype: str) -> Any:
    """Value that stands for a lane that has not run."""
    if name == "result":
        return Result.not_run.value
    return np.full((), np.nan, dtype).item() if np.issubdtype(dtype, np.inexact) else np.zeros((), dtype).item()


def make_array(group: Any, name: str, output: Output, lanes: int, chunk: int, attributes: Mapping[str, Any]) -> Any:
    """A variable in a group of Zarr, without content: lanes that are not there are NaN, or `not_run`."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    return group.create_array(
        name,
        shape=(lanes, *output.shape),
        chunks=(min(chunk, lanes), *(max(length, 1) for length in output.shape)),
        dtype=output.dtype,
        fill_value=nothing(name, output.dtype),
        # With a checksum, so that whoever reads a damaged file is told.
        compressors=[ZstdCodec(), Crc32cCodec()],
        dimension_names=("lane", *extra_dims(name, output.shape)),
        attributes={name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in attributes.items()},
        # A chunk without a file is one that is missing.
        config={"write_empty_chunks": True},
    )
