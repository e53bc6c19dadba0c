"""States of one mechanism in models with different roots."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.frame_motion import frame_velocity
from jdyn.dynamics.kinematics import frame_pose
from jdyn.model import WORLD, Free, Model, checked
from jdyn.model.edit import row_of
from jdyn.model.model import compiled
from jdyn.spatial import matrix_to_quaternion
from jdyn.terminal.messages import enumerated


@compiled
def rerooted_state(
    model: Model, other: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """State of `other` that is the state `q, v` of `model`, if one was made of the other by `jdyn.reroot`, or both of
    the same.

    Free joints take pose and velocity of the link that they move in `other`; all other joints keep their coordinates.

    >>> builder = jdyn.Builder("walker")
    >>> builder.add_link("torso", jdyn.Free(), mass=5.0, inertia=0.1)
    >>> builder.add_link("leg", jdyn.Revolute((0, 1, 0)), parent="torso", joint_name="hip", mass=1.0, inertia=0.01)
    >>> walker = builder.build()
    >>> standing = jdyn.reroot(walker, "leg")
    >>> q, v = jdyn.rerooted_state(walker, standing, walker.neutral(), jnp.array([0, 0, 0, 0, 0, 1.0, 0.5]))
    >>> print(v)  # the leg turns, and rises with the torso
    [0.  0.5 0.  0.  0.  1.  0.5]

    Args:
        model: The mechanism.
        other: The same mechanism with another root.
        q: Configuration of `model` [rad or m].
        v: Velocity of `model` [rad/s or m/s].

    Returns:
        Configuration and velocity of `other`. Of both quaternions of a rotation, any.

    Raises:
        ValueError: if the models have different joints, or a root of `other` is no link of `model`, or a size
            disagrees with `model`.
    """
    q, v = checked(model, q=q, v=v)
    checked(other)
    ours, theirs = model.topology, other.topology
    joints, others = (dict(zip(each.joint_names, each.kinds, strict=True)) for each in (ours, theirs))
    if joints != others:
        differ = {joint for joint in {*joints, *others} if joints.get(joint) != others.get(joint)}
        raise ValueError(f"rerooted_state: the models differ in their joints {enumerated(sorted(differ))}")
    q_full, v_full = model.expand(q), model.expand_velocity(v)
    in_q, in_v = [], []
    for body, joint in enumerate(theirs.joint_names):
        own, link = ours.joint(joint), theirs.body_names[body]
        if theirs.kinds[body] is Free and theirs.parents[body] == WORLD and ours.body_names[own] != link:
            if link not in (*ours.body_names, *ours.frame_names):
                raise ValueError(f"rerooted_state: {model.name!r} has no link called {link!r}, the root of the other")
            X = row_of(other.placements, body).inverse() @ frame_pose(model, q, link)
            in_q.append(jnp.concatenate([X.translation, matrix_to_quaternion(X.rotation)]))
            in_v.append(frame_velocity(model, q, v, link))
        else:
            in_q.append(q_full[ours.q_slice(own)])
            in_v.append(v_full[ours.v_slice(own)])
    full = jnp.concatenate(in_q), jnp.concatenate(in_v)
    return full[0][jnp.array(theirs.independent_q)], full[1][jnp.array(theirs.independent_v)]
