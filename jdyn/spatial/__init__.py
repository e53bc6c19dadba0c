"""Unbatched 6-D algebra: rotations, spatial vectors, transforms, inertias."""

from jdyn.spatial.inertia import SpatialInertia as SpatialInertia
from jdyn.spatial.inertia import symmetric as symmetric
from jdyn.spatial.inertia import unique as unique
from jdyn.spatial.log_cholesky import from_log_cholesky as from_log_cholesky
from jdyn.spatial.log_cholesky import log_cholesky as log_cholesky
from jdyn.spatial.log_cholesky import pseudo_inertia as pseudo_inertia
from jdyn.spatial.rotation import left_jacobian as left_jacobian
from jdyn.spatial.rotation import left_jacobian_inverse as left_jacobian_inverse
from jdyn.spatial.rotation import matrix_to_quaternion as matrix_to_quaternion
from jdyn.spatial.rotation import quaternion_conjugate as quaternion_conjugate
from jdyn.spatial.rotation import quaternion_exp as quaternion_exp
from jdyn.spatial.rotation import quaternion_log as quaternion_log
from jdyn.spatial.rotation import quaternion_multiply as quaternion_multiply
from jdyn.spatial.rotation import quaternion_normalize as quaternion_normalize
from jdyn.spatial.rotation import quaternion_to_matrix as quaternion_to_matrix
from jdyn.spatial.rotation import rotation_about as rotation_about
from jdyn.spatial.rotation import skew as skew
from jdyn.spatial.transform import Transform as Transform
from jdyn.spatial.vector import Force6 as Force6
from jdyn.spatial.vector import Motion6 as Motion6
from jdyn.spatial.vector import cross_force as cross_force
from jdyn.spatial.vector import cross_motion as cross_motion
