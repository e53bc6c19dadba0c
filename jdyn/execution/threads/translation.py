"""A program of StableHLO, for one lane, as C++ that a thread runs.

Arrays of up to `MOST_NUMBERS` entries are as many variables: reshaping, slicing and transposing them is done here and
costs nothing there, and what is not used is not computed. Larger ones, and those that a loop writes entry by entry, are
buffers in memory, changed in place where nobody reads what they held before. Functions are inlined. Short loops whose
number of turns is known are unrolled, so that what they look up by their turn is known, too.
"""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.values import Buffer, Item, Kind, Numbers, Untranslatable, Value, written

# Arrays of more entries that are computed are buffers.
MOST_NUMBERS = 128
# As many entries of variables may be arranged anew.
MOST_ARRANGED = 2048
# Entries that are read or written one by one, at most.
MOST_WRITTEN_OUT = 4096
# Operations of all turns of a loop up to which it is unrolled.
UNROLLED = 6000
# Bytes up to which a buffer is the thread's own; larger ones lie in memory that all threads share, side by side.
OWN = 1024


class Scope:
    """Scope between two braces.

    Attributes:
        lines: The statements so far.
        known: Variables by the expressions that they hold.
        columns: Tables by what they hold.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.known: dict[str, str] = {}
        self.columns: dict[tuple, Buffer] = {}


class Translation:
    """The state of a translation.

    Attributes:
        translate: What turns an operation into statements and values.
        functions: Functions of the module by their names.
        scopes: From the outermost to the innermost.
        constants: Tables that all lanes share, as C writes them.
        shared: Buffers of scratch memory in which lanes lie side by side: name and kind.
        memory: Bytes of the thread's own buffers and tables.
    """

    def __init__(self, module: Any, translate: Callable[..., list[Value]]):
        self.translate = translate
        self.functions = {op.attributes["sym_name"].value: op for op in module.body.operations}
        self.scopes = [Scope()]
        self.constants: list[str] = []
        self.shared: list[tuple[str, Kind]] = []
        self.memory = 0
        self._count = 0
        self._home: dict[Numbers, Scope] = {}
        self._tables: dict[Numbers, Buffer] = {}
        self._constant_tables: dict[tuple, Buffer] = {}
        self._costs: dict[Any, int] = {}
        self._loads: dict[str, tuple[Buffer, int]] = {}

    # Statements

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def emit(self, line: str):
        self.scopes[-1].lines.append(line)

    @contextlib.contextmanager
    def block(self, head: str):
        """Statements within braces. Meanwhile tables may be put before them."""
        with self.apart() as scope:
            yield
        self.scopes[-1].lines += [head + " {", *("  " + line for line in scope.lines), "}"]

    @contextlib.contextmanager
    def apart(self):
        """Statements that are put in place later."""
        self.scopes.append(Scope())
        try:
            yield self.scopes[-1]
        finally:
            self.scopes.pop()

    def variable(self, kind: Kind, expression: str) -> str:
        """A variable that holds a pure expression; the same one for the same expression."""
        key = f"{kind.c} {expression}"
        for scope in reversed(self.scopes):
            if key in scope.known:
                return scope.known[key]
        name = self.name("x")
        self.emit(f"const {kind.c} {name} = {expression};")
        self.scopes[-1].known[key] = name
        return name

    def loaded(self, buffer: Buffer, index: Item) -> str:
        """An entry as it is now."""
        if not buffer.writable:
            name = self.variable(buffer.kind, buffer.at(index))
            if isinstance(index, int):
                self._loads[name] = buffer, index
            return name
        name = self.name("x")
        self.emit(f"const {buffer.kind.c} {name} = {buffer.at(index)};")
        return name

    # Values

    def numbers(self, kind: Kind, items: Sequence[Item]) -> Numbers:
        found = Numbers(kind, tuple(items))
        self._home[found] = self.scopes[-1]
        return found

    def as_numbers(self, value: Value) -> Numbers:
        if isinstance(value, Numbers):
            return value
        if value.kind.size > MOST_WRITTEN_OUT:
            raise Untranslatable(f"an array of shape {value.kind.shape} where numbers are needed")
        return self.numbers(value.kind, [self.loaded(value, i) for i in range(value.kind.size)])

    def as_buffer(self, value: Value) -> Buffer:
        """To be read at an index that is not known."""
        if isinstance(value, Buffer):
            return value
        if value in self._tables:
            return self._tables[value]
        entries = ", ".join(written(x) for x in value.items)
        if all(not isinstance(x, str) or not x.startswith(("x", "c")) for x in value.items):
            key = value.kind.c, entries
            if key not in self._constant_tables:
                name = self.name("k")
                self.constants.append(f"CONSTANT {value.kind.c} {name}[] = {{{entries}}};")
                self._constant_tables[key] = Buffer(value.kind, name, "1", writable=False)
            table = self._constant_tables[key].like(value.kind)
        else:
            table = Buffer(value.kind, self.name("t"), "1", writable=False)
            home = self._home[value]
            home = home if home in self.scopes else self.scopes[-1]
            self.memory += value.kind.bytes
            home.lines.append(f"const {value.kind.c} {table.name}[] = {{{entries}}};")
        self._tables[value] = table
        return table

    def from_items(self, kind: Kind, items: Sequence[Item]) -> Value:
        """Variables, or a buffer that holds them."""
        found = self.numbers(kind, items)
        return found if kind.size <= MOST_NUMBERS else self.own(found, False)

    def entry(self, value: Value, index: Item) -> Item:
        """The entry of a flat index, known or not."""
        if isinstance(value, Numbers):
            if isinstance(index, int):
                return value.items[index]
            if value.uniform:
                return value.items[0]
        return self.loaded(self.as_buffer(value), index)

    def chosen(self, source: Numbers, items: Sequence[Item], index: str) -> Item:
        """One of some items of a value, by an index that is not known."""
        if len(set(map(written, items))) == 1:
            return items[0]
        loads = [self._loads[x] for x in items if x in self._loads]
        if len(loads) == len(items) and len({buffer.name for buffer, _ in loads}) == 1:
            places = [place for _, place in loads]
            steps = {b - a for a, b in itertools.pairwise(places)}
            if len(steps) == 1:
                return self.loaded(loads[0][0], f"{places[0]} + {steps.pop()} * {index}")
        key = tuple(map(written, items))
        for scope in reversed(self.scopes):
            if key in scope.columns:
                return self.loaded(scope.columns[key], index)
        column = Numbers(Kind((len(items),), source.kind.dtype), tuple(items))
        home = self._home[source]
        home = home if home in self.scopes else self.scopes[-1]
        self._home[column] = home
        home.columns[key] = self.as_buffer(column)
        return self.loaded(home.columns[key], index)

    def new_buffer(self, kind: Kind) -> Buffer:
        name = self.name("b")
        if kind.bytes <= OWN:
            self.memory += kind.bytes
            self.emit(f"{kind.c} {name}[{max(kind.size, 1)}];")
            return Buffer(kind, name, "1", writable=True)
        self.shared.append((name, kind))
        return Buffer(kind, name, "LANES", writable=True)

    def own(self, value: Value, consumed: bool) -> Buffer:
        """A buffer with the same entries that may be changed."""
        if consumed and isinstance(value, Buffer) and value.writable:
            return value
        copy = self.new_buffer(value.kind)
        self.copied(value, copy)
        return copy

    def copied(self, source: Value, target: Buffer):
        if isinstance(source, Numbers) and source.kind.size <= MOST_NUMBERS:
            for i, item in enumerate(source.items):
                self.emit(f"{target.at(i)} = {written(item)};")
            return
        with self.block(f"for (int i = 0; i < {source.kind.size}; ++i)"):
            item = self.entry(source, "i")
            self.emit(f"{target.at('i')} = {written(item)};")

    def nest(self, shape: Sequence[int], body: Callable[[list[str]], None]):
        """Loops over an array."""
        indices = [self.name("i") for _ in shape]
        with contextlib.ExitStack() as loops:
            for i, size in zip(indices, shape, strict=True):
                loops.enter_context(self.block(f"for (int {i} = 0; {i} < {size}; ++{i})"))
            body(indices)

    # Programs

    def call(self, name: str, arguments: Sequence[Value], owned: Sequence[bool]) -> list[Value]:
        """The results of a function; it may change the arguments that it owns in place."""
        block = self.functions[name].regions[0].blocks[0]
        return self.run(block, {}, set(), arguments, owned)

    def run(
        self,
        block: Any,
        outer: dict[Any, Value],
        free: set,
        arguments: Sequence[Value] = (),
        owned: Sequence[bool] = (),
    ) -> list[Value]:
        """The results of a block of a function or a region.

        Args:
            block: What to translate.
            outer: Values from around it.
            free: Those of them that nobody reads after it. It may change them in place.
            arguments: Its own.
            owned: Which of them it may change in place.
        """
        values = dict(outer)
        values.update(zip(block.arguments, arguments, strict=True))
        mine = free | {x for x, each in zip(block.arguments, owned, strict=True) if each}
        *operations, end = list(block.operations)
        last = {x: i for i, operation in enumerate([*operations, end]) for x in _operands_within(operation)}
        for i, operation in enumerate(operations):
            over = {x for x in mine if last.get(x, -1) <= i}
            consumed = [_read_by_one(values, over, operation, x) for x in operation.operands]
            operands = [values[x] for x in operation.operands]
            found = self.translate(self, Operation(operation.operation, operands, consumed, values, over))
            for result, value in zip(operation.results, found, strict=True):
                values[result] = value
                mine.add(result)
        return [values[x] for x in end.operands]

    def applied(self, block: Any, outer: dict[Any, Value], dtypes: Sequence[str], items: Sequence[Item]) -> list[Item]:
        """Apply a region that takes single numbers to some."""
        arguments = [self.numbers(Kind((), dtype), [item]) for dtype, item in zip(dtypes, items, strict=True)]
        found = self.run(block, outer, set(), arguments, [False] * len(arguments))
        return [self.as_numbers(x).items[0] for x in found]

    def assign(self, names: Sequence[Item], dtypes: Sequence[str], items: Sequence[Item]):
        """Gives variables new values at once: an item may be another's old value."""
        changed = [row for row in zip(names, dtypes, items, strict=True) if row[0] != row[2]]
        taken = {name for name, *_ in changed}
        lines = []
        for name, dtype, item in changed:
            if item in taken:
                copy = self.name("x")
                self.emit(f"const {Kind((), dtype).c} {copy} = {item};")
                item = copy
            lines.append(f"{written(name)} = {written(item)};")
        for line in lines:
            self.emit(line)

    def cost(self, block: Any) -> int:
        """Operations of a block, those of what it calls included."""
        if block not in self._costs:
            total = 0
            for operation in block.operations:
                name = operation.operation.name
                if name in ("func.call", "stablehlo.composite"):
                    total += self.cost(self.functions[callee(operation)].regions[0].blocks[0])
                else:
                    sizes = [Kind.of(x.type).size for x in operation.results]
                    total += max(sizes, default=0) if name in COSTLY else 0
                    total += sum(self.cost(inner) for region in operation.regions for inner in region.blocks)
            self._costs[block] = total
        return self._costs[block]


def most_numbers(*sources: Value) -> int:
    """Most entries that are as many variables, where sources are only arranged."""
    return MOST_ARRANGED if all(isinstance(x, Numbers) or not x.writable for x in sources) else MOST_NUMBERS


# Operations that are computed; others only arrange numbers.
COSTLY = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add subtract multiply divide power sine cosine tan tanh sqrt rsqrt exponential log atan2 select compare"
        " maximum minimum and or dot_general reduce gather dynamic_slice dynamic_update_slice scatter while case"
    ).split()
)


def callee(operation: Any) -> str:
    key = "callee" if "callee" in operation.attributes else "decomposition"
    return operation.attributes[key].value


def _read_by_one(values, over, operation, x) -> bool:
    """Tell whether a buffer is read by an operation for the last time, and as one operand."""
    buffer = values[x]
    if not isinstance(buffer, Buffer) or sum(y == x for y in operation.operands) != 1:
        return False
    return all(y in over for y, other in values.items() if isinstance(other, Buffer) and other.name == buffer.name)


def _operands_within(operation: Any):
    yield from operation.operands
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _operands_within(inner)
