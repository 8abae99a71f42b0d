"""`kb eval`: how surely the right incident is found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from kb.cli import NamedPath, incidents_option
from kb.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from kb.evaluate import Report
    from kb.evaluate.chat import ChatReport
    from kb.evaluate.dialogues import DialogueReport
    from kb.evaluate.jobs import JobReport

Measured = TypeVar("Measured", bound="Report | JobReport | ChatReport | DialogueReport")


@click.command("eval")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[FILE.jsonl]...")
@click.option(
    "--jobs",
    "jobs",
    type=NamedPath(file_okay=False, exists=True),
    metavar="DIR",
    help="Measure recorded jobs instead; DIR holds folders with logs/ and truth.json.",
)
@click.option(
    "--chat",
    is_flag=True,
    help="Measure how many questions the conversation needs to tell look-alikes apart.",
)
@click.option(
    "--dialogues",
    "dialogues",
    type=NamedPath(),
    metavar="FILE",
    help="Measure scripted dialogues instead; FILE has one a line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--plot",
    "directory",
    type=NamedPath(file_okay=False),
    metavar="DIR",
    help="Write the curves to this directory as SVG and PNG.",
)
@incidents_option
def command(
    paths: tuple[Path, ...],
    jobs: Path | None,
    chat: bool,
    dialogues: Path | None,
    as_json: bool,
    directory: Path | None,
    incidents: tuple[Path, ...],
) -> None:
    """Run labelled reports through kb and print how many are answered correctly.

    A report is a line of JSON with `text`, `relevant` (ids of the correct incidents, empty if no
    known incident fits) and `kind`; optionally `id`, `lang` and `fix_must_match`. For --jobs see
    benchmarks/jobs/README.md, for --dialogues docs/chat.md.
    """
    if sum((bool(paths), bool(jobs), chat, bool(dialogues))) != 1:
        raise click.UsageError(
            "give exactly one of: files of labelled reports, --jobs DIR, --chat, --dialogues FILE"
        )
    settings = load_settings(incidents)
    if dialogues:
        from kb.views.dialogue_evaluation import render_dialogues

        _print(_measured_dialogues(dialogues, settings), render_dialogues, as_json)
    elif chat:
        from kb.views.chat_evaluation import render_chat

        _print(_measured_chat(settings), render_chat, as_json)
    elif jobs:
        from kb.views.evaluation import render_jobs

        _print(_measured_jobs(jobs, settings), render_jobs, as_json)
    else:
        from kb.views.evaluation import render

        _print(_measured_reports(paths, settings, directory), render, as_json)


def _measured_jobs(jobs: Path, settings: Settings) -> JobReport:
    from kb.cli.terminal import progress, say
    from kb.corpus.base import KnowledgeBase
    from kb.evaluate.jobs import measure_jobs, read_truths, run_jobs

    truths = read_truths(jobs)
    outcomes = []
    with progress("diagnosing") as report, KnowledgeBase.open(settings, notify=say) as knowledge:
        for outcome in run_jobs(truths, knowledge):
            outcomes.append(outcome)
            report(len(outcomes), len(truths))
    return measure_jobs(outcomes)


def _measured_chat(settings: Settings) -> ChatReport:
    from kb.cli.terminal import progress, say
    from kb.corpus.base import KnowledgeBase
    from kb.corpus.directories import IncidentDirectories
    from kb.evaluate.chat import measure_chat, talk
    from kb.evaluate.lookalikes import lookalikes

    incidents, _problems = IncidentDirectories(settings.incidents).load()
    by_id = {incident.id: incident for incident in incidents}
    reports = []
    with progress("talking") as report, KnowledgeBase.open(settings, notify=say) as knowledge:
        groups = lookalikes(incidents, knowledge)
        for group in groups:
            reports.append(talk(group, by_id, knowledge))
            report(len(reports), len(groups))
    return measure_chat(reports)


def _measured_dialogues(path: Path, settings: Settings) -> DialogueReport:
    from kb.cli.terminal import progress, say
    from kb.corpus.base import KnowledgeBase
    from kb.evaluate.dialogues import hold, measure_dialogues, read_scripts

    scripts = read_scripts(path)
    held = []
    with progress("talking") as report, KnowledgeBase.open(settings, notify=say) as knowledge:
        for script in scripts:
            held.append(hold(script, knowledge))
            report(len(held), len(scripts))
    return measure_dialogues(held)


def _measured_reports(
    paths: tuple[Path, ...], settings: Settings, directory: Path | None
) -> Report:
    from kb.cli.terminal import progress, say
    from kb.corpus.base import KnowledgeBase
    from kb.corpus.directories import IncidentDirectories
    from kb.evaluate import measure, read_cases, run
    from kb.evaluate.plots import check_plots, plots
    from kb.files import write_new

    if directory:
        check_plots(directory)
    records, _problems = IncidentDirectories(settings.incidents).load()
    systems = {record.id: record.header.systems[0] for record in records}
    cases = [case for path in paths for case in read_cases(path, systems)]
    with progress("asking") as report, KnowledgeBase.open(settings, notify=say) as knowledge:
        outcomes = []
        for outcome in run(cases, knowledge, systems.keys()):
            outcomes.append(outcome)
            report(len(outcomes), len(cases))
    result = measure(outcomes, systems)
    if directory:
        for name, drawn in plots(result):
            say(f"wrote {write_new(directory / name, drawn)}")
    return result


def _print(result: Measured, render: Callable[[Measured], RenderableType], as_json: bool) -> None:
    """A set of reports is shared, and so is what is found with it: both forms are masked."""
    from kb.cli.terminal import put_json, show
    from kb.evidence.secrets import without_secrets
    from kb.service.wire import indented

    masked = without_secrets(result)
    if as_json:
        put_json(indented(masked))
    else:
        show(render(masked))
