"""Signatures stay short. `python tests/test_signatures.py` prints the longest ones."""

import ast
import pathlib

import jdyn

MOST = 10


def signatures():
    """Number of parameters and place of every function, and of every class by the fields that it is made of.

    `self` does not count, nor do forms of a signature that only type checkers see.
    """
    folder = pathlib.Path(jdyn.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not any("overload" in ast.unparse(x) for x in node.decorator_list):
                arguments = node.args
                named = [x.arg for x in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                rest = [x for x in (arguments.vararg, arguments.kwarg) if x is not None]
                number = len(rest) + len(named) - (named[:1] in (["self"], ["cls"]))
                yield number, f"{file.relative_to(folder.parent)}:{node.lineno}: {node.name}"


def test_no_signature_has_more_than_ten_parameters():
    assert not [place for number, place in signatures() if number > MOST]


if __name__ == "__main__":
    for number, place in sorted(signatures(), reverse=True)[:20]:
        print(number, place)
