"""Motion of the centre of mass and momentum about it; `jdyn.center_of_mass` and `jdyn.momentum` are flat.

>>> model, q, v = jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([1.0, 0.5])
>>> print((jdyn.centroidal.momentum_matrix(model, q) @ v - jdyn.momentum(model, q, v)).round(6) + 0.0)
[0. 0. 0. 0. 0. 0.]
"""

from jdyn.dynamics import com_acceleration as com_acceleration
from jdyn.dynamics import com_jacobian as com_jacobian
from jdyn.dynamics import com_velocity as com_velocity
from jdyn.dynamics import momentum_matrix as momentum_matrix
from jdyn.dynamics import momentum_matrix_rate as momentum_matrix_rate
from jdyn.dynamics import momentum_rate as momentum_rate
