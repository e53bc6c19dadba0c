"""Forward-dynamics methods: each a way to solve M a = τ − h."""

from jdyn.dynamics.methods.aba import ABA as ABA
from jdyn.dynamics.methods.crba import CRBA as CRBA
from jdyn.dynamics.methods.method import Method as Method
from jdyn.dynamics.methods.modified_aba import ModifiedABA as ModifiedABA
