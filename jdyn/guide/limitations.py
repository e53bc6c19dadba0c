"""# Limitations

- What touches is one model, or the objects of a `jdyn.World`, whose coordinator runs on the host, without derivatives.
  Meshes touch as convex hulls or as convex parts, height fields as surfaces.
- Constraints are rigid where MuJoCo's equalities are soft. Equalities of tendons around bodies, curved ones of tendons,
  and deformable bodies of MuJoCo files are named in a warning and left out, and so are actuators with plugins
  and delays of commands. Rays meet meshes as their hulls; rangefinders and distances are read where collision
  shapes are all that they see. `jdyn.load_system` has the springs, dampers, friction, stops and armature of tendons,
  `jdyn.load` has not; functions of a model and model-based controllers do not know this armature, and
  `jdyn.solvers.Rodas5P` refuses it. Mocap bodies move what equalities hold; shapes, tendons, joints and sensors on them
  stay where the file has them, and are named.
- Of URDF files actuators are read, not sensors: those of `<ros2_control>` are named, those of Gazebo are not.
  Interfaces for positions and velocities become motors unless the file has their gains; transmissions of types other
  than simple, differential and four-bar are named, and so are limits of effort of joints that several actuators move.
- Of SDF files sensors, plugins and gearboxes are named and left out, and so are limits and dampers of joints that close
  loops. Loops are closed by revolute, continuous, ball and fixed joints; a joint with two axes (`revolute2`) is a
  universal one. `<self_collide>` decides which links of a model touch.
- `jdyn.save_mjcf` refuses helical joints and free joints on other bodies. It names and leaves out limits of velocity,
  rangefinders, touch sensors, actuators with states other than lags, integrators and muscles, and force elements other
  than those of tendons, carried weight and a medium.
- Nothing limits the time and the memory that expressions and macros of a xacro file take.
- A force sensor does not see forces that act on coordinates without pushing a body, and where links on fixed joints are
  one body, it needs to know which part of it is beyond (`jdyn.sensors.Limb`); sensors of MuJoCo files do.
- Limits of position hold where `simulate` is given `joint_limits`, those of effort where the controller is
  `jdyn.Saturated`; limits of velocity are kept and reported, not enforced. `jdyn.assemble` and inverse kinematics do
  not look at the largest angles of ball joints.
- Coulomb friction is smoothed, `friction * tanh(v / friction_speed)`: a small `friction_speed` is stiff and costs an
  explicit solver many steps, the default few.
- JAX computes in float32 unless `jax_enable_x64` is set. Forward dynamics is then good to about five digits, and
  tolerances of a simulation below 1e-6 cannot be met.
- With forward-mode derivatives a batch of simulations goes in step with its slowest lane; otherwise none does.
- Reverse-mode gradients through `simulate` take eight to fifteen seconds to compile on a CPU, through `Rodas5P` up to
  twenty-five.
- Each compiled program takes memory maps, of which Linux gives a process 65530: some 5 for a small program, 100 to 200
  for forward dynamics, 400 for a simulation. A notebook that compiles hundreds of different programs ends in LLVM's
  "Unable to allocate section memory". Make few: `jax.jit` what you call often, with models and gains as arguments. Call
  `jax.clear_caches()` between parts that share nothing, which gives the maps back; or have an administrator raise
  `vm.max_map_count`.
"""
