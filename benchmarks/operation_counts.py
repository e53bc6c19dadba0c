"""Operations of one evaluation of forward dynamics against the number of links, beside what the literature prints.

    python benchmarks/operation_counts.py

Programs are traced and counted by the rule of `jdyn.studies.cloutier1995.operations`. Chains are of revolute
joints, on a fixed base. Polynomials go through counts of consecutive n, which must all lie on them.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.studies.cloutier1995 import Operations, forward_dynamics_operations, operations

# A batch of so many goes through the recursions in one piece.
LANES = 256
# Where polynomials are fitted, where they are compared, and how far a crossover is looked for.
FITTED = (*range(2, 9), 14, 30)
SHOWN = (2, 6, 10, 14)
MOST = 40
KINDS = ("multiplications", "additions")


@dataclasses.dataclass(frozen=True)
class Cost:
    """Multiplications and additions as polynomials in n, coefficients from the constant up."""

    multiplications: tuple[Fraction, ...]
    additions: tuple[Fraction, ...]

    @property
    def total(self) -> tuple[Fraction, ...]:
        pairs = itertools.zip_longest(self.multiplications, self.additions, fillvalue=Fraction())
        return tuple(x + y for x, y in pairs)


def _cost(multiplications: str, additions: str) -> Cost:
    def coefficients(text):
        return tuple(Fraction(x) for x in reversed(text.split()))

    return Cost(coefficients(multiplications), coefficients(additions))


# Cloutier 1995, section 3.4, after Featherstone 1987. From n³ down, 160 1/3 = 481/3 and 138 5/6 = 833/6.
THESIS = {
    "ABM": _cost("300 -267", "279 -259"),
    "CRBM (Cholesky)": _cost("1/6 23/2 481/3 -109", "1/6 7 833/6 -102"),
}
# Recursive Newton-Euler inverse dynamics: Corke, Robotics Toolbox for Matlab (manual), table 1, after Hollerbach 1980.
NEWTON_EULER = _cost("150 -48", "131 -48")


def alone(method: jdyn.Method) -> Callable[[jdyn.Model], Operations]:
    """Counts a single configuration."""
    return lambda model: forward_dynamics_operations(model, method)


def in_batches(method: jdyn.Method) -> Callable[[jdyn.Model], Operations]:
    """Counts `LANES` configurations."""
    return _of_lanes(functools.partial(jdyn.forward_dynamics, method=method))


def _of_lanes(function: Callable) -> Callable[[jdyn.Model], Operations]:
    def count(model):
        x = jax.ShapeDtypeStruct((LANES, model.nv), model.dtype)
        return operations(jax.vmap(functools.partial(function, model)), x, x, x)

    return count


COUNTED: dict[str, tuple[Callable[[jdyn.Model], Operations], int]] = {
    "ABA, a lane of a batch": (in_batches(jdyn.ABA()), LANES),
    "ABA, one configuration": (alone(jdyn.ABA()), 1),
    "MatrixABA textbook": (alone(jdyn.studies.MatrixABA("textbook")), 1),
    "MatrixABA projected": (alone(jdyn.studies.MatrixABA("projected")), 1),
    "ModifiedABA": (alone(jdyn.studies.ModifiedABA()), 1),
    "ArrayABA": (alone(jdyn.ArrayABA()), 1),
    "GaussDP": (alone(jdyn.studies.GaussDP()), 1),
    "CRBA cholesky, a lane of a batch": (in_batches(jdyn.CRBA("cholesky")), LANES),
    "CRBA cholesky, one configuration": (alone(jdyn.CRBA("cholesky")), 1),
    "CRBA lu, one configuration": (alone(jdyn.CRBA("lu")), 1),
    "WalkerOrin 1": (alone(jdyn.studies.WalkerOrin(1)), 1),
    "WalkerOrin 2": (alone(jdyn.studies.WalkerOrin(2)), 1),
}
PAIRS = {
    "in batches": ("ABA, a lane of a batch", "CRBA cholesky, a lane of a batch"),
    "one configuration, matrices": ("MatrixABA textbook", "CRBA cholesky, one configuration"),
}


def chain(n: int) -> jdyn.Model:
    """Random axes, placements and inertias: the literature's general chain."""
    return jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1)


class NotPolynomialError(ValueError):
    """Counts do not lie on a polynomial."""


def polynomial(sizes, counts) -> tuple[Fraction, ...]:
    """The polynomial through counts at consecutive sizes, and those that follow; from the constant up.

    Raises:
        NotPolynomialError: if none of a degree of at most three goes through all of them.
    """
    consecutive = [n for i, n in enumerate(sizes) if n == sizes[0] + i]
    values = np.array(counts[: len(consecutive)], dtype=object)
    for degree in range(4):
        if not np.any(np.diff(values, degree + 1)):
            found = _through(consecutive[: degree + 1], values[: degree + 1])
            if all(value(found, n) == count for n, count in zip(sizes, counts, strict=True)):
                return found
    raise NotPolynomialError(f"expected counts of a polynomial of degree three at most, got {list(counts)}")


def _through(sizes, values) -> tuple[Fraction, ...]:
    """Newton's interpolation, in exact numbers."""
    coefficients, product = [Fraction()] * len(sizes), [Fraction(1)]
    for i, n in enumerate(sizes):
        factor = (values[i] - value(coefficients, n)) / value(product, n)
        for power, x in enumerate(product):
            coefficients[power] += factor * x
        product = [below - n * x for below, x in zip([Fraction(), *product], [*product, Fraction()], strict=True)]
    return tuple(coefficients)


