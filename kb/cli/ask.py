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
from kb.settings import Settings, load_settings

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis
    from kb.log import Log
    from kb.outcome import Outcome


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
    settings = load_settings(incidents)
    with open_service(settings) as service:
        diagnosis = diagnosed(log, service, top)
    earlier = _ended_before(diagnosis, settings)
    if as_json:
        from kb.service.wire import to_json

        put_json(to_json(diagnosis, earlier))
    else:
        from kb.views.text import render

        show(render(diagnosis, _in_words(earlier) if earlier else ""))
    raise click.exceptions.Exit(of_verdict(diagnosis.verdict))


def _ended_before(diagnosis: Diagnosis, settings: Settings) -> Outcome | None:
    from kb.diagnosis import ended_before
    from kb.outcomes import Outcomes

    return ended_before(diagnosis, Outcomes(settings, say).load())


def _in_words(earlier: Outcome) -> str:
    from kb.conversation.language import Language
    from kb.conversation.opening import describe_outcome

    return describe_outcome(earlier, Language.ENGLISH)


def _from_stdin() -> Log:
    from kb.log import Log

    if sys.stdin.isatty():
        say("Paste the error, then press Enter and Ctrl-D:")
    return Log.from_stream(sys.stdin.buffer)
