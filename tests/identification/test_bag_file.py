"""Bags of ROS 1 and 2, written by rosbags."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

from jdyn.identification import read_log

SECONDS, NAMES = 1_700_000_000, ["elbow", "shoulder"]
POSITIONS = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
EFFORTS = -10 * POSITIONS


def _message(types, ros, k, names=NAMES, velocity=()):
    stamp = types["builtin_interfaces/msg/Time"](sec=SECONDS, nanosec=100_000_000 + 2_000_000 * k)
    header = {"stamp": stamp, "frame_id": ""} | ({"seq": k} if ros == 1 else {})
    return types["sensor_msgs/msg/JointState"](
        header=types["std_msgs/msg/Header"](**header),
        name=names,
        position=POSITIONS[k, : len(names)],
        velocity=np.array(velocity, float),
        effort=EFFORTS[k, : len(names)],
    )


def _write(path, ros, topics=("/joint_states",), storage=StoragePlugin.SQLITE3, **options):
    store = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    with Writer1(path) if ros == 1 else Writer2(path, version=9, storage_plugin=storage) as writer:
        for topic in topics:
            connection = writer.add_connection(topic, kind, typestore=store)
            for k in range(3):
                message = _message(store.types, ros, k, **options)
                raw = store.serialize_ros1(message, kind) if ros == 1 else store.serialize_cdr(message, kind)
                writer.write(connection, SECONDS * 10**9 + k, raw)
    return path


@pytest.mark.parametrize("storage", ["ros1", StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_positions_and_efforts_come_at_the_times_of_their_headers(tmp_path, storage):
    ros1 = storage == "ros1"
    path = _write(tmp_path / "log.bag", 1) if ros1 else _write(tmp_path / "log", 2, storage=storage)
    found = read_log(path)
    assert set(found.data_vars) == {"q", "tau"} and list(found["v_coordinate"].values) == NAMES
    assert_allclose(found["time"].values, [0, 0.002, 0.004], rtol=1e-12)
    assert_allclose(found["q"].sel(q_coordinate="shoulder"), POSITIONS[:, 1], rtol=1e-15)
    assert_allclose(found["tau"].values, EFFORTS, rtol=1e-15)


def test_one_of_several_topics_is_asked_for(tmp_path):
    path = _write(tmp_path / "log", 2, topics=("/left", "/right"), velocity=(1.0, 2.0))
    with pytest.raises(
        ValueError, match=r"expected one topic of sensor_msgs/msg/JointState, or its name, got /left, /r"
    ):
        read_log(path)
    with pytest.raises(ValueError, match="no topic of joint states is called '/middle'; there are /left, /right"):
        read_log(path, topic="/middle")
    assert_allclose(read_log(path, topic="/right")["v"].values, [[1.0, 2.0]] * 3)


def test_what_is_no_bag_is_refused(tmp_path):
    (tmp_path / "log.bag").write_bytes(b"nothing of the kind")
    (tmp_path / "folder").mkdir()
    for name in ("log.bag", "folder"):
        with pytest.raises(ValueError, match=f"{name}: expected a ROS bag, "):
            read_log(tmp_path / name)
    (tmp_path / "log.csv").write_text("time,q_elbow\n0,1\n")
    with pytest.raises(ValueError, match="expected a bag, as topic '/left' is asked for"):
        read_log(tmp_path / "log.csv", topic="/left")
