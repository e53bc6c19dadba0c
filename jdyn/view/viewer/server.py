"""viser's server, without what it prints, and with a door."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from unittest import mock

import rich
import viser
import websockets.asyncio.server

from jdyn.view.viewer.door import Door

# One server begins at a time: what follows is changed for all of the process.
_beginning = threading.Lock()


class Server(viser.ViserServer):
    """A server behind a door.

    Attributes:
        url: Address of its page, with the token that it asks for.
    """

    def __init__(self, host: str, port: int):
        door = Door(host)
        with _behind(door) as guarded:
            super().__init__(host, port, verbose=False)
        if not guarded:
            self.stop()
            raise RuntimeError("this version of viser starts its server in another way; install viser 1.1")
        name = "localhost" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self.get_port()}/{door.token}/"


def start_server(host: str, port: int) -> Server:
    """A server at a port, or the next one that is free; 0 for any.

    Raises:
        RuntimeError: if viser starts it in another way than the one that is known.
    """
    with _silence():
        return Server(host, port)


def stop_server(server: viser.ViserServer) -> None:
    """End it, and wait for it."""
    with _silence():
        server.stop()


@contextlib.contextmanager
def _behind(door: Door) -> Iterator[list]:
    """viser has no setting for it: it takes the function of `websockets` that begins to listen, and gives it its hook.

    Yields:
        A list with one entry for each server of viser that has begun.
    """
    serve, guarded = websockets.asyncio.server.serve, []

    def serve_behind_door(handler, *arguments, **options):
        if handler.__module__.startswith("viser."):
            options["process_request"] = door.guarded(options["process_request"])
            guarded.append(handler)
        return serve(handler, *arguments, **options)

    with _beginning, mock.patch.object(websockets.asyncio.server, "serve", serve_behind_door):
        yield guarded


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """viser has no setting for it."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
