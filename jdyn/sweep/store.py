"""Sweeps on disk: a Zarr group that grows chunk by chunk, and loses none."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import uuid
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jdyn.io.whole_file import whole_file
from jdyn.simulation import Result, result_meanings
from jdyn.sweep.design import Design, extra_dims

if TYPE_CHECKING:
    import xarray

VERSION = 2
# Attribute of the group, and folder in it with one small file for each chunk that is whole.
KEY, LEDGER = "jdyn_sweep", "finished"
# Lanes whose parameters are in one file.
PARAMETERS_CHUNK = 65536


class Output(NamedTuple):
    """A variable of each lane.

    Attributes:
        shape: Of one lane's.
        dtype: By name.
    """

    shape: tuple[int, ...]
    dtype: str


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

    def __init__(self, path: pathlib.Path, size: int, chunk: int, outputs: Mapping[str, Output]):
        self.path, self.size, self.chunk, self.outputs = path, size, chunk, outputs

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
        """The store at a path, which is made if there is none.

        Args:
            path: Of the folder.
            over: The design.
            outputs: What each lane has.
            chunk: Lanes of a chunk.
            program: Digest of what computes them.
            attrs: Attributes of parameters and outputs, by name; those of a store that is there stay.
            function: What is computed, in its own words.

        Raises:
            ValueError: if something else is there, or a store of another sweep.
            OSError: if it cannot be read or made.
        """
        path = pathlib.Path(path)
        identity = {
            "version": VERSION,
            "design": over.digest,
            "outputs": {name: [list(output.shape), output.dtype] for name, output in outputs.items()},
            "chunk": chunk,
            "program": program,
        }
        if not path.exists():
            _make(path, over, outputs, identity, attrs, function)
        _check_same(path, identity)
        return cls(path, over.size, chunk, outputs)

    @property
    def after_interruption(self) -> str:
        return f"which {self.path} keeps; the same call goes on from there"

    def lanes(self, chunk: int) -> np.ndarray:
        """Numbers of the lanes of a chunk."""
        return np.arange(chunk * self.chunk, min((chunk + 1) * self.chunk, self.size))

    def missing(self) -> list[int]:
        """Chunks that are not finished, or whose files are not as they were written."""
        return [chunk for chunk in range(-(-self.size // self.chunk)) if not self._is_whole(chunk)]

    def write(self, chunk: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Write a chunk, and then that it is finished.

        Raises:
            OSError: if it cannot be written, as on a full disk. The store stays as it was.
        """
        import zarr  # it takes a while to import

        lanes = self.lanes(chunk)
        try:
            group = zarr.open_group(self.path, mode="r+")
            for name, output in outputs.items():
                array: Any = group[name]
                # A chunk without a file is one that is missing.
                array.with_config({"write_empty_chunks": True})[lanes[0] : lanes[-1] + 1] = output
            _write(self._entry(chunk), json.dumps(self._digests(chunk)))
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self.path}: lanes {lanes[0]} to {lanes[-1]} cannot be written ({error.strerror}); finished ones are "
                "kept, and the same call goes on from there",
            ) from error

    def dataset(self) -> xarray.Dataset:
        """What is there, read as it is needed. Lanes that are not finished have the result `not_run`, and are NaN, or 0
        where that is no number."""
        return _opened(self.path)

    def _entry(self, chunk):
        return self.path / LEDGER / f"{chunk}.json"

    def _is_whole(self, chunk):
        try:
            return json.loads(self._entry(chunk).read_text()) == self._digests(chunk)
        except (OSError, ValueError):
            return False

    def _digests(self, chunk):
        """Of the one file of each variable: axes besides that of the lanes are not cut."""
        files = {
            name: self.path.joinpath(name, "c", str(chunk), *["0"] * len(output.shape))
            for name, output in self.outputs.items()
            if 0 not in output.shape
        }
        return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}


def open_sweep(path: str | os.PathLike) -> xarray.Dataset:
    """The dataset of a store along the axes of its design, as a sweep in memory has it, whether it is finished or not.

    >>> design = jdyn.Grid(mass=[1.0, 2.0])
    >>> kept = jdyn.sweep(lambda p: {"weight": 9.81 * p["mass"]}, design, store="masses.zarr", progress=False)
    >>> print(jdyn.open_sweep("masses.zarr")["weight"].values)
    [ 9.81 19.62]

    Args:
        path: Of the store.

    Raises:
        ValueError: if something else is there.
        OSError: if it cannot be read.
    """
    import xarray

    _identity(pathlib.Path(path))
    with _opened(path) as lanes:
        axes, parameters = dict(lanes.attrs["axes"]), lanes.attrs["parameter_axes"]
        shape = tuple(axes.values())

        def spread(variable, along=tuple(axes)):
            values = variable.values.reshape(shape + variable.shape[1:])
            values = values[tuple(slice(None) if axis in along else 0 for axis in axes)]
            return (*along, *variable.dims[1:]), values, variable.attrs

        variables = {name: spread(variable) for name, variable in lanes.data_vars.items()}
        coordinates = {name: spread(lanes[name], along) for name, along in parameters.items()}
        return xarray.Dataset(variables, coordinates, lanes.attrs)


