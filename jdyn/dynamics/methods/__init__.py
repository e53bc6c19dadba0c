"""Forward-dynamics methods: each a way to solve M a = τ − h."""

from jdyn.dynamics.methods.aba import ABA as ABA
from jdyn.dynamics.methods.array_aba import ArrayABA as ArrayABA
from jdyn.dynamics.methods.by_batch import ByBatch as ByBatch
from jdyn.dynamics.methods.crba import CRBA as CRBA
from jdyn.dynamics.methods.method import Method as Method
from jdyn.dynamics.methods.parallel_aba import ParallelABA as ParallelABA
