"""Contents of a store by its own description, all of which is checked before anything of it is used: it may be damaged,
or come from someone who means harm."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pathlib
import re
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jdyn.io.plain_file import read_plain
from jdyn.sweep.design import extra_dims
from jdyn.sweep.layout import (
    KEY,
    MOST_BYTES,
    SEAL,
    TYPES,
    VERSION,
    Output,
    is_name,
    make_array,
    parameters_chunk,
)

# Largest sizes of what describes a store [bytes].
MOST_WORDS, MOST_SEALED = 2**24, 2**25
MOST_VARIABLES, MOST_AXES = 1000, 32


class Contents(NamedTuple):
    """A store as it describes itself.

    Attributes:
        path: The folder.
        identity: What tells its sweep from others.
        axes: Names and sizes of the design's axes.
        parameters: Of each lane, by name.
        parameter_axes: Axes along which each parameter varies.
        outputs: What each lane has, by name.
        chunk: Lanes of a chunk.
        words: What else it says of the sweep: its function, its device.
        attributes: Of parameters and outputs, by name.
        sealed: Digests of the files that are there from the beginning, by their names.
        seal: Digest of these.
    """

    path: pathlib.Path
    identity: dict[str, Any]
    axes: dict[str, int]
    parameters: dict[str, Output]
    parameter_axes: dict[str, list[str]]
    outputs: dict[str, Output]
    chunk: int
    words: dict[str, str]
    attributes: dict[str, dict[str, Any]]
    sealed: dict[str, str]
    seal: str

    @property
    def size(self) -> int:
        """Number of lanes."""
        return math.prod(self.axes.values())


def contents_of(path: str | os.PathLike) -> Contents:
    """Read and check the contents of a store.

    Raises:
        FileNotFoundError: if there is nothing.
        OSError: if it cannot be read.
        ValueError: if it is something else, damaged, of another version, or says what cannot be.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected the store of a sweep, there is nothing")
    group = _group(path)
    identity = group["attributes"][KEY]
    if identity.get("version") != VERSION:
        raise ValueError(
            f"{path}: it is of version {reprlib.repr(identity.get('version'))} of the format, this jdyn reads "
            f"{VERSION}. Choose another path, or delete it"
        )
    try:
        sealed, seal = _sealed(path)
        contents = _contents(path, group, sealed, seal)
        _check_files(contents)
    except FileNotFoundError as error:
        raise ValueError(
            f"{path}: a store of a sweep that is not whole: {error.filename} is missing; copy all of it, or delete it"
        ) from error
    except _Wrong as error:
        raise ValueError(f"{path}: damaged, or not made by jdyn: {error}") from error
    return contents


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _Wrong(ValueError):
    """Fault of a store, in words."""


def _expect(holds, message):
    if not holds:
        raise _Wrong(message)


def _group(path):
    """The JSON of the group."""
    try:
        group = json.loads(read_plain(path, "zarr.json", MOST_WORDS))
        found = isinstance(group, dict) and isinstance(group.get("attributes"), dict)
        if not (found and isinstance(group["attributes"].get(KEY), dict)):
            raise ValueError("it does not say what it is")
    except PermissionError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}: expected the store of a sweep, found something else ({error}); choose another path"
        ) from error
    return group


def _sealed(path):
    try:
        text = read_plain(path, SEAL, MOST_SEALED)
        sealed = json.loads(text)
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"{SEAL}: {error}") from error
    hexadecimal = re.compile("[0-9a-f]{64}")
    _expect(isinstance(sealed, dict), f"{SEAL}: expected digests of files")
    _expect(
        all(isinstance(x, str) and hexadecimal.fullmatch(x) for x in sealed.values()),
        f"{SEAL}: expected digests of files",
    )
    return sealed, digest_of(text)


def _contents(path, group, sealed, seal):
    attributes = group["attributes"]
    identity = attributes[KEY]
    for name in ("design", "program"):
        _expect(isinstance(identity.get(name), str), f"{name}: expected a digest")
    axes = _axes(attributes.get("axes"))
    size = math.prod(axes.values())
    chunk: Any = identity.get("chunk")
    _expect(_is_whole(chunk, 1, size), f"chunk: expected 1 to {size} lanes, got {reprlib.repr(chunk)}")
    parameters, outputs = (_variables(kind, identity.get(kind)) for kind in ("parameters", "outputs"))
    both = _names_apart(axes, parameters, outputs)
    result = outputs.get("result")
    _expect(result and not result.shape and np.dtype(result.dtype).kind == "i", "result: expected a code of each lane")
    along = _parameter_axes(attributes.get("parameter_axes"), parameters, axes)
    words = {name: attributes.get(name) for name in ("source", "device", "function")}
    _expect(all(isinstance(word, str) for word in words.values()), "source, device, function: expected texts")
    chunks: dict[str, Any] = {name: parameters_chunk(x) for name, x in parameters.items()}
    chunks |= dict.fromkeys(outputs, chunk)
    for name, output in both.items():
        _expect(
            min(chunks[name], size) * output.bytes <= MOST_BYTES,
            f"{name}: {min(chunks[name], size)} lanes of shape {output.shape} in a file are more than {MOST_BYTES} "
            "bytes",
        )
    own = _attributes(group.get("consolidated_metadata"), both, size, chunks)
    return Contents(path, identity, axes, parameters, along, outputs, chunk, words, own, sealed, seal)


