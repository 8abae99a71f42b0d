"""`kb list`: all records of some kind."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.check import Check
from kb.cli import incidents_option
from kb.cli.terminal import put, say, show
from kb.corpus.directories import GuideDirectories, IncidentDirectories
from kb.guides import GUIDE_KINDS, Record
from kb.incident import Incident, Kind
from kb.log.clean import strip_controls
from kb.problem import Problem, skipped
from kb.settings import load_settings


@click.command("list")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    help="List only records of this kind; `check` and `playbook` are listed only so.",
)
@incidents_option
def command(kind: str | None, incidents: tuple[Path, ...]) -> None:
    """List all incidents; in a pipe, one line each: id, kind, systems and title, tab-separated."""
    records, problems = _load(kind, load_settings(incidents).incidents)
    if sys.stdout.isatty():
        from kb.views.record import render_list

        show(render_list(records))
    else:
        for record in records:
            systems = ",".join(record.header.systems) if isinstance(record, _WITH_SYSTEMS) else ""
            columns = (record.id, record.kind, systems, record.title)
            put("\t".join(map(strip_controls, columns)))
    if problems:
        say(skipped(problem.path for problem in problems))


_WITH_SYSTEMS = (Incident, Check)


def _load(kind: str | None, extra: tuple[str, ...]) -> tuple[list[Record], list[Problem]]:
    records: list[Record] = []
    if kind in GUIDE_KINDS:
        guides, problems = GuideDirectories(extra).load()
        records += guides
    else:
        found, problems = IncidentDirectories(extra).load()
        records += found
    return [record for record in records if kind in (None, record.kind)], problems
