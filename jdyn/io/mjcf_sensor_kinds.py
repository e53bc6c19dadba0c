"""Sensors of MuJoCo files that are read, by the names of their elements, and their classes."""

from jdyn.sensors import (
    Accelerometer,
    ActuatorForce,
    ActuatorPosition,
    ActuatorVelocity,
    Clock,
    Distance,
    DistanceNormal,
    DistancePoints,
    Force,
    FrameAngularAcceleration,
    FrameAngularVelocity,
    FrameAxis,
    FrameLinearAcceleration,
    FrameLinearVelocity,
    FramePosition,
    FrameQuaternion,
    Gyro,
    JointActuatorForce,
    JointPosition,
    JointVelocity,
    KineticEnergy,
    Magnetometer,
    PotentialEnergy,
    Rangefinder,
    SubtreeAngularMomentum,
    SubtreeCenterOfMass,
    SubtreeLinearVelocity,
    Torque,
    Touch,
    TransmissionPosition,
    TransmissionVelocity,
    Velocimeter,
)

OF_JOINTS = {
    "jointpos": JointPosition, "jointvel": JointVelocity, "ballquat": JointPosition,
    "ballangvel": JointVelocity, "jointactuatorfrc": JointActuatorForce,
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
OF_ACTUATORS = {
    "actuatorpos": ActuatorPosition, "actuatorvel": ActuatorVelocity, "actuatorfrc": ActuatorForce,
}  # fmt: skip
OF_TENDONS = {"tendonpos": TransmissionPosition, "tendonvel": TransmissionVelocity}
OF_SHAPES = {"distance": Distance, "normal": DistanceNormal, "fromto": DistancePoints}
RANGES = {"rangefinder": Rangefinder}
TOUCHED = {"touch": Touch}
SENSOR_CLASSES = (
    OF_JOINTS
    | MOUNTED
    | CUTTING
    | OF_FRAMES
    | OF_SUBTREES
    | OF_ACTUATORS
    | OF_TENDONS
    | OF_SHAPES
    | RANGES
    | TOUCHED
    | WHOLE
)
