"""The C++ of a kernel whose threads run a program, one for every lane."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jdyn.execution.threads.operations import translate
from jdyn.execution.threads.translation import Translation
from jdyn.execution.threads.values import Buffer, Kind, Untranslatable, Value

PRELUDE = """
template <class To, class From> DEVICE To bits_of(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
template <class T> DEVICE T nan_of() { return (T)bits_of<float>(0x7fc00000u); }
template <class T> DEVICE T infinity_of() { return (T)bits_of<float>(0x7f800000u); }
template <class T> DEVICE T larger(T x, T y) { return x != x ? x : y != y ? y : x > y ? x : y; }
template <class T> DEVICE T smaller(T x, T y) { return x != x ? x : y != y ? y : x < y ? x : y; }
template <class T> DEVICE T sign_of(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }
template <class T> DEVICE T quotient(T x, T y) { return y == 0 ? (T)-1 : y == (T)-1 ? (T)(0 - x) : x / y; }
template <class T> DEVICE T rest(T x, T y) { return y == 0 ? x : y == (T)-1 ? (T)0 : x % y; }
template <class T> DEVICE T integer_power(T x, T n) {
  if (n < 0) return x == 1 ? (T)1 : x == (T)-1 ? (n % 2 ? (T)-1 : (T)1) : (T)0;
  T y = 1;
  for (; n > 0; n >>= 1, x *= x) if (n & 1) y *= x;
  return y;
}
template <class T> DEVICE T shifted_left(T x, T n) { return n < 0 || n >= 8 * (T)sizeof(T) ? (T)0 : (T)(x << n); }
template <class T> struct signs { typedef T without; typedef T with; };
template <> struct signs<signed char> { typedef unsigned char without; typedef signed char with; };
template <> struct signs<short> { typedef unsigned short without; typedef short with; };
template <> struct signs<int> { typedef unsigned without; typedef int with; };
template <> struct signs<long long> { typedef unsigned long long without; typedef long long with; };
template <> struct signs<unsigned char> { typedef unsigned char without; typedef signed char with; };
template <> struct signs<unsigned short> { typedef unsigned short without; typedef short with; };
template <> struct signs<unsigned> { typedef unsigned without; typedef int with; };
template <> struct signs<unsigned long long> { typedef unsigned long long without; typedef long long with; };
template <class T> DEVICE T shifted_right(T x, T n) {
  return n < 0 || n >= 8 * (T)sizeof(T) ? (T)0 : (T)((typename signs<T>::without)x >> n);
}
template <class T> DEVICE T shifted_right_signed(T x, T n) {
  typedef typename signs<T>::with S;
  return n < 0 || n >= 8 * (T)sizeof(T) ? ((S)x < 0 ? (T)-1 : (T)0) : (T)((S)x >> n);
}
DEVICE int in_order(float x) { int y = bits_of<int>(x); return y < 0 ? y ^ 0x7fffffff : y; }
DEVICE long long in_order(double x) {
  long long y = bits_of<long long>(x);
  return y < 0 ? y ^ 0x7fffffffffffffffll : y;
}
template <class I, class T> DEVICE I integer_of(T x) { return x != x ? (I)0 : (I)x; }
"""

CUDA = """#define DEVICE __device__ __forceinline__
#define CONSTANT __device__ const
"""

HOST = """#include <cmath>
#include <cstring>
using namespace std;
#define DEVICE static inline
#define CONSTANT static const
"""

# Lines of programs that are compiled, 40 000 of which take half a minute.
MOST_LINES = 60_000

# Bytes of a thread's own buffers and tables, which CUDA sets aside for as many threads as the card has room for.
MOST_MEMORY = 65_536

# Entries of arguments and results up to which a lane's lie side by side.
FEW = 32

# The kernel's name in its program.
NAME = "lanes"


@dataclasses.dataclass(frozen=True)
class Source:
    """A kernel's C++.

    Attributes:
        text: After `CUDA` or `HOST` and the prelude: a function `one` of a lane, and what calls it.
        pointers: Parameters in order: what type each points to, and its name.
        results: Kinds of the results that have entries, in order.
        scratch: Kinds of memory that the kernel writes, and nobody reads after it.
        lanes_last: Whether entries of arguments and results lie side by side for all lanes, not lane by lane.
    """

    text: str
    pointers: tuple[tuple[str, str], ...]
    results: tuple[Kind, ...]
    scratch: tuple[Kind, ...]
    lanes_last: bool

    def cuda(self, threads: int, blocks: int) -> str:
        """For NVRTC, with blocks of so many threads, of which a multiprocessor has room for so many."""
        parameters = ", ".join(f"{c} {name}_" for c, name in self.pointers)
        call = ", ".join(f"{name}_" for _, name in self.pointers)
        return (
            f'{CUDA}{PRELUDE}{self.text}\nextern "C" __global__ void __launch_bounds__({threads}, {blocks}) '
            f"{NAME}({parameters}) {{\n"
            f"  const int lane = blockIdx.x * {threads} + threadIdx.x;\n"
            f"  if (lane < LANES) one(lane, {call});\n}}\n"
        )

    def host(self) -> str:
        """For a compiler of C++: all lanes, one after another. It takes an array of pointers."""
        call = ", ".join(f"({c})p[{i}]" for i, (c, _) in enumerate(self.pointers))
        return (
            f'{HOST}{PRELUDE}{self.text}\nextern "C" void {NAME}(void** p) {{\n'
            f"  for (int lane = 0; lane < LANES; ++lane) one(lane, {call});\n}}\n"
        )


def _given(program: Translation, value: Value, name: str) -> Buffer:
    """A buffer of a result: scratch memory that holds it already, or a new one that it is copied to."""
    if isinstance(value, Buffer):
        for place in program.shared:
            if place[0] == value.name:
                program.shared.remove(place)
                return value
    target = Buffer(value.kind, name, "EACH", writable=True)
    program.copied(value, target)
    return target


def _first(memory: Buffer, lanes_last: bool) -> str:
    """Index where a lane's entries begin."""
    if memory.stride == "1":
        return ""
    return " + lane" if lanes_last else f" + (long long)lane * {memory.kind.size}"


def source_of(module: Any, lanes: int, varies: Sequence[bool]) -> Source:
    """The kernel that runs the main function of a module.

    Args:
        module: Of StableHLO.
        lanes: How many.
        varies: Whether each argument differs between lanes.

    Raises:
        Untranslatable: if threads cannot do what the module says.
    """
    program = Translation(module, translate)
    kinds = [Kind.of(x.type) for x in program.functions["main"].regions[0].blocks[0].arguments]
    strides = ["EACH" if each else "1" for each in varies]
    arguments = [
        Buffer(kind, f"a{i}", stride, writable=False)
        for i, (kind, stride) in enumerate(zip(kinds, strides, strict=True))
    ]
    values = program.call("main", arguments, [False] * len(arguments))
    results = [_given(program, value, f"o{i}") for i, value in enumerate(values) if value.kind.size]
    lines = program.scopes[0].lines
    if len(lines) > MOST_LINES:
        raise Untranslatable(f"a program of {len(lines)} lines, which would take minutes to compile")
    if program.memory > MOST_MEMORY:
        raise Untranslatable(f"a program that needs {program.memory} bytes of every thread")
    given = [x for x in arguments if x.kind.size]
    scratch = [Buffer(kind, name, "LANES", writable=True) for name, kind in program.shared]
    memory = [*given, *results, *scratch]
    # What a loop reads again and again should be read by all lanes at once.
    small = max((x.kind.size for x in (*given, *results) if x.stride != "1"), default=0) <= FEW
    lanes_last = scratch != [] or not small or any("while (true)" in line for line in lines)
    head = [
        f"#define LANES {lanes}{'LL' if max((x.kind.size for x in memory), default=1) * lanes >= 2**31 else ''}",
        f"#define EACH {'LANES' if lanes_last else '1'}",
        *program.constants,
    ]
    types = [f"{'' if x.writable else 'const '}{x.kind.c}* __restrict__" for x in memory]
    offsets = [f"{c} {x.name} = {x.name}_{_first(x, lanes_last)};" for c, x in zip(types, memory, strict=True)]
    parameters = ", ".join(f"{c} {x.name}_" for c, x in zip(types, memory, strict=True))
    body = [f"DEVICE void one(const int lane, {parameters}) {{", *("  " + line for line in (*offsets, *lines)), "}"]
    return Source(
        "\n".join([*head, *body]),
        tuple(zip(types, (x.name for x in memory), strict=True)),
        tuple(x.kind for x in results),
        tuple(x.kind for x in scratch),
        lanes_last,
    )
