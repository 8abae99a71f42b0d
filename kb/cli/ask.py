"""`kb ask`: one diagnosis."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.case import case_arguments, diagnosed, open_service, read_case
from kb.cli.exit_codes import of_verdict
from kb.cli.terminal import put_json, say, show
from kb.service.service import DEFAULT_MATCHES
from kb.settings import load_settings

if TYPE_CHECKING:
    from kb.log import Log


@click.command("ask")
@case_arguments
@click.option(
    "--top",
    type=click.IntRange(1, 50),
    default=DEFAULT_MATCHES,
    show_default=True,
    help="Show at most N incidents.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; see docs/ask.schema.json.")
def command(
    text: tuple[str, ...],
    paths: tuple[Path, ...],
    top: int,
    as_json: bool,
    incidents: tuple[Path, ...],
) -> None:
    """Match an error against the known incidents.

    TEXT is an error message or a question. Without TEXT and -f, stdin is read.

    Exit code: 0 an incident matches, 1 none matches or the log is healthy, 2 usage error.
    """
    log = read_case(text, paths) or _from_stdin()
    with open_service(load_settings(incidents)) as service:
        diagnosis = diagnosed(log, service, top)
    if as_json:
        from kb.service.wire import to_json

        put_json(to_json(diagnosis))
    else:
        from kb.views.text import render

        show(render(diagnosis))
    raise click.exceptions.Exit(of_verdict(diagnosis.verdict))


def _from_stdin() -> Log:
    from kb.log import Log

    if sys.stdin.isatty():
        say("Paste the error, then press Enter and Ctrl-D:")
    return Log.from_stream(sys.stdin.buffer)