def lane_of(path: str | os.PathLike, number: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """Parameters and outputs of one lane of a store, and what computed it, in its own words.

    Raises:
        ValueError: if something else is there, or no such lane.
        OSError: if it cannot be read.
    """
    _identity(pathlib.Path(path))
    with _opened(path) as lanes:
        size = lanes.sizes["lane"]
        if not 0 <= number < size:
            raise ValueError(f"{path}: expected a lane from 0 to {size - 1}, got {number}")
        lane = lanes.isel(lane=number).load()
    parameters = {name: lane[name].values for name in lanes.attrs["parameter_axes"]}
    return parameters, {str(name): lane[name].values for name in lane.data_vars}, lanes.attrs["function"]


def _opened(path) -> xarray.Dataset:
    """As the numbers are: attributes such as `scale_factor` are no one's business here."""
    import xarray

    return xarray.open_zarr(path, chunks=None, mask_and_scale=False, decode_times=False)


def chunk_of(path: str | os.PathLike) -> int | None:
    """Lanes of a chunk of the store at a path; None if there is none."""
    return _identity(pathlib.Path(path)).get("chunk") if os.path.exists(path) else None


def _identity(path) -> dict[str, Any]:
    import zarr

    if not path.exists():
        raise FileNotFoundError(f"{path}: expected the store of a sweep, there is nothing")
    try:
        found: Any = zarr.open_group(path, mode="r").attrs.get(KEY)
    except PermissionError:
        raise
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected the store of a sweep, found something else ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected the store of a sweep, found something else; choose another path")
    return found


def _check_same(path, identity):
    found = _identity(path)
    meanings = {
        "version": "is of another version of the format",
        "design": "holds a sweep over another design",
        "outputs": "holds other variables",
        "chunk": f"has chunks of {found.get('chunk')} lanes, not {identity['chunk']}",
        "program": "was computed by another function, model, device or version",
    }
    for key, meaning in meanings.items():
        if found.get(key) != identity[key]:
            raise ValueError(
                f"{path}: it {meaning}; its lanes and new ones would not be of one sweep. Choose another path, or "
                "delete it"
            )


def _make(path, over, outputs, identity, attrs, function):
    """Make a store without lanes, whole or not at all."""
    import jax
    import zarr
    from zarr.errors import ZarrUserWarning

    # Processes of several machines may have the same number.
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
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
        for name, values in over.lanes(np.zeros(1, int)).items():
            output = Output(values.shape[1:], values.dtype.str)
            _make_array(group, name, output, over.size, PARAMETERS_CHUNK, None, attrs.get(name, {}))
        for lanes in np.split(np.arange(over.size), range(PARAMETERS_CHUNK, over.size, PARAMETERS_CHUNK)):
            for name, values in over.lanes(lanes).items():
                array: Any = group[name]
                array[lanes[0] : lanes[-1] + 1] = values
        for name, output in outputs.items():
            own = {**(result_meanings() if name == "result" else {}), **attrs.get(name, {})}
            _make_array(group, name, output, over.size, identity["chunk"], _nothing(name, output.dtype), own)
        with warnings.catch_warnings():
            # Zarr says that other programs may not know consolidated metadata; they read the rest.
            warnings.simplefilter("ignore", ZarrUserWarning)
            zarr.consolidate_metadata(unfinished)
        (unfinished / LEDGER).mkdir()
        unfinished.rename(path)
    except OSError:
        # Another process may have made it meanwhile.
        if not path.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _nothing(name, dtype):
    """What stands for a lane that has not run."""
    if name == "result":
        return Result.not_run.value
    return np.full((), np.nan, dtype).item() if np.issubdtype(dtype, np.inexact) else np.zeros((), dtype).item()


def _make_array(group, name, output, lanes, chunk, fill, attributes):
    from zarr.codecs import Crc32cCodec, ZstdCodec

    group.create_array(
        name,
        shape=(lanes, *output.shape),
        chunks=(min(chunk, lanes), *(max(length, 1) for length in output.shape)),
        dtype=output.dtype,
        fill_value=fill,
        # With a checksum, so that whoever reads a damaged file is told.
        compressors=[ZstdCodec(), Crc32cCodec()],
        dimension_names=("lane", *extra_dims(name, output.shape)),
        attributes={name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in attributes.items()},
    )


def _write(path, text):
    """A small file, whole or not at all, also after a crash of the machine."""
    with whole_file(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
