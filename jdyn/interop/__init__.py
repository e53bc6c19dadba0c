"""Conversions to and from other programs' conventions, and comparisons with them."""

from jdyn.interop.mujoco import MujocoMap as MujocoMap
from jdyn.interop.peer import PeerMap as PeerMap
from jdyn.interop.pinocchio import PinocchioMap as PinocchioMap
from jdyn.interop.to_torch import to_torch as to_torch
from jdyn.interop.verification import Comparison as Comparison
from jdyn.interop.verification import Verification as Verification
from jdyn.interop.verification import verify as verify
