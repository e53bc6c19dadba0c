"""# Robots that touch

Shapes pass through each other unless `jdyn.simulate` is told how they touch: `contact=jdyn.CompliantContact()`,
`jdyn.ConvexContact()` or `jdyn.RigidContact()`. This chapter uses a ball on a rail, above the ground:

>>> import dataclasses, diffrax, warnings
>>> builder = jdyn.Builder("ball on a rail")
>>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0, inertia=4e-3)
>>> builder.add_shape("ball", "sphere", 0.1, role="collision")
>>> model = jdyn.with_ground(builder.build())

`jdyn.with_ground` puts a half-space under any model, level or sloping. Robot files bring their collision shapes along;
so do the bundled `quadruped`, `hopper`, `gripper`, `ball`, `box`, `ball_on_plate` and `cartpole_with_walls`.

## A robot that lands

A quadruped drops 7 cm, lands, and stands; in the end the ground bears its weight, 87.4 N:

```python
import jax.numpy as jnp, jdyn

model, contact = jdyn.with_ground(jdyn.load("quadruped"), friction=0.8), jdyn.CompliantContact()
crouch = model.neutral().at[2].set(0.35).at[7:].set(jnp.tile(jnp.array([0.0, -0.8, 1.6]), 4))
kp, kd = (jnp.full(model.nv, gain).at[:6].set(0.0) for gain in (100.0, 8.0))  # the trunk has no motor
legs = jdyn.PD(model, crouch, kp=kp, kd=kd)
motion = jdyn.simulate(model, crouch, jnp.zeros(model.nv), 1.0, controller=legs, contact=contact)
print(motion.contacts.force("ground")[-1])
jdyn.animate(motion, "landing.gif")
```

That takes 23 s of processor time: 11 s to load and to compile and run the simulation, 8 s for the forces, 4 s for the
movie. `jdyn simulate my_robot.urdf --ground --movie fall.gif` lets go of any robot with collision shapes, on the
ground; `--hold` holds its joints.

## Which shapes may touch, and how far they are apart

>>> jdyn.contact.collision_pairs(model)
(('ground', 'ball'),)
>>> apart = jdyn.contact.distances(model, jnp.array([0.5]))
>>> print(apart.distance.round(3), apart.normal)
[0.4] [[0. 0. 1.]]

Shapes of one body do not touch, nor do those of a body and the one that its joint is on, but for shapes of the world;
nor do pairs that a MuJoCo file, an SRDF file (`jdyn.load(path, srdf=...)`) or `Builder.exclude` keeps apart. Shapes are
spheres, capsules, cylinders, boxes, ellipsoids, planes, height fields and meshes. A mesh touches as its convex hull,
of 64 vertices at most (`jdyn.load(path, hull_vertices=64)`); `jdyn.contact.decompose(model, folder)` cuts it into
convex parts first.

Distances can be differentiated by the configuration, and by sizes and placements of shapes:

>>> print(jax.grad(lambda q: jdyn.contact.distances(model, q).distance[0])(jnp.array([0.5])))
[1.]

Rays meet shapes where `jdyn.contact.ray_cast` says, with distance, name, place and normal, for any number of rays at
once and with derivatives:

>>> down = jnp.array([0.0, 0.0, -1.0])
>>> hits = jdyn.contact.ray_cast(model, jnp.array([0.5]), jnp.array([[0.0, 0.0, 2.0], [1.0, 0.0, 2.0]]), down)
>>> print(hits.distance.round(3), [hits.names[number] for number in hits.shape])
[1.4 2. ] ['ball', 'ground']

In the neutral configuration the robots of many files lie in their ground. `jdyn.load_configurations(model, path)` has
those that a file names: the start (`"qpos0"`) of a MuJoCo or SDF file, the keyframes of a MuJoCo file, the states
of an SRDF file.

## Three models of contact

>>> contact = jdyn.CompliantContact()
>>> motion = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 2.0, contact=contact)
>>> print(motion.q[-1].round(3))
[0.1]

`jdyn.ConvexContact()` or `jdyn.RigidContact()` in its place needs no other change. Which one to take:

| you want | take |
|---|---|
| any solver | `jdyn.CompliantContact` |
| a law of your own | `jdyn.CompliantContact` |
| derivatives before shapes touch, or through compliant impacts, as exact as the motion | `jdyn.CompliantContact` |
| what sticks to stay where it is: stacks, grasps, slopes | `jdyn.ConvexContact` |
| stiff shapes that stand or slide for long | `jdyn.ConvexContact` |
| no stiffness at all, bounces with a coefficient of restitution, small errors with few points | `jdyn.RigidContact` |
| derivatives through several hard impacts, each of which amplifies their errors | `jdyn.RigidContact` |
| heaps of rigid shapes at rest, in steps of a given length | `jdyn.RigidContact` and `jdyn.System.step` |

Rigid contact is a force without a law: where shapes touch it is what keeps them from overlapping and friction within
its cone, found by complementarity in every stage of the default solver. Shapes that meet collide at the instant:

>>> rigid = jdyn.RigidContact(restitution=0.5, friction=0.3)
>>> motion = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 0.7, contact=rigid)
>>> print(motion.v[-1].round(3))
[-0.564]

Surfaces of their own are materials, by name of shape or link: of two, the smaller restitution and the larger friction
count, as in `jdyn.RigidContact(restitution=0.9, materials={"ground": jdyn.contact.RigidMaterial(restitution=0.2)})`.

A point counts as at rest below `rest_speed`, which follows the tolerance, so that errors fall with it: a bead that
slides off a ball with friction and flies on is off by 3e-4 m at a tolerance of 1e-4, and by 3e-8 m at 1e-8, in 14 and
27 steps. Derivatives are exact: impacts, and instants at which points stop to slide, are events. Programs with it take
some twenty seconds to compile, gradients more than a minute. `System.step` takes it with `jdyn.solvers.MoreauEuler`,
whose steps of a given length have all impulses in them: of order 1, for many points, and compiled in four seconds. Ten
boxes on each other, or a card house of seven cards, rest for a minute, in some 40 ms a step.

Convex contact has derivatives of steps, whose errors fall with the tolerance more slowly than those of the motion: of a
cube that tumbles on a floor they are off by 4 % at 1e-8, and by their own size at the tolerance by default.

Compliant contact pushes by a law of depth and its rate: `jdyn.contact.HuntCrossley`, `jdyn.contact.SpringDamper` or
`jdyn.contact.TwoStiffnesses`. Its friction is smooth in the slip, so that what sticks creeps, at a part of
`slip_speed`, 1e-3 m/s. The default solver is implicit in these forces where they are stiff. Tolerances are `rtol=1e-4,
atol=1e-5` in float32, which rounds the places of shapes, if you state none.

Convex contact finds the velocity at the end of each step as the minimum of a convex function. Neither stiffness nor the
slip speed, 1e-6 m/s, limits its steps; nor do dry friction in joints and the ends of their ranges
(`joint_limits=jdyn.CompliantLimits()`), which are terms of the same function, as are `constraints`. Its solver,
`jdyn.solvers.ConvexEuler`, does not know steps that are judged by `jdyn.solvers.EnergyError`. What bounces often takes
it many steps at small tolerances, which is why it has larger ones if you state none: `rtol=1e-4, atol=1e-5`, and
`atol=1e-4` in float32. Its steps solve a dense system of all velocities: of the 0.8 ms that a substep of a chain of 100
links on the floor takes, that is a tenth.

## Impacts of rigid shapes

With `jdyn.impact_event` shapes bounce off each other at an instant, as rigid ones do: restitution and friction are
numbers of a law of impact, and the impulse goes through all joints.

>>> rail = jdyn.impact_event(model, jdyn.impacts.Poisson(), restitution=0.7)
>>> motion = jdyn.simulate(model, jnp.array([0.5]), jnp.zeros(1), 0.7, events=[rail])
>>> print(motion.v[-1].round(3))
[1.229]

| law | where restitution ends | may make energy |
|---|---|---|
| `jdyn.impacts.Stronge` | where e² of the work of compression is given back | no |
| `jdyn.impacts.Poisson` | where the impulse is 1 + e times that of compression | no |
| `jdyn.impacts.Newton` | where the speed is e times that of the approach | with friction |
| `jdyn.impacts.Brach` | the same; `friction` is a ratio of whole impulses | no |
| `jdyn.impacts.StickOrSlide` | the same; sticks, or slides in one direction | with friction |
| `jdyn.impacts.Frictionless` | the same | no |
| `jdyn.impacts.NewtonTogether` | all points at once, where each leaves with e times its speed or more | yes |
| `jdyn.impacts.PoissonTogether` | all points at once, by impulses as Poisson's | with friction |

The last two make one problem of all points that touch at an instant; by the others, points are hit one after another.
Both are models: a ball that hits a row of two stops by the second rule, and bounces back by the first.
The first three follow the path of the impulse, along which friction obeys Coulomb's law, and sliding may stop and turn.
All are functions of the Delassus matrix of a point and its velocity, for uses of your own; results say which of Wang's
and Mason's cases it was, how far from the next one, and what energy was lost. Bodies that come to rest bounce ever more
often: end the simulation before, or take another model of contact.

## Materials

A `jdyn.contact.Material` has stiffness, dissipation and friction: one number, or three with those against turning and
rolling. Two shapes in contact are springs in series, and the larger friction counts, or that of the shape of higher
`priority`, as feet in files of MuJoCo have it. `materials` are by name of a shape or a link, `material` is that of all
others. Friction that no material states is that of the shapes, which comes from files or from
`jdyn.with_ground(model, friction=...)`, or that of a pair (`jdyn.Builder.include`); dissipation that none states is the
default of the law.

A shape with a `margin` (`jdyn.contact.Touching`) touches before its surface does, as if it had a skin: the margins of
two shapes add up, and what rests stays as far above the ground. Files of MuJoCo have them.

A pair may have two coefficients of sliding friction and two of rolling friction, as `<pair>` of MuJoCo's files has:
`Builder.include(a, b, friction=(sliding₁, sliding₂, torsional, rolling₁, rolling₂))`. Sliding friction is then on the
ellipse with these half axes, times the normal force, at the place where it takes the most power: MuJoCo's elliptic
cone. The two directions are those of MuJoCo's contact frames. They follow from the normal alone, and do not turn with
bodies: the first is the axis y of the world, or z where the normal is within 60° of y, made perpendicular to the
normal. On level ground the first coefficient acts along y and the second along x. Only a capsule that lies on a plane
has the first along its axis. Compliant and convex contact have both; rigid contact has the larger one, and warns.

>>> firm = jdyn.CompliantContact(materials={"ground": jdyn.contact.Material(stiffness=jnp.inf, friction=0.5)})

## Where shapes touch, and with what forces

`Trajectory.contacts` has every point where shapes may touch, in every row, in the axes of the world. It takes the
contact that was simulated. The ground bears the weight at the end:

>>> touching = motion.contacts
>>> print(touching.force("ball")[-1].round(2) + 0.0, touching.points.depth[0].round(3) + 0.0)
[0.   0.   9.81] [0.]

`Trajectory.accelerations` has the accelerations of such a motion.

With convex contact the forces of a row are those of the step in which it lies, impulses over time: `Trajectory` keeps
them in `contact_forces`. States of rows do not tell what bears something at rest, above all in single precision, where
a change of the last digit of a height changes the force of stiff ground by a thousandth of a weight, and friction
that holds by all of it. In single precision the same is kept of what rests on compliant contact. Fields `forces` of
`jdyn.solvers.ConvexEuler` and `jdyn.solvers.Automatic` leave them out, for less memory.

## Batches

Every number of a contact model is an array, so lanes can differ in it, like in any other argument. A ball on a softer
ground lies deeper:

>>> def ground(stiffness):
...     return jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=stiffness))
>>> soft = jax.vmap(ground)(jnp.array([1e3, 1e4]))
>>> lanes = jdyn.simulate_batch(
...     model, jnp.array([0.5]), jnp.zeros(1), 2.0, contact=soft, in_axes={"contact": 0}, saveat=diffrax.SaveAt(t1=True)
... )
>>> print((0.1 - lanes.q[:, 0, 0]).round(4), lanes.success)
[0.0196 0.002 ] [ True  True]

Frictions of shapes, masses and sizes are numbers of the model, which `jdyn.vary` changes by name:
`{"collision:ground.friction": ...}`.

## Gradients

Derivatives go through contact in both modes. Forces have a kink where shapes begin and cease to touch, and the stages
of a step cannot tell for how long they do; derivatives find that out from its start and its end:

>>> @jax.jit
... def after_a_bounce(height):
...     def end(height):
...         motion = jdyn.simulate(
...             model, height[None], jnp.zeros(1), 0.3, contact=jdyn.CompliantContact(),
...             saveat=diffrax.SaveAt(t1=True), adjoint=diffrax.ForwardMode(),
...         )
...         return motion.q[0, 0]
...     return jax.jvp(end, (height,), (jnp.ones_like(height),))
>>> (low, _), (_, slope), (high, _) = (after_a_bounce(jnp.array(h)) for h in (0.299, 0.3, 0.301))
>>> print(abs(slope - (high - low) / 0.002) < 0.01 * abs(slope))
True

Forward mode takes each step twice for that. Derivatives of constant steps are those of the steps, as differences show
them, and `jdyn.solvers.AdamsBashforthMoulton` leaves kinks out. The law `jdyn.contact.SpringDamper()` begins with a
jump, of which derivatives know with `CompliantContact(located=True)` alone: steps end where shapes begin and cease to
touch, and these instants are events. Without it, a `jdyn.contact.ContactWarning` says so.

What does not touch has no force, and no derivative of it: a gradient does not tell a gripper where the cube is.
`CompliantContact(gradient_reach=0.01)` has derivatives feel contact from about 1 cm away. They are wrong on purpose;
motions do not change. Steps do not know of the springs that derivatives then feel: give them a `dtmax` that is short
for these, about √(m / 2k) for a stiffness k and the lighter mass m, or derivatives grow without bound. Compare a
gradient with differences (`jdyn.gradient_health`) before you trust it: what bounces often depends on its start so
strongly that its gradient says little.

## When something is wrong

A model without shapes to touch, an unknown name of a material, two rigid materials that meet or numbers that cannot be
are refused before anything runs. Shapes that overlap deeply at the start are thrown apart by their springs, and a
warning says so:

>>> with warnings.catch_warnings(record=True) as told:
...     warnings.simplefilter("always")
...     thrown = jdyn.simulate(model, jnp.array([0.05]), jnp.zeros(1), 2.0, contact=contact)
>>> print(told[0].category.__name__, thrown.stats["start_depth"].round(3))
ContactWarning 0.05

What has too little stiffness for what it bears is sunk into, or passed through, and a warning says so as well. In
compiled functions and batches nobody can be warned: look at `stats["start_depth"]` and `stats["greatest_depth"]`.

`nearest=8` looks for points of the eight nearest pairs of each two kinds of shapes alone, which pays where more than
some fifteen shapes may touch each other. If more pairs come near at once, the motion fails there rather than overlook
one; with `throw=False` and in batches `result` says so, and other lanes go on.

Steps with error control are so short that what moves or turns fast does not pass through thin shapes; with steps of a
given length it may. The same holds for `jdyn.touch_event`, an `Event` where shapes begin to touch. What overlooks
nothing at all is a bound on speeds and accelerations:

- `jdyn.contact.time_of_contact`: when shapes touch first along a motion of constant velocity, and
  `jdyn.contact.first_contact` along any motion `t -> q`: a polynomial, a reference, a trajectory's `interpolate`. It
  says until when nothing touches for certain, which pair is first, and how many looks that took.
- `jdyn.contact.earliest_contacts`: a least time for each pair, from one look at distances, for all motions whose
  accelerations are bounded. A coordinator of many objects sorts pairs by it, and looks again at the first one then.
  `jdyn.contact.earliest_contact` is its formula, for distances and bounds of your own.
- `jdyn.contact.may_touch` and `jdyn.contact.swept_boxes`: which pairs may touch within a time, by boxes about all that
  shapes may sweep, without distances.

## What there is not yet

- Friction of rigid contact against turning and rolling, or by direction, and laws of impact by the path of the impulse
  beside rest (`jdyn.impact_event` has these laws, one point after another).
- Hulls of more than 64 vertices, and meshes with hollows unless `jdyn.contact.decompose` cuts them.
"""
