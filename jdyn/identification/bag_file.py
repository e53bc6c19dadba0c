"""ROS bags of joint states."""

from __future__ import annotations

import contextlib
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from jdyn.terminal.messages import enumerated, unknown

if TYPE_CHECKING:
    import xarray

JOINT_STATE = "sensor_msgs/msg/JointState"
# Fields of the message and what they are here, with their dimension beside time.
FIELDS = {
    "position": ("q", "q_coordinate"),
    "velocity": ("v", "v_coordinate"),
    "effort": ("tau", "v_coordinate"),
}
# A nanosecond is a part of so many of a second.
NANO = 1_000_000_000


def is_bag(path: pathlib.Path) -> bool:
    """Tell whether a path is a file of ROS 1, or a folder or one file of ROS 2."""
    return path.suffix in (".bag", ".mcap", ".db3") or path.is_dir()


def read_bag(path: pathlib.Path, topic: str | None = None) -> xarray.Dataset:
    """Positions, velocities and efforts of a topic of joint states, at the times in the messages' headers.

    Messages of one time are one sample. What a message lacks of the joints of others is NaN; a field that no message
    has is left out.

    Raises:
        ValueError: if the bag cannot be read, has no such topic, or several.
        ImportError: if `rosbags` is not installed.
    """
    import xarray  # it takes long to import, and readers of arrays do without

    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise ImportError(f'{path}: reading a bag needs rosbags: pip install "jdyn[rosbag]"') from error
    samples = {}
    # Older bags of ROS 2 do not say how their messages are made; this one did not change.
    types = get_typestore(Stores.ROS2_FOXY)
    with _said_of(path), AnyReader([path], default_typestore=types) as reader:
        chosen = _chosen(path, topic, [(x.topic, x.msgtype) for x in reader.connections])
        connections = [x for x in reader.connections if (x.topic, x.msgtype) == (chosen, JOINT_STATE)]
        for connection, received, raw in reader.messages(connections=connections):
            _put(samples, reader.deserialize(raw, connection.msgtype), received)
    if not samples:
        raise ValueError(f"{path}: expected joint states on {chosen}, got none")
    return _dataset(xarray, samples)


@contextlib.contextmanager
def _said_of(path):
    """Name the bag in errors of all kinds, which the library raises where one is damaged."""
    try:
        yield
    except _WrongTopic as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise ValueError(f"{path}: expected a ROS bag, {error or type(error).__name__}") from error


class _WrongTopic(ValueError):
    """A bag that can be read, but not what is asked for."""


def _chosen(path, topic, connections) -> str:
    """The topic to read, of all those of a bag with their types."""
    of_joints = sorted({name for name, kind in connections if kind == JOINT_STATE})
    if topic is not None:
        if topic not in of_joints:
            raise _WrongTopic(f"{path}: {unknown('topic of joint states', topic, of_joints)}")
        return topic
    if len(of_joints) != 1:
        raise _WrongTopic(
            f"{path}: expected one topic of {JOINT_STATE}, or its name, got {enumerated(of_joints) or 'none'}"
        )
    return of_joints[0]


def _put(samples, message, received):
    """Add numbers of a message to the sample of its time, by field and joint."""
    stamp = message.header.stamp.sec * NANO + message.header.stamp.nanosec
    sample = samples.setdefault(stamp or received, {field: {} for field in FIELDS})
    for field in FIELDS:
        # Drivers leave out fields that they do not know.
        sample[field].update(zip(message.name, getattr(message, field), strict=False))


def _dataset(xarray, samples):
    stamps = sorted(samples)
    joints = list(dict.fromkeys(joint for stamp in stamps for joint in samples[stamp]["position"]))
    quantities = {}
    for field, (name, along) in FIELDS.items():
        rows = [[samples[stamp][field].get(joint, np.nan) for joint in joints] for stamp in stamps]
        if not np.all(np.isnan(rows)):
            quantities[name] = ("time", along), np.array(rows, float)
    # Nanoseconds since 1970 have more digits than a float.
    times = np.array([stamp - stamps[0] for stamp in stamps]) / NANO
    coordinates = {along: joints for along in {along for _, along in FIELDS.values()}}
    return xarray.Dataset(quantities, {"time": times} | coordinates)
