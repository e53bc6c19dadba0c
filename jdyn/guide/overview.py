"""# Overview

Everything that jdyn does, in a few lines each. Names are explained in the reference, with examples. Those of every day
are flat, such as `jdyn.simulate`. Others are in modules: `jdyn.actuators`, `jdyn.centroidal`, `jdyn.constraints`,
`jdyn.contact`, `jdyn.control`, `jdyn.designs`, `jdyn.elements`, `jdyn.environments`, `jdyn.identification`,
`jdyn.impacts`, `jdyn.planning`, `jdyn.sensors`, `jdyn.solvers`, `jdyn.studies`, `jdyn.transmissions`, `jdyn.tuning`,
`jdyn.world`.

## Robots

URDF and SDF by strict readers that name every problem, and xacro files (`pip install "jdyn[xacro]"`); MuJoCo XML
(`pip install "jdyn[mjcf]"`), whose connects, welds and joint equalities are `jdyn.load_constraints(path)`, as are the
loops of SDF files; `jdyn.load_system(path)` is all of a file, ready to be simulated, with the actuators of URDF and
MuJoCo files;
seventeen bundled robots and scenes; a builder in Python; shapes to be seen and to touch, with colours, in
`model.shapes`; `jdyn.parameters(model)` lists every number by name, `jdyn.vary(model, {"body:link7.mass": 2.0})`
changes them; `jdyn.merge` and `jdyn.append` make models of models and systems of systems; `jdyn.lock` fixes joints of
either, `jdyn.reroot` gives a tree another root, `jdyn.scale` another size; `jdyn.with_frame` adds frames.

## Joints

Revolute, continuous, prismatic, helical, universal, ball, planar, free; dampers, friction, springs, exact mimic joints,
armature, and by `jdyn.with_rotors` rotors that react on what carries them.

## Dynamics

Forward and inverse dynamics, joint forces, mass matrix and its inverse, bias and gravity forces, Coriolis matrix,
regressor; what forces and impulses on frames do: `jdyn.operational_space_inertia`, `jdyn.delassus_matrix`,
`jdyn.impulse_response`.

## Kinematics

Poses, velocities, accelerations and Jacobians of frames, with the rates of these; energies, momentum and centre of
mass, whose motion and matrices are in `jdyn.centroidal`. The names of Pinocchio beside those of jdyn are in
the chapter on other programs.

## Formulations

`method=` one of `ABA`, `ArrayABA`, `ParallelABA`, `CRBA`, `ByBatch`; `jdyn.diagnose(model)` says how many digits each
keeps and which to use, `method="auto"` takes that.

## For comparison

`MatrixABA`, `ModifiedABA`, `WalkerOrin`, `ConjugateGradient`, `OrthogonalComplement`, `GibbsAppell`, `GaussDP`,
`LeastConstraint`, `BlockElimination` in any order, all in `jdyn.studies`.

## Derivatives

Both modes, any order, with respect to state, forces and every number of the model; never NaN at rest, at zero angle
or at the identity.

## Jacobians

In closed form: `jdyn.forward_dynamics_derivatives`, `jdyn.inverse_dynamics_derivatives`,
`jdyn.inverse_dynamics_second_derivatives`, `jdyn.linearize`. Of one step of a whole system, with actuators, contact and
sensors: `jdyn.System.linearize_step`.

## Batches

`jax.vmap` over states, models, or both; compile time does not grow with the number of bodies;
`dataclasses.replace(model, executor="lanes")` chooses how recursions run.

## Compilation

`jdyn.warm_up(model, 1024)` compiles a function of a model and a state before its first call, and tells time and
memory. JAX compiles batches for processors in two thirds of the time, and runs gradients of simulations up to four
times as fast, by flags that jdyn adds to the environment variable `XLA_FLAGS` if it is imported before JAX computes
anything; flags that are there already stay.

## Simulation

Gains, dampers and friction on light links do not limit the step: the default solver is explicit or implicit, each
lane as it needs; diffrax' Runge-Kutta methods and step controllers, and eleven solvers of jdyn's own; rotations are
integrated on their group, with the method's own order; on nine motions no integrator of MuJoCo or SciPy, nor diffrax
around frax, is faster for the same error (`python -m benchmarks.work_precision`).

## Batches of simulations

Cost the mean number of steps of their lanes; a lane that fails returns its code and NaN and spoils no other.

## GPUs of NVIDIA

`pip install "jax[cuda13]"`: a batch of dynamics, of simulations or of their gradients is one kernel, one thread a
lane (measured in `benchmarks/README.md`); motions of robots with contact run operation by operation there, as on
other devices.

## Gradients of simulations

Replay the recorded steps, through events and impacts.

## Contact

`simulate(..., contact=jdyn.CompliantContact())`: springs, dampers and friction of materials by name, for any solver;
steps of the default solver are not held by stiff feet, do not jump over thin plates that lie ahead, and end exactly
where contact begins if derivatives are to be as exact as the motion; `jdyn.ConvexContact()` for stiff shapes that
stick, in steps that end at the minimum of a convex function; `jdyn.RigidContact()` for shapes that bounce and rest
without any stiffness; `jdyn.with_ground(model)`; spheres, capsules, cylinders,
boxes, ellipsoids, planes, height fields, hulls of meshes and their convex parts (`jdyn.contact.decompose`);
`jdyn.contact.distances` with derivatives, `jdyn.contact.collision_pairs`; forces at every point by
`Trajectory.contacts`; `jdyn simulate ROBOT --ground`.

## Worlds

`jdyn.World`: named objects, each a system; what each one did, impacts with impulses and energies; files of all that;
`jdyn.world.Coordinator`, under which objects take steps of their own until they meet; `jdyn world billiards`.

## Closed loops

`simulate(..., constraints=...)`: points, hinges, welds, rods, gears, sums of joints, prescribed motion, rolling; met at
the end of every step and in every row, so that nothing drifts; redundant ones have the smallest forces;
`jdyn.assemble` finds a start, and says where there is none.

## Events

With resets, located to rounding, also where shapes touch (`jdyn.touch_event`); joint limits, compliant or with
impacts.

## Trajectories

Forces, accelerations, poses, energy and momentum on demand, interpolation on the manifold, `xarray.Dataset`, one
file.

## Control

PD, PID, computed torque, gravity compensation, LQR, operational space, tracking of splines; controllers with a
memory, sampling, delay, lag, effort limits.

Operational space in contact: `jdyn.control.HeldContacts` names the constraints that hold, on any links, the forces that
they shall exert, and which coordinates are driven. The task takes what contacts leave free, the posture what the task
leaves; redundant contacts share a load by the least forces, or as asked for. Near singular configurations
`jdyn.control.SingularRegion` gives up lost directions smoothly, with bounded torques, and leaves the task exact
elsewhere.

## Environments for reinforcement learning

`jdyn.environments.Environment`: a system, functions for observation, reward, end and start, and a length of episodes
become pure functions `reset` and `step` for batches on devices, with automatic resets and gradients;
`jdyn.environments.to_gymnasium` and `jdyn.environments.to_gymnasium_vector` for libraries that expect Gymnasium's.
`jdyn.interop.to_torch` makes functions of PyTorch's tensors of these and of all others, with derivatives in all modes
(`pip install "jdyn[torch]"`).

## Inverse kinematics

`jdyn.inverse_kinematics` for poses and positions of several frames within joint limits, differentiable;
`jdyn.best_inverse_kinematics` from many starts in one program; a code a lane tells how it ended.

## Optimal control

`jdyn.ilqr`: motions of least cost of any system under limited forces, through contact, constraints and memories of
controllers, on free and ball joints too, in batches of guesses; its feedback is a controller for `simulate`.

## Sweeps

`jdyn.sweep` over `jdyn.designs.Grid`, `jdyn.designs.Samples`, `jdyn.designs.LatinHypercube`, `jdyn.designs.Sobol` or
products of them, in chunks on every processor, into a labelled `xarray.Dataset`; with `store=`, into a Zarr group that
survives a crash: the same call goes on, and computes nothing twice; with `shard=` in parts, by an array of jobs; with
`engine=`, on a Dask cluster (`pip install "jdyn[cluster]"`); `jdyn sweep notebooks/sweep.toml` sweeps what a file says
(`jdyn tune notebooks/tune.toml` tunes it), and `jdyn.replay` runs a lane again; `jdyn.designs.Saltelli` and
`jdyn.designs.Morris` say which parameters matter (`pip install "jdyn[sensitivity]"`).

## Tuning

`jdyn.tune` with any optax optimizer, within bounds: `jdyn.tuning.Positive`, `jdyn.tuning.Interval`,
`jdyn.tuning.Simplex`, `jdyn.tuning.PhysicalInertia`; on `jdyn.tuning.Minibatches`, with early stop,
`jdyn.tuning.Patience`; with `checkpoint=`, it goes on after a crash, bit for bit; `jdyn.tune_starts` from many starts
in one program; `jdyn.tune_least_squares` with optimistix; `jdyn.robust` for the mean, the worst share or the worst of
many models or scenarios; `jdyn.losses` for errors, settling, overshoot, effort, energy and peaks of a motion; a grossly
wrong gradient is warned of at the first step, and `print(jdyn.gradient_health(loss, params))` says which parameter's it
is and where it stops being finite.

## Identification

`print(jdyn.identification.base_parameters(model))` says which masses, inertias, dampers, friction and rotors forces
tell, alone or in combination; `jdyn.identification.fit_base_parameters` estimates these from measured forces, with the
noise of each joint and confidence intervals; `jdyn.identify` finds the model with these whose bodies can exist, near a
nominal one; `jdyn.identification.exciting_motion` designs a motion within limits by which errors of a Panda's
parameters are two thirds of those by random sines; `jdyn identify log.csv my_arm.urdf` prints a table and writes the
model (the notebook `identification` makes data to try it).

`jdyn identify log.csv my_arm.urdf --report fit.html` takes positions and torques alone, as does
`jdyn.identification.identify_log`: CSV and NetCDF files, and bags of ROS 1 and ROS 2 (`pip install "jdyn[rosbag]"`).
Positions are filtered without phase, at a cut-off that follows from their spectrum, and differentiated; regressors and
torques go through one filter. The delay of torques, their offsets (asymmetric friction), and torque constants, where
currents were measured and a payload or other force is known, are estimated with the parameters and have intervals. The
report is one page: parameters, forces measured and predicted, also those that the fit does not know, residuals and
their correlation, friction over speed, and what no force tells.

## Movies

`jdyn.animate(motion, "motion.gif")`, without a GPU and without a window: GIF, MP4 (`pip install
"jdyn[view]"`), strips of pictures, and in a notebook the movie itself; meshes and shapes with a soft shadow, rods
along the links where a robot has none, other lanes as ghosts, trails of named points, a `jdyn.Camera` that follows a
body, mechanisms in a plane from the front; `jdyn.snapshot` is one picture as an array.

## Viewer

`jdyn.view(trajectory)` (`pip install "jdyn[view]"`) is a page in a browser: sliders of joints, a gizmo that
drags a body by inverse kinematics, play, speed, recording, lanes of a batch side by side, plots over time, gains as
sliders that simulate again, frames, centres of mass, inertia ellipsoids and joint axes; `export` writes a page that
needs no server.

## Plots

`jdyn.plots`, one call each, which returns the axes it drew in: coordinates, energies, phase portraits, distances to a
target and sizes of steps of motions; heat maps, pairs and fans of sweeps; histories of tuning, health and growth of
gradients; work against precision, stiffness of formulations; units on labels, lines that are told apart in black and
white.

## Trust

`print(jdyn.verify("my_robot.urdf", against="pinocchio"))` compares every function with Pinocchio or MuJoCo on random
states.

## Commands

`jdyn info ROBOT`, `jdyn view ROBOT` (or a sweep's store), `jdyn simulate ROBOT --plot motion.png --movie motion.gif`,
`jdyn sweep`, `jdyn replay`, `jdyn tune`, `jdyn identify DATA ROBOT`, `jdyn stiffness`, `jdyn prrr`, `jdyn prrrfdt`;
each explains itself with `--help`. Commands keep compiled programs in the user's cache folder (`~/.cache/jdyn` on
Linux, which may be deleted at any time), unless others may write there, so that a short one takes half the time when
it is repeated. `--no-cache` and existing JAX cache settings take precedence. The library keeps nothing by itself:
before its first computation, `jax.config.update("jax_compilation_cache_dir", "some/folder")` makes JAX keep programs
that take a second or more to compile, and `jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)` all
others. Only people whom you trust may be able to write to that folder.

"""
