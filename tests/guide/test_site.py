"""The pages of the guide and of the reference."""

import html.parser
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

from jdyn.guide import reference, site

pytestmark = [pytest.mark.fast_compile, pytest.mark.slow]


class Links(html.parser.HTMLParser):
    """What a page points to, and what can be pointed to in it."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors, self.sources = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "a" and found.get("href"):
            self.targets.append(found["href"])
        if "id" in found:
            self.anchors.add(found["id"])
        if tag in ("script", "img", "link") and (source := found.get("src") or found.get("href")):
            self.sources.append(source)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return site.build(tmp_path_factory.mktemp("site")).parent


@pytest.fixture(scope="module")
def pages(folder):
    return {path: Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_the_reference_has_every_public_name(folder, pages):
    shown = pages[folder / "jdyn.html"].anchors
    modules = reference.modules()
    for name in (name for there in reference.names().values() for name in there):
        assert name in (shown if name not in modules else {name: pages[folder / "jdyn" / f"{name}.html"]})
    for name, module in modules.items():
        assert set(reference.own_names(module)) <= pages[folder / "jdyn" / f"{name}.html"].anchors


def test_every_link_of_a_page_leads_somewhere(folder, pages):
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            address = urllib.parse.urlsplit(target)
            if address.scheme:
                continue
            file = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            there = pages.get(file)
            if there is None or (address.fragment and address.fragment not in there.anchors):
                broken.append(f"{path.relative_to(folder)}: {target}")
    assert not broken
    assert sum(len(page.targets) for page in pages.values()) > 1000


def test_pages_need_no_network(pages):
    for path, page in pages.items():
        assert not [source for source in page.sources if "//" in source and not source.startswith("data:")], path


def test_the_search_knows_names_and_chapters(folder):
    index = (folder / "search.js").read_text(encoding="utf-8")
    assert "jdyn.simulate" in index and "jdyn.guide.recipes" in index


def test_signatures_are_legible(folder):
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("jdyn.html", "search.js"))
    for place in ("jaxlib", "numpy._typing", "jaxtyping.", "object at 0x", "&lt;function", "&lt;class"):
        assert place not in text, place


@pytest.mark.filterwarnings("ignore:Cannot determine where")
def test_a_name_that_does_not_exist_is_found(monkeypatch):
    page = site.pages()["jdyn.guide"]
    monkeypatch.setattr(page, "docstring", "See `jdyn.simulate` and `jdyn.simulat`.")
    assert list(site.unknown_names([page])) == ["jdyn.guide: jdyn.simulat"]


def test_the_command_says_what_to_open(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "jdyn.guide", str(tmp_path / "docs")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=pathlib.Path(__file__).parents[2])
    assert run.stdout.splitlines()[-1] == f"open {tmp_path / 'docs' / 'index.html'}"
