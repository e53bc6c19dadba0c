"""Forward-dynamics methods that are kept for comparison: each a way to solve M a = τ − h."""

from jdyn.studies.formulations.block_elimination import BlockElimination as BlockElimination
from jdyn.studies.formulations.conjugate_gradient import ConjugateGradient as ConjugateGradient
from jdyn.studies.formulations.gauss_dp import GaussDP as GaussDP
from jdyn.studies.formulations.gibbs_appell import GibbsAppell as GibbsAppell
from jdyn.studies.formulations.least_constraint import LeastConstraint as LeastConstraint
from jdyn.studies.formulations.matrix_aba import MatrixABA as MatrixABA
from jdyn.studies.formulations.modified_aba import ModifiedABA as ModifiedABA
from jdyn.studies.formulations.orthogonal_complement import OrthogonalComplement as OrthogonalComplement
from jdyn.studies.formulations.walker_orin import WalkerOrin as WalkerOrin
