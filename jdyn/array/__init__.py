"""Ground floor: linear algebra on small and on dense matrices, and shapes, without mechanics."""

from jdyn.array.copies import with_fields as with_fields
from jdyn.array.factorizations import CHOLESKY as CHOLESKY
from jdyn.array.factorizations import GAUSS_JORDAN as GAUSS_JORDAN
from jdyn.array.factorizations import LU as LU
from jdyn.array.factorizations import SMALL as SMALL
from jdyn.array.factorizations import SVD as SVD
from jdyn.array.factorizations import Factorization as Factorization
from jdyn.array.least_norm import LeastNorm as LeastNorm
from jdyn.array.precision import is_single as is_single
from jdyn.array.shapes import as_numbers as as_numbers
from jdyn.array.shapes import floating as floating
from jdyn.array.shapes import in_type as in_type
from jdyn.array.shapes import shaped as shaped
from jdyn.array.small_matrices import cholesky as cholesky
from jdyn.array.small_matrices import cholesky_solution as cholesky_solution
from jdyn.array.small_matrices import definite_inverse as definite_inverse
from jdyn.array.small_matrices import solution as solution
from jdyn.array.small_matrices import swept_inverse as swept_inverse
from jdyn.array.small_matrices import triangle as triangle
from jdyn.array.small_matrices import triangular_inverse as triangular_inverse
from jdyn.array.structure import Structure as Structure
from jdyn.array.tangents import moving_and_fixed as moving_and_fixed
from jdyn.array.where import where as where
