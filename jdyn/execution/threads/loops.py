"""Loops and branches of a thread."""

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import UNROLLED, Translation, callee
from jdyn.execution.threads.values import Buffer, Item, Kind, Numbers, Value, written

# Numbers of which a loop's one is written in place of being chosen among all, at most.
FEW = 16


def _while(program: Translation, operation: Operation) -> list[Value]:
    """Translate `stablehlo.while`."""
    condition, body = operation.blocks
    start, consumed, values = operation.operands, operation.consumed, operation.values
    turns = _turns(condition, body, start)
    if turns is None or turns * program.cost(body) > UNROLLED:
        return _rolled(program, condition, body, values, start, consumed)
    state, owned = start, consumed
    values = _unseen(
        values, {x.name for x, each in zip(start, consumed, strict=True) if each and isinstance(x, Buffer)}
    )
    kept = {x.name for x, each in zip(start, consumed, strict=True) if isinstance(x, Buffer) and not each}
    for _ in range(turns):
        state = program.run(body, values, set(), state, owned)
        owned = [isinstance(x, Buffer) and x.name not in kept for x in state]
    return state


def _rolled(program, condition, body, values, start, consumed) -> list[Value]:
    end = list(body.operations)[-1]
    constant = [result == argument for result, argument in zip(end.operands, body.arguments, strict=True)]
    carried, taken = [], set()
    for value, same, each, argument in zip(start, constant, consumed, body.arguments, strict=True):
        if not same:
            each = each and isinstance(value, Buffer) and value.name not in taken
            value = _carried(program, value, each, argument)
            taken |= {value.name} if isinstance(value, Buffer) else set()
        carried.append(value)
    values = _unseen(values, taken)
    with program.block("while (true)"):
        inside = [x if same else _here(program, x) for x, same in zip(carried, constant, strict=True)]
        (go_on,) = program.run(condition, values, set(), inside, [False] * len(inside))
        program.emit(f"if (!({written(program.as_numbers(go_on).items[0])})) break;")
        found = program.run(body, values, set(), inside, [not same for same in constant])
        _stored(program, [(x, new) for x, new, same in zip(inside, found, constant, strict=True) if not same])
    return [x if same else _here(program, x) for x, same in zip(carried, constant, strict=True)]


def _unseen(values: dict, taken: set[str]) -> dict:
    """Memory that a loop can see: what it took is its own now."""
    return {x: value for x, value in values.items() if not (isinstance(value, Buffer) and value.name in taken)}


def _here(program, value: Value) -> Value:
    """Values of variables at this point."""
    return program.numbers(value.kind, value.items) if isinstance(value, Numbers) else value


def _carried(program, value: Value, consumed: bool, argument: Any) -> Value:
    """Variables or a buffer of the loop."""
    if isinstance(value, Buffer) or (value.kind.size > FEW and _written_by_entry(program, argument)):
        return program.own(value, consumed)
    names = [program.name("c") for _ in value.items]
    for name, item in zip(names, value.items, strict=True):
        program.emit(f"{value.kind.c} {name} = {written(item)};")
    return program.numbers(value.kind, names)


def _stored(program, pairs):
    """New values of what a loop carries, all at once."""
    memories = {x.name for x, _ in pairs if isinstance(x, Buffer)}
    moved = []
    for x, new in pairs:
        if isinstance(x, Buffer):
            if isinstance(new, Buffer) and new.name == x.name:
                continue
            # What another entry of the carry held must be read before that is overwritten.
            moved.append((x, program.own(new, False) if isinstance(new, Buffer) and new.name in memories else new))
    names: list[Item] = []
    dtypes: list[str] = []
    items: list[Item] = []
    for x, new in pairs:
        if isinstance(x, Numbers):
            names += x.items
            dtypes += [x.kind.dtype] * x.kind.size
            items += program.as_numbers(new).items
    for x, new in moved:
        program.copied(new, x)
    program.assign(names, dtypes, items)


