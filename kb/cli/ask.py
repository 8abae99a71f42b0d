"""`kb ask`: one diagnosis."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli import incidents_option
from kb.diagnosis import MOST_MATCHES, Diagnosis, Verdict, diagnose
from kb.knowledge import Knowledge
from kb.log import Log, Source
from kb.settings import load_settings


@click.command("ask")
@click.argument("text", nargs=-1)
@click.option(
    "-f",
    "--file",
    "paths",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    metavar="PATH",
    help="A log file, `-` for stdin, or a directory with the logs of one job.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 50),
    default=MOST_MATCHES,
    show_default=True,
    help="Show at most so many incidents.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; see docs/ask.schema.json.")
@incidents_option
def command(
    text: tuple[str, ...],
    paths: tuple[Path, ...],
    top: int,
    as_json: bool,
    incidents: tuple[Path, ...],
) -> None:
    """Match an error against the known incidents.

    TEXT is an error message or a question. Without TEXT and -f, stdin is read.

    Exit code: 0 something matches, 1 nothing known matches or the log is healthy, 2 wrong use.
    """
    log = _log(" ".join(text), paths)
    diagnosis = _diagnose(log, incidents, top)
    if as_json:
        from kb.views.json import to_json

        click.echo(to_json(diagnosis))
    else:
        from kb.cli.terminal import show
        from kb.views.text import render

        show(render(diagnosis))
    found = diagnosis.verdict in (Verdict.MATCH, Verdict.POSSIBLE)
    raise click.exceptions.Exit(0 if found else 1)


def _log(text: str, paths: tuple[Path, ...]) -> Log:
    sources: list[Source] = list(Log.from_text(text).sources) if text else []
    for path in paths:
        log = Log.from_stream(sys.stdin.buffer) if str(path) == "-" else Log.from_paths([path])
        sources.extend(log.sources)
    if sources:
        return Log(sources)
    if sys.stdin.isatty():
        click.echo("Paste the error, then press Enter and Ctrl-D:", err=True)
    return Log.from_stream(sys.stdin.buffer)


def _diagnose(log: Log, incidents: tuple[Path, ...], top: int) -> Diagnosis:
    from kb.cli.terminal import progress, say

    with (
        progress("Building the index") as report,
        Knowledge.open(load_settings(incidents), report, say) as knowledge,
    ):
        diagnosis = diagnose(log, knowledge, top)
    for notice in diagnosis.notices:
        say(notice)
    return diagnosis
