"""Sensors of MuJoCo files that are read, and their classes."""

from jdyn import sensors

OF_JOINTS = {
    "jointpos": sensors.JointPosition, "jointvel": sensors.JointVelocity, "ballquat": sensors.JointPosition,
    "ballangvel": sensors.JointVelocity,
}  # fmt: skip
MOUNTED = {
    "accelerometer": sensors.Accelerometer, "velocimeter": sensors.Velocimeter, "gyro": sensors.Gyro,
    "magnetometer": sensors.Magnetometer,
}  # fmt: skip
CUTTING = {"force": sensors.Force, "torque": sensors.Torque}
OF_FRAMES = {
    "framepos": sensors.FramePosition, "framequat": sensors.FrameQuaternion, "framexaxis": sensors.FrameAxis,
    "frameyaxis": sensors.FrameAxis, "framezaxis": sensors.FrameAxis, "framelinvel": sensors.FrameLinearVelocity,
    "frameangvel": sensors.FrameAngularVelocity, "framelinacc": sensors.FrameLinearAcceleration,
    "frameangacc": sensors.FrameAngularAcceleration,
}  # fmt: skip
OF_SUBTREES = {
    "subtreecom": sensors.SubtreeCenterOfMass, "subtreelinvel": sensors.SubtreeLinearVelocity,
    "subtreeangmom": sensors.SubtreeAngularMomentum,
}  # fmt: skip
WHOLE = {"e_potential": sensors.PotentialEnergy, "e_kinetic": sensors.KineticEnergy, "clock": sensors.Clock}
SENSOR_CLASSES = OF_JOINTS | MOUNTED | CUTTING | OF_FRAMES | OF_SUBTREES | WHOLE
