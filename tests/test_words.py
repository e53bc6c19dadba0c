"""Docstrings begin with what they are about."""

import ast
import pathlib
import re

import jdyn

# Nothing precedes them that they could refer to.
NO_BEGINNINGS = {"As", "By", "How", "Of", "That", "Those", "What", "Where", "Whether"}


def test_docstrings_begin_with_a_verb_or_a_noun():
    found = []
    for file in sorted(pathlib.Path(jdyn.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                words = re.findall(r"\w+", ast.get_docstring(node) or "")
                if words and words[0] in NO_BEGINNINGS:
                    found.append(f"{file}:{node.body[0].lineno}: {' '.join(words[:5])}")
    assert not found
