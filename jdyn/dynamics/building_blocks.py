"""Parts of a forward-dynamics method, for those who add one: `jdyn.studies.formulations` has examples.

A method is a `Method`; one that solves with the mass matrix alone, a `BiasFirst`; a recursion over the tree, a
`TreeMethod`; and one that differs from the articulated-body algorithm in how a joint is eliminated, an
`ArticulatedRecursion`.
"""

from jdyn.dynamics.at_rest import mass_product as mass_product
from jdyn.dynamics.common_frame import common_frame as common_frame
from jdyn.dynamics.common_frame import subtree_sum as subtree_sum
from jdyn.dynamics.inverse import bias_forces as bias_forces
from jdyn.dynamics.inverse import velocity_terms as velocity_terms
from jdyn.dynamics.kinematics import JointKinematics as JointKinematics
from jdyn.dynamics.kinematics import accumulate_motion as accumulate_motion
from jdyn.dynamics.kinematics import joint_kinematics as joint_kinematics
from jdyn.dynamics.kinematics import joint_motion as joint_motion
from jdyn.dynamics.kinematics import per_dof as per_dof
from jdyn.dynamics.kinematics import world_acceleration as world_acceleration
from jdyn.dynamics.mass_matrix import mass_matrix_diagonal as mass_matrix_diagonal
from jdyn.dynamics.mass_matrix import reduced as reduced
from jdyn.dynamics.methods.matrix_aba import ArticulatedBody as ArticulatedBody
from jdyn.dynamics.methods.matrix_aba import ArticulatedRecursion as ArticulatedRecursion
from jdyn.dynamics.methods.matrix_aba import links as links
from jdyn.dynamics.methods.matrix_aba import projected as projected
from jdyn.dynamics.methods.method import BiasFirst as BiasFirst
from jdyn.dynamics.methods.method import Method as Method
from jdyn.dynamics.methods.method import TreeMethod as TreeMethod
from jdyn.dynamics.methods.method import coupling_forces as coupling_forces
from jdyn.dynamics.methods.method import coupling_rows as coupling_rows
from jdyn.dynamics.methods.method import on_leaders as on_leaders
from jdyn.dynamics.passive import passive_forces as passive_forces
from jdyn.dynamics.recursion.levels import LEVELS as LEVELS
from jdyn.execution.deferred import program_of as program_of
from jdyn.model.model import compiled as compiled
from jdyn.model.topology import support_mask as support_mask
from jdyn.terminal.messages import one_of as one_of
