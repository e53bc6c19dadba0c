"""# Tutorial: a robot of your own, from its file to a picture

Read it from top to bottom. Every line with `>>>` has been run as it stands, and what is printed below it is what it
prints. Examples begin with

```
import jax, jax.numpy as jnp, numpy as np, jdyn
jax.config.update("jax_enable_x64", True)
```

The second line makes JAX compute in float64. Without it everything works in float32, with fewer digits.

## A robot file

jdyn reads URDF, SDF and MuJoCo XML. This is an arm of two links that swings in a vertical plane. Put your own file in
its place: the rest of this page works with it, apart from the numbers.

>>> text = '''
... <robot name="arm">
...   <link name="base"/>
...   <link name="upper">
...     <inertial><origin xyz="0 0 -0.25"/><mass value="2.0"/>
...       <inertia ixx="0.042" iyy="0.042" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>
...   </link>
...   <link name="lower">
...     <inertial><origin xyz="0 0 -0.2"/><mass value="1.0"/>
...       <inertia ixx="0.014" iyy="0.014" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
...   </link>
...   <link name="hand"/>
...   <joint name="shoulder" type="continuous">
...     <parent link="base"/><child link="upper"/><axis xyz="0 -1 0"/><dynamics damping="0.1"/>
...   </joint>
...   <joint name="elbow" type="revolute">
...     <parent link="upper"/><child link="lower"/><origin xyz="0 0 -0.5"/><axis xyz="0 -1 0"/>
...     <limit lower="-2.5" upper="2.5" effort="20" velocity="10"/><dynamics damping="0.1"/>
...   </joint>
...   <joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0 0 -0.4"/></joint>
... </robot>'''
>>> import pathlib
>>> written = pathlib.Path("arm.urdf").write_text(text)
>>> model = jdyn.load("arm.urdf")
>>> print(model.name, model.nb, "bodies,", model.nv, "degrees of freedom")
arm 2 bodies, 2 degrees of freedom
>>> print(model.joint_names, model.body_names, model.frame_names)
('shoulder', 'elbow') ('upper', 'lower') ('base', 'hand')

A link on a fixed joint becomes part of the body that carries it, and lives on as a frame: here `hand`. A file with
mistakes is refused with a list of all of them. On the command line, `jdyn info arm.urdf` prints the same as a table,
and `jdyn.verify("arm.urdf")` compares every function with Pinocchio, if that is installed.

## Kinematics and dynamics

A configuration `q` has one entry for each coordinate, a velocity `v` one for each degree of freedom; see
`jdyn.guide.conventions`.

>>> q, v = jnp.array([0.5, 1.0]), jnp.zeros(2)
>>> print(jdyn.frame_pose(model, q, "hand").translation.round(3) + 0.0)
[ 0.639  0.    -0.467]
>>> print(jdyn.mass_matrix(model, q).round(4))
[[0.5791 0.108 ]
 [0.108  0.054 ]]
>>> hold = jdyn.gravity_forces(model, q)
>>> print(hold.round(3))
[6.66  1.957]

These torques hold the arm: with them forward dynamics finds no acceleration, without them it falls.

>>> print(jdyn.forward_dynamics(model, q, v, hold).round(9) + 0.0)
[0. 0.]
>>> print(jdyn.forward_dynamics(model, q, v, jnp.zeros(2)).round(2))
[ -7.56 -21.11]

## A simulation with a controller

`jdyn.PD` drives the joints to a target, `jdyn.GravityCompensation` carries the weight; controllers add up.

>>> target = jnp.array([1.0, 1.5])
>>> controller = jdyn.PD(model, target, kp=40.0, kd=8.0) + jdyn.GravityCompensation(model)
>>> motion = jdyn.simulate(model, q, v, 2.0, controller=controller)
>>> print(motion.q.shape, motion.q[-1].round(2))
(101, 2) [1.  1.5]

The steps adapt to the tolerances `rtol=1e-6, atol=1e-8`; what is returned are 101 rows from start to end, or those at
the times that `saveat` says. Everything else is computed on demand:

>>> print(motion.tau.shape, motion.energy.shape, motion.poses.translation.shape)
(101, 2) (101,) (101, 2, 3)
>>> print(motion.stats["accepted_steps"] > 0, jdyn.Result(int(motion.result)).name)
True success

## A system

`jdyn.System` is all that is simulated in one PyTree: the model, its controller, contact, force elements, constraints,
joint limits and sensors. The lines above are the short form of these:

>>> system = jdyn.System(model, controller=controller)
>>> state = system.state(q, v)
>>> motion = jdyn.simulate(system, state, 2.0)

A trajectory knows its system, so that `motion.tau` needs no arguments. What runs at a fixed rate, such as a
controller in a loop or the episodes of `jdyn.environments`, takes one step at a time, with forces of its own:

>>> for _ in range(50):
...     state, info = system.step(state, jnp.array([0.0, 0.5]), dt=0.01)
>>> print(state.q.round(2), info.result == jdyn.Result.success)
[0.99 1.47] True

## A gradient

Functions of jdyn are functions of JAX: `jax.jit`, `jax.vmap`, `jax.grad` take them, simulations included. The model is
an argument like any other, and each of its numbers can be varied by name (`jdyn.parameters(model)` lists them).

>>> def distance(kp, load):
...     heavier = jdyn.vary(model, {"body:lower.mass": 1.0 + load})
...     controller = jdyn.PD(model, target, kp=kp, kd=8.0) + jdyn.GravityCompensation(model)
...     motion = jdyn.simulate(heavier, q, v, 2.0, controller=controller, throw=False)
...     return jnp.linalg.norm(motion.q[-1] - target)
>>> slope = jax.jit(jax.value_and_grad(distance))
>>> error, by_kp = slope(40.0, 0.5)
>>> print(f"{error:.3f} rad, {by_kp:.5f} rad per N m/rad")
0.068 rad, -0.00168 rad per N m/rad

The controller does not know of the load, so a stiffer one misses the target by less. Differences say the same:

>>> h = 0.01
>>> print(f"{(slope(40.0 + h, 0.5)[0] - slope(40.0 - h, 0.5)[0]) / (2 * h):.5f}")
-0.00168

`throw=False` lets a failed simulation return NaN instead of raising, which is what you want in a batch.
`jdyn.tune` goes down such a gradient with any optimizer of optax, within bounds; `jdyn.gradient_health` checks it.

## A sweep

`jdyn.sweep` runs a function for every lane of a design and labels what it returns. Each lane takes as many steps as it
needs, and one that fails spoils no other.

>>> def lane(p):
...     return {"error": distance(p["kp"], p["load"])}
>>> design = jdyn.designs.Grid(kp=np.geomspace(10.0, 1000.0, 8), load=np.linspace(0.0, 2.0, 6))
>>> dataset = jdyn.sweep(lane, design, progress=False)
>>> print(dict(dataset.sizes))
{'kp': 8, 'load': 6}
>>> print(bool(dataset["error"].sel(load=2.0).diff("kp").max() < 0))  # stiffer is better
True

With `store="loads.zarr"` the results are kept as they come, and after a crash the same call goes on.
`jdyn.designs.Sobol` and `jdyn.designs.LatinHypercube` draw lanes where a grid would have too many.

## A picture

One call each, and the axes are returned (`jdyn.plots`):

>>> axes = jdyn.plots.heat_map(dataset, "error")
>>> axes.figure.savefig("errors.png")
>>> axes = jdyn.plots.trajectory(motion)

And the robot itself. `jdyn.animate` writes a movie, without a GPU or a window; a notebook shows it as the last value of
a cell. This robot has no shapes, so its links are drawn as rods.

>>> movie = jdyn.animate(motion, "arm.gif", trails=["hand"], fps=10, size=(320, 240))
>>> print(movie.frames, pathlib.Path("arm.gif").exists())
21 True

`jdyn.view(motion)` shows it in a browser, with sliders of the joints, play and scrub, and frames, centres of
mass and joint axes to switch on (`pip install "jdyn[view]"`); on the command line, `jdyn view arm.urdf`.

## Where to go on

- `jdyn.guide.recipes` has short answers: floating bases, closed loops, friction, limits, delays, identification.
- `jdyn.guide.methods` and `jdyn.guide.solvers` say what to choose where the defaults are not right.
- Every name of `jdyn` has an example in the reference.
"""