def _turns(condition: Any, body: Any, start: list[Value]) -> int | None:
    """Number of turns of a loop that counts by one from a known number to a known number."""
    operations = list(condition.operations)
    compared = operations[-1].operands[0].owner
    if getattr(compared, "name", None) != "stablehlo.compare":
        return None
    if stablehlo.ComparisonDirectionAttr(compared.attributes["comparison_direction"]).value != "LT":
        return None
    counter, bound = compared.operands
    places = [i for i, x in enumerate(condition.arguments) if x == counter]
    last = _constant(bound)
    if len(places) != 1 or last is None:
        return None
    (place,) = places
    added = list(body.operations)[-1].operands[place].owner
    if getattr(added, "name", None) != "stablehlo.add":
        return None
    steps = [_constant(x) for x in added.operands if x != body.arguments[place]]
    first = start[place]
    if steps != [1] or not isinstance(first, Numbers) or not isinstance(first.items[0], int):
        return None
    return max(last - first.items[0], 0)


def _constant(value: Any) -> int | None:
    operation = value.owner
    if getattr(operation, "name", None) != "stablehlo.constant" or not Kind.of(value.type).dtype.startswith("i"):
        return None
    if Kind.of(value.type).size != 1:
        return None
    return ir.IntegerAttr(ir.DenseElementsAttr(operation.attributes["value"]).get_splat_value()).value


def _written_by_entry(program: Translation, value: Any) -> bool:
    """Tell whether entries of an array are written at places that are computed."""
    for use in value.uses:
        operation = use.owner
        name, place = operation.name, use.operand_number
        if name in ("stablehlo.dynamic_update_slice", "stablehlo.scatter") and place == 0:
            return True
        inner: list[Any] = []
        if name == "func.call":
            inner = [program.functions[callee(operation)].regions[0].blocks[0].arguments[place]]
        elif name == "stablehlo.while":
            inner = [operation.regions[1].blocks[0].arguments[place]]
        elif name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
            inner = list(operation.results)
        if any(_written_by_entry(program, x) for x in inner):
            return True
    return False


def _case(program: Translation, operation: Operation) -> list[Value]:
    """Translate `stablehlo.case`."""
    blocks, values, over = operation.blocks, operation.values, operation.over
    (which,) = program.as_numbers(operation.operands[0]).items
    if operation.name == "stablehlo.if":
        blocks = blocks[::-1]
    if isinstance(which, int) or len(blocks) == 1:
        # An index outside chooses the last branch.
        inside = isinstance(which, int) and 0 <= which < len(blocks)
        return program.run(blocks[int(which) if inside else -1], values, over)
    parts = []
    for block in blocks:
        with program.apart() as scope:
            parts.append((scope, program.run(block, values, over)))
    scopes = [scope for scope, _ in parts]
    results = [_joined(program, scopes, found) for found in zip(*(found for _, found in parts), strict=True)]
    for i, scope in enumerate(scopes):
        head = f"{'else ' if i else ''}if ({which} == {i}) {{" if i < len(scopes) - 1 else "else {"
        program.emit(head)
        program.scopes[-1].lines += ["  " + line for line in scope.lines]
        program.emit("}")
    return results


def _joined(program, scopes, found) -> Value:
    """One value for what the branches found, set in each of them."""
    first = found[0]
    kind = first.kind
    if all(isinstance(x, Buffer) for x in found) and len({x.name for x in found}) == 1:
        return first
    if any(isinstance(x, Buffer) for x in found) and kind.size > FEW:
        target = program.new_buffer(kind)
        for scope, value in zip(scopes, found, strict=True):
            program.scopes.append(scope)
            program.copied(value, target)
            program.scopes.pop()
        return target
    columns = []
    for scope, value in zip(scopes, found, strict=True):
        program.scopes.append(scope)
        columns.append(program.as_numbers(value).items)
        program.scopes.pop()
    items: list[Item] = []
    for row in zip(*columns, strict=True):
        if len({(type(x), x) for x in row}) == 1:
            items.append(row[0])
            continue
        name = program.name("x")
        program.emit(f"{kind.c} {name};")
        for scope, item in zip(scopes, row, strict=True):
            scope.lines.append(f"{name} = {written(item)};")
        items.append(name)
    return program.numbers(kind, items)


def _call(program: Translation, operation: Operation) -> list[Value]:
    return program.call(callee(operation.raw), operation.operands, operation.consumed)


RULES = {
    "stablehlo.while": _while,
    "stablehlo.case": _case,
    "stablehlo.if": _case,
    "func.call": _call,
    "stablehlo.composite": _call,
}
