"""Python expressions in files of others: numbers, words and lists, and nothing that leads out of these."""

import ast
from collections.abc import Mapping
from typing import Any

_ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop,
    ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop, ast.IfExp, ast.Call, ast.keyword, ast.Attribute, ast.Subscript,
    ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension,
)  # fmt: skip
# Everything of theirs is harmless, except what begins with an underscore, and templates, which read attributes.
_OPEN = (str, bool, int, float, complex, list, tuple, set, frozenset)
_TEMPLATES = ("format", "format_map")
_OF_MAPPINGS = ("get", "items", "keys", "values")
_GUARD = "__attribute__"


class ExpressionError(ValueError):
    """An expression is not Python, or does what is not allowed."""


def evaluate(text: str, names: dict[str, Any]) -> Any:
    """The value of an expression.

    It can use literals, operators, conditions, comprehensions, the names given, and attributes of values whose type is
    harmless; names and attributes that begin with underscores are refused. Time and memory have no limit.

    Args:
        text: The expression.
        names: Values by name, which must be harmless when they are called. Gets two more entries.

    Raises:
        ExpressionError: naming what is not allowed. Other errors are those of the expression.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = getattr(error, "msg", None) or str(error) or "nested too deep"
        raise ExpressionError(f"{text.strip()!r} is no expression ({why})") from None
    for node in ast.walk(tree):
        _expect_allowed(node, text.strip())
    guarded = ast.fix_missing_locations(_Guarded().visit(tree))
    names.update({"__builtins__": {}, _GUARD: _attribute})
    return eval(compile(guarded, "<expression>", "eval"), names)


def _expect_allowed(node: ast.AST, text: str):
    writes = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
    if writes or not isinstance(node, _ALLOWED):
        raise ExpressionError(f"{text!r}: {type(node).__name__} is not allowed")
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    if name.startswith("__") or (name.startswith("_") and isinstance(node, ast.Attribute)):
        raise ExpressionError(f"{text!r}: the name {name} is not allowed")


class _Guarded(ast.NodeTransformer):
    """Makes a call of each look at an attribute."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Call:
        self.generic_visit(node)
        return ast.Call(ast.Name(_GUARD, ast.Load()), [node.value, ast.Constant(node.attr)], [])


def _attribute(value: Any, name: str) -> Any:
    """An attribute of a value: for mappings, what they have under that name."""
    if isinstance(value, Mapping):
        try:
            return value[name]
        # What mappings of files raise for names that they lack.
        except (KeyError, AttributeError):
            if name in _OF_MAPPINGS:
                return getattr(value, name)
            raise ExpressionError(f"there is nothing called {name}") from None
    if not isinstance(value, _OPEN) or name in _TEMPLATES:
        raise ExpressionError(f"the attribute {name} of a {type(value).__name__} is not allowed")
    return getattr(value, name)
