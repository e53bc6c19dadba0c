"""# Rounding and its cost

Formulations agree on paper. In floating point they part where masses and lengths do, and an adaptive integrator takes
the difference for motion. `jdyn stiffness` counts evaluations of forward dynamics in ten seconds of two swinging links
whose first is made shorter and lighter, as Cloutier did in his thesis (1995, figure 5.6), with the step control that
he used, and now in float32 as well:

| condition number | thesis ABM | thesis CRBM | `ABA` | `CRBA` | `ABA` float32 | `CRBA` float32 |
|---|---|---|---|---|---|---|
| 5e+02 | 6526 | 6553 | 6547 | 6548 | 6409 | 6484 |
| 1e+06 | 31424 | 31469 | 31338 | 31480 | 31254 | - |
| 2e+10 | 23797 | 23779 | 23787 | 23798 | 23720 | - |
| 8e+11 | 23792 | 31015 | 23797 | 33624 | 23725 | - |
| 2e+12 | 23792 | 64065 | 23782 | 69497 | 23704 | - |
| 2e+13 | 23822 | - | 23777 | - | 23740 | - |

A dash means that the simulation failed. The last digits depend on how a processor and a compiler round.

`jdyn prrr` is the simulator of the thesis, with its integrators: options or a robot file in, or questions with
`--interactive`; files of positions, accelerations, energy, evaluations, condition number and the difference of CRBA
from ABA out, and a summary. The session of its figure 5.2 takes 58 good and 38 bad steps, 801 evaluations and 87 rows,
with a mean energy of 1313.936411 J. It starts from rest, where rounding alone decides how long the first step is. So
`jdyn prrr` runs it from 201 starts that differ by units in the last place: most of them take 58 good and 38 bad steps
and save 87 rows, some also need 801 evaluations, and the mean energy nearest to the printed one among those is
1313.936 J. The thesis does not print the robot: three links of 10 m, 1 kg and 1 m width are what these numbers ask
for. `jdyn.studies.statistics` does this for a motion of any model. `jdyn prrrfdt` is the thesis' test of forward
dynamics: accelerations by ABM and CRBM while any input varies.

`python benchmarks/thesis.py` prints every figure of chapter 5 beside what jdyn finds, with the deviation in per cent;
`python benchmarks/formulation_stiffness.py` prints what the thesis could not do, the errors of all formulations in
float32, and beside them, where `benchmarks/peers.txt` is installed, those of other simulators on JAX.

## The same answer twice

A program is a function of its arguments: nothing is drawn at random, and no sum depends on the order in which threads
end. `tests/test_same_bits.py` compares bits, on processors of one kind with one version of JAX:

| of the same arguments | forward dynamics | `simulate_batch` |
|---|---|---|
| once more, also compiled anew in another process | same bits | same bits |
| in batches of other sizes, of two or more | same bits | same bits in every lane |
| split over several devices of one machine | same bits | same bits |
| alone, not in a batch | rounding | rounding |
| by another `executor`, or as one tree of several | rounding | rounding |
| on another kind of processor, or a GPU | rounding | rounding |

Rounding is a few units in the last place, times what the mechanism makes of them (`jdyn.diagnose`). A simulation may
take other steps by it, and then differs by up to its tolerances; a chaotic one parts after a while.
"""
