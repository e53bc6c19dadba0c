"""Every public name has an example, and every example does what it says."""

import contextlib
import doctest
import importlib
import io
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
import jdyn.guide
from jdyn.guide import reference

# Examples print rounded numbers.
pytestmark = pytest.mark.fast_compile

# Names without an example, each with the reason.
EXCEPTIONS: dict[str, str] = {}

# Spaces may differ, and `...` stands for anything.
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def _of_folder(folder):
    """Docstrings of the public names of a folder, and of the functions of those that are modules."""
    modules = reference.modules()
    for name in reference.names()[folder]:
        yield f"jdyn.{name}", reference.docstring(folder, name)
        if name in modules:
            for own in reference.own_names(modules[name]):
                yield f"jdyn.{name}.{own}", reference.docstring(modules[name].__name__, own)


def _of_chapters():
    for chapter in pkgutil.iter_modules(jdyn.guide.__path__, "jdyn.guide."):
        if not chapter.name.endswith("__main__"):
            yield chapter.name, importlib.import_module(chapter.name).__doc__


def _examples(name, text):
    names = {"jdyn": jdyn, "jax": jax, "jnp": jnp, "np": np, "__name__": "__main__"}
    return doctest.DocTestParser().get_doctest(text, names, name, None, 0)


def _run(named, folder, monkeypatch):
    """Run examples as a program of their own would, each in an empty folder."""
    failures = []
    for name, text in named:
        monkeypatch.chdir(_empty(folder, name))
        report = io.StringIO()
        with (
            jax.numpy_dtype_promotion("standard"),
            jax.numpy_rank_promotion("allow"),
            contextlib.redirect_stderr(report),
        ):
            failed, _ = doctest.DocTestRunner(optionflags=OPTIONS).run(_examples(name, text), out=report.write)
        if failed:
            failures.append(report.getvalue())
    assert not failures, "\n".join(failures)


def _empty(folder, name):
    (folder / name).mkdir()
    return folder / name


def test_every_public_name_has_an_example():
    named = {name: text for folder in reference.names() for name, text in _of_folder(folder)}
    without = {name for name, text in named.items() if not _examples(name, text).examples}
    assert without == set(EXCEPTIONS)
    assert len(named) > 180


def test_what_is_public_is_what_is_documented():
    documented = {name for there in reference.names().values() for name in there}
    assert documented == {name for name in vars(importlib.import_module("jdyn.face")) if not name.startswith("_")}


@pytest.mark.slow
@pytest.mark.parametrize("folder", reference.names())
def test_examples_print_what_they_say(folder, tmp_path, monkeypatch):
    _run(_of_folder(folder), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_examples_of_the_guide_print_what_they_say(tmp_path, monkeypatch):
    _run(_of_chapters(), tmp_path, monkeypatch)
