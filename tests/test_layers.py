"""The house rules that no import may break: lower floors only, no circles, no side effects."""

import ast
import pathlib
import subprocess
import sys

import jdyn

PACKAGE = pathlib.Path(jdyn.__file__).parent
FLOORS = {
    "array": 0, "terminal": 0, "execution": 1, "spatial": 2, "model": 3, "geometry": 3, "dynamics": 4, "impulses": 5,
    "transmissions": 5, "impacts": 6, "actuators": 6, "elements": 6, "sensors": 6, "io": 7,
    "constraints": 7, "robots": 8, "control": 8, "contact": 8, "interop": 9, "simulation": 9,
    "compile": 10, "planning": 10, "sweep": 10, "tuning": 10, "view": 11, "environments": 12,
    "identification": 12, "studies": 12, "solvers": 12, "designs": 12, "world": 12,
    "face": 13, "cli": 13, "guide": 13, "__main__": 14,
}  # fmt: skip


def _imports(path: pathlib.Path) -> set[str]:
    """Modules of the package that a file imports, as dotted names below `jdyn`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jdyn":
            module = node.module.removeprefix("jdyn").lstrip(".")
            folder = PACKAGE.joinpath(*module.split("."))
            modules = {
                alias.name
                for alias in node.names
                if (folder / f"{alias.name}.py").exists() or (folder / alias.name / "__init__.py").exists()
            }
            names.update(f"{module}.{name}" for name in modules)
            if len(modules) < len(node.names):
                names.add(module)
        if isinstance(node, ast.Import):
            names.update(a.name.removeprefix("jdyn").lstrip(".") for a in node.names if a.name.split(".")[0] == "jdyn")
    return names


def _files():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def test_every_folder_has_a_floor():
    assert {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in _files()} <= set(FLOORS)


def test_imports_lead_downwards():
    upward = []
    for path in _files():
        here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in _imports(path):
            there = name.split(".")[0]
            if there and there != here and FLOORS[there] >= FLOORS[here]:
                upward.append(f"{path.relative_to(PACKAGE)} imports {name}")
            if not there and FLOORS[here] < FLOORS["face"]:
                upward.append(f"{path.relative_to(PACKAGE)} imports the whole package")
    assert not upward


def test_studies_are_built_on_public_names():
    """Those of folders, of the blocks that methods are built of, and of their own shelf."""
    private = []
    for path in (PACKAGE / "studies").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("jdyn."):
                _, *names = node.module.split(".")
                own = names[0] in ("studies", "terminal") or names == ["dynamics", "building_blocks"]
                if not own and not PACKAGE.joinpath(*names).is_dir():
                    private.append(f"{path.relative_to(PACKAGE)} imports from {node.module}")
    assert not private


def test_no_circles():
    graph = {}
    for path in _files():
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        graph[module] = _imports(path)
    done, trail = set(), []

    def visit(module):
        if module in trail:
            raise AssertionError(" -> ".join([*trail[trail.index(module) :], module]))
        if module in done or module not in graph:
            return
        trail.append(module)
        for name in graph[module]:
            visit(name)
        done.add(trail.pop())

    for module in graph:
        visit(module)


def test_library_has_no_assert():
    offenders = [
        str(path.relative_to(PACKAGE))
        for path in _files()
        if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    assert not offenders


def test_import_is_silent_and_sets_flags_of_xla_alone():
    code = (
        "import jax, os; before = dict(jax.config.values); there = dict(os.environ); import jdyn; jdyn.load; "
        "changed = {k for k, v in jax.config.values.items() if before.get(k, v) != v}; "
        "changed |= {k for k, v in os.environ.items() if there.get(k) != v} - {'XLA_FLAGS'}; "
        "import sys; heavy = {'mujoco', 'pinocchio', 'matplotlib.pyplot', 'scipy.optimize'} & set(sys.modules); "
        "sys.exit(f'{changed} {heavy}' if changed or heavy else 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
