"""Systems from files."""

import os
from typing import Any

from jdyn.contact import CompliantContact, Contact, pairs_if_any, world_shapes
from jdyn.robots.load import load_scene
from jdyn.simulation.joint_limits import CompliantLimits, has_ends
from jdyn.simulation.system import System


def load_system(source: str | os.PathLike, *, contact: Contact | None = None, **options: Any) -> System:
    """Load all that a file says of a simulation: the robot and its world, actuators, which shapes touch, constraints,
    tendons, limits of joints, sensors, and configurations.

    ```
    system = jdyn.load_system("scene.xml")
    motion = jdyn.simulate(system, system.state("home"), 2.0)
    ```

    >>> text = '''<mujoco><worldbody><geom type="plane" size="1 1 0.1"/>
    ...   <body name="ball" pos="0 0 0.3"><freejoint/><geom size="0.1"/></body>
    ... </worldbody></mujoco>'''
    >>> system = jdyn.load_system(text)
    >>> motion = jdyn.simulate(system, system.state(), 3.0)
    >>> print(motion.q[0, 2], motion.q[-1, 2].round(3))
    0.3 0.1

    From URDF files come the actuators of `<transmission>` and `<ros2_control>`. Each is a `jdyn.actuators.Motor` with
    the name of the actuator, whose command is its own force: a gear of 50 makes 50 times that of it at the joint.
    Limits of effort of joints, and of interfaces for efforts, limit the force and the command. Differentials and
    four-bar linkages are read besides simple transmissions. Joints with interfaces for positions or velocities get a
    motor as well, and the warning names them: such a file says that hardware has a controller, but not which. Only
    where `<ros2_control>` has gains (`pos_kp`, `vel_kp`, ..., as Gazebo reads them) is the actuator a servo of
    positions or velocities, in coordinates of its joint. Joints that follow others by `<ros2_control>` alone do so by a
    `jdyn.constraints.Gear`.

    >>> text = '''<robot name="arm"><link name="base"/>
    ...   <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    ...     <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
    ...   <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    ...     <limit lower="-3" upper="3" effort="20" velocity="5"/></joint>
    ...   <transmission name="gear"><type>transmission_interface/SimpleTransmission</type>
    ...     <joint name="hinge"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    ...     <actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator>
    ...   </transmission></robot>'''
    >>> (motor,) = jdyn.load_system(text).actuators
    >>> print(motor.name, motor.transmission.gear, motor.force_range)
    motor 50.0 [-0.4  0.4]

    Args:
        source: As for `jdyn.load`.
        contact: How shapes touch, `jdyn.CompliantContact()` if left out. Those of MuJoCo and SDF files do where the
            file says so, unless a MuJoCo file switches contact off; links of one SDF model do by `<self_collide>`.
            Other robots touch shapes of the world, if there are some; else their parts pass through each other.
        options: The other arguments of `jdyn.load`; states of an `srdf` file are configurations of the system.

    Returns:
        The system, without a controller. Where the file has actuators, controllers give their commands. Springs,
        dampers, friction and stops of tendons are among its elements, each a `jdyn.elements.TendonSpring`, as are
        forces of joints that are not linear, and armature of tendons, a `jdyn.elements.TendonInertia`. Joints with ends
        have `jdyn.CompliantLimits()`, unless a MuJoCo file switches limits off; `System.state` takes names of
        configurations, and begins at `"qpos0"` of a MuJoCo or SDF file if it is given none. Sensors of a MuJoCo file
        that read motion, forces, touch and energy have MuJoCo's values, clipped by `cutoff`, by `delay` and `interval`
        of a history; its `noise` is left to `jdyn.sensors.Imperfect`. Those of force and torque also feel the medium,
        carried weight and thrusters, which MuJoCo's do not.

    Raises:
        ValueError, ModelError: as `jdyn.load`.

    Warns:
        ModelWarning: once, naming everything that is not simulated.
    """
    scene = load_scene(source, **options)
    model = scene.model
    touches = scene.contact and bool(pairs_if_any(model) if scene.touches else world_shapes(model))
    return System(
        model,
        contact=(contact or CompliantContact()) if touches else None,
        actuators=scene.actuators,
        elements=scene.elements,
        constraints=scene.constraints,
        joint_limits=CompliantLimits() if scene.stops and has_ends(model) else None,
        sensors=scene.sensors,
        configurations=scene.configurations,
    )
