"""How much of the inside one has to read: counts of one checkout, or of two beside each other.

    python -m benchmarks.inside [--against ../before]

Files of a route are those in which a function runs while the call is traced for the first time, but for those on the
two lowest floors (linear algebra, shapes, rotations), which nobody opens to follow it. Signatures are those of public
functions and classes, without `self`.
"""

import argparse
import ast
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
# Also as they were called before.
BELOW = "array", "spatial", "terminal", "execution", "threads"
# What simulation is not to ask for by class.
CLASSES = r"\b(\w*Solver|OnManifold|Automatic|ConvexEuler|ROSJ43|Rodas5P|\w*Limits|\w*Contact|\w*Forces)\b"
# Functions that take products of vectors off something, and factor nothing.
NO_FACTORS = {
    "dynamics/recursion/joint_frames.py _frame_along",
    "geometry/facets.py core_nearest",
    "geometry/patches/overlap.py _turn",
    "identification/excitation.py _without",
    "impacts/path.py _integrated",
    "model/inertial.py central_inertia",
    "spatial/components.py to_parent",
    "spatial/log_cholesky.py log_cholesky",
    "transmissions/wrapping.py _angle",
}
NO_SUBJECT = "What", "How", "Whether", "Of", "Those", "That", "As", "Where", "By"


def files_of(call) -> int:
    """Files of jdyn in which a function runs during a call."""
    import jdyn

    package = pathlib.Path(jdyn.__file__).parent
    seen = set()

    def note(frame, event, _):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = [pathlib.Path(name).relative_to(package) for name in seen if name.startswith(f"{package}{os.sep}")]
    return sum(path.parts[0] not in BELOW for path in inside)


def routes() -> dict[str, int]:
    """Files of each route."""
    import jax
    import jax.numpy as jnp

    import jdyn

    arm = jdyn.load("panda")
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    ball = builder.build()
    low = ball.neutral().at[2].set(0.0999)
    zero = jnp.zeros(arm.nv)
    soft = jdyn.CompliantContact()

    def pushed():
        from jdyn.contact import colliders

        forces = soft.between(colliders(ball))
        jax.eval_shape(lambda q, v: forces.force(ball, q, v), low, jnp.zeros(6))

    return {
        "files of forward_dynamics": files_of(
            lambda: jax.eval_shape(lambda q: jdyn.forward_dynamics(arm, q, zero, zero), zero)
        ),
        "files of simulate": files_of(
            lambda: jax.eval_shape(lambda q: jdyn.simulate(arm, q, zero, 1.0, throw=False).q, zero)
        ),
        "files of simulate with contact": files_of(
            lambda: jax.eval_shape(
                lambda q: jdyn.simulate(ball, q, jnp.zeros(6), 1.0, contact=soft, throw=False).q, low
            )
        ),
        "files from a pair of shapes to a force": files_of(pushed),
    }


def _functions(tree: ast.Module):
    """Public functions of a module, and the constructors and methods of its public classes, by name; overloads repeat a
    signature for type checkers."""
    overloads = {
        id(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(x).endswith("overload") for x in node.decorator_list)
    }
    for node in tree.body:
        if id(node) in overloads:
            continue
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and (inner.name == "__init__" or inner.name[0] != "_"):
                    yield f"{node.name}.{inner.name}", inner
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node


def factorizations(package: pathlib.Path) -> set[str]:
    """Functions that factor a matrix, by file and name: those that take products of vectors, or of entries, off it."""
    found = set()
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
        for function in (node for each in classes for node in each.body if isinstance(node, ast.FunctionDef)):
            if any(map(_takes_product_off, ast.walk(function))):
                found.add(f"{path.relative_to(package).as_posix()} {function.name}")
    return found - NO_FACTORS


def _takes_product_off(node: ast.AST) -> bool:
    """Tell whether something is subtracted, or negative, in which vectors or entries are multiplied: `outer(x, y)`,
    `x[:, None] * y[None]`, `x[i] * y[j]`, `x * x[i]` or `A @ A[i]`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return any(map(_is_product, ast.walk(node.right)))
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.UnaryOp) and isinstance(node.left.op, ast.USub):
        return _is_product(ast.BinOp(node.left.operand, node.op, node.right))
    return False


def _is_product(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith("outer")
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult)):
        return False
    entries = [isinstance(side, ast.Subscript) for side in (node.left, node.right)]
    own = entries[1] and ast.unparse(node.right.value) == ast.unparse(node.left)
    return own or (all(entries) and isinstance(node.op, ast.Mult))


def counts(package: pathlib.Path) -> dict[str, int | str]:
    """Counts of the text of a package."""
    lines = documented = asked = 0
    longest = 0, ""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines += text.count("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                words = (ast.get_docstring(node) or "").split()
                documented += bool(words) and words[0].strip(",.:") in NO_SUBJECT
        if path.relative_to(package).parts[0] == "simulation":
            asked += sum(bool(re.search(CLASSES, call)) for call in re.findall(r"\b(?:isinstance|type)\(.*", text))
        for name, function in _functions(tree):
            arguments = function.args
            all_of = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            longest = max(longest, (sum(x.arg not in ("self", "cls") for x in all_of), name))
    factors = factorizations(package)
    outside = sum(not name.startswith("array/") for name in factors)
    return {
        "lines of jdyn/": lines,
        "parameters of the longest signature": f"{longest[0]} ({longest[1]})",
        "isinstance on solvers, limits, contact": asked,
        "docstrings without a subject": documented,
        "hand-written factorizations": f"{len(factors)} ({outside} outside of array)",
    }


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--against", type=pathlib.Path, help="folder of another checkout")
    words.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.json:
        import jdyn

        print(json.dumps(counts(pathlib.Path(jdyn.__file__).parent) | routes()))
        return
    columns = []
    for folder in [ROOT, *([options.against] if options.against else [])]:
        run = [sys.executable, str(pathlib.Path(__file__)), "--json"]
        environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
        done = subprocess.run(run, env=environment, cwd=folder, check=True, capture_output=True, text=True)
        columns.append(json.loads(done.stdout.splitlines()[-1]))
    for name in columns[0]:
        print(f"{name:42}", *(f"{column[name]!s:>28}" for column in columns))


if __name__ == "__main__":
    main()
