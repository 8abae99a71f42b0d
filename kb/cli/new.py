"""`kb new`: write a new record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli import NamedPath, NewFile, incidents_option
from kb.cli.case import diagnosed, open_service, read_case
from kb.cli.terminal import put, say
from kb.errors import KbError, LogError, unknown
from kb.files import check_new
from kb.guides import GUIDE_KINDS, Record
from kb.incident import Incident, Kind
from kb.paths import expand_user
from kb.service.service import DEFAULT_MATCHES, result_of
from kb.settings import Settings, load_settings

if TYPE_CHECKING:
    from kb.contribute.draft import Answers
    from kb.log import Log


@click.command("new")
@click.option(
    "--kind",
    type=click.Choice([Kind.INCIDENT.value, Kind.CHECK.value, Kind.PLAYBOOK.value]),
    default=Kind.INCIDENT.value,
    help="What to draft; a check or playbook starts with every section empty.",
)
@click.option(
    "--from-log",
    "logs",
    type=NamedPath(allow_dash=True),
    multiple=True,
    metavar="PATH",
    help="Fill in the draft from a log: a file, `-` for stdin, or the directory of one job.",
)
@click.option(
    "--from-cluster",
    "cluster",
    metavar="ID",
    help="Fill in the draft from the first log of this unknown cluster; needs --results.",
)
@click.option(
    "--from-report",
    "report",
    metavar="ID",
    help="Fill in the draft from an imported report; leads of `kb ask --json` show ids.",
)
@click.option(
    "--results",
    type=NamedPath(dir_okay=False, exists=True),
    metavar="FILE",
    help="The output of `kb classify --format jsonl` that holds the cluster.",
)
@click.option(
    "-o",
    "--output",
    type=NewFile(),
    metavar="FILE",
    help="Write to FILE; it must not exist yet.",
)
@incidents_option
def command(
    kind: str,
    logs: tuple[Path, ...],
    cluster: str | None,
    report: str | None,
    results: Path | None,
    output: Path | None,
    incidents: tuple[Path, ...],
) -> None:
    """Draft a new incident from scratch, from a log, from an unknown cluster or from an imported
    report; or a check or playbook.

    Parts that only a person can fill in are marked `TODO:`. No file is overwritten.
    """
    if bool(cluster) != bool(results):
        raise click.UsageError("use both options together: --from-cluster ID --results FILE")
    if output:
        check_new(output)
    settings = load_settings(incidents)
    record: Record
    if kind in GUIDE_KINDS:
        if logs or cluster or report:
            raise click.UsageError(f"a {kind} is not drafted from a log; leave out the log")
        record = _blank_guide(Kind(kind))
    elif report:
        record = _from_report(report, settings)
    elif cluster and results:
        record = _from_log(_log_of_cluster(cluster, results), settings)
    elif logs:
        record = _from_log(_log(logs), settings)
    else:
        record = _from_answers(settings)
    _write(record, output, settings, edit=not (logs or cluster or report) and sys.stdin.isatty())


def _log(paths: tuple[Path, ...]) -> Log:
    log = read_case((), paths)
    assert log is not None  # noqa: S101  there are paths
    return log


def _log_of_cluster(identifier: str, results: Path) -> Log:
    from kb.classify import read_rows
    from kb.classify.inputs import open_log

    rows = read_rows(results)
    paths = [row.path for row in rows if row.cluster == identifier]
    if not paths:
        known = sorted({row.cluster for row in rows if row.cluster})
        advice = f"{results} has {', '.join(known) or 'none'}"
        raise KbError(unknown("cluster", identifier, known, advice))
    return open_log(paths[0])


def _from_log(log: Log, settings: Settings) -> Incident:
    from kb.verdict import Verdict, percent

    with open_service(settings) as service:
        diagnosis = diagnosed(log, service, DEFAULT_MATCHES)
        if not diagnosis.evidence.lines:
            raise LogError("the log", "it contains no text")
        if diagnosis.verdict is Verdict.MATCH:
            best = diagnosis.matches[0]
            say(
                f"This log matches `{best.incident.id}` ({percent(best.confidence)}):"
                " read it with kb show before you write a new record."
            )
        if diagnosis.verdict is Verdict.HEALTHY:
            say("This log shows no failure; the draft quotes its last lines.")
        return result_of(service.draft(diagnosis))


def _from_report(report: str, settings: Settings) -> Incident:
    with open_service(settings) as service:
        return result_of(service.draft_of_report(report))


def _from_answers(settings: Settings) -> Incident:
    if not sys.stdin.isatty():
        raise click.UsageError("asking questions needs a terminal; use --from-log PATH or -")
    answers = _ask()
    with open_service(settings) as service:
        return result_of(service.blank(answers))


def _ask() -> Answers:
    from kb.contribute.draft import Answers

    say("Five questions; press Enter to skip one.")
    title, symptom, cause, fix, systems = (
        click.prompt(question, default="", show_default=False, err=True).strip()
        for question in (
            "Title: symptom and cause, in one line",
            "What are the symptoms",
            "What is the cause",
            "What is the first step of the fix",
            "Which systems (nccl, pytorch, slurm ...)",
        )
    )
    named = tuple(dict.fromkeys(systems.lower().replace(",", " ").split()))
    return Answers(title, symptom, cause, fix, named)


def _blank_guide(kind: Kind) -> Record:
    from kb.contribute.guide_draft import blank_guide

    return blank_guide(kind, f"new-{kind}")


def _write(record: Record, output: Path | None, settings: Settings, *, edit: bool) -> None:
    from kb.contribute.draft import save
    from kb.contribute.todo_marks import find_blanks

    directory = expand_user(next(iter(settings.incidents), "."))
    path = save(record, output or directory / f"{record.id}.md")
    put(str(path))
    if edit:
        try:
            click.edit(filename=str(path))
        except ValueError as error:  # the command is taken apart as a shell does it
            raise KbError(
                f"cannot read the command in EDITOR: {error}; the draft is {path}"
            ) from error
    blanks = list(find_blanks(path.read_text(encoding="utf-8").split("\n")))
    for blank in blanks:
        say(f"  line {blank.line}: {blank.where}: {blank.what}")
    say(f"{len(blanks)} TODO marks left; fill them in, then run: kb lint {path}")
