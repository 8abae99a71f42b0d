"""A socket to listen at, and an application served there until a signal ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import msgspec
import uvicorn

from kb.errors import KbError
from kb.serve.token import VARIABLE, App

_BACKLOG = 128
"""Connections that wait to be taken."""
_GRACE_SECONDS = 3
"""For answers under way when the server ends: a stream that a client keeps open has no end."""
_HIGHEST_PORT = 65_535


class Address(msgspec.Struct, frozen=True):
    """Where to listen."""

    host: str
    port: int
    """0: any that is free."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_address(text: str) -> Address:
    """`[HOST:]PORT`; the host is this machine unless it is named.

    Raises:
        KbError: it is of another form.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= _HIGHEST_PORT):
        raise KbError(f"{text!r} is no address; write PORT or HOST:PORT, such as 8765")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def listen(address: Address, token: str) -> socket.socket:
    """Listen at an address: one that others reach needs a token.

    Raises:
        KbError: there is none, or the address cannot be used.
    """
    if not (address.is_loopback or token):
        raise KbError(
            f"{address.host} can be reached from other machines, so a token is needed; set"
            f" {VARIABLE}, or listen at 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "the name cannot be used"
        raise KbError(f"cannot listen at {address.host}:{address.port}: {why}") from error


def serve(app: App, at: socket.socket, ready: Callable[[], None]) -> None:
    """Serve an application until a signal ends it; `ready` is called once it answers."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, ready).run(sockets=[at])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As the library does it, and say so."""
        await super().startup(sockets)
        self._ready()
