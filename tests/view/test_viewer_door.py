"""Who may come to the viewer: by HTTP and by sockets, as strangers would."""

import contextlib
import http.client
import math
import re
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest
import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import jdyn
from jdyn.view.viewer.door import Door, with_policy
from jdyn.view.viewer.panels.joints import JointPanel
from jdyn.view.viewer.panels.panel import checked
from jdyn.view.viewer.stored_lanes import StoredLanes
from jdyn.view.viewer.words import plain

pytestmark = pytest.mark.fast_compile

PROTOCOL = f"viser-v{viser.__version__}"


@pytest.fixture(scope="module")
def viewer():
    with jdyn.view(jdyn.load("pendulum"), port=0) as viewer:
        yield viewer


def asked(viewer, path=None, host=None, origin=None):
    """Status and text of a page."""
    url = urlsplit(viewer.url)
    headers = {"Host": host or url.netloc} | ({"Origin": origin} if origin else {})
    with contextlib.closing(http.client.HTTPConnection(url.hostname, url.port, timeout=10)) as connection:
        connection.request("GET", url.path if path is None else path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers


def joined(viewer, path=None, host=None, origin=None):
    """Whether a socket is let in."""
    url = urlsplit(viewer.url)
    headers = {"Origin": origin} if origin else {}
    address = f"ws://{host or url.netloc}{url.path.rstrip('/') if path is None else path}"
    with socket.create_connection((url.hostname, url.port)) as line:
        try:
            with connect(address, sock=line, subprotocols=[PROTOCOL], additional_headers=headers) as joined:
                return len(joined.recv(timeout=10)) > 0
        except InvalidStatus as error:
            assert error.response.status_code == 403
            return False


def test_the_page_and_its_socket_are_there_for_whoever_knows_the_address(viewer):
    status, page, headers = asked(viewer)
    assert status == 200 and page.startswith("<!doctype html>")
    assert headers["Referrer-Policy"] == "no-referrer"
    own = f"http://{urlsplit(viewer.url).netloc}"
    assert joined(viewer) and joined(viewer, origin=own)
    tunnel = "localhost:9999"
    assert asked(viewer, host=tunnel)[0] == 200 and joined(viewer, host=tunnel, origin=f"http://{tunnel}")
    assert f'src="{viewer.url}"' in viewer._repr_html_()


@pytest.mark.parametrize("path", ["/", "/index.html", "/" + "x" * 43 + "/", "/?token=", "//", "/%00/"])
def test_without_the_token_nothing_is_told(viewer, path):
    status, text, _ = asked(viewer, path)
    assert status == 403 and "token" in text
    assert not joined(viewer, path)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.0.2.1", "[::2]"])
def test_requests_for_other_hosts_are_refused(viewer, host):
    """As after DNS rebinding."""
    assert asked(viewer, host=host)[0] == 403
    assert not joined(viewer, host=host, origin=f"http://{host}")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1", "file://"]
)
def test_other_pages_are_refused(viewer, origin):
    assert asked(viewer, origin=origin)[0] == 403
    assert not joined(viewer, origin=origin)


def test_every_viewer_has_a_token_of_its_own():
    tokens = {Door("127.0.0.1").token for _ in range(10)}
    assert len(tokens) == 10 and min(map(len, tokens)) >= 43


def test_on_a_network_addresses_are_own_and_names_that_others_make_are_not():
    door = Door("0.0.0.0")
    for host, own in (("192.0.2.7:8080", True), ("localhost:1", True), ("evil.example:8080", False), ("", False)):
        assert door._is_own(host) == own


class Control:
    """A slider as viser has it."""

    label, min, max, step = "hinge", -1.0, 2.0, 0.01


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1.5, 3])
def test_numbers_that_no_slider_has_are_refused(value):
    with pytest.raises(ValueError, match="hinge: expected a number from -1 to 2, got"):
        checked(Control, value)


def test_numbers_of_sliders_are_taken():
    assert [checked(Control, x) for x in (-1.0, 0.5, 2.0, 2.005)] == [-1.0, 0.5, 2.0, 2.0]
    assert checked(Control, True) is True and checked(Control, "words") == "words"


def test_a_slider_that_a_page_sets_to_nan_moves_nothing(viewer, capsys):
    joints = next(panel for panel in viewer._panels if isinstance(panel, JointPanel))
    slider, before = joints._sliders[0], viewer.q
    event = type("Event", (), {"client_id": 0, "target": slider})
    for value in (math.nan, 1e9):
        slider._impl.value = value
        for callback in slider._impl.update_cb:
            callback(event)
        assert viewer.wait()
        np.testing.assert_array_equal(viewer.q, before)
        assert viewer._errors.visible and "expected a number from" in viewer._errors.content
    capsys.readouterr()


HOSTILE = "<img src=x onerror=alert(1)> ![a](/etc/passwd) [b](javascript:alert(1)) | `c` https://evil.example {d} &lt;"


def test_errors_are_shown_as_they_are(viewer, capsys):
    def fail():
        raise ValueError(HOSTILE)

    viewer.ask("fail", fail)
    assert viewer.wait()
    shown = viewer._errors.content
    assert shown.endswith(plain(HOSTILE)) and not re.search(r"(?<!\\)[<!\[(`|:{&]", shown)
    assert "data:" not in viewer._errors._markdown
    capsys.readouterr()


def test_markdown_is_plain():
    markdown = pytest.importorskip("markdown_it").MarkdownIt("gfm-like", {"linkify": False})
    page = markdown.render(plain(HOSTILE))
    assert page.count("<") == 2 and "onerror" in page  # of the paragraph alone


def test_names_of_foreign_stores_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        jdyn.sweep(lambda p: {"<img>": p["a"]}, jdyn.designs.Grid(a=[1.0]), store=tmp_path / "s", progress=False)
    assert StoredLanes


def test_an_exported_page_loads_nothing_and_runs_no_other_script(viewer, tmp_path):
    page = viewer.export(tmp_path / "robot.html").read_text()
    head = page[: page.index("<script")]
    assert "default-src 'none'" in head and "script-src 'nonce-" in head and "unsafe-inline" in head
    nonce = head.partition("'nonce-")[2].partition("'")[0]
    assert page.count(f'<script nonce="{nonce}"') == page.count("<script") == 2
    assert f'e.nonce="{nonce}"' in page
    with pytest.raises(RuntimeError, match="install viser"):
        with_policy("<html></html>")
