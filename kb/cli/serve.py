"""`kb serve`: the diagnosis over HTTP, for a team and its programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from kb.cli import NamedPath, incidents_option
from kb.cli.terminal import progress, say
from kb.errors import MissingExtraError, SettingsError
from kb.paths import state_directory
from kb.settings import Settings, load_settings

if TYPE_CHECKING:
    from socket import socket

    from kb.serve.guard import Rules

    Serve = Callable[[Settings, Rules, socket], AbstractContextManager[Callable[[], None]]]
    """Prepares to serve at a socket; then it can be done."""

_MAX_WORKERS = 64


class _Range(click.FloatRange):
    """A range of numbers; the one of click takes `nan`, which is less and more than nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, _MAX_WORKERS),
    default=1,
    show_default=True,
    help="Number of processes; one per core answers most.",
)
@click.option(
    "--token-file",
    type=NamedPath(dir_okay=False),
    metavar="FILE",
    help="Its first line is the token that clients must send; else KB_TOKEN is.",
)
@click.option(
    "--rate",
    type=_Range(0.1, 100_000),
    default=20,
    show_default=True,
    help="Requests a second of one client, in each process.",
)
@click.option("--screen", is_flag=True, help="Serve the terminal UI in a browser instead.")
@incidents_option
def command(
    host: str,
    port: int,
    workers: int,
    token_file: Path | None,
    rate: float,
    screen: bool,
    incidents: tuple[Path, ...],
) -> None:
    """Serve diagnoses, records and pages over HTTP.

    Another address than that of this machine needs a token. Encryption is left to a proxy; see
    docs/serve.md. With --screen, each browser that opens the page has a terminal UI of its own.

    \b
    kb serve
    curl -s --data-binary @slurm-4711.out -H 'Content-Type: text/plain' \\
      http://127.0.0.1:8080/v1/diagnose
    """
    if screen and workers > 1:
        raise click.UsageError("--screen has a process for each browser; leave out --workers")
    try:
        from kb.serve.guard import Rules
        from kb.serve.listen import Address, listen
        from kb.serve.token import token_in, token_of_environment

        serve = _screen(incidents) if screen else _pages(workers)
    except ImportError as error:
        what, extra = ("a terminal in the page", "screen") if screen else ("a web server", "serve")
        raise MissingExtraError(f"kb serve{' --screen' * screen} needs {what}", extra) from error
    from kb.corpus.sync import prepare

    rules = Rules(token_in(token_file) if token_file else token_of_environment(), rate)
    settings = load_settings(incidents)
    with listen(Address(host, port), rules.token) as at, serve(settings, rules, at) as run:
        with progress("Building the index") as report:
            prepare(settings, report, say)
        shown = f"[{host}]" if ":" in host else host
        say(f"Serving at http://{shown}:{at.getsockname()[1]}/; Ctrl-C ends it")
        run()


def _screen(incidents: tuple[Path, ...]) -> Serve:
    """What serves the screen."""
    from kb.serve.screen import screen_command, serve

    @contextmanager
    def prepared(_settings: Settings, rules: Rules, at: socket) -> Iterator[Callable[[], None]]:
        yield partial(serve, screen_command(incidents), rules, at, say)

    return prepared


def _pages(workers: int) -> Serve:
    """What serves the pages and answers programs."""
    from kb.serve.app import Options
    from kb.serve.http import serve

    @contextmanager
    def prepared(settings: Settings, rules: Rules, at: socket) -> Iterator[Callable[[], None]]:
        with _talks(settings) as talks:
            yield partial(serve, Options(settings, rules, talks), at, workers, say)

    return prepared


@contextmanager
def _talks(settings: Settings) -> Iterator[Path | str]:
    """Where the conversations are, ready to be used: in a file, which lives as long as the server
    without history, or in the PostgreSQL that is named."""
    from kb.serve.talks import prepare

    if settings.cases_at:
        yield _database(settings.cases_at, settings.history)
    elif settings.history:
        path = state_directory() / "serve" / "talks.sqlite"
        prepare(path, say)
        yield path
    else:
        with TemporaryDirectory(prefix="kb-") as directory:
            prepare(Path(directory) / "talks.sqlite", say)
            yield Path(directory) / "talks.sqlite"


def _database(url: str, history: bool) -> str:
    if not history:
        raise SettingsError("`history = false` keeps no cases, and `cases_at` says where; drop one")
    try:
        from kb.serve.postgres_talks import prepare
    except ImportError as error:
        raise MissingExtraError("cases in PostgreSQL need its client", "postgres") from error
    prepare(url)
    return url
