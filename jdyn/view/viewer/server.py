"""viser's server, without what it prints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import rich
import viser


def start_server(host: str, port: int) -> viser.ViserServer:
    """A server at a port, or the next one that is free; 0 for any."""
    with _silence():
        return viser.ViserServer(host, port, verbose=False)


def stop_server(server: viser.ViserServer) -> None:
    """End it, and wait for it."""
    with _silence():
        server.stop()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """viser has no setting for it."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