def value(coefficients, n: int) -> Fraction:
    """Of a polynomial."""
    return sum((x * n**power for power, x in enumerate(coefficients)), Fraction())


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """What counts a model, and how many lanes it counts at a time."""

    count: Callable[[jdyn.Model], Operations]
    lanes: int
    robot: Callable[[int], jdyn.Model]

    @functools.cache  # noqa: B019 - programs last as long as the run
    def counted(self, n: int) -> Operations:
        return self.count(self.robot(n))

    def at(self, n: int, kind: str) -> Fraction:
        return Fraction(getattr(self.counted(n), kind), self.lanes)

    def cost(self) -> Cost | None:
        """A lane's counts against n, if they are polynomials; n = 1 is left out, since it has no loop."""
        try:
            return Cost(*(polynomial(FITTED, [self.at(n, kind) for n in FITTED]) for kind in KINDS))
        except NotPolynomialError:
            return None


def crossover(first: Callable, second: Callable, most: int) -> int | None:
    """The least n from which on `first(n)` is less than `second(n)`, up to `most`; None if there is none."""
    cheaper = [first(n) < second(n) for n in range(1, most + 1)]
    return most - len(list(itertools.takewhile(bool, reversed(cheaper)))) + 1 if cheaper[-1] else None


def text(coefficients) -> str:
    """Of a polynomial, from its highest power down."""
    powers = {0: "", 1: "n", 2: "n²", 3: "n³"}
    terms = [(x, powers[power]) for power, x in reversed(list(enumerate(coefficients))) if abs(x) > Fraction(1, 10**6)]
    words = "".join(f" {'-' if x < 0 else '+'} {_number(abs(x))}{' ' if p else ''}{p}" for x, p in terms)
    return words.removeprefix(" + ").strip() or "0"


def _number(x: Fraction) -> str:
    return str(x) if x.denominator in (1, 2, 3, 6) else f"{float(x):.2f}"


def line(name: str, program: Program, printed: Cost | None = None) -> str:
    """A row: both polynomials, or counts at `SHOWN`, and what the sum is more than the printed one, in percent."""
    cost = program.cost()
    if cost is None:
        words = [f"{'  '.join(str(program.at(n, kind)) for n in SHOWN):36}" for kind in KINDS]
    else:
        words = [f"{text(getattr(cost, kind)):36}" for kind in KINDS]
    more = ""
    if printed is not None:
        more = "".join(f"{float(program.at(n, 'total') / value(printed.total, n) - 1):+8.0%}" for n in SHOWN)
    return f"{name:33} {' '.join(words)}{more}"


def xla_flops(method: jdyn.Method, model: jdyn.Model) -> float:
    """What XLA counts of the compiled program, which it does right where there is no loop, so for a single link.

    A product of matrices (m, k) and (k, n) is 2 m k n to it, and divisions and roots are operations like others.
    """
    forward = jax.jit(functools.partial(jdyn.forward_dynamics, model, method=method))
    x = jnp.zeros(model.nv, model.dtype)
    return forward.lower(x, x, x).compile().cost_analysis()["flops"]


def print_counts():
    """All tables."""
    sizes = ", ".join(map(str, SHOWN))
    print("Multiplications and additions of one evaluation of forward dynamics, n revolute joints in a chain; where")
    print(f"they are no polynomials, those of n = {sizes}. What their sum is more than the thesis' at n = {sizes}.")
    for name, cost in THESIS.items():
        print(f"{'thesis ' + name:33} {text(cost.multiplications):36} {text(cost.additions):36}")
    programs = {name: Program(count, lanes, chain) for name, (count, lanes) in COUNTED.items()}
    for name, program in programs.items():
        printed = THESIS["CRBM (Cholesky)" if name.startswith(("CRBA", "WalkerOrin")) else "ABM"]
        print(line(name, program, printed), flush=True)
    print("\nThe same of the thesis' planar robots")
    for name in itertools.chain(*PAIRS.values()):
        count, lanes = COUNTED[name]
        print(line(name, Program(count, lanes, jdyn.robots.prrr)), flush=True)
    print(f"\nThe least n from which on ABA takes less than CRBA, up to {MOST}: multiplications, additions, both")
    abm, crbm = THESIS.values()
    pairs = {"thesis": lambda kind: [functools.partial(value, getattr(cost, kind)) for cost in (abm, crbm)]}
    for name, pair in PAIRS.items():
        pairs[name] = lambda kind, pair=pair: [functools.partial(programs[x].at, kind=kind) for x in pair]
    for name, of_kind in pairs.items():
        least = [crossover(*of_kind(kind), MOST) for kind in (*KINDS, "total")]
        print(f"{name:33} {'  '.join('-' if n is None else str(n) for n in least)}")
    print("\nInverse dynamics, beside 150 n - 48 and 131 n - 48 (Corke, after Hollerbach)")
    print(line("a lane of a batch", Program(_of_lanes(jdyn.inverse_dynamics), LANES, chain), NEWTON_EULER))
    print("\nOne link: ours with divisions and roots, and XLA's of the compiled program")
    by_lanes = dataclasses.replace(chain(1), executor="lanes")
    methods = {jdyn.studies.MatrixABA("textbook"): chain(1), jdyn.ABA(): by_lanes}
    for method, model in (methods | dict.fromkeys((jdyn.CRBA(), jdyn.studies.WalkerOrin(2)), chain(1))).items():
        found = forward_dynamics_operations(model, method)
        print(f"{method!s:33} {found.total + found.divisions + found.roots:6} {xla_flops(method, model):6.0f}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    print_counts()
