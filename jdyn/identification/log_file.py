"""Files of measured motions."""

from __future__ import annotations

import csv
import pathlib
import re
from typing import TYPE_CHECKING

import numpy as np

from jdyn.terminal.messages import enumerated

if TYPE_CHECKING:
    import xarray

# What begins files of xarray's engines.
NETCDF = (b"CDF", b"\x89HDF")
# What separates numbers.
SEPARATORS = ",;\t"
# A heading such as tau_elbow, tau:elbow, tau.elbow or tau[elbow].
HEADING = re.compile(r"(q|v|a|tau)[\s_:./\[]+(.+?)\]?")
# The dimension of each quantity, beside time.
ALONG = {"q": "q_coordinate", "v": "v_coordinate", "a": "v_coordinate", "tau": "v_coordinate"}


def read_log(path: pathlib.Path) -> xarray.Dataset:
    """The dataset in a NetCDF file, or in a file of comma-separated values, as `measurement` takes it.

    The first line of the latter names its columns: `time`, and `q_elbow`, `v_elbow`, `tau_elbow`, and `a_elbow` if it
    is known, of a coordinate called elbow; other columns are left out. Numbers are separated by commas, semicolons or
    tabs.

    >>> import pathlib
    >>> path = pathlib.Path("log.csv")
    >>> path.write_text("time,q_elbow,v_elbow,tau_elbow\\n0.0,0.1,0.0,0.5\\n0.1,0.1,0.0,0.5\\n")
    63
    >>> print(jdyn.identification.read_log(path)["tau"].values.ravel())
    [0.5 0.5]

    Raises:
        ValueError: if it is neither, a column is twice there or has another name than these, something is no number, or
            a field is very long.
    """
    import xarray  # it takes long to import, and readers of arrays do without

    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(NETCDF):
        return xarray.load_dataset(path)
    try:
        # Spreadsheets begin files with a mark of the order of bytes.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected a NetCDF file, or comma-separated values as text") from None
    columns = _columns(path, text)
    parts = {name: {} for name in ALONG}
    for heading, column in columns.items():
        if found := HEADING.fullmatch(heading):
            parts[found[1]][found[2]] = column
    if "time" not in columns or not parts["q"]:
        raise ValueError(
            f"{path}: expected columns named time, q_JOINT, v_JOINT and tau_JOINT, and maybe a_JOINT, "
            f"got {enumerated([heading[:40] for heading in columns])}"
        )
    coordinates, quantities = {}, {}
    for name, part in parts.items():
        if not part:
            continue
        joints = coordinates.setdefault(ALONG[name], [*part])
        if lacking := sorted({*joints} ^ {*part}):
            raise ValueError(f"{path}: expected v, tau and a of the same joints, one lacks {enumerated(lacking)}")
        quantities[name] = ("time", ALONG[name]), np.stack([part[joint] for joint in joints], axis=1)
    return xarray.Dataset(quantities, {"time": columns["time"]} | coordinates)


def _columns(path, text) -> dict[str, np.ndarray]:
    """Columns of numbers by their headings."""
    heading = text.partition("\n")[0]
    lines = csv.reader(text.splitlines(), delimiter=max(SEPARATORS, key=heading.count))
    try:
        rows = [(number, row) for number, row in enumerate(lines, 1) if row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {lines.line_num}: {error}") from None
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a line of column names and lines of numbers, got {len(rows)} lines")
    names = [name.strip() for name in rows[0][1]]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: expected each column once, got {enumerated(twice)} several times")
    return dict(zip(names, np.array([_numbers(path, names, *row) for row in rows[1:]]).T, strict=True))


def _numbers(path, names, number, row) -> list[float]:
    if len(row) != len(names):
        raise ValueError(f"{path}, line {number}: expected {len(names)} numbers, one a column, got {len(row)}")
    numbers = []
    for name, word in zip(names, row, strict=True):
        try:
            numbers.append(float(word))
        except ValueError:
            # What is not asked for may be text.
            if name == "time" or HEADING.fullmatch(name):
                raise ValueError(f"{path}, line {number}: expected a number as {name}, got {word[:40]!r}") from None
            numbers.append(np.nan)
    return numbers
