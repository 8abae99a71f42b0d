"""`kb ask`: one diagnosis."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli.case import case_arguments, diagnosed, read_case
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import MAX_MATCHES_SHOWN, Diagnosis
from kb.log import Log
from kb.settings import load_settings
from kb.verdict import Verdict


@click.command("ask")
@case_arguments
@click.option(
    "--top",
    type=click.IntRange(1, 50),
    default=MAX_MATCHES_SHOWN,
    show_default=True,
    help="Show at most so many incidents.",
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

    Exit code: 0 something matches, 1 nothing known matches or the log is healthy, 2 wrong use.
    """
    log = read_case(text, paths) or _from_stdin()
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


def _from_stdin() -> Log:
    if sys.stdin.isatty():
        click.echo("Paste the error, then press Enter and Ctrl-D:", err=True)
    return Log.from_stream(sys.stdin.buffer)


def _diagnose(log: Log, incidents: tuple[Path, ...], top: int) -> Diagnosis:
    from kb.cli.terminal import progress, say

    with (
        progress("Building the index") as report,
        KnowledgeBase.open(load_settings(incidents), report, say) as knowledge,
    ):
        return diagnosed(log, knowledge, top)
