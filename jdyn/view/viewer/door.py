"""Who may come to a viewer's page, and what the page may do.

Any page in a browser can send requests to the servers of its machine, and whoever makes a name point at this machine
can read the answers. So there is a secret in the address, as Jupyter has one, and requests have to be meant for the
server and to come from its own page.
"""

from __future__ import annotations

import dataclasses
import hmac
import http
import ipaddress
import secrets
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

# What a page itself brings along: nothing is loaded from elsewhere, and no text that got into it runs. Its own scripts
# compile others, by which viser decodes.
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' 'unsafe-eval'; style-src 'unsafe-inline'; worker-src blob: "
    "data:; img-src data: blob:; font-src data:; connect-src data: blob:; base-uri 'none'; form-action 'none'"
)
HEADERS = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class Door:
    """Lets in who knows the token, by the address of the page.

    Attributes:
        token: Random letters, the first part of the page's path.
    """

    def __init__(self, host: str):
        """
        Args:
            host: Address at which the server listens.
        """
        self._host, self.token = host, secrets.token_urlsafe(32)

    def guarded(self, process_request: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A hook of `websockets` that refuses strangers, pages and sockets alike, before another one.

        Args:
            process_request: That one.
        """

        def process(connection, request):
            if reason := self.refuses(request.path, request.headers):
                return connection.respond(http.HTTPStatus.FORBIDDEN, f"{reason}\n")
            _, _, path = request.path.removeprefix("/").partition("/")
            response = process_request(connection, dataclasses.replace(request, path=f"/{path}"))
            if response is not None:
                for name, value in HEADERS.items():
                    response.headers[name] = value
            return response

        return process

    def refuses(self, path: str, headers: Any) -> str | None:
        """Why a request is refused; None if it is not.

        Args:
            path: Of the request.
            headers: As `websockets` reads them.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return "this request is meant for another host"
        # Browsers always say which page opens a socket; other programs say nothing.
        if len(origins) > 1 or any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return "this request comes from another page"
        token = path.partition("?")[0].removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "the address lacks the token: open the one that jdyn printed, viewer.url"
        return None

    def _is_own(self, host):
        """Tell whether a host is this server by address or name. The port may be another one, that of a tunnel."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if _is_loopback(self._host):
            return name == self._host.lower() or _is_loopback(name)
        # A name that another machine has made up is no number.
        return _is_address(name) or name in ("localhost", self._host.lower(), socket.gethostname().lower())


def _is_address(name):
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name):
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def with_policy(page: str) -> str:
    """A page of viser whose scripts are the ones in it now, and which loads nothing from elsewhere.

    Args:
        page: With its scripts, as viser writes it.

    Raises:
        RuntimeError: if viser writes pages in another way.
    """
    nonce = secrets.token_urlsafe(16)
    head, made = "<head>", 'document.createElement("script");'
    if page.count(made) != 1 or page.count(head) != 1:
        raise RuntimeError("this version of viser writes its page in another way; install viser 1.1")
    page = page.replace(made, f'{made}e.nonce="{nonce}";').replace("<script", f'<script nonce="{nonce}"')
    policy = POLICY.format(nonce=nonce)
    return page.replace(head, f'{head}\n    <meta http-equiv="Content-Security-Policy" content="{policy}" />')
