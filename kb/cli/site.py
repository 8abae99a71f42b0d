"""`kb site`: all records as a static web site."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import NamedPath, incidents_option
from kb.cli.terminal import say
from kb.corpus.directories import RecordDirectories
from kb.guides import Record
from kb.problem import skipped
from kb.settings import load_settings


@click.command("site")
@click.argument("directory", type=NamedPath(file_okay=False), metavar="DIR")
@incidents_option
def command(directory: Path, incidents: tuple[Path, ...]) -> None:
    """Write all records, checks and playbooks as a web site into DIR, which must be new or empty.

    Any web server can show it, and a browser without one: open DIR/index.html.
    """
    from kb.views.web import check_directory, write_site

    check_directory(directory)
    library: RecordDirectories[Record] = RecordDirectories(load_settings(incidents).incidents)
    records, problems = library.load()
    written = write_site(directory, {record.id: record for record in records}, say)
    if problems:
        say(skipped(problem.path for problem in problems))
    say(f"{written} records; open {directory}/index.html")
