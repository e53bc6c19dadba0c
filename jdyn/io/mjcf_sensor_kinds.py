"""Sensors of MuJoCo files that are read, and their classes."""

from jdyn.sensors import (
    Accelerometer,
    Clock,
    Force,
    FrameAngularAcceleration,
    FrameAngularVelocity,
    FrameAxis,
    FrameLinearAcceleration,
    FrameLinearVelocity,
    FramePosition,
    FrameQuaternion,
    Gyro,
    JointPosition,
    JointVelocity,
    KineticEnergy,
    Magnetometer,
    PotentialEnergy,
    SubtreeAngularMomentum,
    SubtreeCenterOfMass,
    SubtreeLinearVelocity,
    Torque,
    Velocimeter,
)

OF_JOINTS = {
    "jointpos": JointPosition, "jointvel": JointVelocity, "ballquat": JointPosition,
    "ballangvel": JointVelocity,
}  # fmt: skip
MOUNTED = {
    "accelerometer": Accelerometer, "velocimeter": Velocimeter, "gyro": Gyro,
    "magnetometer": Magnetometer,
}  # fmt: skip
CUTTING = {"force": Force, "torque": Torque}
OF_FRAMES = {
    "framepos": FramePosition, "framequat": FrameQuaternion, "framexaxis": FrameAxis,
    "frameyaxis": FrameAxis, "framezaxis": FrameAxis, "framelinvel": FrameLinearVelocity,
    "frameangvel": FrameAngularVelocity, "framelinacc": FrameLinearAcceleration,
    "frameangacc": FrameAngularAcceleration,
}  # fmt: skip
OF_SUBTREES = {
    "subtreecom": SubtreeCenterOfMass, "subtreelinvel": SubtreeLinearVelocity,
    "subtreeangmom": SubtreeAngularMomentum,
}  # fmt: skip
WHOLE = {"e_potential": PotentialEnergy, "e_kinetic": KineticEnergy, "clock": Clock}
SENSOR_CLASSES = OF_JOINTS | MOUNTED | CUTTING | OF_FRAMES | OF_SUBTREES | WHOLE