def _axes(listed):
    pairs = isinstance(listed, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in listed)
    _expect(pairs and 0 < len(listed) <= MOST_AXES, "axes: expected names and sizes")
    for name, length in listed:
        _expect(is_name(name) and _is_whole(length, 1, 2**53), f"axes: {reprlib.repr([name, length])} cannot be one")
    axes = dict(listed)
    _expect(len(axes) == len(listed), "axes: expected different names")
    _expect(math.prod(axes.values()) <= 2**53, "axes: more lanes than can be numbered")
    return axes


def _variables(kind, listed) -> dict[str, Output]:
    _expect(isinstance(listed, dict) and 0 < len(listed) <= MOST_VARIABLES, f"{kind}: expected shapes and types")
    for name, pair in listed.items():
        _expect(is_name(name), f"{kind}: {reprlib.repr(name)} cannot be the name of a variable")
        what = f"{name}: {reprlib.repr(pair)} is no shape and type"
        _expect(isinstance(pair, list) and len(pair) == 2, what)
        shape, dtype = pair
        _expect(isinstance(shape, list) and len(shape) < MOST_AXES, what)
        _expect(all(_is_whole(length, 0, 2**31) for length in shape), what)
        _expect(isinstance(dtype, str) and _is_type(dtype), what)
    return {name: Output(tuple(shape), dtype) for name, (shape, dtype) in listed.items()}


def _is_type(dtype):
    try:
        return np.dtype(dtype).str[1:] in TYPES
    except (TypeError, ValueError):
        return False


def _is_whole(number, least, most):
    return type(number) is int and least <= number <= most


def _names_apart(axes, parameters, outputs):
    both = parameters | outputs
    _expect(len(both) == len(parameters) + len(outputs), "parameters and outputs: expected different names")
    taken = [*outputs, *axes, *(dim for name, x in both.items() for dim in extra_dims(name, x.shape))]
    _expect(len(set(taken)) == len(taken), "axes and outputs: expected different names")
    return both


def _parameter_axes(listed, parameters, axes):
    _expect(isinstance(listed, dict) and set(listed) == set(parameters), "parameter_axes: expected those of each")
    for name, along in listed.items():
        in_order = isinstance(along, list) and [axis for axis in axes if axis in along] == along
        _expect(in_order, f"parameter_axes: {reprlib.repr(along)} of {name} are not axes")
    return listed


def _attributes(consolidated, variables, size, chunks):
    """Attributes of each variable, whose description has to be the one that jdyn writes."""
    described: Any = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    _expect(
        isinstance(described, dict) and set(described) == set(variables), "zarr.json: expected one entry a variable"
    )
    found = {}
    for name, expected in _descriptions(variables, size, chunks).items():
        entry = described[name]
        own = entry.get("attributes") if isinstance(entry, dict) else None
        _expect(isinstance(own, dict) and _are_plain(own), f"zarr.json: {name}: expected words as attributes")
        _expect(entry | {"attributes": {}} == expected, f"zarr.json: {name}: it is not described as jdyn does")
        found[name] = own
    return found


def _descriptions(variables: Mapping[str, Output], size: int, chunks: Mapping[str, int]) -> dict[str, Any]:
    """Descriptions that jdyn writes of variables, without their attributes."""
    import zarr
    from zarr.storage import MemoryStore

    group = zarr.open_group(MemoryStore(), mode="w", zarr_format=3)
    arrays = {name: make_array(group, name, x, size, chunks[name], {}) for name, x in variables.items()}
    return {name: json.loads(json.dumps(array.metadata.to_dict())) for name, array in arrays.items()}


def _are_plain(attributes):
    def plain(value):
        return isinstance(value, str | int | float | bool | None)

    return all(plain(x) or (isinstance(x, list) and all(map(plain, x))) for x in attributes.values())


def _check_files(contents: Contents):
    """Check that all files are there which are from the beginning, and that those which describe are as they were
    written. Files with numbers are compared when they are read."""
    described = ["zarr.json", *(f"{name}/zarr.json" for name in (*contents.parameters, *contents.outputs))]
    many = {name: -(-contents.size // parameters_chunk(x)) if x.bytes else 0 for name, x in contents.parameters.items()}
    # A store has as many files as lanes need: their number is no mere claim.
    _expect(any(many.values()), "parameters: expected numbers")
    _expect(sum(many.values()) + len(described) == len(contents.sealed), f"{SEAL}: expected all files of parameters")
    for name, output in contents.parameters.items():
        for chunk in range(many[name]):
            _expect(output.file(name, chunk) in contents.sealed, f"{SEAL}: {name}: chunk {chunk} is not in it")
    for name in described:
        content = read_plain(contents.path, name, MOST_WORDS)
        _expect(digest_of(content) == contents.sealed.get(name), f"{name} is not as it was written")
