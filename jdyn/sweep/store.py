"""Sweeps on disk: a Zarr group that grows chunk by chunk, and loses none."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import stat
import time
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from jdyn.io.plain_file import read_plain, within
from jdyn.io.whole_file import OLD, remove_unfinished, unfinished_name
from jdyn.simulation import result_meanings
from jdyn.sweep.contents import Contents, contents_of, digest_of
from jdyn.sweep.design import Design
from jdyn.sweep.layout import KEY, LEDGER, SEAL, VERSION, Output, make_array, parameters_chunk
from jdyn.sweep.ledger import Ledger, most_packed
from jdyn.sweep.stored import dataset_of

if TYPE_CHECKING:
    import xarray


class Store:
    """Results of a sweep in a folder, lanes along one axis in the order of their numbers.

    A chunk of lanes is one file of each variable. Once all are written, a file in `finished` says so, with their
    checksums; it appears whole or not at all. Whatever happens before that, the chunk counts as missing.

    Attributes:
        path: The folder.
        size: Number of lanes.
        chunk: Lanes of a chunk; the last may have fewer.
        outputs: What each lane has, by name.
    """

    def __init__(self, contents: Contents):
        self.path, self.size, self.chunk = contents.path, contents.size, contents.chunk
        self.outputs = contents.outputs
        self._contents, self._ledger = contents, Ledger(contents)

    @classmethod
    def at(
        cls,
        path: str | os.PathLike,
        over: Design,
        outputs: Mapping[str, Output],
        chunk: int,
        program: str,
        attrs: Mapping[str, Mapping[str, str]],
        function: str,
    ) -> Store:
        """The store at a path, which is made if there is none. Files of parameters that are damaged are made anew.

        Args:
            path: Of the folder.
            over: The design.
            outputs: What each lane has.
            chunk: Lanes of a chunk.
            program: Digest of what computes them.
            attrs: Attributes of parameters and outputs, by name; those of a store that is there stay.
            function: What is computed, in its own words.

        Raises:
            ValueError: if something else is there, a store of another sweep, or one that is damaged.
            OSError: if it cannot be read or made.
        """
        path = pathlib.Path(path)
        identity = {
            "version": VERSION,
            "design": over.digest,
            "parameters": {name: [list(x.shape), x.dtype] for name, x in _parameters(over).items()},
            "outputs": {name: [list(output.shape), output.dtype] for name, output in outputs.items()},
            "chunk": chunk,
            "program": program,
        }
        if not path.exists():
            _make(path, over, outputs, identity, attrs, function)
        contents = contents_of(path)
        _check_same(contents, identity)
        _repair_parameters(contents, over)
        remove_unfinished(path / LEDGER)
        _remove_partial(path)
        return cls(contents)

    @property
    def after_interruption(self) -> str:
        return f"which {self.path} keeps; the same call goes on from there"

    def lanes(self, chunk: int) -> np.ndarray:
        """Numbers of the lanes of a chunk."""
        return np.arange(chunk * self.chunk, min((chunk + 1) * self.chunk, self.size))

    def missing(self) -> list[int]:
        """Chunks that are not finished, or whose files are not as they were written."""
        return [chunk for chunk in range(-(-self.size // self.chunk)) if self._ledger.lacks(chunk) is not None]

    def write(self, chunk: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Write a chunk, and then that it is finished.

        Raises:
            OSError: if it cannot be written, as on a full disk. The store stays as it was.
        """
        import zarr  # it takes a while to import

        lanes = self.lanes(chunk)
        try:
            group = zarr.open_group(self.path, mode="r+")
            # The result comes last: lanes whose numbers are not there have none.
            for name in sorted(outputs, key="result".__eq__):
                within(self.path, self.outputs[name].file(name, chunk))
                array: Any = group[name]
                # A chunk without a file is one that is missing.
                array.with_config({"write_empty_chunks": True})[lanes[0] : lanes[-1] + 1] = outputs[name]
            self._ledger.enter(chunk)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self.path}: lanes {lanes[0]} to {lanes[-1]} cannot be written ({error.strerror}); finished ones are "
                "kept, and the same call goes on from there",
            ) from error

    def dataset(self) -> xarray.Dataset:
        """Dataset of what is there, read as it is needed. Lanes that are not finished have the result `not_run`, and
        are NaN, or 0 where that is no number."""
        return dataset_of(self._contents)


def chunk_of(path: str | os.PathLike) -> int | None:
    """Lanes of a chunk of the store at a path; None if there is none."""
    return contents_of(path).chunk if os.path.exists(path) else None


