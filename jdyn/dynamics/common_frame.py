"""All bodies of a tree in one frame, where sums over subtrees need no transforms."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import JointKinematics, dof_motions, joint_kinematics, per_dof, poses
from jdyn.model import Model
from jdyn.model.topology import support_mask
from jdyn.spatial import Transform


class CommonFrame(eqx.Module):
    """Everything in world axes about one point near each tree, where sums over subtrees need no transforms.

    The point is the origin of the tree's first body, not the world's: far from the world's origin, float32 would lose
    the inertias in the moments of the masses.

    Attributes:
        joints: Joint poses and subspaces.
        X: Pose of each body in the common frame.
        S: Motion of each degree of freedom.
        support: Entry [i, j] is 1 where degree of freedom i moves the body of degree of freedom j.
    """

    joints: JointKinematics
    X: Transform
    S: Float[Array, "nv_full 6"]
    support: Float[Array, "nv_full nv_full"]


def common_frame(
    model: Model, q: Float[Array, " nq_full"], poses: Callable[[Model, Transform], Transform] = poses
) -> CommonFrame:
    """The common frame at the full configuration `q`; `poses` finds where bodies are."""
    joints = joint_kinematics(model, q)
    X = poses(model, joints.X)
    firsts = np.array([path[-1] for path in model.topology.supports], int)
    X = Transform(X.rotation, X.translation - X.translation[firsts if np.any(firsts) else slice(1)])
    mask = per_dof(model, per_dof(model, support_mask(model.topology)).T).T
    return CommonFrame(joints, X, dof_motions(model, joints, X), jnp.asarray(mask, q.dtype))


def subtree_sum(model: Model, x: Float[Array, "nb *rest"]) -> Float[Array, "nb *rest"]:
    """Sum over each body and all that it carries."""
    return jnp.tensordot(jnp.asarray(support_mask(model.topology), x.dtype), x, 1)
