"""# Other programs beside jdyn

## Is it the same robot?

`print(jdyn.verify("my_robot.urdf"))` reads a robot with jdyn and with Pinocchio or MuJoCo, and compares every function
on random states in a table. Do it once for each robot of your own.

>>> found = jdyn.verify("double_pendulum", against="pinocchio", samples=2)
>>> print(found.passed)
True

## Values of Pinocchio

`jdyn.interop.PinocchioMap` knows the order of joints and their conventions: `q_to_peer` leads there, `q_from_peer`
back, and so on for velocities, forces and Jacobians.

>>> import pinocchio
>>> model = jdyn.load("double_pendulum")
>>> jdyn.save_urdf(model, "arm.urdf")
>>> theirs = pinocchio.buildModelFromUrdf("arm.urdf")
>>> between = jdyn.interop.PinocchioMap(model, theirs)
>>> q = np.array([0.3, -0.5])
>>> print(between.q_to_peer(q).round(3))  # two continuous joints: cosine and sine of each angle
[ 0.955  0.296  0.878 -0.479]
>>> M = pinocchio.crba(theirs, theirs.createData(), between.q_to_peer(q))
>>> print(bool(np.allclose(M, jdyn.mass_matrix(model, jnp.asarray(q)))))
True

## Functions of Pinocchio by name

Names of `pinocchio` without `pin.`; results are in its `data`. Those of jdyn take a model and one state, return what
they find, and have derivatives. Spatial vectors have their angular part first.

| Pinocchio | jdyn |
|---|---|
| `forwardKinematics`, `data.oMi`, `data.v` | `jdyn.forward_kinematics`, `jdyn.body_velocities` |
| `framesForwardKinematics`, `data.oMf` | `jdyn.frame_pose` |
| `LOCAL`, `WORLD`, `LOCAL_WORLD_ALIGNED` | `frame="body"`, `"world"`, `"aligned"` |
| `getFrameVelocity` | `jdyn.frame_velocity` |
| `getFrameAcceleration` | `jdyn.frame_acceleration` |
| `getFrameClassicalAcceleration` | `jdyn.frame_acceleration(..., classical=True)` |
| `computeFrameJacobian`, `getFrameJacobian` | `jdyn.jacobian` |
| `getFrameJacobianTimeVariation` | `jdyn.jacobian_rate` |
| `centerOfMass`, `data.com[0]` | `jdyn.center_of_mass` |
| `data.vcom[0]`, `data.acom[0]` | `jdyn.centroidal.com_velocity`, `jdyn.centroidal.com_acceleration` |
| `jacobianCenterOfMass` | `jdyn.centroidal.com_jacobian` |
| `computeTotalMass` | `model.inertias.mass.sum()` |
| `computeCentroidalMomentum`, `data.hg` | `jdyn.momentum` |
| `computeCentroidalMomentumTimeVariation`, `data.dhg` | `jdyn.centroidal.momentum_rate` |
| `ccrba`, `computeCentroidalMap`, `data.Ag` | `jdyn.centroidal.momentum_matrix` |
| `dccrba`, `computeCentroidalMapTimeVariation`, `data.dAg` | `jdyn.centroidal.momentum_matrix_rate` |
| `crba` | `jdyn.mass_matrix` |
| `computeMinverse` | `jdyn.mass_matrix_inverse` |
| `computeDelassusMatrix` | `jdyn.delassus_matrix`, of frames |
| its inverse, for one frame | `jdyn.operational_space_inertia` |
| `impulseDynamics` | `jdyn.impulse_response`, to an impulse that is known |
| `rnea`, `nonLinearEffects` | `jdyn.inverse_dynamics`, `jdyn.bias_forces` |
| `computeGeneralizedGravity` | `jdyn.gravity_forces` |
| `aba`, `constraintDynamics` | `jdyn.forward_dynamics`, `jdyn.constrained_dynamics` |
| `computeCoriolisMatrix` | `jdyn.coriolis_matrix` |
| `computeKineticEnergy`, `computePotentialEnergy` | `jdyn.kinetic_energy`, `jdyn.potential_energy` |
| `computeJointTorqueRegressor` | `jdyn.regressor` |
| `computeRNEADerivatives` | `jdyn.inverse_dynamics_derivatives` |
| `computeABADerivatives` | `jdyn.forward_dynamics_derivatives` |
| `ComputeRNEASecondOrderDerivatives` (C++ only) | `jdyn.inverse_dynamics_second_derivatives` |
| other functions with `Derivatives` in their name | `jax.jacfwd`, `jax.jacrev` of the function itself |
| `neutral`, `randomConfiguration` | `model.neutral`, `model.random` |
| `integrate`, `difference` | `model.integrate`, `model.difference` |
| `buildReducedModel`, `appendModel` | `jdyn.lock`, `jdyn.append` |

Derivatives with respect to a configuration go along its tangent space, as Pinocchio's do, if `model.integrate` walks
there. Second derivatives of forward dynamics, for one, are those of its first ones:

>>> model, q, v = jdyn.load("double_pendulum"), jnp.array([0.3, -0.5]), jnp.array([1.0, 2.0])
>>> def slopes(dq):
...     return jdyn.forward_dynamics_derivatives(model, model.integrate(q, dq), v, jnp.zeros(2))
>>> by_q_and_q, by_v_and_q, by_tau_and_q = jax.jacfwd(slopes)(jnp.zeros(2))
>>> print(by_q_and_q.shape, by_tau_and_q[:, :, 1].round(1))  # the last index is that of dq
(2, 2, 2) [[ 1.1 -3.5]
 [-3.5 10.3]]

## Values of MuJoCo

>>> import mujoco
>>> text = '''<mujoco><worldbody>
...   <body name="rod"><joint axis="0 -1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/></body>
... </worldbody></mujoco>'''
>>> model, theirs = jdyn.load(text), mujoco.MjModel.from_xml_string(text)
>>> between = jdyn.interop.MujocoMap(model, theirs)
>>> data = mujoco.MjData(theirs)
>>> data.qpos = between.q_to_peer(np.array([0.5]))
>>> mujoco.mj_forward(theirs, data)
>>> a = jdyn.forward_dynamics(model, jnp.array([0.5]), jnp.zeros(1), jnp.zeros(1))
>>> print(bool(np.allclose(data.qacc, between.v_to_peer(np.array([0.5]), np.array(a)))))
True

## Functions of MuJoCo by name

Names of `mujoco` without `mj_`, and of `MjData`. Functions of jdyn that act on all of a file take a `jdyn.System`,
which `jdyn.load_system` reads.

Motions agree to the error of MuJoCo's steps until something touches. Contact, limits and equalities are jdyn's own:
margins and friction of shapes count, `solref` and `solimp` do not, so that what bounces or slides goes on another way.
A `jdyn.contact.Material` makes shapes softer, and `saveat=diffrax.SaveAt(steps=True)` shows impacts that are shorter
than the time between two rows.

| MuJoCo | jdyn |
|---|---|
| `step` | `System.step`; `jdyn.simulate` for many, of lengths that accuracy asks for |
| `forward`, `qacc` | `jdyn.forward_dynamics` of a model, `StepInfo.accelerations` of a step |
| `inverse`, `qfrc_inverse` | `jdyn.inverse_dynamics` |
| `sensordata` | `System.sense`, at the end of a step `StepInfo.sensors` |
| `history` of sensors | `State.parts["sensors"]`; a `jdyn.sensors.Sampled` for each `delay` and `interval` |
| `ctrl` | commands, in the same order; those of a `pid` or `orientation` follow each other, as in `ctrl` |
| `act` | `State.parts["controller"].actuators`, by name |
| `fullM`, `solveM` | `jdyn.mass_matrix`, `jdyn.mass_matrix_inverse` |
| `jacBody`, `jacSite`, `jacGeom` | `jdyn.jacobian` |
| `mocap_pos`, `mocap_quat` | `jdyn.constraints.guide`, of what equalities hold |
| `integratePos`, `differentiatePos` | `model.integrate`, `model.difference` |
| `mjd_transitionFD` | `System.linearize_step`, exact, not by finite differences |
| `mjd_inverseFD` | `jdyn.inverse_dynamics_derivatives` |

`System.linearize_step` gives A, B, C and D of one step with all that acts in it. As in MuJoCo, C and D are of the
sensors where the step begins. States of actuators come after configuration and velocity, by name:

>>> servo = jdyn.actuators.PositionServo("rod", kp=10.0, activation=jdyn.actuators.Lag(0.1))
>>> system = jdyn.System(model, actuators=[servo], sensors=[jdyn.sensors.JointVelocity("speed", "rod")])
>>> step = system.linearize_step(system.state(), dt=0.01, solver=jdyn.solvers.SemiImplicitEuler())
>>> print(step.state_names, step.C)
('q.rod', 'v.rod', 'controller.actuators.rod') [[0. 1. 0.]]

## Arrays in and out

Arrays of jdyn are arrays of JAX: functions take NumPy's as well, `np.asarray` makes NumPy's of them, and
`jnp.from_dlpack` takes those of other libraries, without a copy where it can.

>>> energy = jdyn.kinetic_energy(model, np.zeros(1), np.ones(1))
>>> print(type(np.asarray(energy)).__name__, jnp.from_dlpack(np.ones(2)))
ndarray [1. 1.]

## Functions in PyTorch

`jdyn.interop.to_torch` makes a function of tensors from any JAX function: `pip install "jdyn[torch]"`. Tensors and
arrays share memory, `backward` and `torch.func` get derivatives of JAX, compiled once. Here an optimizer of PyTorch
finds the torque that lifts a rod to 1 rad in a second:

```python
import torch

rod = jdyn.load("pendulum")

def missed(torque):
    motion = jdyn.simulate(rod, jnp.zeros(1), jnp.zeros(1), 1.0, controller=lambda t, q, v: torque - 2.0 * v)
    return jnp.sum((motion.q[-1] - 1.0) ** 2)

loss, torque = jdyn.interop.to_torch(missed), torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([torque], lr=0.3)
for _ in range(60):
    optimizer.zero_grad()
    loss(torque).backward()
    optimizer.step()
```

## Motions as tables

Motions become `xarray.Dataset` by `Trajectory.to_xarray`, and from there pandas, NetCDF or Zarr.

>>> motion = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 1.0)
>>> frame = motion.to_xarray()
>>> print(frame["q"].shape)
(101, 1)

## Files

URDF, SDF and MuJoCo's XML are read (`jdyn.load`); URDF and MuJoCo's XML are written (`jdyn.save_urdf`,
`jdyn.save_mjcf`). What a file says and jdyn leaves out, or the other way round, is named in one `jdyn.ModelWarning`; a
file with mistakes is refused with a list of them in one `jdyn.ModelError`.
`package://` and `model://` paths are looked for in the folders of `package_dirs`. Scenes in which nothing moves are
models without coordinates.

A file whose name ends in `.xacro` is expanded first, by `pip install "jdyn[xacro]"` and without ROS:

```
jdyn.load("arm.urdf.xacro", package_dirs=["ros_ws/src"], arguments={"prefix": "left_"})
```

`$(find arm_description)` is the folder `arm_description` in one of `package_dirs`, or around the file. Included files
must be in the folder of the file, in its package or in `package_dirs`. Lines in messages are those that the command
`xacro` prints.

SDF is read in its versions 1.4 to 1.12: models in models and included ones, poses relative to frames, joints that close
loops, gravity and contact of a world. Links that no joint holds are free. In a world, names begin with that of their
model:

>>> text = '''<sdf version="1.9"><world name="room">
...   <model name="swing"><link name="rod"><pose>0 0 2 0 0 0</pose>
...     <inertial><pose>0 0 -0.5 0 0 0</pose><mass>1</mass></inertial></link>
...   <joint name="hinge" type="revolute"><parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
... </model></world></sdf>'''
>>> model = jdyn.load(text)
>>> print(model.joint_names, model.gravity)
('swing::hinge',) [ 0.   0.  -9.8]

Includes come from the folder of the file and from `package_dirs`, never from the network:

```
jdyn.load("worlds/lab.world", package_dirs=["models"])
```

`jdyn.save_mjcf` takes a model or a system, of which it writes actuators, tendons, constraints, sensors and
configurations too. MuJoCo then accelerates as jdyn does, to rounding; friction and limits of joints, mimic joints and
constraints are rows that give way there.

>>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=5.0)
>>> system = jdyn.System(jdyn.load("double_pendulum"), actuators=[servo])
>>> jdyn.save_mjcf(system, "arm.xml")
>>> theirs = mujoco.MjModel.from_xml_path("arm.xml")
>>> print(theirs.nu, jdyn.load_system("arm.xml").actuators[0].kp)
1 50.0

`jdyn.load_system` makes actuators of `<transmission>`, as ROS 1, Gazebo and the PR2 write it, and of `<ros2_control>`.
These say what hardware takes, not how it follows: interfaces for positions and velocities become motors that take
forces, unless gains stand in the file. Controllers of ROS are in files of their own, which jdyn does not read; take
`jdyn.PD`, or servos of `jdyn.actuators`.
"""
