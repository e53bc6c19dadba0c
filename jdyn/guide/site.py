"""The guide and the reference as HTML pages, which need neither a server nor a network."""

import functools
import importlib
import inspect
import os
import pathlib
import re
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pdoc.doc
import pdoc.render

import jdyn
import jdyn.guide
from jdyn.guide import reference
from jdyn.guide.annotations import constructor, legible_signature, written

CHAPTERS = (
    "tutorial", "overview", "methods", "rounding", "solvers", "contact", "worlds", "recipes", "conventions",
    "interop", "limitations",
)  # fmt: skip

# Modules that have public names besides those of `import jdyn`.
SHELVES = (
    "jdyn.spatial", "jdyn.dynamics.building_blocks", "jdyn.interop", "jdyn.studies.cloutier1995",
)  # fmt: skip


# Sections of the public names, as they are to be read; others follow.
ORDER = (
    "jdyn.robots", "jdyn.io", "jdyn.model", "jdyn.spatial", "jdyn.dynamics", "jdyn.control", "jdyn.contact",
    "jdyn.simulation", "jdyn.planning", "jdyn.sweep", "jdyn.tuning", "jdyn.identification", "jdyn.view",
)  # fmt: skip


class Section(NamedTuple):
    """Names that are shown together."""

    name: str
    title: str
    members: list[pdoc.doc.Doc]


class Page(pdoc.doc.Module):
    """A page of names.

    Attributes:
        sections: The names, as they are shown.
    """

    def __init__(self, name: str, module: types.ModuleType, folders: Mapping[str, Sequence[str]]):
        """Gather what is shown.

        Args:
            name: What users call the module.
            module: Where the names are.
            folders: The names, by the folder that they are from.
        """
        pdoc.doc.Namespace.__init__(self, name, "", module, (name, ""))
        self._folders = folders
        names = [name for there in folders.values() for name in there]
        self._member_objects = {name: getattr(module, name) for name in names}
        self._var_annotations = {}
        self._func_docstrings = {}
        self._var_docstrings = {
            name: reference.docstring(folder, name)
            for folder, there in folders.items()
            for name in there
            if not callable(self._member_objects[name]) or reference.is_alias(self._member_objects[name])
        }
        self.submodules = []
        for member in self.members.values():
            if isinstance(member, pdoc.doc.Class):
                member.members = _explained(member)
                member.own_members = list(member.members.values())
                member.bases = _public_bases(member.obj)
            for each in (member, *getattr(member, "own_members", ())):
                if isinstance(each, pdoc.doc.Function):
                    each.signature = legible_signature(each.signature)
                if isinstance(each, pdoc.doc.Variable):
                    each.annotation, each.default_value = written(each.annotation), inspect.Signature.empty

    @functools.cached_property
    def sections(self) -> list[Section]:
        found = []
        for folder, names in self._folders.items():
            members = [self.members[name] for name in names if name in self.members]
            title = _first_line(importlib.import_module(folder)).replace("`", "")
            found.append(Section(folder.rpartition(".")[2], title, members))
        return found


def build(folder: str | os.PathLike) -> pathlib.Path:
    """Write the pages.

    Args:
        folder: Where to; it is made if there is none.

    Returns:
        The page to open first.

    Raises:
        ValueError: if a docstring names something of jdyn that does not exist.
        OSError: if a page cannot be written.
    """
    folder = pathlib.Path(folder)
    _configure()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Abstract variables of equinox are declared in a way of its own; what they mean is among the attributes.
        warnings.filterwarnings("ignore", "Cannot determine where")
        # Constructors that Python generates do not know the names of their module: such annotations stay as written.
        warnings.filterwarnings("ignore", r"Error parsing type annotation .* for .*\.__init__")
        shown = pages()
        if unknown := list(unknown_names(shown.values())):
            raise ValueError("docstrings name what does not exist:\n" + "\n".join(f"  {line}" for line in unknown))
        texts = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(page, shown) for name, page in shown.items()}
        texts["index.html"] = pdoc.render.html_index(shown)
        texts["search.js"] = pdoc.render.search_index(shown)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "index.html"


def pages() -> dict[str, Page]:
    """All pages, by name, in the order in which they are to be read."""
    guide = {"jdyn.guide": jdyn.guide}
    guide |= {f"jdyn.guide.{chapter}": importlib.import_module(f"jdyn.guide.{chapter}") for chapter in CHAPTERS}
    found = {name: Page(name, module, {}) for name, module in guide.items()}
    names = reference.names()
    found["jdyn"] = Page("jdyn", jdyn, {folder: names[folder] for folder in (*ORDER, *names) if folder in names})
    for name, module in reference.modules().items():
        found[f"jdyn.{name}"] = Page(f"jdyn.{name}", module, {module.__name__: reference.own_names(module)})
    public = {name for there in reference.names().values() for name in there}
    public |= {name for module in reference.modules().values() for name in reference.own_names(module)}
    for name in SHELVES:
        module = importlib.import_module(name)
        others = [own for own in reference.own_names(module) if own not in public]
        found[name] = Page(name, module, {name: others})
    return found


def unknown_names(shown: Iterable[Page]) -> Iterator[str]:
    """Names that docstrings call `jdyn.something`, and are nothing, with the place."""
    for page in shown:
        for place, text in _docstrings(page):
            for name in re.findall(r"\bjdyn(?:\.[A-Za-z_]\w*)+", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
                try:
                    reference.found(name)
                except AttributeError:
                    yield f"{place}: {name}"


def _explained(kind: pdoc.doc.Class) -> dict[str, pdoc.doc.Doc]:
    """Methods and properties that a class explains itself; what overrides others is explained there."""

    def explained(name: str, member: pdoc.doc.Doc) -> bool:
        value = vars(kind.obj).get(name)
        called = isinstance(member, pdoc.doc.Function) or isinstance(value, property)
        return called and not name.startswith("_") and bool(value.__doc__)

    return {name: member for name, member in kind.members.items() if explained(name, member)}


def _docstrings(doc: pdoc.doc.Doc) -> Iterator[tuple[str, str]]:
    yield doc.fullname, doc.docstring
    for member in doc.own_members if isinstance(doc, pdoc.doc.Namespace) else ():
        if not member.name.startswith("_"):
            yield from _docstrings(member)


def _configure():
    pdoc.render.configure(
        docformat="google",
        include_undocumented=False,
        show_source=False,
        footer_text=f"jdyn {jdyn.__version__}",
        template_directory=pathlib.Path(__file__).with_name("templates"),
    )
    pdoc.render.env.filters["constructor"] = constructor
    pdoc.render.env.globals["title_of"] = _first_line


def _first_line(module: types.ModuleType) -> str:
    return (inspect.getdoc(module) or module.__name__).partition("\n")[0].strip("#. ")


def _public_bases(kind: type) -> list[tuple[str, str, str]]:
    """Module, name and text of each."""
    names = [name for base in kind.__bases__ if (name := reference.public_name(base))]
    return [(name.rpartition(".")[0], name.rpartition(".")[2], name) for name in names]
