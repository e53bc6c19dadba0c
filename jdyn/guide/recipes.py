"""# Recipes

Short answers to what people ask for. They share these names:

>>> import dataclasses, diffrax, optax
>>> import equinox as eqx
>>> arm, rod = jdyn.load("double_pendulum"), jdyn.load("pendulum")
>>> zero = jnp.zeros(2)

## Change a number of a model

By name; models are immutable, so this is a copy. `jdyn.parameters(model)` lists the names.

>>> heavier = jdyn.vary(arm, {"body:link2.mass": 2.0, "joint:joint1.damping": 0.3})
>>> print(heavier.inertias.mass, heavier.damping)
[1. 2.] [0.3 0. ]

## Put robots together

`jdyn.merge` puts models side by side, `jdyn.append` fixes one on a link of another, `jdyn.lock` fixes joints. Names
become `part/name`, and coordinates follow one another. Each gives a new model, whose numbers are those of the parts,
also for derivatives and batches.

>>> cell = jdyn.merge({"left": arm, "right": arm, "part": jdyn.load("box")}, placements={"right": (1.0, 0.0, 0.0)})
>>> print(cell.nv, cell.joint_names)
10 ('left/joint1', 'left/joint2', 'right/joint1', 'right/joint2', 'part/box')
>>> holding = jdyn.append(arm, jdyn.load("ball"), "tip")  # what moves freely becomes part of the link
>>> print(holding.inertias.mass)
[1. 2.]
>>> print(jdyn.lock(cell, {"right/joint1": 0.5}).nv)
9

What the parts may touch with is theirs still: a contact of the `jdyn.System` acts between them as well. Systems bring
their controllers, actuators, sensors, force elements, constraints and configurations along, as does
`jdyn.load_system("robot.xml")`:

>>> servo, encoder = jdyn.actuators.PositionServo("joint1", kp=80.0, kd=8.0), jdyn.sensors.JointPosition("q", "joint1")
>>> robot = jdyn.System(rod, actuators=[servo], sensors=[encoder])
>>> both = jdyn.merge({"left": robot, "right": robot, "part": jdyn.load("box")})
>>> state, seen = both.step(both.state(), action=[0.2, -0.2], dt=0.01)
>>> print(sorted(seen.sensors))
['left/q', 'right/q']
>>> held = jdyn.append(robot, jdyn.System(jdyn.load("ball")), "tip", name="tool")
>>> print(held.model.nv, held.model.frame_names)
1 ('tip', 'tool/world', 'tool/ball')
>>> left_alone = jdyn.lock(both, {"right/joint1": 0.3})  # without its servo and its sensor
>>> print(left_alone.model.nv, len(left_alone.actuators), [sensor.name for sensor in left_alone.sensors])
7 1 ['left/q']

A robot of a merged model keeps its own controller with `jdyn.control.PartController(controller, cell, "left")`; those
of several parts add up. `jdyn.with_frame` gives a model one frame more.

## Let a robot stand on its foot, or grow

`jdyn.reroot` makes another link the root of a robot that moves freely, `jdyn.rerooted_state` finds its state. A
system brings its controller, actuators, sensors and all its other parts along.
`jdyn.scale` multiplies lengths, masses and times, of a model or a system; with `similar=False` the body alone changes,
while springs, gains and limits stay.

>>> dog = jdyn.load("quadruped")
>>> standing = jdyn.reroot(dog, "fl_foot")
>>> q, v = jdyn.rerooted_state(dog, standing, dog.neutral(), jnp.zeros(dog.nv))
>>> print(standing.body_names[0], jdyn.frame_pose(standing, q, "trunk").translation.round(3) + 0.0)
fl_foot [0. 0. 0.]
>>> print(jdyn.scale(arm, length=2.0, mass=8.0).inertias.mass)
[8. 8.]

## Hold a robot still

>>> q = jnp.array([0.5, 1.0])
>>> hold = jdyn.gravity_forces(arm, q)
>>> print(jdyn.forward_dynamics(arm, q, zero, hold).round(6) + 0.0)
[0. 0.]

## Sweep over a payload

>>> def lane(p):
...     loaded = rod.with_body("link1", mass=p["mass"])
...     controller = jdyn.PD(rod, jnp.ones(1), kp=50.0, kd=10.0)
...     motion = jdyn.simulate(loaded, jnp.zeros(1), jnp.zeros(1), 2.0, controller=controller, throw=False)
...     return {"angle": motion.q[-1, 0], "result": motion.result}
>>> dataset = jdyn.sweep(lane, jdyn.designs.Grid(mass=[0.5, 1.0, 2.0]), progress=False)
>>> print(dataset["angle"].values.round(2))
[0.96 0.92 0.85]

## Simulate a system with many values of a number

>>> arm = jdyn.load("pendulum")
>>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=10.0, name="servo")
>>> system = jdyn.System(arm, controller=jdyn.control.Constant(jnp.array([0.4])), actuators=[servo])
>>> stiffer = jax.vmap(lambda kp: jdyn.vary(system, {"actuators.servo.kp": kp}))(jnp.array([50.0, 100.0, 200.0]))
>>> start = system.state(jnp.zeros(1), jnp.zeros(1))
>>> motions = jdyn.simulate_batch(stiffer, start, 3.0, in_axes={"system": 0, "state": None})
>>> print(motions.q[:, -1, 0].round(2))
[0.36 0.38 0.39]

## Resume a sweep

With a store the same call goes on after a crash, and computes nothing twice. Here it has nothing left to do.

>>> first = jdyn.sweep(lane, jdyn.designs.Grid(mass=[0.5, 1.0, 2.0]), store="masses.zarr", progress=False)
>>> again = jdyn.sweep(lane, jdyn.designs.Grid(mass=[0.5, 1.0, 2.0]), store="masses.zarr", progress=False)
>>> print(again["angle"].values.round(2))
[0.96 0.92 0.85]

## Run a sweep on a cluster

As an array of jobs, each with its part of the same store; `(i, n)` is what the scheduler says:

>>> for i in (1, 2):  # two jobs, here one after the other
...     design = jdyn.designs.Grid(mass=[0.5, 1.0])
...     part = jdyn.sweep(lane, design, store="parts.zarr", chunk=1, shard=(i, 2), progress=False)
>>> print(jdyn.open_sweep("parts.zarr")["angle"].values.round(2))
[0.96 0.92]

Or on a Dask cluster, `engine=distributed.Client(address)`. For sweeps that a file describes, `jdyn sweep sweep.toml
--store FOLDER --shard I/N` does the same.

## Look at one lane again

>>> print(jdyn.replay("masses.zarr", 2, lane)["angle"].round(2))
0.85

## Tune gains by gradient

>>> def loss(gains):
...     controller = jdyn.PD(rod, jnp.ones(1), **gains) + jdyn.GravityCompensation(rod)
...     motion = jdyn.simulate(rod, jnp.zeros(1), jnp.zeros(1), 1.0, controller=controller, throw=False)
...     return jdyn.losses.tracking_error(motion, jnp.ones(1)) + 1e-4 * jdyn.losses.effort(motion)
>>> gains = {"kp": 10.0, "kd": 3.0}
>>> found = jdyn.tune(
...     loss, gains, optimizer=optax.adam(0.1), steps=20, bounds=jdyn.tuning.Positive(), progress=False
... )
>>> print(found.losses[-1] < 0.8 * found.losses[0])
True

## Write a loss of your own

Any scalar function of a motion that JAX can differentiate. Integrals over time go by the rows, `motion.ts`:

>>> def roughness(motion):
...     return jnp.trapezoid(jnp.sum(jnp.gradient(motion.tau, axis=0) ** 2, axis=1), motion.ts)
>>> controller = jdyn.PD(rod, jnp.ones(1), kp=50.0, kd=10.0)
>>> motion = jdyn.simulate(rod, jnp.zeros(1), jnp.zeros(1), 2.0, controller=controller)
>>> print(roughness(motion) > 0)
True

## Write a controller of your own

A function of time, configuration and velocity is one. As a `jdyn.Controller` its fields are gains to sweep and
differentiate, it adds to others, and it is compiled once. One with a memory is a `jdyn.control.DynamicController`.

>>> class Swing(jdyn.Controller):
...     gain: float
...
...     def __call__(self, t, q, v):
...         return self.gain * jnp.tanh(v)
>>> motion = jdyn.simulate(rod, jnp.array([0.1]), jnp.zeros(1), 2.0, controller=Swing(1.0))
>>> print(jnp.max(jnp.abs(motion.q)) > 0.3)
True

## Write a force of your own

Springs between two points, drag and given forces on frames are there: `jdyn.elements.PointSpring`,
`jdyn.elements.Drag`, `jdyn.elements.FrameForce`. Whatever else pushes is a `jdyn.ForceElement`. It says what force
acts, by time and by the places and velocities of bodies and frames; its fields have names for `jdyn.vary`, gradients
and batches. Here a weak beam of light draws the tip of the rod, where it sees it.

>>> class Beam(jdyn.ForceElement):
...     frame: jdyn.Name = eqx.field(static=True)
...     strength: float
...     width: float
...
...     def force(self, t, kinematics, memory):
...         off = kinematics.position(self.frame)[2]
...         pull = self.strength * jnp.exp(-((off / self.width) ** 2))
...         return kinematics.push(self.frame, force=[pull, 0.0, 0.0])
>>> elements = [Beam("tip", 3.0, 0.2), jdyn.elements.Drag("tip", linear=0.5)]
>>> motion = jdyn.simulate(rod, jnp.array([0.5]), jnp.zeros(1), 2.0, elements=elements)
>>> print(motion.success)
True

A stiff force says so, `implicit="coupled"`, and implicit solvers differentiate it, or ask its `slopes`. An element with
a state of its own has `start` and `rate`; one that stores energy, `energy`.

## Stretch a tendon around a joint

A tendon is a path through points of bodies, around spheres and cylinders, and its spring a force element. Here a rope
of 2.2 m leads over a drum on the axis of the rod, past a point above it, and catches the rod as it falls.

>>> at = jdyn.transmissions.PathPoint
>>> wall, top, tip = at("world", [-1.0, 0.0, 0.0]), at("world", [0.0, 0.0, 1.0]), at("tip")
>>> axis = jdyn.pose(rpy=[np.pi / 2, 0.0, 0.0])
>>> drum = jdyn.transmissions.WrappedCylinder("world", 0.2, axis, side=top)
>>> rope = jdyn.transmissions.SpatialTendon([wall, drum, tip])
>>> spring = jdyn.elements.TendonSpring(rope, stiffness=5000.0, damping=50.0, rest_range=(0.0, 2.2))
>>> motion = jdyn.simulate(rod, jnp.array([1.5]), jnp.zeros(1), 2.0, elements=[spring])
>>> print(f"{motion.q[-1, 0]:.2f}")
0.76

`jdyn.transmissions.FixedTendon` adds up joints instead, as belts on round pulleys do. `jdyn.load_system` reads both
from MuJoCo files.

## Read sensors

`jdyn.System(model, sensors=[...])` gives a system named outputs; `jdyn.sensors` has accelerometers, gyros, load cells,
positions and velocities of joints and frames, centres of mass and others. A motion has their values in every row, a
step at its end, and `system.sense` in a single state. A simulation takes as long with sensors as without.

>>> imu = jdyn.sensors.Accelerometer("imu", "tip")
>>> gyro = jdyn.sensors.Gyro("gyro", "tip")
>>> noisy = jdyn.sensors.Imperfect(gyro, noise=0.01, bias=0.02, quantum=1e-3, key=jax.random.key(0))
>>> system = jdyn.System(rod, sensors=[imu, noisy])
>>> motion = jdyn.simulate(system, system.state(jnp.array([0.5])), 2.0)
>>> print(motion.sensors["imu"].shape == (*motion.ts.shape, 3), system.sense(system.state())["imu"].round(2) + 0.0)
True [0.   0.   9.81]

Where a sensor sits, its bias and its noise are numbers of the system, `jdyn.vary(system, {"sensors.1.bias": 0.03})`, to
identify and to sweep. A `drift` lets the bias walk. A `jdyn.sensors.Sampled` shows what was measured some time ago, at
a rate of its own:

>>> system = system.but(sensors=(jdyn.sensors.Sampled(noisy, delay=0.01, period=0.005),))
>>> state = system.state(jnp.array([0.5]))
>>> for _ in range(10):
...     state, info = system.step(state, dt=0.0025)
>>> info.sensors["gyro"].shape
(3,)

Whatever else is to be measured is a `jdyn.sensors.Sensor`:

>>> class Reach(jdyn.sensors.Sensor):
...     frame: jdyn.Name = eqx.field(static=True)
...     uses_forces = False
...
...     def value(self, reading):
...         return jnp.linalg.norm(reading.pose(self.frame).translation)
>>> system = jdyn.System(rod, sensors=[Reach("reach", "tip")])
>>> print(system.sense(system.state())["reach"].round(3))
1.0

`jdyn.sensors.Rangefinder` measures along rays to the collision shapes that they meet, `jdyn.sensors.Distance` between
collision shapes, both with derivatives:

>>> dog = jdyn.with_ground(jdyn.load("quadruped"))
>>> eye = jdyn.sensors.Rangefinder("eye", "trunk", directions=[[0.0, 0.0, -1.0], [1.0, 0.0, -1.0]])
>>> clearance = jdyn.sensors.Distance("clearance", "ground", "fr_foot")
>>> system = jdyn.System(dog, sensors=[eye, clearance])
>>> print(system.sense(system.state(dog.neutral().at[2].set(0.5)))["eye"].round(3))
[0.5   0.707]

`jdyn.load_system` reads the sensors of MuJoCo files.

## Train a policy

`jdyn.environments.Environment` makes episodes of a system: what is observed, what earns a reward, where an episode
starts and ends. Its `reset` and `step` are pure functions, for batches of environments on any device. Rewards have
gradients; methods that do without them take the same `step`.

>>> rail = jdyn.actuators.Motor("rail", command_range=(-10.0, 10.0))
>>> balance = jdyn.environments.Environment(
...     jdyn.System(jdyn.load("cartpole"), actuators=[rail]),
...     dt=0.02,
...     observe=lambda state, sensors: jnp.concatenate([state.q, state.v]),
...     reward=lambda before, action, after, sensors: jnp.cos(after.q[1]) - 0.1 * after.q[0] ** 2,
...     done=lambda state, sensors: jnp.abs(state.q[1]) > 1.0,
...     start=lambda key: (0.1 * jax.random.normal(key, (2,)), jnp.zeros(2)),
...     episode_length=250,
... )
>>> def earned(policy, key):
...     def one(now, _):
...         now = balance.step(now, balance.commands(jnp.tanh(policy @ now.observation)))
...         return now, now.reward
...     return jax.lax.scan(one, balance.reset(key), length=100)[1].sum()
>>> def loss(policy, keys):
...     return -jax.vmap(earned, (None, 0))(policy, keys).mean()
>>> slope, optimizer = jax.jit(jax.value_and_grad(loss)), optax.adam(0.1)
>>> policy, losses = jnp.zeros((1, 4)), []
>>> memory = optimizer.init(policy)
>>> for key in jax.random.split(jax.random.key(0), 15):
...     value, direction = slope(policy, jax.random.split(key, 16))
...     updates, memory = optimizer.update(direction, memory)
...     policy, losses = optax.apply_updates(policy, updates), [*losses, value]
>>> print(losses[0] > -60.0, losses[-1] < -95.0)
True True

With `auto_reset=True` the next episode starts in the step that ends one: its start is in `observation`, and the end of
the other in `final_observation`. Lanes with masses, friction or gains of their own take
`dataclasses.replace(balance, system=jdyn.vary(balance.system, {"body:pole.mass": mass}))` within the `jax.vmap`.

Methods that need returns alone, such as evolution strategies, make one batch of all policies of a generation:
`notebooks/learn-to-reach-and-walk.ipynb` trains an arm and a quadruped so, with the library `cma`.

Libraries that expect environments of Gymnasium get them, one by one or as a batch (`pip install "jdyn[gymnasium]"`):

>>> envs = jdyn.environments.to_gymnasium_vector(balance, 8)
>>> observations, infos = envs.reset(seed=0)
>>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
>>> print(observations.shape, rewards.shape)
(8, 4) (8,)

## Follow a path

>>> path = jdyn.control.Spline(arm, [0.0, 1.0, 2.0], [[0.0, 0.0], [1.0, 0.5], [0.0, 1.0]])
>>> motion = jdyn.simulate(arm, zero, zero, 2.0, controller=jdyn.control.Tracking(arm, path, kp=100.0, kd=20.0))
>>> print(motion.q[-1].round(3) + 0.0)
[0. 1.]

## Motors, servos and muscles

A system with `actuators` has them between the controller and the mechanism: the controller gives their commands, in
their order, and `System.step` takes such commands as its action. They act on joints by name, behind gears, or on any
`jdyn.transmissions.Transmission`; their numbers have names, their limits and states are their own.

>>> arm = jdyn.load("double_pendulum")
>>> shaft = jdyn.transmissions.GearedJoint("joint1", gear=50.0)
>>> actuators = [
...     jdyn.actuators.DCMotor(shaft, resistance=0.6, constant=0.06, command_range=(-24.0, 24.0)),
...     jdyn.actuators.PositionServo("joint2", kp=80.0, kd=8.0, force_range=(-20.0, 20.0)),
... ]
>>> system = jdyn.System(arm, actuators=actuators, controller=lambda t, q, v: jnp.array([20.0 * (0.5 - q[0]), 0.3]))
>>> motion = jdyn.simulate(system, system.state(), 5.0)
>>> print(motion.q[-1].round(1), jdyn.parameters(system)["actuators.joint1.resistance"])
[0.4 0.3] 0.6
>>> state, info = system.step(system.state(), action=[12.0, 0.0], dt=0.002)

A `jdyn.actuators.PIDServo` may take the velocity of its goal and a force as commands beside the length, its `inputs`,
and drive a `jdyn.actuators.DCMotor` as its `servo`. `jdyn.transmissions.Adhesion` pulls a link and what it touches
together, as suction cups and magnets do.

`jdyn.load_system` reads those of MuJoCo files, and of the transmissions of URDF files; `jdyn.load` gives the mechanism
alone, which controllers push directly.

## Sampling, delay, and limits of motors

Controllers wrap one another: a digital one at 100 Hz whose commands act a period late, with limited torque.

>>> inner = jdyn.PD(rod, jnp.ones(1), kp=50.0, kd=10.0)
>>> digital = jdyn.Saturated(jdyn.control.ZeroOrderHold(inner, period=0.01, delay=1), rod, effort=8.0)
>>> motion = jdyn.simulate(rod, jnp.zeros(1), jnp.zeros(1), 2.0, controller=digital)
>>> print(jnp.max(jnp.abs(motion.tau)) <= 8.0)
True

`jdyn.control.FirstOrderLag` is a motor that follows its command with a time constant.

## A floating base

A file or a bundled robot floats with `floating_base=True`. Its `q` begins with position and quaternion, its `v` with
[ω; v] in the base's own frame, and its first six generalized forces are those on the base.

>>> body = jdyn.load("quadruped", floating_base=True)
>>> print(body.nq, body.nv, body.neutral()[:7])
19 18 [0. 0. 0. 1. 0. 0. 0.]

## Friction and damping in joints

Both are numbers of the model. Coulomb friction is smoothed, `friction * tanh(v / friction_speed)`.

>>> rough = rod.with_joint("joint1", damping=0.5, friction=0.2)
>>> motion = jdyn.simulate(rough, jnp.array([1.0]), jnp.zeros(1), 10.0)
>>> print(jnp.max(jnp.abs(motion.v[-1])) < 0.1)
True

## Keep joints within their limits

Files have limits; a simulation takes note of them where it is told how: by springs or by impacts.

>>> limited = rod.with_joint("joint1", lower=-0.5, upper=2.0)
>>> motion = jdyn.simulate(
...     limited, jnp.array([1.5]), jnp.zeros(1), 3.0, joint_limits=jdyn.ImpactLimits(restitution=0.5)
... )
>>> print(motion.q.min() > -0.51)
True

## Close a loop

Here the tip of a double pendulum hangs on a hook. `jdyn.assemble` finds a start; `jdyn.load_constraints` reads those of
a MuJoCo file.

>>> hook = [jdyn.constraints.Connect("tip", "world", point_b=(1.2, 0.0, 0.0))]
>>> start = jdyn.assemble(arm, hook, jnp.array([0.5, 1.0]))
>>> print(jdyn.frame_pose(arm, start.q, "tip").translation.round(3) + 0.0)
[1.2 0.  0. ]

## Lead a hand along a path

One frame of a `jdyn.constraints.Guided` moves as told, and what is welded to it, or held by a point, follows. Mocap
bodies of MuJoCo files are guides, at rest until `jdyn.constraints.guide` gives them another pose, or a path:

>>> scene = jdyn.load_system('''<mujoco><worldbody>
...   <body name="hand" mocap="true" pos="0 0 1"/>
...   <body name="box" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
... </worldbody><equality><weld body1="hand" body2="box"/></equality></mujoco>''')
>>> def path(t):
...     return jdyn.Transform(jnp.eye(3), jnp.stack([0.2 * jnp.sin(t) ** 2, 0 * t, 1.0 + 0 * t]))
>>> led = scene.but(constraints=jdyn.constraints.guide(scene.constraints, {"hand": path}))
>>> motion = jdyn.simulate(led, led.state(), 1.5)
>>> print(motion.q[-1, :3].round(3) + 0.0, (0.2 * jnp.sin(1.5) ** 2).round(3))
[0.199 0.    1.   ] 0.199

Poses are numbers of the system, so that an environment may give another one at every step without compiling anew.
Motions begin where `jdyn.assemble` finds a state that fits; `jdyn.load_mocap_poses` reads the poses of keyframes.

## Write a constraint of your own

Equations of the poses of frames and of the coordinates of joints, that are zero where they are met:

>>> class SameHeight(jdyn.constraints.Constraint):
...     frames, joints = ("link2", "tip"), ()
...
...     def residual(self, placed):
...         return (placed.frames[0].translation[2] - placed.frames[1].translation[2])[None]
>>> start = jdyn.assemble(arm, [SameHeight()], jnp.array([0.5, 0.5]))
>>> print(jnp.cos(start.q.sum()).round(6) + 0.0)  # the second link lies level
0.0

## Stop, or jump, when something happens

>>> lowest = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=0.5 * y.v))
>>> motion = jdyn.simulate(rod, jnp.array([1.0]), jnp.zeros(1), 3.0, events=[lowest])
>>> print((motion.events.which >= 0).sum() > 0, motion.q[-1, 0] < 0.6)
True True

## Inverse kinematics

>>> target = jdyn.planning.FrameTarget("tip", jnp.array([1.0, 0.0, -1.0]))
>>> reached = jdyn.inverse_kinematics(arm, [target], jnp.array([0.2, 0.5]))
>>> tip = jdyn.frame_pose(arm, reached.q, "tip").translation
>>> print(jdyn.planning.Reach(int(reached.result)).name, tip.round(3) + 0.0)
met [ 1.  0. -1.]

## Linearize, and hold an unstable equilibrium

>>> cart = jdyn.load("cartpole")  # upright at q = 0
>>> hold = jdyn.LQR(cart, zero, Q=1.0, R=0.1, actuated=[0])
>>> motion = jdyn.simulate(cart, jnp.array([0.0, 0.2]), zero, 5.0, controller=hold)
>>> print(jnp.max(jnp.abs(motion.q[-1])) < 0.1)
True

## Check the energy

What motors, dampers and friction do not give or take stays in the mechanism.

>>> energy = jdyn.simulate(arm, jnp.array([1.0, 0.5]), zero, 2.0).energy
>>> print(jnp.ptp(energy) < 1e-3)
True

## Find which parameter matters

>>> design = jdyn.designs.Morris(5, mass=(0.5, 2.0), length=(0.5, 2.0))
>>> torque = jdyn.sweep(lambda p: {"torque": 9.81 * p["mass"] * p["length"] / 2}, design, progress=False)["torque"]
>>> print(design.indices(torque)["mean_size"].values.round() > 0)
[ True  True]

## Identify a robot from measured forces

>>> t = jnp.linspace(0.0, 3.0, 40)[:, None]
>>> q, v, a = jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)
>>> real = rod.with_body("link1", mass=1.3)
>>> tau = jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(real, q, v, a))(q, v, a)
>>> noise = 0.01 * jax.random.normal(jax.random.key(0), tau.shape)
>>> found = jdyn.identify(rod, q, v, a, tau + noise, parts=["inertias"])
>>> print(jdyn.gravity_forces(real, jnp.ones(1)).round(), jdyn.gravity_forces(found.model, jnp.ones(1)).round())
[5.] [5.]

`jdyn.identification.exciting_motion` designs a motion that tells more, and `jdyn identify log.csv arm.urdf` does it all
from a file.

## Identify a robot from a log of positions and torques alone

The log has noise in positions and torques, and torques are written 3 ms late:

>>> import xarray
>>> t = np.arange(0.0, 20.0, 0.005)
>>> rng = np.random.default_rng(0)
>>> torques = jax.vmap(lambda t: jdyn.inverse_dynamics(real, jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)))
>>> tau = np.asarray(torques(jnp.asarray(t - 0.003)[:, None])) + 0.02 * rng.normal(size=(4000, 1))
>>> q = np.sin(2 * t)[:, None] + 1e-5 * rng.normal(size=(4000, 1))
>>> log = xarray.Dataset({"q": (("time", "q_coordinate"), q), "tau": (("time", "v_coordinate"), tau)}, {"time": t})
>>> found = jdyn.identification.identify_log(rod, log, parts=["inertias"])
>>> print(round(1000 * found.channels["delay"]), found.held_out.errors < 0.02)
3 [ True]
>>> jdyn.identification.save_report(found, "fit.html")

A file with columns `time`, `q_JOINT` and `tau_JOINT` (or `i_JOINT`, of motor currents), or a ROS bag, is such a log by
`jdyn.identification.read_log`. Angles in degrees are refused unless `degrees=True` says so. Torque constants need a
force that is known: `loaded=[(robot_with_payload, log_with_payload)]`, or `parts` without what is known.

## Draw a motion, and make a movie of it

>>> motion = jdyn.simulate(arm, jnp.array([1.0, 0.5]), zero, 2.0)
>>> axes = jdyn.plots.energy(motion)
>>> axes.figure.savefig("energy.png")
>>> movie = jdyn.animate(motion, "arm.gif", trails=["tip"], fps=10, size=(160, 120))

A batch of motions is drawn as one robot and its ghosts. `jdyn.view(motion)` is the same in a browser.

## Give a robot of the builder shapes

>>> builder = jdyn.Builder("wheel")
>>> builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1e-2)
>>> builder.add_shape("wheel", "cylinder", (0.2, 0.05), color=(0.2, 0.4, 0.8))
>>> print([shape.kind for shape in builder.build().shapes.entries])
['cylinder', 'cylinder']

## Let it fall to the ground, and slide

`jdyn.with_ground` puts ground under any model, `contact=` lets its shapes touch it. A slope of 0.3 rad holds a box
whose coefficient of friction is more than tan 0.3 = 0.31:

>>> slope = jdyn.with_ground(jdyn.load("box"), jdyn.pose(rpy=(0, 0.3, 0)))
>>> above = slope.neutral().at[2].set(0.2)
>>> def fallen(friction):
...     contact = jdyn.ConvexContact(material=jdyn.contact.Material(friction=friction))
...     return jdyn.simulate(slope, above, jnp.zeros(6), 1.0, contact=contact).q[-1]
>>> print([f"{fallen(friction)[0]:.1f}" for friction in (0.2, 0.4)])
['0.6', '0.0']

`jdyn.load("quadruped")`, `"hopper"`, `"gripper"` with a cube to lift, `"ball_on_plate"` and `"cartpole_with_walls"`
have shapes to touch, too; `python -m benchmarks.drops` sweeps 4096 falls of the quadruped over friction and mass.

## Save and load a motion, and export it

>>> motion = jdyn.simulate(rod, jnp.array([1.0]), jnp.zeros(1), 1.0)
>>> motion.save("motion.npz")
>>> print(jnp.array_equal(jdyn.Trajectory.load("motion.npz").q, motion.q))
True
>>> print(sorted(motion.to_xarray().dims))
['q_coordinate', 'time', 'v_coordinate']

## Save a model

>>> jdyn.save_urdf(heavier, "heavier.urdf")
>>> print(jdyn.load("heavier.urdf").inertias.mass)
[1. 2.]

## Look up where the time goes

Compiling takes seconds, running takes milliseconds. `jdyn.warm_up` compiles before the first call, and says how long it
took; `jax.jit` around what you call often, with models and gains as arguments, keeps programs few.

>>> program = jdyn.warm_up(rod, 64)
>>> print(program.compile_seconds < 60, program(rod, jnp.zeros((64, 1)), jnp.zeros((64, 1)), jnp.ones((64, 1))).shape)
True (64, 1)

## Keep a function in a file

`jax.export` writes the program of a function and, with `vjp_order`, that of its gradient: `pip install "jdyn[export]"`.
It runs with JAX alone; what jdyn made of the robot, and the sizes of batches, are part of it. Here it gives the same
bits as before.

>>> from jax import export
>>> def acceleration(q, v):
...     return jdyn.forward_dynamics(arm, q, v, zero)
>>> program, rows = jax.jit(jax.vmap(acceleration)), jnp.ones((8, 2))
>>> content = export.export(program)(rows, rows).serialize(vjp_order=1)
>>> loaded = export.deserialize(content)
>>> print(jnp.array_equal(loaded.call(rows, rows), program(rows, rows)))
True
"""
