"""# Worlds of many objects

A `jdyn.World` is made of objects with names. Each is a `jdyn.System` of its own, with its controller, actuators and
sensors, or a `jdyn.Model`; the world says how they touch.

>>> world = jdyn.World(contact=jdyn.RigidContact(restitution=0.5), gravity=(0.0, 0.0, 0.0))
>>> ball = jdyn.load("ball")
>>> world = world.with_object("left", ball, v=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
>>> world = world.with_object("right", ball, placement=(1.0, 0.0, 0.0))
>>> world.names, world.islands()
(('left', 'right'), (('left', 'right'),))

`with_object`, `without`, `with_start` and `but` give changed copies. `merged` is the one system that `jdyn.merge` makes
of all objects. Constraints and force elements between objects are fields of the world, with names such as `left/ball`.

## What each object did

>>> motion = world.simulate(1.0)
>>> print(motion["left"].v[-1, 3:].round(3) + 0.0, motion["right"].q[-1, :3].round(3) + 0.0)
[0.25 0.   0.  ] [0.15 0.   0.  ]

An object's motion has its coordinates, poses, forces of its controller, commands, sensors, energy, and the contact
forces on it. Impacts have their instants, pairs, impulses and changes of the kinetic energy:

>>> (hit,) = motion["right"].impacts.records
>>> print(round(hit.t, 3), hit.pair, hit.impulse.round(3) + 0.0, round(hit.energy, 4))
0.8 ('left/ball', 'right/ball') [0.75 0.   0.  ] -0.1875
>>> print(jnp.ptp(motion.energy - motion.energy_of_impacts) < 1e-5)
True

The last line is the balance where nothing else does work. `motion.trajectory` is the `jdyn.Trajectory` of the whole,
for `jdyn.animate`, `jdyn.view` and plots.

## What an object is

`world["left"]` answers for its state at the start, and `world["left"].at(q, v)` for another one, in four parts:

| part | asked for |
|---|---|
| `dynamic` | mass matrix, bias forces, energies, `response` to an impulse at a point |
| `kinematic` | poses, velocities and Jacobians of links and their points, in axes of the world |
| `geometric` | collision shapes, the box about them, distances |
| `graphical` | coloured triangles |

>>> print(world["right"].dynamic.response("ball", jnp.array([0.0, 0.0, 2.0])).round(3) + 0.0)
[0. 0. 0. 0. 0. 2.]

## Many worlds

A world is a PyTree: `jax.vmap` over restitution, friction or starts gives a batch, and derivatives pass through impacts
as `jdyn.simulate` has them. Impacts then have an axis of lanes.

```python
def lost(e, friction):
    bounce = world.but(contact=jdyn.RigidContact(restitution=e, friction=friction))
    return bounce.simulate(2.0, max_events=8).impacts.energy.sum()

energies = jax.vmap(lost)(jnp.linspace(0.0, 1.0, 1024), jnp.linspace(0.0, 0.5, 1024))
```

## Objects that take steps of their own

One system of all objects takes the same steps for all, and looks at all pairs of their shapes. Under a
`jdyn.world.Coordinator` each object moves by itself, with its own steps and its own solver, in windows of time; where
boxes about two motions meet, the objects are an island, and take the window again as one system.

>>> row = world.without("left").without("right")
>>> for i in range(3):
...     start = {"placement": (i, 0.0, 0.0), "v": [0.0, 0.0, 0.0, 0.0 if i else 1.0, 0.0, 0.0]}
...     row = row.with_object(f"ball{i}", ball, **start)
>>> motion = row.simulate(2.0, coordinator=jdyn.world.Coordinator(window=0.1))
>>> print([hit.pair for hit in motion.impacts.records][0], {len(each.islands) for each in motion.windows} <= {0, 1})
('ball0/ball', 'ball1/ball') True

Costs are then of islands, not of objects, and a stiff object does not shorten the steps of others. Which to take:

| you want | take |
|---|---|
| `jit`, `vmap`, derivatives, events | one system |
| a few objects, many that touch all the time, or many that never do | one system |
| many objects that meet now and then; another solver for one of them | `coordinator=jdyn.world.Coordinator()` |

The coordinator runs on the host, which takes some 15 ms for each object at the start. Each structure of an island
compiles once, twenty seconds or more with rigid contact.

## Files

`world.save("world.npz")` and `motion.save("motion.npz")` keep all of it bit for bit; `jdyn.World.load` and
`jdyn.world.WorldMotion.load` read it, and run nothing that is in the file. Functions cannot be kept: write a controller
as a class of yours, and name it, `classes=[MyController]`.

## Scenes

`jdyn world cradle`, `billiards` or `pumas`, with `--movie FILE`, `--plot FILE`, `--save FILE`; in Python
`jdyn.world.newtons_cradle()`, `billiards()`, `two_pumas()`.
"""
