"""`kb serve`: the diagnosis over HTTP, for a team and its programs."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import click

from kb.cli import NamedPath, incidents_option
from kb.cli.terminal import progress, say
from kb.errors import KbError, MissingExtraError
from kb.files import read_given
from kb.paths import state_directory
from kb.settings import load_settings

_TOKEN = "KB_TOKEN"  # noqa: S105  the name of a variable
_MIN_TOKEN_CHARACTERS = 16
_MAX_TOKEN_BYTES = 4_096
_MAX_WORKERS = 64


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
    help=f"The first line is the token that clients must send; or set {_TOKEN}.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0.1, 100_000),
    default=20,
    show_default=True,
    help="Requests a second of one client, in each process.",
)
@incidents_option
def command(
    host: str,
    port: int,
    workers: int,
    token_file: Path | None,
    rate: float,
    incidents: tuple[Path, ...],
) -> None:
    """Serve diagnoses, records and pages over HTTP.

    Another address than that of this machine needs a token. Encryption is left to a proxy; see
    docs/serve.md.

    \b
    kb serve
    curl -s --data-binary @slurm-4711.out -H 'Content-Type: text/plain' \\
      http://127.0.0.1:8080/v1/diagnose
    """
    token = _token(token_file)
    if token is None and not _is_this_machine(host):
        raise KbError(
            f"{host} can be reached by others; set {_TOKEN} or --token-file, or leave --host out"
        )
    try:
        from kb.serve.app import Options
        from kb.serve.guard import Rules
        from kb.serve.http import listen, serve
    except ImportError as error:
        raise MissingExtraError("kb serve needs a web server", "serve") from error
    from kb.corpus.sync import prepare

    settings = load_settings(incidents)
    listening = listen(host, port)
    with progress("Building the index") as report:
        prepare(settings, report, say)
    shown = f"[{host}]" if ":" in host else host
    say(f"Serving at http://{shown}:{listening.getsockname()[1]}/")
    cases = state_directory() / "serve" / "cases.sqlite"
    serve(Options(settings, Rules(token, rate), cases), listening, workers, say)


def _token(file: Path | None) -> str | None:
    """The token, from a file or the environment.

    Raises:
        KbError: it cannot be read, or is no good one.
    """
    token = os.environ.get(_TOKEN) or None
    if file is not None:
        try:
            token = read_given(file, _MAX_TOKEN_BYTES).decode("utf-8", "replace").partition("\n")[0]
        except OSError as error:
            raise KbError(f"cannot read the token in {file}: {error.strerror or error}") from error
    if token is None:
        return None
    token = token.strip()
    if len(token) < _MIN_TOKEN_CHARACTERS or not (token.isascii() and token.isprintable()):
        raise KbError(
            f"the token must have at least {_MIN_TOKEN_CHARACTERS} characters of ASCII; make one:"
            " openssl rand -hex 32"
        )
    return token


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
