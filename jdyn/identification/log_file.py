"""Files of measured motions."""

from __future__ import annotations

import csv
import pathlib
import re
from typing import TYPE_CHECKING

import numpy as np

from jdyn.identification.bag_file import is_bag, read_bag
from jdyn.terminal.messages import enumerated, short

if TYPE_CHECKING:
    import xarray

# What begins files of xarray's engines.
NETCDF = (b"CDF", b"\x89HDF")
# What separates numbers.
SEPARATORS = ",;\t"
# A heading such as tau_elbow, tau:elbow, tau.elbow or tau[elbow], with a unit in brackets or none.
HEADING = re.compile(
    r"(?P<what>q|v|a|tau|i)(?:[\s_:./]*\[(?P<within>.+?)\]|[\s_:./]+(?P<joint>.+?))"
    r"(?:\s*[\[(](?P<unit>[A-Za-z°][^\])]*)[\])])?"
)
# The dimension of each quantity, beside time.
ALONG = {
    "q": "q_coordinate", "v": "v_coordinate", "a": "v_coordinate", "tau": "v_coordinate", "i": "v_coordinate"
}  # fmt: skip
# Units that headings may have, without spaces, dots and signs of powers, and how `measurement` calls them.
ANGLES = {"rad": "rad", "m": "rad", "deg": "deg", "degree": "deg", "degrees": "deg", "°": "deg"}
UNITS = {
    "q": ANGLES, "v": {f"{unit}/s": name for unit, name in ANGLES.items()},
    "a": {f"{unit}/{s}": name for unit, name in ANGLES.items() for s in ("s2", "s²", "s/s")},
    "tau": {"Nm": "N m", "N": "N m"}, "i": {"A": "A"}
}  # fmt: skip


def read_log(path: pathlib.Path, topic: str | None = None) -> xarray.Dataset:
    """The dataset in a file of comma-separated values, a NetCDF file or a ROS bag.

    The first line of the former names its columns: `time`, and `q_elbow`, `v_elbow`, `a_elbow`, and `tau_elbow`, or
    `i_elbow` for a motor's current, of a coordinate called elbow; other columns are left out. A unit may follow in
    brackets, as in `q_elbow [deg]`. Numbers are separated by commas, semicolons or tabs; where one is left out, it is
    NaN. Bags need `pip install "jdyn[rosbag]"`: `.bag` files of ROS 1, folders of ROS 2, by `sensor_msgs/JointState`.

    >>> import pathlib
    >>> path = pathlib.Path("log.csv")
    >>> path.write_text("time,q_elbow,v_elbow,tau_elbow\\n0.0,0.1,0.0,0.5\\n0.1,0.1,0.0,0.5\\n")
    63
    >>> print(jdyn.identification.read_log(path)["tau"].values.ravel())
    [0.5 0.5]

    Args:
        path: Of the file, or the folder of a bag.
        topic: Of the bag, if several have joint states.

    Raises:
        ValueError: if it is none of these, a column is twice there or has another name or unit than these, something is
            no number, a field is very long, or a bag has no such topic.
        ImportError: if it is a bag, and `rosbags` is not installed.
    """
    import xarray  # it takes long to import, and readers of arrays do without

    if is_bag(path):
        return read_bag(path, topic)
    if topic is not None:
        raise ValueError(f"{path}: expected a bag, as topic {short(topic)} is asked for")
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
    parts, units = {name: {} for name in ALONG}, {name: {} for name in ALONG}
    for heading, column in columns.items():
        if found := HEADING.fullmatch(heading):
            joint = found["within"] or found["joint"]
            parts[found["what"]][joint] = column
            units[found["what"]][joint] = found["unit"]
    if "time" not in columns or not parts["q"]:
        raise ValueError(
            f"{path}: expected columns named time, q_JOINT, v_JOINT and tau_JOINT, and maybe a_JOINT, "
            f"got {enumerated([heading[:40] for heading in columns])}"
        )
    if parts["tau"]:
        # Currents are for those who have no torques, and may well be of other joints.
        parts["i"] = {}
    coordinates, quantities = {}, {}
    for name, part in parts.items():
        if not part:
            continue
        joints = coordinates.setdefault(ALONG[name], [*part])
        if lacking := sorted({*joints} ^ {*part}):
            raise ValueError(f"{path}: expected v, tau and a of the same joints, one lacks {enumerated(lacking)}")
        values = np.stack([part[joint] for joint in joints], axis=1)
        quantities[name] = ("time", ALONG[name]), values, _unit(path, name, units[name])
    return xarray.Dataset(quantities, {"time": columns["time"]} | coordinates)


def _unit(path, what, of_joints) -> dict[str, str]:
    """The attribute `units` of a quantity, from those of its columns that have one."""
    found = {}
    for joint, unit in of_joints.items():
        if unit is None:
            continue
        plain = re.sub(r"[\s.·*^]", "", unit)
        if plain not in UNITS[what]:
            known = enumerated([*UNITS[what]])
            raise ValueError(f"{path}: expected one of the units {known} of {what}_{joint}, got {short(unit)}")
        found[UNITS[what][plain]] = joint
    if len(found) > 1:
        raise ValueError(f"{path}: expected columns of {what} in one unit, got {enumerated([*found])}")
    return {"units": next(iter(found))} if found else {}


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
    numeric = [name == "time" or HEADING.fullmatch(name) is not None for name in names]
    return dict(zip(names, np.array([_numbers(path, names, numeric, *row) for row in rows[1:]]).T, strict=True))


def _numbers(path, names, numeric, number, row) -> list[float]:
    if len(row) != len(names):
        raise ValueError(f"{path}, line {number}: expected {len(names)} numbers, one a column, got {len(row)}")
    numbers = []
    for name, is_number, word in zip(names, numeric, row, strict=True):
        try:
            numbers.append(float(word))
        except ValueError:
            # What is not asked for may be text, and a sample may be missing.
            if name == "time" or (is_number and word.strip()):
                raise ValueError(f"{path}, line {number}: expected a number as {name}, got {word[:40]!r}") from None
            numbers.append(np.nan)
    return numbers
