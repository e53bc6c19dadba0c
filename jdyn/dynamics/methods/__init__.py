"""Forward-dynamics methods: each a way to solve M a = τ − h."""

from jdyn.dynamics.methods.aba import ABA as ABA
from jdyn.dynamics.methods.array_aba import ArrayABA as ArrayABA
from jdyn.dynamics.methods.block_elimination import BlockElimination as BlockElimination
from jdyn.dynamics.methods.by_batch import ByBatch as ByBatch
from jdyn.dynamics.methods.conjugate_gradient import ConjugateGradient as ConjugateGradient
from jdyn.dynamics.methods.crba import CRBA as CRBA
from jdyn.dynamics.methods.gauss_dp import GaussDP as GaussDP
from jdyn.dynamics.methods.gibbs_appell import GibbsAppell as GibbsAppell
from jdyn.dynamics.methods.least_constraint import LeastConstraint as LeastConstraint
from jdyn.dynamics.methods.matrix_aba import MatrixABA as MatrixABA
from jdyn.dynamics.methods.method import Method as Method
from jdyn.dynamics.methods.modified_aba import ModifiedABA as ModifiedABA
from jdyn.dynamics.methods.orthogonal_complement import OrthogonalComplement as OrthogonalComplement
from jdyn.dynamics.methods.parallel_aba import ParallelABA as ParallelABA
from jdyn.dynamics.methods.walker_orin import WalkerOrin as WalkerOrin
