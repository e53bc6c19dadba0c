"""# Conventions

They are the same everywhere in jdyn, and tested.

| quantity | here |
|---|---|
| units | SI and radians; gravity is a number of the model, (0, 0, -9.81) m/s² by default |
| frames | right-handed; `X_wb` is the pose of b in w, and takes b-coordinates to w: `X_wb = X_wp @ X_pb` |
| spatial vectors | arrays of six numbers, angular part first: motion [ω; v], force [n; f] |
| quantities of a body | in the body's own frame, at its origin, unless a name says otherwise |
| configuration `q` (nq,) | joint by joint; quaternions wxyz, of unit length |
| velocity `v` (nv,), acceleration `a` | tangent vectors, dv/dt = a; `v` is dq/dt for joints without quaternions alone |
| free joint | `q` = [x y z, w x y z], `v` = [ω; v] in the body's frame |
| ball joint | `q` = [w x y z], `v` = ω in the body's frame |
| generalized forces `tau` (nv,) | such that `tau @ v` is power |
| external forces `f_ext` (nb, 6) | [n; f] on each body at its frame's origin, in the body's frame |
| order of bodies | parents first; the world is -1, and no body |
| links on fixed joints | a part of the body that carries them; a frame keeps their name |
| batches | functions take one configuration; `jax.vmap` makes batches |

Quaternions and tangent vectors meet in the model's own functions, which is all that is needed to work with them:

>>> model = jdyn.ROBOTS["chain"](1, floating_base=True)  # one body that is free to move
>>> q = model.neutral()
>>> turned = model.integrate(q, jnp.array([0.0, 0.0, jnp.pi / 2, 0.0, 0.0, 0.0]))  # 90° about z
>>> print(turned.round(3) + 0.0)
[0.    0.    0.    0.707 0.    0.    0.707]
>>> print(model.difference(q, turned).round(3) + 0.0)  # the tangent vector that leads there
[0.    0.    1.571 0.    0.    0.   ]

A linear velocity is that of the body's frame, along the body's own axes:

>>> X_wb = jdyn.forward_kinematics(model, turned)
>>> v = jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
>>> print((X_wb.rotation[0] @ v[3:]).round(3) + 0.0)  # along its own x is along the world's y
[0. 1. 0.]

## From other programs

| | Pinocchio | MuJoCo | Brax (generalized) | ROS |
|---|---|---|---|---|
| quaternion | xyzw | wxyz | wxyz | xyzw |
| spatial vectors | linear first | `cvel` angular, `xfrc_applied` linear first | angular first | linear first |
| velocity of a free joint | [v; ω], body's frame | [v; ω], v in the world's axes, ω in the body's | as MuJoCo | - |
| continuous joint | cos, sin | an angle | an angle | an angle |
| ball joint | xyzw; ω, body's frame | wxyz; ω, body's frame | three angles | - |
| external force | body's frame, at its joint | world's axes, at the centre of mass | - | in the frame it names |
| order of joints | depth first, by name | depth first, as in the file | - | by name |
| links on fixed joints | frames | bodies | - | links |

Whole robots are converted by `jdyn.interop.PinocchioMap` and `jdyn.interop.MujocoMap`; see `jdyn.guide.interop`. For a
pose and a twist of ROS, with their quaternion xyzw and linear part first:

>>> position, xyzw = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 0.0, 0.0, 1.0])
>>> linear, angular = jnp.array([0.1, 0.0, 0.0]), jnp.array([0.0, 0.0, 0.2])
>>> q = jnp.concatenate([position, jnp.roll(xyzw, 1)])
>>> v = jnp.concatenate([angular, linear])  # a twist in the body's frame, `child_frame_id` of an Odometry
>>> print(q, v)
[1. 2. 3. 1. 0. 0. 0.] [0.  0.  0.2 0.1 0.  0. ]
"""
