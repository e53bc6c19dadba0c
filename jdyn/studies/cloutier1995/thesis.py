"""The mechanisms of Cloutier's thesis, and the numbers that it prints."""

from typing import NamedTuple

from jdyn.model import Model
from jdyn.robots import prrr

GRAVITY = (0.0, 0.0, -9.8)


class Evaluations(NamedTuple):
    """A row of figure 5.6; None where the integration failed.

    Attributes:
        share: Length of the first link as a share of both.
        condition: Order of magnitude of the largest condition number.
        difference: Order of magnitude of the largest relative difference of CRBM's acceleration of joint 1 from ABM's.
        abm, crbm: Evaluations of forward dynamics in 10 s at an accuracy of 1e-6.
    """

    share: float
    condition: float
    difference: float
    abm: int
    crbm: int | None


class Chain(NamedTuple):
    """A row of figure 5.9: 60 s at an accuracy of 1e-4, on a SUN 4/75; deviations of the energy in %."""

    n: int
    energy: float
    abm_seconds: float
    abm: int
    abm_deviation: float
    crbm_seconds: float
    crbm: int
    crbm_deviation: float


EVALUATIONS = (
    Evaluations(1e-1, 1e2, 1e-14, 6526, 6553),
    Evaluations(1e-3, 1e6, 1e-10, 31424, 31469),
    Evaluations(1e-5, 1e8, 1e-8, 23787, 23756),
    Evaluations(1e-6, 1e9, 1e-7, 23825, 23888),
    Evaluations(1e-7, 1e10, 1e-6, 23797, 23779),
    Evaluations(1e-8, 1e11, 1e-5, 23812, 24395),
    Evaluations(4e-9, 1e11, 1e-5, 23828, 25392),
    Evaluations(2e-9, 1e11, 1e-5, 23792, 31015),
    Evaluations(1e-9, 1e12, 1e-4, 23792, 64065),
    Evaluations(1e-10, 1e13, 1e-3, 23822, None),
)
CHAINS = (
    Chain(2, 3920, 0.68, 2377, 0.011, 0.67, 2324, 0.003),
    Chain(4, 15680, 2.18, 3897, 0.017, 2.67, 4362, 0.036),
    Chain(6, 35280, 4.85, 5818, 0.015, 5.92, 5912, 0.021),
    Chain(8, 62720, 8.75, 7668, 0.028, 10.62, 6916, 0.018),
    Chain(10, 98000, 11.95, 8576, 0.019, 19.47, 8892, 0.030),
    Chain(12, 141120, 15.18, 9234, 0.025, 28.85, 9746, 0.019),
    Chain(14, 192080, 20.78, 10497, 0.016, 39.25, 10039, 0.015),
)


# Total energy of figure 5.8 [J], zero for all masses at the lowest point that the tip can reach.
ENERGY_5_8 = 3304.8


def two_links(ratio: float, *, dtype=None) -> Model:
    """Two links of unit width, the second `ratio` times as long and heavy as the first: figures 5.3 to 5.5 and 5.7."""
    return prrr(2, lengths=(1.0, ratio), masses=(1.0, ratio), dtype=dtype).with_gravity(GRAVITY)


def two_links_of_one(share: float, *, dtype=None) -> Model:
    """Two links of 0.1 m width, together 1 m and 1 kg, the first with this share of both: figure 5.6.

    The thesis says that the sums are the same in all cases, but does not give them. Condition numbers, which do not
    depend on a common factor of all lengths, imply a width of a tenth of the length. The numbers of evaluations in 10 s
    imply 1 m: ten times the length would make motions √10 times slower.
    """
    split = share, 1 - share
    return prrr(2, lengths=split, masses=split, widths=0.1, dtype=dtype).with_gravity(GRAVITY)


def four_links(*, dtype=None) -> Model:
    """Four equal links of unit width, with lengths [m] equal to masses [kg], and the energy of figure 5.8 when
    stretched out at rest. The thesis prints that energy, which is 16 m l g for equal links, but not the robot.
    """
    size = (ENERGY_5_8 / (16 * 9.8)) ** 0.5
    return prrr(4, lengths=size, masses=size, dtype=dtype).with_gravity(GRAVITY)


def long_chain(n: int, *, dtype=None) -> Model:
    """Equal links of unit width, 10 m and 10 kg each: figures 5.9 and 5.10.

    The printed energies, 980 n² J above the lowest point that the tip can reach, imply m l = 100 kg m.
    """
    return prrr(n, lengths=10.0, masses=10.0, dtype=dtype).with_gravity(GRAVITY)
