"""All operations that threads can do."""

from jdyn.execution.threads import arrangement, elementwise, factors, loops, places, sorting, sums
from jdyn.execution.threads.operation import Operation
from jdyn.execution.threads.translation import Translation
from jdyn.execution.threads.values import Untranslatable, Value

RULES = (
    elementwise.RULES | arrangement.RULES | places.RULES | sums.RULES | factors.RULES | sorting.RULES | loops.RULES
)  # fmt: skip


def translate(program: Translation, operation: Operation) -> list[Value]:
    """The results of an operation."""
    rule = RULES.get(operation.name)
    if rule is None:
        target = operation.attributes
        name = f" {target['call_target_name'].value}" if "call_target_name" in target else ""
        raise Untranslatable(f"the operation {operation.name}{name}")
    return rule(program, operation)