def _check_same(contents, identity):
    found = contents.identity
    meanings = {
        "design": "holds a sweep over another design",
        "parameters": "holds a sweep over another design",
        "outputs": "holds other variables",
        "chunk": f"has chunks of {contents.chunk} lanes, not {identity['chunk']}",
        "program": "was computed by another function, model, device or version",
    }
    for key, meaning in meanings.items():
        if found.get(key) != identity[key]:
            raise ValueError(
                f"{contents.path}: it {meaning}; its lanes and new ones would not be of one sweep. Choose another "
                "path, or delete it"
            )


def _parameters(over):
    """Shapes and types of a lane's."""
    return {name: Output(values.shape[1:], values.dtype.str) for name, values in over.lanes(np.zeros(1, int)).items()}


def _make(path, over, outputs, identity, attrs, function):
    """Make a store without lanes, whole or not at all."""
    remove_unfinished(path.parent, path.name)
    with unfinished_name(path) as unfinished:
        _make_at(unfinished, path, over, outputs, identity, attrs, function)


def _make_at(unfinished, path, over, outputs, identity, attrs, function):
    import jax
    import zarr
    from zarr.errors import ZarrUserWarning

    try:
        group = zarr.open_group(unfinished, mode="w", zarr_format=3)
        dims = {name: dims for name, (dims, _) in over.coordinates().items()}
        parameter_axes = {name: [axis for axis in dims[name] if axis in over.dims] for name in over.values}
        group.attrs.update({
            KEY: identity,
            "source": f"jdyn {version('jdyn')}",
            "device": str(jax.devices()[0].device_kind),
            "function": function,
            "axes": [list(axis) for axis in over.dims.items()],
            "parameter_axes": parameter_axes,
            "coordinates": " ".join(over.values),
        })  # fmt: skip
        for name, parameter in _parameters(over).items():
            chunk = parameters_chunk(parameter)
            array = make_array(group, name, parameter, over.size, chunk, attrs.get(name, {}))
            for number in range(-(-over.size // chunk)):
                _write_parameters(array, name, over, number, chunk)
        for name, output in outputs.items():
            own = {**(result_meanings() if name == "result" else {}), **attrs.get(name, {})}
            make_array(group, name, output, over.size, identity["chunk"], own)
        with warnings.catch_warnings():
            # Zarr says that other programs may not know consolidated metadata; they read the rest.
            warnings.simplefilter("ignore", ZarrUserWarning)
            zarr.consolidate_metadata(unfinished)
        _seal(unfinished)
        unfinished.rename(path)
    except OSError:
        # Another process may have made it meanwhile.
        if not path.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _remove_partial(folder):
    """Remove what Zarr began to write in processes that were killed, which its names do not tell: after a day."""
    for file in folder.rglob("*.partial"):
        status = file.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        if own and re.fullmatch(r".*\.[0-9a-f]{32}\.partial", file.name) and time.time() - status.st_mtime > OLD:
            file.unlink(missing_ok=True)


def _seal(folder):
    """Keep digests of all files that there are."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    digests = {file.relative_to(folder).as_posix(): digest_of(file.read_bytes()) for file in files}
    (folder / LEDGER).mkdir()
    (folder / SEAL).write_text(json.dumps(digests))


def _write_parameters(array, name, over, number, chunk):
    lanes = np.arange(number * chunk, min((number + 1) * chunk, over.size))
    array[lanes[0] : lanes[-1] + 1] = over.lanes(lanes)[name]


def _repair_parameters(contents: Contents, over):
    """Write files of parameters that are missing or damaged from the design."""
    import zarr

    for name, parameter in contents.parameters.items():
        chunk = parameters_chunk(parameter)
        for number in range(-(-contents.size // chunk)):
            file = parameter.file(name, number)
            if file not in contents.sealed or _is_as_written(contents, file, parameter, chunk):
                continue
            warnings.warn(f"{contents.path}: {file} is damaged or missing, and is written anew", stacklevel=4)
            within(contents.path, file)
            array: Any = zarr.open_group(contents.path, mode="r+")[name]
            _write_parameters(array.with_config({"write_empty_chunks": True}), name, over, number, chunk)
            if not _is_as_written(contents, file, parameter, chunk):
                raise ValueError(
                    f"{contents.path}: {file} is damaged, and this version of Zarr does not write what was there. "
                    "Choose another path, or delete it"
                )


def _is_as_written(contents, file, parameter, chunk):
    try:
        content = read_plain(contents.path, file, most_packed(parameter, chunk))
    except (FileNotFoundError, ValueError):
        return False
    return digest_of(content) == contents.sealed[file]
