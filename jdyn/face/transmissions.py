"""Transmissions: lengths by which actuators act on a mechanism, and their moment arms.

>>> wrist = jdyn.transmissions.GearedJoint("joint2", gear=50.0)
>>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([0.3, 0.1]), jnp.zeros(2))
>>> print(wrist.length(arm), wrist.moments(arm))
5.0 [ 0. 50.]
"""

from jdyn.transmissions import Geared as Geared
from jdyn.transmissions import GearedFrame as GearedFrame
from jdyn.transmissions import GearedJoint as GearedJoint
from jdyn.transmissions import Transmission as Transmission
