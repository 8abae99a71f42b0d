"""`kb list`: all incidents."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli import incidents_option
from kb.cli.terminal import put, say, show
from kb.corpus.directories import IncidentDirectories
from kb.log.clean import strip_controls
from kb.settings import load_settings


@click.command("list")
@incidents_option
def command(incidents: tuple[Path, ...]) -> None:
    """List all incidents; in a pipe, one line each: id, kind, systems and title, tab-separated."""
    records, problems = IncidentDirectories(load_settings(incidents).incidents).load()
    if sys.stdout.isatty():
        from kb.views.record import render_list

        show(render_list(records))
    else:
        for record in records:
            systems = ",".join(record.header.systems)
            columns = (record.id, record.kind, systems, record.title)
            put("\t".join(map(strip_controls, columns)))
    if problems:
        say(f"{len(problems)} problems in incident files; run: kb lint")
