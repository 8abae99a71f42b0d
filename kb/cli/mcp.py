"""`kb mcp`: the tools for agents."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click

from kb.cli import NamedPath, incidents_option
from kb.cli.terminal import say
from kb.errors import KbError, MissingExtraError
from kb.service.service import Service
from kb.settings import load_settings


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    type=NamedPath(file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="Let agents read logs below this directory; repeatable.",
)
@click.option(
    "--http",
    "address",
    metavar="[HOST:]PORT",
    help="Serve streamable HTTP at /mcp instead of stdin and stdout; another host than this"
    " machine needs a token in KB_TOKEN.",
)
@incidents_option
def command(
    roots: tuple[Path, ...],
    address: str | None,
    incidents: tuple[Path, ...],
) -> None:
    """Serve the tools for agents over the Model Context Protocol.

    An agent starts it by itself: see docs/mcp.md for its configuration. It ends with stdin. Files
    are read below --root only, and below what an agent on this machine announces as its roots.
    """
    if address is None and sys.stdin.isatty():
        raise KbError(
            "an agent starts `kb mcp` and talks to it over stdin; see docs/mcp.md, or use"
            " --http PORT"
        )
    _check_extra()
    roots = tuple(root.absolute() for root in roots)
    with Service(load_settings(incidents), notify=say) as service:
        if address is None:
            _over_stdio(service, roots)
        else:
            _over_http(service, roots, address)


def _check_extra() -> None:
    try:
        import mcp  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("kb mcp needs the SDK of the protocol", "serve") from error


def _over_stdio(service: Service, roots: tuple[Path, ...]) -> None:
    from kb.serve.mcp import serve_stdio

    # Nothing is to be undone, and a read of stdin cannot be interrupted in another way.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    asyncio.run(serve_stdio(service, roots))


def _over_http(service: Service, roots: tuple[Path, ...], told: str) -> None:
    from kb.serve.listen import listen, read_address, serve
    from kb.serve.mcp import PATH, mcp_alone
    from kb.serve.token import token_of_environment

    address, token = read_address(told), token_of_environment()
    with listen(address, token) as at:
        host, port = at.getsockname()[:2]
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        app = mcp_alone(service, roots, token)
        serve(app, at, lambda: say(f"MCP at http://{shown}{PATH}; Ctrl-C ends it"))
