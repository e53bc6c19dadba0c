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

## Arrays in and out

Arrays of jdyn are arrays of JAX: functions take NumPy's as well, `np.asarray` makes NumPy's of them, and
`jnp.from_dlpack` takes those of other libraries, without a copy where it can.

>>> energy = jdyn.kinetic_energy(model, np.zeros(1), np.ones(1))
>>> print(type(np.asarray(energy)).__name__, jnp.from_dlpack(np.ones(2)))
ndarray [1. 1.]

Motions become `xarray.Dataset` by `Trajectory.to_xarray`, and from there pandas, NetCDF or Zarr.

>>> motion = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 1.0)
>>> frame = motion.to_xarray()
>>> print(frame["q"].shape)
(101, 1)

## Files

URDF and MuJoCo's XML are read (`jdyn.load`), URDF is written (`jdyn.save_urdf`). What a file says and jdyn leaves out
is named in one `jdyn.ModelWarning`; a file with mistakes is refused with a list of them in one `jdyn.ModelError`.
`package://` paths are looked for in the folders of `package_dirs`. Scenes in which nothing moves are models without
coordinates.
"""
